"""Gradient tuning of gains and bandwidths of the Titan 4."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import controllers
import djdyn
from controllers import RobustnessMargins, Scenarios, SearchOptions, TuningResult
from djdyn import FreeParameter, Positive, Sigmoid

from ...harness.study import Study
from ...harness.tuning_report import compare_searches, gain_table, save_gains
from . import validation as validation
from .conditions import corners, machine
from .loop import COST, SAVES, SIMULATION, SPAN, instrumented, noisy
from .realtime import PERIOD


MAX_STEPS, BUDGET = 200, 2000
PATHS = ("control.kp", "control.ki", "path.frequency", "control.kd", "control.k3")
MAX_BANDWIDTH = 60.0  # rad/s
FREE = tuple(
    FreeParameter(
        p, Sigmoid(1.0, MAX_BANDWIDTH) if p == "path.frequency" else Positive()
    )
    for p in PATHS
)
MODULUS_MARGIN, PENALTY = 0.65, 100.0
# Start of the tuning
START_FREQUENCY, START_DAMPING_RATIO = 12.0, 0.7  # rad/s, 1; of each joint
START_K3 = 40.0  # 1/s
INTEGRAL_RATIO = 30.0  # START_FREQUENCY over the rate of the integral
START_BANDWIDTH = 25.0  # rad/s, reference model


def begun(source: djdyn.System) -> djdyn.System:
    """Return the system with initial gains that are stable in all conditions.

    With 1.5 ms of delay and oil up to four times as stiff as the controller assumes,
    the gains of the source are too high and damp too little. The inertia of a joint is
    the geometric mean of those with the other joints locked and free.
    """
    B = djdyn.mass_matrix(source.mechanism, jnp.zeros(6))
    inertia = jnp.sqrt(jnp.diagonal(B) / jnp.diagonal(jnp.linalg.inv(B)))
    new = {
        "control.kp": START_FREQUENCY**2 * inertia,
        "control.kd": 2 * START_DAMPING_RATIO * START_FREQUENCY * inertia,
        "control.ki": START_FREQUENCY**3 / INTEGRAL_RATIO * inertia,
        "control.k3": jnp.full(6, START_K3),
        "path.frequency": jnp.full(6, START_BANDWIDTH),
    }
    return djdyn.with_parameters(source, new)


def tuned(
    source: djdyn.System,
    train: Scenarios,
    *,
    free: tuple[FreeParameter, ...] = FREE,
    span: float = SPAN,
    saves: int = SAVES,
    steps: int = MAX_STEPS,
    **more: Any,
) -> TuningResult:
    """Tune an instrumented system on some conditions, with a bound on the margins.

    Margins are evaluated while all joints move: a closed valve has no gain, so there is
    no loop at rest.
    """
    return controllers.tune(
        begun(source), span, free=free, cost=COST, scenarios=train, saves=saves,
        search=SearchOptions(max_steps=steps, penalty=PENALTY),
        robustness=RobustnessMargins(
            validation.ALL_MOVE, validation.VALVES, delay=1.5 * PERIOD,
            modulus=MODULUS_MARGIN,
        ),
        **more, **SIMULATION,
    )  # fmt: skip


def run(study: Study) -> None:
    """Tune the gains, evaluate them and compare with CMA-ES."""
    study.report.text(
        "Thirty gains and bandwidths are tuned in a loop with sampling at 1 ms, one "
        "sample of delay, and noise of 5e-5 rad and 0.1 bar. In this loop the gains of "
        "the source oscillate, so the study also compares them in a continuous loop. "
        "The training conditions are the eight extreme combinations of load, oil and "
        "friction; the conditions for evaluation lie between them."
    )
    source = instrumented(study.customise(machine()))
    found = tuned(source, noisy(source, corners(), 0), save=study.out / "tuning")
    save_gains(study, found)
    given = {path: djdyn.get_parameters(source, path) for path in PATHS}
    gains = {"source": given, "start": found.before, "tuned": found.gains}
    validation.run(study, gains)
    figures(study, found)
    compare_searches(study, "titan4", found, budget=BUDGET, methods=("CMA-ES",))


def figures(study: Study, found: TuningResult) -> None:
    """Tabulate the gains and plot the cost."""
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
        "Tuning: lowest cost so far",
        ("step", "", np.arange(1.0, len(found.history) + 1)),
        ("cost", "rad"),
        {"training conditions": found.history[:, 0]},
        log="y",
    )
