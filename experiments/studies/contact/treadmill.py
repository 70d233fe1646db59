"""Block on a treadmill, held by a spring: stick-slip motion.

Roy, Steinke and Nicoll 2014, section 4.5.5, suggest this test.
"""

import numpy as np

import djdyn
from djdyn.contact import Contact, HalfSpace, KelvinVoigt, LuGre, Sphere
from djdyn.multibody.time_functions import SteadyMotion
from djdyn.parts import JointSpring

from ...harness.study import Study
from .model import G, ledger


MU, MU_STATIC = 0.3, 0.5
SPRING, BELT_STIFFNESS = 100.0, 1e4  # N/m
BELTS = np.array([0.05, 0.1, 0.2])  # m/s
GRIP = LuGre(MU, MU_STATIC, 2e4, 50.0, stribeck_speed=5e-3, width=1e-7)


def treadmill() -> djdyn.System:
    """Return a block of 1 kg on a moving belt."""
    belt = djdyn.Prescribed(SteadyMotion((0.1, 0.0, 0.0)))
    bodies = (
        djdyn.Body("belt", "world", belt, 0.0),
        djdyn.Body("carriage", "world", djdyn.Prismatic((1, 0, 0)), 0.0),
        djdyn.Body("b", "carriage", djdyn.Prismatic((0, 0, 1)), 1.0),
    )
    law = KelvinVoigt(BELT_STIFFNESS, 100.0, width=1e-6)
    parts: dict[str, djdyn.AbstractPart] = {
        "spring": JointSpring("carriage", SPRING),
        "touch": Contact("b", Sphere(0.1), "belt", HalfSpace(), law, GRIP),
    }
    return djdyn.System(djdyn.Mechanism(bodies), parts)


def period(belt: np.ndarray) -> np.ndarray:
    """Return the period of stick-slip, s: a sticking and a sliding phase."""
    swing, reach = np.sqrt(SPRING), (MU_STATIC - MU) * G / SPRING
    slip = 2 / swing * (np.pi - np.arctan(swing * reach / belt))
    return 2 * reach / belt + slip


def run_treadmill(study: Study) -> None:
    """Compare periods of stick-slip at three speeds of the belt."""
    system = treadmill()
    y = system.initial_state(q={"b": [0.1 - G / BELT_STIFFNESS]})
    span, n = 5.0, 5001
    run = djdyn.rollout(
        system,
        span,
        y,
        parameters={
            "belt.joint.motion.velocity": BELTS[:, None] * np.array([[1.0, 0, 0]])
        },
        saveat=np.linspace(0.0, span, n),
        solver="rk4",
        dt=4e-5,
        ledger=True,
    )
    x = np.asarray(run.q("carriage"))[..., 0]
    middle = MU * G / SPRING
    rows = []
    for belt, way, known in zip(BELTS, x, period(BELTS), strict=True):
        k = np.flatnonzero((way[:-1] > middle) & (way[1:] <= middle))
        falls = run.t[k] + (way[k] - middle) / (way[k] - way[k + 1]) * span / (n - 1)
        found = float(np.ptp(falls)) / (len(k) - 1)
        rows.append((belt, found, known, found / known - 1))
    study.metric(
        "contact.treadmill.period_error",
        max(abs(row[-1]) for row in rows),
        at_most=0.01,
        note="largest relative error; reference: static and sliding friction",
    )
    ledger(study, "treadmill", run, 1e-6)
    study.report.table(
        "Periods of stick-slip on a treadmill",
        ("belt, m/s", "found, s", "closed form, s", "relative difference"),
        rows,
    )
    study.report.plot(
        "Block on a treadmill: stretch of the spring",
        ("time", "s", run.t),
        ("stretch of the spring", "m"),
        {f"belt at {v:g} m/s": way for v, way in zip(BELTS, x, strict=True)},
        {"static friction": np.full(n, MU_STATIC * G / SPRING)},
    )
