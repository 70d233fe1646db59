"""Crane tuning: gains and timing with the least loads in the foot of a crane at sea.

The offshore crane of `djdyn run crane` slews and reaches out with payloads and on
vessels that differ. PD gains and the timing of its moves are tuned together for peak
and fatigue of the bending moment in the slewing bearing, which Cibicik and Egeland,
*Determination of constraint forces for an offshore crane on a moving base*, name as the
use of their method.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.stats

import controllers
import djdyn
from controllers import (
    JointPID,
    LoadRange,
    MeanSquare,
    Peak,
    Reaction,
    Scenarios,
    Tuned,
    multisine,
)
from controllers.objective import Objective
from controllers.tune import judge
from djdyn import Bounded, FreeParameter, Positive
from djdyn.parts import JointSpring
from djdyn.spatial import translation
from djdyn.timefunctions import Moves

from . import crane
from .study import Study
from .tuning import as_built, gain_table, keep, race, without


TITLE = "Crane tuning: least loads in the foot"
STAGES = 3
FASTER = 2.0  # than the moves of the crane study
SPAN, SAVES = 10.0, 201  # s
HULL, DAMPING = 1.2e6, 2e4  # N m/rad, N m s/rad: what the water adds to the springs
FOOT = Reaction("king", (0, 1))
EXPONENT = 3.0  # of the S-N curve, welded steel
NOISE, PERIOD = 1.4e-5, 2e-3  # rad, of an encoder of 17 bits; s
HOW = as_built(PERIOD)


def build() -> djdyn.System:
    """The crane with a payload, on a vessel that floats upright, twice as fast.

    Cubic springs alone leave a vessel with its weight above the pivot unstable.
    """
    bare = crane.build()
    m, path = bare.mechanism, crane.moves()
    tip = translation((crane.LENGTHS[3], 0.0, 0.0))
    load = djdyn.Body("payload", "outer", djdyn.Fixed(), 200.0, X_PJ=tip)
    two = Moves(path.first, path.points[:2], path.start[:2], path.end[:2])
    parts = {
        **bare.parts,
        "water": JointSpring("vessel", HULL, DAMPING),
        "reference": controllers.Reference(sped_up(two)),
        "noise": multisine(
            "reference.value", "reference.rate", size=3, deviation=NOISE
        ),
        "pd": JointPID(
            crane.JOINTS,
            "noise.value",
            jnp.full(3, crane.KP),
            jnp.full(3, crane.KD),
            rate="noise.rate",
        ),
    }
    mechanism = djdyn.Mechanism((*m.bodies, load), m.frames, m.gravity_W)
    return djdyn.System(mechanism, parts)


def sped_up(path: Moves) -> Moves:
    return Moves(path.first, path.points, path.start / FASTER, path.end / FASTER)


def free() -> list[FreeParameter]:
    """Gains, and moves within their pauses."""
    at = "reference.path."
    windows = {"start[0]": (0.0, 2.0), "end[0]": (3.0, 4.5), "start[1]": (4.5, 6.0)}
    windows["end[1]"] = (7.0, 8.5)
    times = [FreeParameter(at + k, Bounded(*w)) for k, w in windows.items()]
    gains = [FreeParameter(k, Positive()) for k in ("pd.kp", "pd.kd")]
    return [*gains, *times]


def rest(system: djdyn.System) -> djdyn.State:
    quiet = djdyn.put(system, {"noise.deviation": 0.0})
    return djdyn.equilibrium(quiet, crane.start(quiet))


def conditions(system: djdyn.System, count: int, seed: int) -> Scenarios:
    """Payloads of 50 to 300 kg, and hulls from soft to stiff, each at rest."""
    laws = {
        "payload.mass": scipy.stats.uniform(50, 250),
        "water.stiffness": scipy.stats.uniform(0.75 * HULL, 0.5 * HULL),
    }
    return controllers.sample(system, count, laws, start=rest, seed=seed)


def run(study: Study) -> None:
    system = study.customise(build())
    study.report.text(
        "The crane slews by 90 degrees and reaches out, each in 3 s, with payloads of "
        "50 to 300 kg on hulls whose stiffness differs by a half. Its six gains, and "
        "when its two moves begin and end, are tuned at once. The cost is the peak of "
        "the bending moment in the foot and the range of one cycle that tires it as "
        "much, each over its value at the start, and the error in tracking."
    )
    study.report.text(
        "Under the crane's weight the cubic springs of the source leave the vessel "
        "unstable when upright, and its motion chaotic: no gain could be judged over "
        "more than some seconds. So water is added, which holds the hull upright "
        f"({HULL:g} N m/rad) and damps it ({DAMPING:g} N m s/rad)."
    )
    with study.stage("scenarios"):
        some = (8, 8) if study.quick else (16, 64)
        train, others = (
            conditions(system, n, seed) for n, seed in zip(some, (0, 1), strict=True)
        )
        scale = at_start(system, train)
    with study.stage("tuning"):
        found = controllers.tune(
            system, SPAN, free=free(), cost=cost(*scale), scenarios=train,
            held_out=others, max_steps=10 if study.quick else 40, saves=SAVES,
            rest=rest, save=study.out / "tuning", **HOW,
        )  # fmt: skip
        keep(study, found)
        judged(study, found)
        without(study, "tune_crane", found, others)
    with study.stage("other searches"):
        if not study.quick:
            race(study, "tune_crane", found, budget=300)


def cost(peak: float, fatigue: float) -> dict[str, Any]:
    return {
        "peak": Peak(FOOT, peak),
        "fatigue": LoadRange(FOOT, fatigue, EXPONENT),
        "tracking": MeanSquare("pd.error", 0.3),
    }


def at_start(system: djdyn.System, some: Scenarios) -> tuple[float, float]:
    """Mean peak and mean equivalent range before tuning, N m."""
    terms = cost(1.0, 1.0)
    plain = Objective(
        system, SPAN, free(), terms, some, {}, SAVES, "mean", "penalise", 1.0, HOW
    )
    seen = judge(plain, plain.x0).terms
    return float(np.mean(seen["peak"])), float(np.mean(seen["fatigue"]))


def judged(study: Study, found: Tuned) -> None:
    numbers = found.figures()["held out"]
    for name, term in (("peak_moment", "peak"), ("fatigue", "fatigue")):
        before, after = numbers[term]
        study.metric(
            f"tune_crane.{name}_ratio",
            after / before,
            0.0,
            0.95 if study.quick else 0.9,
            note="after over before, on scenarios held out",
        )
    before, after = numbers["tracking"]
    study.metric(
        "tune_crane.tracking_ratio",
        np.sqrt(after / before),
        0.0,
        1.0,
        note="of rms errors, on scenarios held out",
    )
    assert found.growth is not None
    study.metric(
        "tune_crane.largest_growth",
        found.growth[1].max(),
        0.0,
        1e-6,
        unit="1/s",
        note="largest real part of a pole of the tuned loop, in all scenarios; that of "
        "the integrals, which are not used, is zero",
    )
    floor = standing(found.system, found.objective.scenarios)
    peak: Any = found.objective.probes.terms["peak"]
    study.metric(
        "tune_crane.standing_share",
        floor / peak.scale,
        note="of the first peak, what the crane reaching out at rest has: no tuning "
        "gets below it",
    )
    gain_table(study, found)
    figures(study, found)


def standing(system: djdyn.System, some: Scenarios) -> float:
    """Mean moment in the foot when all stands still at the last point, N m."""
    end = djdyn.get(system, "reference.path.points")[-1]
    still = djdyn.put(system, {"reference.path.first": end, "reference.path.points":
                               jnp.stack([end, end])})  # fmt: skip
    found = []
    for k in range(len(some)):
        here = some.put(still, k)
        y = here.initial_state(q=dict(zip(crane.JOINTS, end, strict=True)))
        now = here.at(0.0, djdyn.equilibrium(here, y))
        found.append(float(jnp.linalg.norm(FOOT(now))))
    return float(np.mean(found))


def figures(study: Study, found: Tuned) -> None:
    """The first scenario, before and after."""
    some = found.objective.scenarios
    shown = {}
    for name, system in (("before", found.objective.system), ("after", found.system)):
        run = djdyn.rollout(
            system, SPAN, some.initial_state, parameters=some.parameters, **HOW
        )
        shown[name] = run.lane(0)
    times = np.asarray(shown["after"].t)[::10]
    time = ("time", "s", times)
    moment = {k: np.linalg.norm(r.map(FOOT)[::10], axis=-1) for k, r in shown.items()}
    study.report.plot("Bending moment in the foot", time, ("moment", "N m"), moment)
    for i, joint in ((0, "slew"), (1, "luff")):
        study.report.plot(
            f"{joint.capitalize()} joint",
            time,
            ("angle", "deg"),
            {k: np.asarray(r.y.q)[::10, 3 + i] * crane.DEG for k, r in shown.items()},
        )
    study.report.plot(
        "Roll of the vessel",
        time,
        ("angle", "deg"),
        {k: np.asarray(r.y.q)[::10, 0] * crane.DEG for k, r in shown.items()},
    )
    study.report.plot(
        "Tuning: the least cost so far",
        ("step", "", np.arange(1.0, len(found.history) + 1)),
        ("cost", ""),
        {"scenarios tuned on": np.minimum.accumulate(found.history[:, 0])},
    )
