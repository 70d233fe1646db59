"""Circuits in motion against worked numbers and closed forms."""

import csv
from pathlib import Path

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.hydraulics import (
    Circuit,
    HydraulicCylinder,
    Motor,
    Oil,
    OnJoint,
    ServoValve,
    Supply,
    Tank,
    Volume,
)
from experiments.harness import tables
from experiments.studies.titan4 import model as titan, rig as titan4_rig

from .rigs import BAR, boom, pipe, slider, valve_step


pytestmark = pytest.mark.validation
STIFF = {"solver": "rodas4", "rtol": 1e-5, "atol": 1e-5}


@eqx.filter_jit
def poles(system: djdyn.System, y: djdyn.State):
    """The Jacobian of the equations of motion on one flat array."""
    flat, unravel = jax.flatten_util.ravel_pytree(y)
    rate = lambda x: jax.flatten_util.ravel_pytree(system.derivative(0.0, unravel(x)))
    return jax.jacfwd(lambda x: rate(x)[0])(flat)


def test_trapped_volumes_hyd_0():
    """Frequency of a mass between two shut chambers."""
    for V, hertz in ((1e-3, 7.118), (1e-4, 22.508), (1e-5, 71.176), (1e-6, 225.079)):
        system = valve_step(V, area=1e-3, damping=0.0)
        system = djdyn.with_parameters(system, {"u": 0.0})
        found = np.linalg.eigvals(poles(system, system.initial_state()))
        assert np.allclose(np.abs(found.imag).max() / (2 * np.pi), hertz, atol=6e-4)


TABLE = {  # V: x, p0, p1 at 1 s, largest p0
    1e-3: (0.156673, 101.2896, 99.7104, 131.235),
    1e-4: (0.156686, 101.2855, 99.7145, 171.336),
    1e-6: (0.156664, 101.2855, 99.7145, 199.986),
}


def test_valve_step_hyd_1():
    times = np.concatenate([np.linspace(0, 0.02, 201), np.linspace(0.03, 1, 98)])
    for V, (x, p0, p1, most) in TABLE.items():
        run = djdyn.simulate(valve_step(V), 1.0, saveat=times, **STIFF)
        A, B = run.y.parts["oil"]["A.bar"], run.y.parts["oil"]["B.bar"]
        assert abs(run.y.q[-1, 0] - x) < 2e-6
        assert abs(A[-1] - p0) < 0.01 and abs(B[-1] - p1) < 0.01
        assert abs(A.max() - most) < 0.05  # between the times it is saved at


def test_no_chatter_at_zero_flow_hyd_2():
    """A valve far too large: the chamber stays within a few kPa of the supply."""
    rig = valve_step(1e-3, 1e-3, 2e4, 2e-5, 1 * BAR, 100 * BAR, 0.0)
    system = djdyn.with_parameters(rig, {"u": 0.5})
    run = djdyn.simulate(system, 4.0, saveat=[0.0, 4.0], **STIFF)
    v = np.roots([2 * (1e-3 / 1e-5) ** 2, 2e4 / 1e-3, -100 * BAR]).max()
    assert jnp.allclose(run.v("mass")[-1, 0], v, rtol=1e-5)
    drop = (1e-3 * v / 1e-5) ** 2
    assert jnp.allclose(run.y.parts["oil"]["A.bar"][-1] * BAR, 100 * BAR - drop, atol=9)
    assert run.steps < 500


def test_water_hammer_hyd_3():
    """Joukowsky: a line closed at once shows rho a dv until the wave returns."""
    n, length, speed = 24, 24.0, 0.5
    system = pipe(n, length, speed, 50 * BAR)
    a = np.sqrt(1.4e9 / 870.0)
    t = np.linspace(0.0, 1.6 * length / a, 81)
    run = djdyn.simulate(system, t[-1], saveat=t, rtol=1e-7, atol=1e-7)
    rise = run.y.parts["oil"][f"n{n - 1}.bar"] - 50
    plateau = jnp.mean(rise[20:])
    assert jnp.allclose(plateau, 870 * a * speed / BAR, rtol=0.02)


@pytest.mark.slow
def test_hydraulic_boom_real_time_multibody_v15():
    """The whole series, by steps that the oil does not dictate."""
    rows = list(csv.DictReader(_lines("rtmb_ref_hydraulic_boom.csv")))
    column = lambda name: np.array([float(row[name]) for row in rows])
    times = column("t_s")
    run = djdyn.simulate(
        boom(), times[-1], saveat=times, solver="rodas4", rtol=1e-7, atol=1e-7,
        jumps=[0.5, 2.0, 3.0, 4.0], ledger=True,
    )  # fmt: skip
    oil = run.y.parts["oil"]
    assert np.abs(run.y.q[:, 0] - column("theta_rad")).max() < 1e-7
    assert np.abs(run.y.v[:, 0] - column("omega_rad_s")).max() < 1e-5
    assert np.abs(oil["A.bar"] - column("p1_Pa") / BAR).max() < 2e-3
    assert np.abs(oil["B.bar"] - column("p2_Pa") / BAR).max() < 2e-3
    assert np.abs(10 * oil["valve.spool"] - column("spool_U")).max() < 1e-6
    assert np.abs(djdyn.energy_balance(run.system, run)).max() < 0.02  # of 21 kJ drawn
    assert run.steps < 2500  # two milliseconds each, on average


def _lines(name: str) -> list[str]:
    text = (Path(__file__).parent.parent / "data" / name).read_text()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_mode_of_the_boom_real_time_multibody_v15():
    system = boom()
    found = np.linalg.eigvals(poles(system, system.initial_state()))
    assert np.allclose(np.abs(found.imag).max(), 31.4033, atol=0.02)


