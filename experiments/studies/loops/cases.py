"""Closed loops beside answers that others published or worked out."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.multibody.closing import tree
from djdyn.multibody.closures import mobility, repeated_solve, stabilised
from djdyn.multibody.dynamics import forward
from djdyn.multibody.loop_rows import loop_rows

from ...harness.study import Study
from ...harness.tables import columns, read
from . import bicycle, planar, spatial
from .comparison import CRANK_START, four_bar


TIGHT = {"rtol": 1e-10, "atol": 1e-10, "max_steps": 50_000}
BRICARD = {  # corners P1 to P4 at times, m
    0.5: ((0.9682837, 0, -0.2498534), (0.7747178, -0.9798150, -0.1999062),
          (0.9682837, -1.2246252, 0.7501466), (0, -0.9798151, 0.8000938)),
    1.0: ((0.5105015, 0, -0.8598769), (0.2744813, -0.8867079, -0.4623300),
          (0.5105015, -1.6491676, 0.1401231), (0, -0.8867079, 0.5376700)),
    2.0: ((-0.9693403, 0, -0.2457220), (-0.7781354, -0.9803527, -0.1972527),
          (-0.9693403, -1.2212469, 0.7542780), (0, -0.9803527, 0.8027473)),
}  # fmt: skip
PENDULUM = {  # place of the mass, m
    1.0: (0.9862917511, -0.1650108531),
    5.0: (-0.9423054350, -0.3347543384),
    10.0: (-0.2750874626, -0.9614192051),
}
ANDREWS_END = (  # beta, Theta, gamma, delta, Phi, epsilon, Omega at 0.03 s, rad
    15.81077119629904,
    -15.75637105984298,
    0.04082224013073101,
    0.5244099658805304,
    -0.5347301163226948,
    1.048080741042263,
    0.5347301163226948,
)
ANDREWS_SLOPES = {  # of beta and gamma at 0.03 s, to moment, stiffness, free length
    "moment": (247.1336, 2.39192),
    "stiffness": (1.974259e-3, 1.910819e-5),
    "free length": (396.6111, 3.838630),
}
ANDREWS_NUDGES = (1e-4, 3e-5)  # relative steps of differences
TOPS = {  # x of the first top at 1, 4 and 10 s, m
    2: (-0.1950203019, 0.1176161024, 0.3284581115),
    40: (-0.1153568806, 0.0693420322, 0.1805122267),
}
SLIDER_G, SLIDER_SLOPES = 3.336606799, (0.333448106, -0.363754034)
AL_COUNTS = {1e4: 18, 1e5: 7, 1e6: 5, 1e7: 4, 1e9: 3}


def widest(run: djdyn.Trajectory) -> float:
    """Return the largest gap of all loops over a run, m or rad."""
    return float(np.max(np.abs(run.map(_gaps))))


def _gaps(now: djdyn.Instant) -> Any:
    return now.rows.gap  # pyright: ignore


class Closure:
    """The worst gap over all cases."""

    def __init__(self) -> None:
        self.worst: dict[str, float] = {}

    def add(self, name: str, run: djdyn.Trajectory) -> None:
        """Note the worst gap of a case."""
        self.worst[name] = widest(run)


def pendulum(study: Study, gaps: Closure) -> None:
    """Simple pendulum (IFToMM library, A01): a point mass on a rod that is a loop."""
    system = planar.simple_pendulum()
    y0 = system.initial_state(q=[-1.0, 0.0, 0.0])
    run = djdyn.simulate(system, 10.0, y0, saveat=11, **TIGHT)
    at = lambda t: np.asarray(run.q("ball"))[round(t), :2]
    error = max(np.abs(at(t) - place).max() for t, place in PENDULUM.items())
    study.metric("loops.pendulum.error", error, at_most=1e-7, unit="m")
    drift = float(np.ptp(run.energy()))
    study.metric(
        "loops.pendulum.energy",
        drift,
        at_most=5e-5,
        unit="J",
        note="the library asks for 5e-5 J over 10 s",
    )
    gaps.add("pendulum", run)


def fourbar(study: Study, gaps: Closure) -> None:
    """Four-bar cut at the rocker's pivot, beside a worked series."""
    table = read("loops/fourbar.csv")
    t = columns(table, "t_s")[:, 0]
    system = djdyn.System(four_bar())
    y0 = system.initial_state(q={"crank": CRANK_START})
    run = djdyn.simulate(system, t[-1], y0, saveat=jnp.asarray(t), **TIGHT)
    worked = columns(table, "z1_rad", "z2_rad", "z3_rad")
    error = np.abs(np.asarray(run.y.q) - worked).max()
    study.metric(
        "loops.fourbar.error",
        error,
        at_most=1e-7,
        unit="rad",
        note="all three angles over 2 s",
    )
    gaps.add("four-bar", run)
    study.series("four_bar", run)


