"""Speed of the Titan 4 in a batch of conditions, and of gradients by its gains.

Loads, oils and frictions differ between lanes; the gradient is that of the cost of its
tuning by thirty gains, in a continuous loop.
"""

import equinox as eqx
import numpy as np
from jaxtyping import Array

from controllers import Objective, cost_of

from ..harness.study import Study
from ..studies.titan4 import realtime as realtime
from ..studies.titan4.conditions import drawn, machine, scenarios
from ..studies.titan4.loop import COST, INPUTS, SPAN
from ..studies.titan4.tuning import FREE, begun
from .timing import fastest


TITLE = "Titan 4: batches of conditions"
STAGES = 2
OPTIONS = {"rounds": 3, "batch": 256}
SAVES, STEP = 151, 5e-3  # s
HOW = {"solver": "rk4", "dt": STEP, "inputs": INPUTS}


@eqx.filter_jit
def slope_of(objective: Objective) -> tuple[Array, Array]:
    return objective.slope(objective.x0)


def run(study: Study) -> None:
    """Time a batch of arms and its gradient, and one arm in real time."""
    rounds, batch = int(study.options["rounds"]), int(study.options["batch"])
    batch = min(batch, 32) if study.quick else batch
    with study.stage(f"batch of {batch}"):
        system = begun(machine())
        objective = Objective(
            system, SPAN, FREE, COST, scenarios(system, drawn(0, batch)),
            saves=SAVES, rollout_options=HOW,
        )  # fmt: skip
        forward = fastest(lambda: cost_of(objective, objective.x0), rounds)
        both = fastest(lambda: slope_of(objective), rounds)
        steps = batch * round(SPAN / STEP)
        name = f"titan4.speed.batch{batch}"
        study.metric(f"{name}.rate", steps / forward, unit="steps/s", note="rk4, 5 ms")
        study.metric(f"{name}.realtime", batch * SPAN / forward)
        study.metric(
            f"{name}.gradient_ratio",
            both / forward,
            note="time of cost and gradient by thirty gains, over the cost alone",
        )
        gradient = np.asarray(slope_of(objective)[1])
        finite = np.isfinite(gradient).mean()
        study.metric(f"{name}.gradient_finite", finite, at_least=1.0)
    with study.stage("one arm, one sample per call"):
        realtime.run(study)
