"""Checks of a fit: residuals, cross-validation, and comparison of models."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np
import scipy.stats
from jaxtyping import Bool, Float, PyTree

from djdyn.system.parameters import FreeParameter

from .fit import fit, rms
from .problem import Problem
from .result import FitResult
from .trial import Trial


@dataclasses.dataclass(frozen=True)
class Residuals:
    """Residuals of one trial in standard deviations, and tests of them.

    `values` are predicted minus measured, NaN where nothing was measured. `p_white` is
    the p-value of the Ljung-Box test that a channel's residuals are white noise.
    `outliers` are larger than any in all but a fraction `once` of records of noise.
    """

    trial: str
    labels: tuple[str, ...]
    values: Float[np.ndarray, "n c"]
    p_white: Float[np.ndarray, " c"]
    outliers: Bool[np.ndarray, "n c"]

    def __str__(self) -> str:
        lines = []
        for i, label in enumerate(self.labels):
            p, far = self.p_white[i], int(self.outliers[:, i].sum())
            kind = "noise" if p > 0.01 else "not noise: the model lacks something"
            size = np.sqrt(np.nanmean(self.values[:, i] ** 2))
            lines.append(
                f"{self.trial}, {label}: {size:.3g} standard deviations, {kind} "
                f"(p = {p:.2g}), {far} outliers"
            )
        return "\n".join(lines)


def residuals(
    found: FitResult, *, lags: int = 10, once: float = 0.01
) -> list[Residuals]:
    """Return the residuals of every trial, where they were fitted.

    **Arguments:**

    - `lags`: number of lags of the Ljung-Box test.
    - `once`: fraction of records of pure noise in which an outlier is named.

    **Returns:** one `Residuals` for each trial.
    """
    r, _ = eqx.filter_jit(found.problem.data_residuals)(found.x)
    parts, at = [], 0
    for t in found.problem.trials:
        n, c = t.values.shape
        one = np.array(r[at : at + n * c]).reshape(n, c)
        at += n * c
        one[~np.asarray(t.present)] = np.nan
        far = scipy.stats.norm.isf(once / 2 / max(int(t.present.sum()), 1))
        p = np.array([_whiteness(one[:, i], lags) for i in range(c)])
        parts.append(Residuals(t.name, t.labels, one, p, np.abs(one) > far))
    return parts


def _whiteness(r: Float[np.ndarray, " n"], lags: int) -> float:
    """Return the p-value of the Ljung-Box test; gaps are left out of the sums."""
    x = r - np.nanmean(r)
    n, variance, q = int(np.isfinite(x).sum()), np.nanmean(x**2), 0.0
    if n <= lags + 1 or not variance > 0:
        return 1.0
    for k in range(1, lags + 1):
        product = x[:-k] * x[k:]
        seen = int(np.isfinite(product).sum())
        if seen:
            rho = np.nanmean(product) / variance
            q += n * (n + 2) / (n - k) * (seen / (n - k)) * rho**2
    return float(scipy.stats.chi2.sf(q, lags))


def cross_validate(
    model: PyTree,
    trials: Sequence[Trial],
    free: Sequence[FreeParameter | str] = (),
    **how: Any,
) -> dict[str, float]:
    """Fit all trials but one, and predict that one, for every trial.

    The unknowns of the left-out trial alone stay at their initial values.

    **Returns:** root mean square errors by trial, in standard deviations of the noise.
    """
    if len(trials) < 2:
        raise ValueError("cross-validation needs two trials or more")
    none, found = np.zeros, {}
    for i, left in enumerate(trials):
        # Hidden, not removed, so that one compiled fit serves all.
        blind = left.keep(none(len(left), bool))
        fitted = [blind if j == i else t for j, t in enumerate(trials)]
        one = fit(model, fitted, free, hold_out=0.0, allow_unidentifiable=True, **how)
        validation = Problem(one.model, [left], free)
        found[left.name] = rms(validation, validation.x)
    return found


def compare_fits(fits: Mapping[str, FitResult]) -> dict[str, dict[str, float]]:
    r"""Compare models of the same data by information criteria.

    With $\chi^2$ the sum of squares, $k$ unknowns and $n$ numbers measured,
    AIC is $\chi^2 + 2k$ and BIC $\chi^2 + k\ln n$; only differences matter.

    **Returns:** the criteria by model, that of the least BIC first.
    """
    if len({f.measured for f in fits.values()}) > 1:
        raise ValueError("models can only be compared on the same data")
    rows = {}
    for name, f in fits.items():
        k, chi2 = len(f.x), 2 * f.cost
        aic, bic = chi2 + 2 * k, chi2 + k * np.log(f.measured)
        rows[name] = {"unknowns": float(k), "chi2": chi2, "aic": aic, "bic": float(bic)}
    return dict(sorted(rows.items(), key=lambda row: row[1]["bic"]))