def iterations(study: Study, gaps: Closure) -> None:
    """Iterations of the augmented Lagrangian on a harvester in global coordinates."""
    del gaps
    q, v = spatial.in_global_coordinates(
        jnp.array(spatial.HARVESTER_Q), jnp.array(spatial.HARVESTER_V)
    )

    @jax.jit
    def system_of(q, v):
        mechanism = spatial.harvester_in_global_coordinates(1.0, 1)
        world = djdyn.forward_kinematics(mechanism, q, v)
        rows = loop_rows(world)
        free = forward(world, jnp.zeros(mechanism.nv))
        K, S = mobility(tree(world), rows)
        rest = stabilised(rows, jnp.array(10.0), jnp.array(1.0))
        return free, K, S, -(rows.jacobian @ free + rest)

    free, K, S, wanted = system_of(q, v)
    rows, matches = [], True
    exact = free + K @ np.linalg.lstsq(S, wanted, rcond=None)[0]
    for stiffness, count in AL_COUNTS.items():
        sizes, before, first, n = jnp.zeros_like(wanted), free, None, 0
        for n in range(1, 61):
            soft = jnp.full(len(wanted), 1 / stiffness)
            sizes = sizes + repeated_solve(S, wanted - S @ sizes, soft, 1)
            v_dot = free + K @ sizes
            first = float(np.linalg.norm(v_dot - exact)) if n == 1 else first
            if n > 1 and np.linalg.norm(v_dot - before) <= 1e-8:
                break
            before = v_dot
        matches &= n == count
        rows.append((stiffness, first, n, count))
    study.metric(
        "loops.al_iterations_match",
        matches,
        at_least=1,
        note="counts of iterations to 1e-8 for five stiffnesses",
    )
    study.report.table(
        "Augmented Lagrangian: iterations until accelerations change by 1e-8",
        ("stiffness", "error of the first", "iterations", "worked"),
        rows,
    )
    least = np.linalg.eigvalsh(S)
    study.metric("loops.al.least_mobility", least[0], 1.5233e-4, 1e-8, unit="1/kg")
    study.metric("loops.al.largest_mobility", least[-1], 1.1713, 1e-4, unit="1/kg")


def harvester(study: Study, gaps: Closure) -> None:
    """Free motion of the harvester's manipulator, a tree, beside a worked series."""
    del gaps
    table = read("loops/harvester_freefall.csv")
    names = ("z1_rad", "z2_rad", "z3_rad", "z4a_rad", "z4b_rad", "z5_rad")
    t = columns(table, "t_s")[:, 0]
    system = djdyn.System(spatial.harvester())
    y0 = system.initial_state(spatial.HARVESTER_Q, spatial.HARVESTER_V)
    run = djdyn.simulate(
        system,
        t[-1],
        y0,
        saveat=jnp.asarray(t),
        solver="dopri8",
        rtol=1e-12,
        atol=1e-12,
    )
    error = np.abs(np.asarray(run.y.q) - columns(table, *names)).max()
    study.metric("loops.harvester.error", error, at_most=1e-8, unit="rad")


