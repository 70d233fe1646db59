"""The Titan 4's gains and bandwidths tuned by gradient, in its loop as built."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import controllers
import djdyn
from controllers import RobustnessMargins, Scenarios, SearchOptions, TuningResult
from djdyn import FreeParameter, Positive, Sigmoid

from ...harness.study import Study
from ...harness.tuning_report import gain_table, keep, race
from . import validation as evaluate
from .conditions import corners, machine
from .loop import COST, HOW, SAVES, SPAN, instrumented, noisy
from .realtime import PERIOD


STEPS, BUDGET = 200, 2000
PATHS = ("control.kp", "control.ki", "path.frequency", "control.kd", "control.k3")
QUICKEST = 60.0  # rad/s
FREE = tuple(
    FreeParameter(p, Sigmoid(1.0, QUICKEST) if p == "path.frequency" else Positive())
    for p in PATHS
)
MODULUS, STIFFNESS = 0.65, 100.0  # kept in the corners, and how hard
# To begin with: rad/s and of critical, of each joint; 1/s; how much slower it
# integrates; rad/s of the reference.
STIFF, DAMPED, K3, SLOWER, QUICK = 12.0, 0.7, 40.0, 30.0, 25.0


def begun(source: djdyn.System) -> djdyn.System:
    """With gains that the loop as built bears in all corners, by rules of thumb.

    Behind 1.5 ms of delay and oil that may be four times as stiff as the controller
    thinks, the source's are too stiff and damp too little. A joint's inertia is taken
    as the mean of those with the others locked and free.
    """
    B = djdyn.mass_matrix(source.mechanism, jnp.zeros(6))
    inertia = jnp.sqrt(jnp.diagonal(B) / jnp.diagonal(jnp.linalg.inv(B)))
    new = {
        "control.kp": STIFF**2 * inertia,
        "control.kd": 2 * DAMPED * STIFF * inertia,
        "control.ki": STIFF**3 / SLOWER * inertia,
        "control.k3": jnp.full(6, K3),
        "path.frequency": jnp.full(6, QUICK),
    }
    return djdyn.with_parameters(source, new)


def tuned(
    source: djdyn.System,
    train: Scenarios,
    *,
    free: tuple[FreeParameter, ...] = FREE,
    span: float = SPAN,
    saves: int = SAVES,
    steps: int = STEPS,
    **more: Any,
) -> TuningResult:
    """Tunes an instrumented machine on some conditions, within margins.

    They are those where all joints move: a shut valve has no gain, so at rest there is
    no loop.
    """
    return controllers.tune(
        begun(source), span, free=free, cost=COST, scenarios=train, saves=saves,
        search=SearchOptions(max_steps=steps, penalty=STIFFNESS),
        robustness=RobustnessMargins(
            evaluate.ALL_MOVE, evaluate.VALVES, delay=1.5 * PERIOD, modulus=MODULUS
        ),
        **more, **HOW,
    )  # fmt: skip


def run(study: Study) -> None:
    study.report.text(
        "Thirty gains and bandwidths are tuned in the loop as built: samples of 1 ms, "
        "commands a sample late, noise of 5e-5 rad and 0.1 bar. There the source's "
        "gains ring, so they are judged in a continuous loop too. The conditions tuned "
        "on are the eight corners of load, oil and friction; those judged on lie "
        "between."
    )
    source = instrumented(study.customise(machine()))
    found = tuned(source, noisy(source, corners(), 0), save=study.out / "tuning")
    keep(study, found)
    given = {path: djdyn.get_parameters(source, path) for path in PATHS}
    gains = {"source": given, "start": found.before, "tuned": found.gains}
    evaluate.run(study, gains)
    figures(study, found)
    race(study, "titan4", found, budget=BUDGET, methods=("CMA-ES",))


def figures(study: Study, found: TuningResult) -> None:
    study.report.table(
        f"Gains tuned on eight conditions in {len(found.history)} steps",
        ("gains", "parameter", *(f"joint {i}" for i in range(1, 7))),
        [
            (name, path, *np.asarray(gains[path]))
            for name, gains in (("start", found.before), ("tuned", found.gains))
            for path in PATHS
        ],
    )
    gain_table(study, found)
    study.report.plot(
        "Tuning: the least cost so far",
        ("step", "", np.arange(1.0, len(found.history) + 1)),
        ("cost", "rad"),
        {"conditions tuned on": found.history[:, 0]},
        log="y",
    )
