"""Submerged payload under a wire with a heaving top, compared with MoorDyn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.cable import Cable, CableProperties, DrivenEnd, PinnedEnd
from djdyn.marine.water import Buoyancy, Drag, Fluid
from djdyn.system.equilibrium import equilibrium
from djdyn.typing import Scalar

from ...harness import moordyn_peer as peer
from ...harness.study import Study


DURATION = 20.0  # s
PLOT = "Heaving payload: tension at the top"
STATIC_TENSION = 9.81 * (2000 - 512.5 + 100 * (2.5 - 1025 * np.pi / 4 * 0.025**2))  # N
CALL_INTERVAL = 1e-3  # s, for which MoorDyn holds the velocity of the top
MOORDYN_STEPS = {20: 5e-4, 100: 1e-4}  # s, by the number of segments


class Heave(eqx.Module):
    """Heave of 1 m amplitude and 8 s period, with a ramp of 8 s."""

    def __call__(self, t: Scalar) -> Array:
        z = jnp.clip(t / 8, 0, 1) * jnp.sin(2 * jnp.pi * t / 8)
        return jnp.stack([0 * z, 0 * z, z])


def build(elements: int) -> djdyn.System:
    """Return payload and wire, with MoorDyn's damping ratio of 0.3 for an element."""
    water, wave = Fluid(), np.sqrt(40e6 * 2.5)
    rope = CableProperties(
        2.5,
        40e6,
        diameter=0.025,
        normal_drag=1.2,
        added_mass=1.0,
        axial_damping=0.3 * 100 / elements * wave,
    )
    added = np.diag([0.0, 0, 0, 512.5, 512.5, 512.5])
    load = djdyn.Body(
        "load",
        "world",
        djdyn.Free(),
        2000.0,
        I_BC=300 * np.eye(3),
        A_B=added,
        X_PJ=djdyn.translation((0, 0, -100)),
    )
    ends = (PinnedEnd(frame="load"), DrivenEnd(motion=Heave()))
    parts = {
        "line": Cable(rope, 100.0, *ends, mesh=elements, fluid=water),
        "drag": Drag("load", 2.0, fluid=water),
        "float": Buoyancy("load", 0.5, water),
    }
    return djdyn.System(djdyn.Mechanism((load,)), parts)


def start(system: djdyn.System, lanes: int = 1) -> djdyn.State:
    """Return the equilibrium, repeated for all lanes."""
    copies = lambda x: jnp.repeat(x[None], lanes, 0)
    return jax.tree.map(copies, equilibrium(system))


def heave(
    system: djdyn.System, y0: djdyn.State, solver: str, dt: float
) -> djdyn.Trajectory:
    """Simulate the heave with fixed steps."""
    times = np.linspace(0.0, DURATION, 501)
    return djdyn.rollout(system, DURATION, y0, solver=solver, dt=dt, saveat=times)


def extremes(tension: np.ndarray) -> np.ndarray:
    """Return the lowest and highest tension."""
    return np.array([tension.min(), tension.max()])


def difference(found: np.ndarray, refined: np.ndarray) -> float:
    """Return the largest error of the ends of a range, relative to its width."""
    return float(np.abs(found - refined).max() / np.ptp(refined))


def run_heave(study: Study) -> None:
    """Compare twenty elements at 10 ms with small steps and with MoorDyn."""
    system = build(20)
    y0 = start(system)
    runs = {
        "refined, 0.25 ms": heave(system, y0, "rk4", 2.5e-4),
        "implicit, 10 ms": heave(system, y0, "ros2", 1e-2),
    }
    tension = {
        f"djdyn, {name}": np.asarray(run.lane(0).signal("line.head_tension"))
        for name, run in runs.items()
    }
    refined, found = (extremes(x) for x in tension.values())
    first = next(iter(tension.values()))[0]
    study.metric(
        "cable.heave.static_tension_error",
        first / STATIC_TENSION - 1,
        0.0,
        1e-4,
        note=f"relative error of the static tension at the top, {STATIC_TENSION:.1f} N",
    )
    study.metric(
        "cable.heave.implicit_range_diff",
        difference(found, refined),
        at_most=1e-2,
        note="error of the range of the top tension, steps of 10 beside 0.25 ms",
    )
    rows = [("djdyn", name, *extremes(x)) for name, x in tension.items()]
    try:
        rows += compare_with_moordyn(study, tension, refined)
    except ImportError as error:
        study.report.text(f"The heaving payload is not compared with MoorDyn: {error}.")
    study.report.table(
        "Heaving payload: range of the tension at the top, N",
        ("engine", "run", "lowest", "highest"),
        rows,
    )
    t = np.asarray(runs["implicit, 10 ms"].t)
    study.report.plot(
        PLOT,
        ("time", "s", t),
        ("tension", "N"),
        tension,
    )


def compare_with_moordyn(
    study: Study, tension: dict[str, np.ndarray], refined: np.ndarray
) -> list[tuple]:
    """Run MoorDyn on the same case and add its curve to `tension`."""
    rows, every = [], round(0.04 / CALL_INTERVAL)
    for macro in (1e-2, CALL_INTERVAL):
        run = peer.run_moordyn(
            peer.heave_deck(20, MOORDYN_STEPS[20]), DURATION, macro, peer.heave
        )
        rows.append(
            ("MoorDyn", f"20 segments, {1e3 * macro:g} ms", *extremes(run.force))
        )
    tension[f"MoorDyn, {1e3 * CALL_INTERVAL:g} ms"] = run.force[::every]
    study.metric(
        "cable.moordyn.tension_range_diff",
        difference(extremes(run.force), refined),
        at_most=1e-2,
        note="error of MoorDyn's range of the top tension beside djdyn's, 20 elements",
    )
    study.report.text(
        "MoorDyn takes the motion of the top once per call and holds its velocity "
        "until the next call. Calls every 10 ms, with which its published ranges "
        "agree, excite the payload on its wire at 2 Hz. With calls every 1 ms its "
        "range agrees with that of djdyn for any number of segments."
    )
    return rows
