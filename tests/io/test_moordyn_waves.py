"""Waves of MoorDyn decks, beside MoorDyn's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.io import from_moordyn, read_moordyn
from djdyn.io.moordyn_water import deck_water
from djdyn.io.moordyn_waves import deck_waves
from experiments.harness.moordyn_peer import deck as deck_text, quiet


DEPTH, SEGMENTS = 50, 20
ROPE = ("rope", 0.2, 40.0, 1e6, -0.5, 0, 1.4, 1.0, 0.3, 0.2)
GRID = "title\nlist of points\nin blocks\n1\n{x}\n1\n-1 0 1\n1\n{z}\n".format(
    x=" ".join(f"{x:g}" for x in np.arange(-12, 13, 1.0)),
    z=" ".join(f"{z:g}" for z in [*np.arange(-51, -12, 3), *np.arange(-12, 2.6, 0.25)]),
)
SINE = "0 0 0\n0.35 0.6 0.3\n0.8 0.0 0.5 1.57\n1.1 -0.2 0.1 -0.4\n"
EVEN = "0 0 0\n0.2 0.5 0.2\n0.4 0.0 0.6\n0.6 0.1 -0.1\n0.8 0 0\n12.8 0 0\n"


def written(folder, mode, more=(), **options):
    """Write a deck of one line in waves, and the files it stands beside."""
    text = deck_text(
        [ROPE],
        [(1, "Fixed", -8, 0, -25, 0, 0, 0, 0), (2, "Fixed", 8, 0, -6, 0, 0, 0, 0)],
        [(1, "rope", 1, 2, 28, 10, "-")],
        g=9.80665, rho=1025, WtrDpth=DEPTH, dtM=1e-3, TmaxIC=0, tScheme="RK2",
        WaveKin=mode, writeLog=-1, disableOutput=1, **options,
    )  # fmt: skip
    t = np.arange(0.0, 40.01, 0.2)
    height = 0.2 + 0.5 * np.sin(0.5 * t) - 0.3 * np.cos(1.0 * t + 0.4)
    files = {
        "lines.txt": text,
        "water_grid.txt": GRID,
        "wave_frequencies.txt": EVEN if mode == 2 else SINE,
        "wave_elevation.txt": "".join(
            f"{a} {b}\n" for a, b in zip(t, height, strict=True)
        ),
        **dict(more),
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder / "lines.txt"


def peer_run(moordyn, path, places, times):
    """Return MoorDyn's kinematics at places and times, and the line's tensions."""
    with quiet():
        system = moordyn.Create(str(path))
        assert moordyn.Init(system, [], []) == 0
        waves, line = moordyn.GetWaves(system), moordyn.GetLine(system, 1)
        found, tension, now = [], [], 0.0
        for t in times:
            if t > now:
                moordyn.Step(system, [], [], now, t - now)
                now = float(t)
            each = [moordyn.GetWavesKin(waves, *p) for p in places]
            found.append([[*u, *a, zeta] for u, a, zeta, _ in each])
            tension.append(moordyn.GetLineFairTen(line))
        moordyn.Close(system)
    return np.array(found), np.array(tension)


@pytest.mark.validation
@pytest.mark.parametrize(("mode", "within"), [(7, 2e-5), (2, 0.02), (3, 0.02)])
def test_waves_are_those_of_moordyn(tmp_path, monkeypatch, mode, within):
    """A sum of sines exactly; from a grid as well as that can be interpolated."""
    moordyn = pytest.importorskip("moordyn")
    path = written(tmp_path, mode, dtWave=0.1)
    monkeypatch.chdir(tmp_path)
    places = [(-6.0, 0.0, -10.0), (3.0, 0.0, -6.0), (5.0, 0.0, -30.0)]
    times = [0.5, 2.0, 6.0]
    known, _ = peer_run(moordyn, path, places, times)
    water = deck_water(read_moordyn(path))
    assert water.surface is not None
    mean = water.surface
    seen = lambda p, t: jnp.stack(
        [*water.velocity(p, t), *water.acceleration(p, t),
         mean + water.elevation(p, t)]
    )  # fmt: skip
    each = jax.vmap(jax.vmap(seen, (0, None)), (None, 0))
    found = jax.jit(each)(jnp.asarray(places), jnp.asarray(times))
    scale = np.abs(known).max((0, 1))
    scale[1], scale[4] = scale[0], scale[3]  # across, where nothing may go
    assert np.abs((np.asarray(found) - known) / scale).max() < within


@pytest.mark.slow
@pytest.mark.validation
def test_a_line_in_waves_is_pulled_as_in_moordyn(tmp_path, monkeypatch):
    """Both begin at rest; the tension in the middle of the last segment."""
    moordyn = pytest.importorskip("moordyn")
    path = written(tmp_path, 7, {"wave_frequencies.txt": "0 0 0\n0.5 0.6 0\n"})
    text = path.read_text().replace("0 TmaxIC", "60 TmaxIC")
    path.write_text(text.replace("28 10 -", f"28 {SEGMENTS} -"))
    monkeypatch.chdir(tmp_path)
    times = np.arange(0.0, 20.01, 1.0)
    _, known = peer_run(moordyn, path, [], times)
    system, y0 = from_moordyn(path)
    run = djdyn.simulate(system, 20.0, y0, solver="ros2", dt=0.01, saveat=times)
    found = np.asarray(run.signal("line1.head_tension"))
    half = 28 / SEGMENTS / 2
    found = found - (40.0 - 1025 * np.pi / 4 * 0.2**2) * 9.80665 * half
    assert np.ptp(known) > 250
    assert np.abs(found - known).max() < 0.03 * np.ptp(known)


def test_a_record_of_heights_moves_the_mean_surface(tmp_path):
    waves, mean = deck_waves(read_moordyn(written(tmp_path, 3)))
    assert mean == pytest.approx(0.2, abs=0.05)
    assert waves is not None
    at = np.argmax(np.asarray(waves.amplitude))
    assert waves.frequency[at] == pytest.approx(0.5, abs=0.08)
    assert float(waves.frequency.max()) <= np.pi
    coarse, _ = deck_waves(read_moordyn(written(tmp_path, 3, dtWave=1.0)))
    assert coarse is not None and len(coarse.frequency) < len(waves.frequency) + 1


def test_flat_files_make_calm_water(tmp_path):
    calm = {"wave_frequencies.txt": "0 0 0\n0.5 0 0\n1 0 0\n"}
    assert deck_waves(read_moordyn(written(tmp_path, 2, calm))) == (None, 0.0)


@pytest.mark.parametrize(
    ("mode", "more", "said"),
    [
        (
            7,
            {"wave_frequencies.txt": "0 0 0\n0.3 1 0\n0.2 1 0\n"},
            "frequencies must increase",
        ),
        (7, {"wave_frequencies.txt": "0.3 1\n0.2 1\n"}, "two rows or more"),
        (7, {"wave_frequencies.txt": "0 1 0\n0.4 1 0 90\n"}, "in radians"),
        (7, {"wave_frequencies.txt": "0.3 1 x\n"}, "line 1: not numbers"),
        (2, {"wave_frequencies.txt": SINE[6:]}, "must increase, from zero"),
        (3, {"wave_elevation.txt": "1 0\n2 0\n3 0\n4 0\n"}, "times must increase"),
        (3, {"wave_elevation.txt": "0 0\n.1 0\n.2 0\n.3 0\n"}, "steps of dtWave"),
    ],
)
def test_bad_files_of_waves_are_refused_in_a_sentence(tmp_path, mode, more, said):
    path = written(tmp_path, mode, more)
    with pytest.raises(ValueError, match=said) as error:
        from_moordyn(path)
    assert str(error.value).count("\n") == 0


def test_waves_need_their_file(tmp_path):
    path = written(tmp_path, 7)
    (tmp_path / "wave_frequencies.txt").unlink()
    with pytest.raises(ValueError, match=r"wave_frequencies.txt is neither in"):
        from_moordyn(path)
