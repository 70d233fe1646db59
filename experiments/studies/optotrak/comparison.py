"""Comparison of the identification with SciPy's least squares on differences."""

import time
from typing import Any

import jax
import numpy as np
import scipy.optimize

from estimation import fit

from ...harness.study import Study
from .identification import FIT_OPTIONS, FREE, Found


STEM = "optotrak.twin"


def compare_with_scipy(study: Study, found: Found) -> None:
    """Time the fit and SciPy's from the same start, both compiled beforehand."""
    problem, x0 = found.fit.problem, np.asarray(found.fit.x0)
    scale, calls = np.asarray(problem.scale), 0
    predict = jax.jit(lambda x: problem.residuals(x))

    def residuals(y: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.asarray(predict(y * scale))

    ours = lambda: fit(
        problem.model, problem.trials, FREE, priors=problem.priors, hold_out=0.0,
        **FIT_OPTIONS,
    )  # fmt: skip
    within = FIT_OPTIONS["tolerance"]
    theirs = lambda: scipy.optimize.least_squares(
        residuals, x0 / scale, method="lm", xtol=within, ftol=within
    )
    residuals(x0 / scale)
    calls = 0
    (own, again), (peer, other) = _timed(ours), _timed(theirs)
    for name, value, most, unit, note in (
        ("seconds", own, 60.0, "s", "time of the fit, once compiled"),
        ("scipy.time_ratio", peer / own, None, "",
         f"time of SciPy's least_squares on differences, {peer:.3g} s, over ours"),
        ("scipy.simulations", calls, None, "",
         f"simulations without a Jacobian; ours are {again.num_evaluations} with one"),
        ("scipy.cost_ratio", other.cost / again.cost, None, "",
         "final cost of SciPy's fit over that of ours"),
    ):  # fmt: skip
        metric, note = f"{STEM}.{name}", f"synthetic record: {note}"
        study.metric(metric, value, at_most=most, unit=unit, note=note)


def _timed(work: Any) -> tuple[float, Any]:
    """Return the seconds that a call takes, and what it returns."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found
