"""Init files of ship gear, with the samples that their report prints."""

import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import djdyn
from controllers import WinchPID
from djdyn.io.scenario import read_scenario
from djdyn.io.ship_ini import KEYS, REFUSED, read_ship_ini, ship_scenario
from experiments.machine.kinds import KINDS


SAMPLES = Path(__file__).parents[1] / "data" / "ship_ini_samples.csv"
NAMES = {"environment": "env", "integrator": "RK45", "cable": "cable",
         "payload": "payload", "crane": "boomcrane", "winch": "winch"}  # fmt: skip


def samples(folder, **changes):
    """Write the samples, with other values of some keys, and return their paths."""
    lines = [x for x in SAMPLES.read_text().splitlines() if not x.startswith("#")]
    texts = {}
    for row in csv.DictReader(lines):
        value = changes.pop(row["key"], row["value"])
        texts.setdefault(row["file"], []).append(f"${row['key']} {value}")
    assert not changes
    paths = {kind: folder / f"{name}.ini" for kind, name in NAMES.items()}
    for path in paths.values():
        path.write_text("# a sample\n\n" + "\n".join(texts[path.name]) + "\n")
    return paths


def read(folder, paths, **how):
    text = ship_scenario(paths, t1=0.1, ignore=tuple(REFUSED), **how)
    (folder / "ship.toml").write_text(text)
    return read_scenario(folder / "ship.toml", KINDS), text


def test_the_samples_become_a_machine(tmp_path):
    found, text = read(tmp_path, samples(tmp_path), node_n="payload")
    system, y = found.system, found.initial_state
    assert list(system.parts) == [
        "link1_drive", "link2_drive", "link2_stop", "line", "winch", "link1_pid",
        "link2_pid",
    ]  # fmt: skip
    values = {
        "line.rope.EA": 4e6, "line.rope.linear_density": 500 * np.pi / 4 * 0.024**2,
        "line.rope.axial_damping": 1e3, "line.rope.compression": 1.0,
        "line.length": 14.642, "line.fluid.air_density": 1.2, "payload.mass": 7800.0,
        "link1.mass": 682.97, "link1_pid.kp": 1e9, "link1_pid.power": 5e5,
        "link2_stop.upper": np.pi / 2, "link2_stop.damping": 1e6,
        "winch.acceleration": 3.0, "winch.deceleration": 3.0,
    }  # fmt: skip
    for path, value in values.items():
        assert np.allclose(djdyn.get_parameters(system, path), value), path
    rows = [
        {"name": "a", "type": "revolute", "mass": 1.0, "alpha": np.pi / 2, "d": 1.4},
        {"name": "b", "type": "revolute", "mass": 1.0, "a": 1.0},
    ]
    rows[0]["a"] = -0.65
    arm = djdyn.from_dh(rows)
    q = jnp.array([0.3, np.pi / 4])
    wanted = djdyn.frame_pose(arm, q, "b.end")
    turned = system.initial_state(jnp.concatenate([q, y.q[2:]]))
    world = system.at(0.0, turned).world
    assert np.allclose(world.pose("link2.end").p, wanted.p)
    assert np.allclose(world.pose("link2.end").R, wanted.R)
    assert np.allclose(world.pose("head_eye").p, [3.645, 0, 1])
    assert "# OutputFolder of the winch: winch_output_folder" in text
    assert "# TensionSetPoint of the winch, without use in velocity mode: 2000" in text


def test_a_winch_in_tension_mode_follows_the_tension_of_its_end(tmp_path):
    found, _ = read(
        tmp_path, samples(tmp_path), node_0="link2.end", winch_mode="tension"
    )
    pid = found.system.parts["tension"]
    assert isinstance(pid, WinchPID)
    assert pid.measured == "line.tail_tension" and float(pid.kp) == 0.1
    assert float(found.inputs.get("tension_wanted", 0) or 2000.0) == 2000.0


def test_angles_and_rates_of_the_payload_turn_about_z_y_x(tmp_path):
    angles, rates, h = np.array([0.3, -0.4, 1.1]), np.array([0.2, 0.5, -0.7]), 1e-6
    changes = {f"{i + 9}|IC": x for i, x in enumerate(angles)}
    changes |= {f"{i + 3}|IC": x for i, x in enumerate(rates)}
    paths = samples(tmp_path, **changes)
    found, _ = read(tmp_path, paths, node_n="payload")
    y, at = found.initial_state, lambda x: Rotation.from_euler("ZYX", x[::-1])
    w, x, yy, z = np.asarray(y.q[-4:])
    assert np.allclose(Rotation([x, yy, z, w]).as_matrix(), at(angles).as_matrix())
    turn = (at(angles).inv() * at(angles + h * rates)).as_rotvec() / h
    assert np.allclose(y.v[-6:-3], turn, atol=1e-5)
    world = found.system.at(0.0, y).world
    assert np.allclose(world.pose("head_eye").p, [3.645, 0, 1])


def test_every_key_is_used_or_refused_by_name(tmp_path):
    paths = samples(tmp_path)
    refused = r"cannot hold airKinematicViscosity: coeff.*Timestep.*mus: .*ignore="
    with pytest.raises(ValueError, match=refused):
        ship_scenario(paths, t1=1.0)
    with pytest.raises(ValueError, match="cannot ignore 'EA'"):
        ship_scenario(paths, t1=1.0, ignore=("EA",))
    assert all(not {*REFUSED} & {*keys} for keys in KEYS.values())


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("cable", "$EA 4e6\n$EA 5e6", "line 2: EA is given twice"),
        ("cable", "$EB 4e6", "cable has no key EB"),
        ("cable", "EA 4e6", r"a key starts with \$: EA"),
        ("cable", "$EA", "EA has no value"),
        ("boat", "", "unknown kind 'boat'"),
    ],
)
def test_bad_lines_are_refused(tmp_path, kind, text, said):
    (tmp_path / "a.ini").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_ship_ini(tmp_path / "a.ini", kind)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"EA": "stiff"}, "EA: stiff is no number"),
        ({"EA": "1 2"}, "EA needs 1 finite numbers"),
        ({"1|IC": "0 3.645 0 0.5 0 8"}, "starts at rest and straight"),
        ({"0|LinkMass": "1 2 3"}, r"0\|LinkMass: a body has one mass"),
        ({"1|LinkCGOrientation": "1 0 0"}, "its unit is not known"),
        ({"1|JointControlType": "free"}, "is position, velocity, passive, not free"),
        ({"0|Mass": "7800 0 0 0 0 1"}, "about its mass centre"),
    ],
)
def test_what_a_scenario_cannot_hold_is_refused(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        read(tmp_path, samples(tmp_path, **change), node_n="payload")
