"""Speed of ROVs with arms in a batch, and of gradients by their gains.

Payloads, currents and seas differ between lanes; the gradient is that of the cost of
the tuning by twenty-four gains, in a continuous loop.
"""

import equinox as eqx
import numpy as np
from jaxtyping import Array

from controllers import Objective, cost_of

from ..harness.study import Study
from ..studies.rov.tuning import COST, FREE, conditions, machine
from .timing import fastest


TITLE = "ROV: batches of conditions"
STAGES = 1
OPTIONS = {"rounds": 3, "batch": 1024}
SPAN, STEP, SAVES = 2.0, 5e-3, 41  # s


@eqx.filter_jit
def slope_of(objective: Objective) -> tuple[Array, Array]:
    """Return the cost and its gradient."""
    return objective.slope(objective.x0)


def run(study: Study) -> None:
    """Time a batch of vehicles and its gradient."""
    rounds, batch = int(study.options["rounds"]), int(study.options["batch"])
    batch = min(batch, 64) if study.quick else batch
    with study.stage(f"batch of {batch}"):
        objective = Objective(
            machine(), SPAN, FREE, COST, conditions(batch, 0), saves=SAVES,
            rollout_options={"solver": "rk4", "dt": STEP},
        )  # fmt: skip
        forward = fastest(lambda: cost_of(objective, objective.x0), rounds)
        both = fastest(lambda: slope_of(objective), rounds)
        name, steps = f"rov.speed.batch{batch}", batch * round(SPAN / STEP)
        study.metric(
            f"{name}.rate", steps / forward, unit="steps/s",
            note="rk4, 5 ms, twelve thruster states, seas of five components; double "
            "precision",
        )  # fmt: skip
        study.metric(f"{name}.realtime", batch * SPAN / forward)
        study.metric(
            f"{name}.gradient_ratio", both / forward,
            note="time of cost and gradient by 24 gains, over the cost alone",
        )  # fmt: skip
        finite = np.isfinite(np.asarray(slope_of(objective)[1])).mean()
        study.metric(f"{name}.gradient_finite", finite, at_least=1.0)