def test_pole_of_a_small_volume_real_time_multibody_v22():
    """(B/V) Cv U 1.5/sqrt(p_tr) where the drop vanishes."""
    gain = 5.345224838e-7
    for V, pole in ((1.63e-3, 2489.0), (0.05e-3, None)):
        parts = {
            "P": Supply(80 * BAR),
            "T": Tank(),
            "A": Volume(V, 80 * BAR),
            "B": Volume(1.0),
            "valve": ServoValve("P", "T", "A", "B", "u", gain),
        }
        oil = Oil(bulk_modulus=1.6e9, conserves="volume")
        system = slider(Circuit(oil, parts), u=1.0)
        found = -np.linalg.eigvals(poles(system, system.initial_state())).real.min()
        assert np.allclose(found, 1.6e9 / V * gain * 1.5 / np.sqrt(1e5), rtol=1e-9)
        assert pole is None or np.allclose(found, pole, atol=0.6)


def test_two_pressures_move_as_one_bond_graph_v11():
    """A symmetric motor keeps Pu + Pd = Ps, and P_L obeys one equation."""
    wheel = djdyn.Body("wheel", "world", djdyn.Revolute(), 1.0, I_BC=150 * np.eye(3))
    Ps, gain, Vp, stiff = 307 * BAR, 0.9 * 1e-6 * np.sqrt(2 / 950), 1e-4, 1e11
    parts = {
        "P": Supply(Ps),
        "T": Tank(),
        "A": Volume(1e-3, 0.7 * Ps),
        "B": Volume(1e-3, 0.3 * Ps),
        "valve": ServoValve("P", "T", "A", "B", "u", gain, transition=10.0),
        "motor": Motor("A", "B", "wheel", Vp),
    }
    oil = Oil(950.0, 1e8, conserves="volume")
    system = djdyn.System(
        djdyn.Mechanism((wheel,)), {"oil": Circuit(oil, parts)}, {"u": 1.0}
    )

    @eqx.filter_jit
    def rates(system, v):
        return system.derivative(0.0, system.initial_state(v={"wheel": v})).parts["oil"]

    for u in (1.0, -0.4):
        rate = rates(djdyn.with_parameters(system, {"u": u}), 0.3)
        assert jnp.allclose(rate["A.bar"], -rate["B.bar"], rtol=1e-12)
        P_L, z = 0.4 * Ps, Ps - np.sign(u) * 0.4 * Ps
        known = 2 * stiff * (-Vp * 0.3 + 0.9 * np.sqrt(z / 950) * u * 1e-6)
        assert jnp.allclose((rate["A.bar"] - rate["B.bar"]) * BAR, known, rtol=1e-12)
        assert P_L < Ps


@pytest.mark.slow
def test_oil_and_energy_over_a_run():
    """A cylinder driven out and in again: mass and energy close, oil leaves or not."""
    oil = Oil(air=0.002)
    parts = {
        "P": Supply(100 * BAR),
        "T": Tank(),
        "A": Volume(1e-4, 50 * BAR, 1e-4, 4e8),
        "B": Volume(1e-4, 50 * BAR),
        "valve": ServoValve("P", "T", "A", "B", "u", 1e-7, spool="lag", lag=0.02),
        "ram": HydraulicCylinder("A", "B", OnJoint("mass"), 2e-3, 1.5e-3, 1.0),
    }
    system = slider(Circuit(oil, parts), u=1.0)
    y = system.initial_state(q={"mass": 0.3})
    run = djdyn.simulate(
        system, 0.5, y, saveat=26, solver="rodas4", rtol=1e-8, atol=1e-8, ledger=True
    )
    assert np.abs(djdyn.energy_balance(system, run)).max() < 1e-5 * run.work[-1, 0]


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("motor", ["cpm_r1e11", "spm_P0zero_r1e11", "spm_P0half_r1e11"]),
        ("piston", ["cpm_r1e12", "spm_P0zero_r1e11", "spm_P0zero_r1e12"]),
    ],
)
def test_steps_bond_graph_v13_v14(file, names):
    rows = tables.read(f"titan4/ref_step_{file}.csv")
    unit = "rad" if file == "motor" else "m"
    times = tables.columns(rows, "t_s")[:, 0]
    q, load = titan4_rig.steps(names, times, file == "piston")
    known = tables.columns(rows, *(f"q_{name}_{unit}" for name in names)).T
    assert np.abs(q - known).max() < 1e-5
    known = tables.columns(rows, *(f"PL_{name}_bar" for name in names)).T
    assert np.abs(load - known).max() < 0.01


def test_locked_valves_bond_graph_v15():
    """Modes of the Titan 4 on the oil of its shut valves, gravity left out."""
    arm, q = titan.mechanism(), jnp.zeros(6)
    arm = eqx.tree_at(lambda m: m.gravity_W, arm, jnp.zeros(3))
    parts = titan.circuit(*titan.static_pressures(arm, q)).parts
    parts = {k: x for k, x in parts.items() if not isinstance(x, ServoValve)}
    ends = {k: x for k, x in parts.items() if k not in ("P", "T")}
    oil = Circuit(Oil(950.0, 1e8, conserves="volume"), ends)
    system = djdyn.System(arm, {"oil": oil})
    found = np.linalg.eigvals(poles(system, system.initial_state()))
    found = np.sort(found.imag[found.imag > 1e-3])
    known = np.array([2.716, 3.754, 7.337, 8.841, 26.26, 48.27])
    # Known for the mean of the piston's areas, 1 % softer at joint 2.
    assert np.allclose(found, known, rtol=4e-3)
