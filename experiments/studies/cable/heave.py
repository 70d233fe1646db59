"""CAB-3: a payload in the water under a wire whose top heaves, beside MoorDyn."""

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
STATIC = 9.81 * (2000 - 512.5 + 100 * (2.5 - 1025 * np.pi / 4 * 0.025**2))  # N
MACRO = 1e-3  # s: MoorDyn holds the top's velocity so long, which shakes the payload
INNER = {20: 5e-4, 100: 1e-4}  # s, MoorDyn's own steps by segments


class Heave(eqx.Module):
    """1 m of heave in 8 s, brought in over 8 s."""

    def __call__(self, t: Scalar) -> Array:
        z = jnp.clip(t / 8, 0, 1) * jnp.sin(2 * jnp.pi * t / 8)
        return jnp.stack([0 * z, 0 * z, z])


def build(elements: int) -> djdyn.System:
    """With MoorDyn's damping: 0.3 of critical for a wave of two elements."""
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
    """At rest, the same in all lanes."""
    copies = lambda x: jnp.repeat(x[None], lanes, 0)
    return jax.tree.map(copies, equilibrium(system))


def heave(
    system: djdyn.System, y0: djdyn.State, solver: str, dt: float
) -> djdyn.Trajectory:
    times = np.linspace(0.0, DURATION, 501)
    return djdyn.rollout(system, DURATION, y0, solver=solver, dt=dt, saveat=times)


def extremes(tension: np.ndarray) -> np.ndarray:
    return np.array([tension.min(), tension.max()])


def difference(found: np.ndarray, refined: np.ndarray) -> float:
    """How far the ends of a range are off, relative to its width."""
    return float(np.abs(found - refined).max() / np.ptp(refined))


def run_heave(study: Study) -> None:
    """Twenty elements at 10 ms beside small steps, and beside MoorDyn."""
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
        first / STATIC - 1,
        0.0,
        1e-4,
        note=f"CAB-3: {STATIC:.1f} N at the top; 16 546 is with g 9.80665",
    )
    study.metric(
        "cable.heave.implicit_range_diff",
        difference(found, refined),
        at_most=1e-2,
        note="CAB-3: range of the top tension at 10 ms beside 0.25 ms",
    )
    rows = [("djdyn", name, *extremes(x)) for name, x in tension.items()]
    try:
        rows += beside_moordyn(study, tension, refined)
    except ImportError as error:
        study.report.text(f"CAB-3 ran alone: {error}.")
    study.report.table(
        "CAB-3, range of the tension at the top, N",
        ("engine", "run", "least", "most"),
        rows,
    )
    t = np.asarray(runs["implicit, 10 ms"].t)
    study.report.plot(
        "CAB-3, tension at the top", ("time", "s", t), ("tension", "N"), tension
    )


def beside_moordyn(
    study: Study, tension: dict[str, np.ndarray], refined: np.ndarray
) -> list[tuple]:
    """MoorDyn on the same deck; its curve joins the others."""
    rows, every = [], round(0.04 / MACRO)
    for macro in (1e-2, MACRO):
        run = peer.run_moordyn(
            peer.heave_deck(20, INNER[20]), DURATION, macro, peer.heave
        )
        rows.append(
            ("MoorDyn", f"20 segments, {1e3 * macro:g} ms", *extremes(run.force))
        )
    tension[f"MoorDyn, {1e3 * MACRO:g} ms"] = run.force[::every]
    study.metric(
        "cable.moordyn.tension_range_diff",
        difference(extremes(run.force), refined),
        at_most=1e-2,
        note=f"CAB-3: MoorDyn at {1e3 * MACRO:g} ms beside djdyn, both of 20 elements",
    )
    study.report.text(
        "MoorDyn is given the top's motion once a call and holds its velocity until "
        "the next. At 10 ms, with which its published ranges agree, these steps shake "
        "the payload on its wire at 2 Hz; with 1 ms its range joins ours, whatever the "
        "number of segments."
    )
    return rows