def andrews(study: Study, gaps: Closure) -> None:
    """Andrews' squeezer (IVP test set; A03), 30 ms."""
    system = planar.andrews()
    y0 = system.initial_state(q=planar.ANDREWS_START)
    run = djdyn.simulate(system, 0.03, y0, saveat=301, **TIGHT)
    error = np.abs(np.asarray(run.y.q[-1]) - np.array(ANDREWS_END)).max()
    study.metric("loops.andrews.max_error", error, at_most=1e-7, unit="rad")
    gaps.add("Andrews' squeezer", run)
    study.series("andrews", run)


def andrews_gradient(study: Study, gaps: Closure) -> None:
    """Derivatives of the squeezer's end to moment, stiffness and free length."""
    del gaps
    start = jnp.array([0.033, 4530.0, 0.07785])

    def end(x: Any, adjoint: str) -> Any:
        system = planar.andrews(*x)
        y0 = system.initial_state(q=planar.ANDREWS_START)
        run = djdyn.simulate(system, 0.03, y0, saveat=2, adjoint=adjoint, **TIGHT)
        return run.y.q[-1, jnp.array([0, 2])]

    stated = np.array(list(ANDREWS_SLOPES.values())).T
    at = jax.jit(lambda x: end(x, "reverse"))
    coarse, fine = (_differences(at, np.asarray(start), h) for h in ANDREWS_NUDGES)
    study.metric(
        "loops.andrews.differences_error",
        np.abs(coarse / stated - 1).max(),
        at_most=1e-6,
        note="differences over 1e-4, as the published ones were taken",
    )
    # The error of differences is quadratic in the step.
    share = ANDREWS_NUDGES[1] ** 2 / (ANDREWS_NUDGES[0] ** 2 - ANDREWS_NUDGES[1] ** 2)
    exact = fine + share * (fine - coarse)
    found = {
        "forward": jax.jit(jax.jacfwd(lambda x: end(x, "forward")))(start),
        "reverse": jax.jit(jax.jacrev(lambda x: end(x, "reverse")))(start),
    }
    error = max(np.abs(np.asarray(J) / exact - 1).max() for J in found.values())
    study.metric(
        "loops.andrews.gradient_error",
        error,
        at_most=1e-5,
        note="both modes, relative, beside differences extrapolated to no step",
    )


def _differences(f: Callable[..., Any], x: np.ndarray, nudge: float) -> np.ndarray:
    """Return central differences with steps relative to each entry."""
    columns = []
    for k, step in enumerate(np.eye(len(x)) * nudge):
        high, low = (np.asarray(f(jnp.asarray(x * (1 + s)))) for s in (step, -step))
        columns.append((high - low) / (2 * nudge * x[k]))
    return np.stack(columns, 1)


def four_bars(windows: int) -> Callable[[Study, Closure], None]:
    """Return the case of a row of four-bars that passes its singular position."""

    def case(study: Study, gaps: Closure) -> None:
        mechanism = planar.four_bars(windows)
        run = djdyn.simulate(
            djdyn.System(mechanism),
            10.0,
            planar.standing(mechanism),
            saveat=101,
            **TIGHT,
        )
        x = np.cos(np.asarray(run.q("post0")))[np.array([10, 40, 100]), 0]
        error = np.abs(x - np.array(TOPS[windows])).max()
        study.metric(
            f"loops.four_bars_{windows}.error",
            error,
            at_most=1e-6,
            unit="m",
            note="10 s, through the singular position twice a turn",
        )
        gaps.add(f"{windows} four-bars", run)

    return case


def bricard(study: Study, gaps: Closure) -> None:
    """Bricard's overconstrained linkage (A04)."""
    system = spatial.bricard()
    times = jnp.asarray([0.0, *BRICARD, *np.linspace(2.1, 5.0, 30)])
    run = djdyn.simulate(system, 5.0, system.initial_state(), saveat=times, **TIGHT)
    corners = np.stack([run.pose(f"P{k}").p for k in range(1, 5)], 1)
    error = max(
        np.abs(corners[k] - np.array(places)).max()
        for k, places in enumerate(BRICARD.values(), start=1)
    )
    study.metric(
        "loops.bricard.error",
        error,
        at_most=1e-6,
        unit="m",
        note="four corners up to 2 s",
    )
    freedoms = djdyn.degrees_of_freedom(system.mechanism)
    study.metric("loops.bricard.rank", freedoms.rank, 4, 0, note="of five equations")
    gaps.add("Bricard's linkage", run)
    study.series("bricard", run)


