"""V14 beside SciPy: the same least squares on finite differences."""

import time
from typing import Any

import jax
import numpy as np
import scipy.optimize

from estimation import fit

from ...harness.study import Study
from .identification import FREE, HOW, Found


STEM = "optotrak.twin"


def race(study: Study, found: Found) -> None:
    """The same fit by SciPy on differences, from the same start; both compiled."""
    problem, x0 = found.fit.problem, np.asarray(found.fit.x0)
    scale, calls = np.asarray(problem.scale), 0
    predict = jax.jit(lambda x: problem.residuals(x))

    def residuals(y: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.asarray(predict(y * scale))

    ours = lambda: fit(
        problem.model, problem.trials, FREE, priors=problem.priors, hold_out=0.0, **HOW
    )  # fmt: skip
    within = HOW["tolerance"]
    theirs = lambda: scipy.optimize.least_squares(
        residuals, x0 / scale, method="lm", xtol=within, ftol=within
    )
    residuals(x0 / scale)
    calls = 0
    (own, again), (peer, other) = _timed(ours), _timed(theirs)
    for name, value, reference, most, unit, note in (
        ("seconds", own, 0.0, 60.0, "s", "of the fit, once compiled"),
        ("scipy.time_ratio", peer / own, None, None, "",
         f"SciPy's least_squares on differences, {peer:.3g} s, over ours"),
        ("scipy.simulations", calls, None, None, "",
         f"without a Jacobian; ours {again.evaluations} with one"),
        ("scipy.cost_ratio", other.cost / again.cost, None, None, "",
         "where it ended, over ours"),
    ):  # fmt: skip
        metric, note = f"{STEM}.{name}", f"V14, synthetic: {note}"
        study.metric(metric, value, reference, most, unit=unit, note=note)


def _timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found