def slider_crank(study: Study, gaps: Closure) -> None:
    """Slider crank of SUNDIALS with a spring, and its derivatives in both modes."""
    study.metric(
        "loops.slider_crank.G",
        _work((1.0, 1.0), "reverse", gaps),
        SLIDER_G,
        1e-8,
        unit="J s",
        note="integral of the kinetic energy",
    )


def slider_crank_gradient(study: Study, gaps: Closure) -> None:
    """Derivatives of the kinetic energy's integral to stiffness and damping."""
    del gaps
    error = 0.0
    for derive, mode in ((jax.jacfwd, "forward"), (jax.grad, "reverse")):
        slope = jax.jit(derive(lambda p, mode=mode: _work(p, mode)))(jnp.ones(2))
        error = max(error, np.abs(slope - np.array(SLIDER_SLOPES)).max())
    study.metric(
        "loops.slider_crank.dG_error",
        error,
        at_most=1e-6,
        note="to stiffness and damping, both modes",
    )


def _work(p: Any, adjoint: str, gaps: Closure | None = None) -> Any:
    system = planar.slider_crank(p[0], p[1])
    y0 = planar.crank_upright(system)
    run = djdyn.simulate(system, 10.0, y0, saveat=11, adjoint=adjoint, **TIGHT)
    if gaps is not None:
        gaps.add("slider crank", run)
    return run.y.parts["G"]["value"][-1]


def spatial_slider_crank(study: Study, gaps: Closure) -> None:
    """Spatial slider crank (IFToMM library), beside its one freedom's quadrature."""
    system = spatial.slider_crank()
    y0 = system.initial_state(q={"crank": 0.0, "slider": 0.2}, v={"crank": 6.0})
    run = djdyn.simulate(system, 1.0, y0, saveat=101, **TIGHT)
    angle = np.asarray(run.q("crank"))[:, 0]
    worked = spatial.crank_angles(np.asarray(run.t))
    study.metric(
        "loops.spatial_slider_crank.error",
        np.abs(angle - worked).max(),
        at_most=1e-6,
        unit="rad",
        note="1 s, beside energy and geometry",
    )
    gaps.add("spatial slider crank", run)
    study.series("spatial_slider_crank", run)


def uncontrolled_bicycle(study: Study, gaps: Closure) -> None:
    """Weave and capsize speeds of the uncontrolled bicycle."""
    found = np.array(bicycle.stability_speeds())
    stated = np.array([bicycle.WEAVE, bicycle.CAPSIZE])
    study.metric(
        "loops.bicycle.speed_error",
        np.abs(found - stated).max(),
        at_most=1e-6,
        unit="m/s",
        note="weave and capsize",
    )
    mechanism = bicycle.bicycle()
    q, v = bicycle.rolling(mechanism, 4.6, jnp.zeros(2), jnp.array([0.5, 0.0]))
    run = djdyn.simulate(
        djdyn.System(mechanism),
        5.0,
        djdyn.State(q, v, {}),
        saveat=101,
        rtol=1e-9,
        atol=1e-9,
    )
    study.metric(
        "loops.bicycle.energy",
        float(np.ptp(run.energy())),
        at_most=1e-4,
        unit="J",
        note="5 s at 4.6 m/s, pushed to a lean rate of 0.5 rad/s",
    )
    gaps.add("bicycle", run)
    study.series("bicycle", run)
    study.report.plot(
        "Bicycle pushed at 4.6 m/s: it rights itself",
        ("time", "s", np.asarray(run.t)),
        ("angle", "deg"),
        {
            "lean": np.degrees(np.asarray(run.q("lean")))[:, 0],
            "steer": np.degrees(np.asarray(run.q("fork")))[:, 0],
        },
    )
