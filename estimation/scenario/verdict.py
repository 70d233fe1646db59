"""What an identification is worth, in words."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from ..identification.diagnostics import Residuals
from ..identification.result import FitResult
from .diagnosis import missing_effects


NOISE_LEVEL = 1.5  # standard deviations: larger residuals are not the noise alone
NOT_WHITE = 0.01  # p-value below which residuals are no white noise
WORSE_AHEAD = 3.0  # times the error on fitted data: larger ones are no prediction


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One of IMPROVED, NOT IDENTIFIABLE, MODEL REJECTED and NOT IMPROVED, and why."""

    word: str
    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the estimates may be used."""
        return self.word == "IMPROVED"

    def __str__(self) -> str:
        return f"{self.word}: {' '.join(self.reasons)}"


def judge(
    found: FitResult,
    tests: Sequence[Residuals],
    before: float | None,
    after: float | None,
) -> Verdict:
    """Return the verdict on a fit.

    **Arguments:**

    - `tests`: tests of its residuals.
    - `before`, `after`: errors on data not fitted, in standard deviations.
    """
    if not found.after.ok:
        return Verdict("NOT IDENTIFIABLE", (f"{found.after.verdict().capitalize()}.",))
    sizes = [np.sqrt(np.nanmean(t.values**2, 0)) for t in tests]
    bad = [
        (float(size[i]), t.trial, t.labels[i])
        for t, size in zip(tests, sizes, strict=True)
        for i in range(len(size))
        if size[i] > NOISE_LEVEL and t.p_white[i] < NOT_WHITE
    ]
    if bad:
        size, trial, label = max(bad)
        said = [
            f"Residuals of {label} in {trial} are {size:.3g} standard deviations of "
            "the noise and not noise: the model cannot move as the machine did, or the "
            "noise is larger than was given."
        ]
        for c in missing_effects(found):
            said.append(f"What is left would shrink by {c.share:.0%} with {c.what}.")
        return Verdict("MODEL REJECTED", tuple(said))
    if not found.converged:
        return Verdict("NOT IMPROVED", ("The search did not converge.",))
    if before is not None and after is not None:
        error = (
            f"On data not fitted the error is {after:.3g} standard deviations of the "
            f"noise, {before:.3g} with the first guess."
        )
        fitted = float(np.sqrt(np.mean([np.nanmean(t.values**2) for t in tests])))
        if after > WORSE_AHEAD * max(fitted, 1.0):
            return Verdict(
                "MODEL REJECTED",
                (
                    error,
                    f"On fitted data it is {fitted:.3g}: the fit does not predict.",
                ),
            )
        if after >= before and before > NOISE_LEVEL:
            return Verdict("NOT IMPROVED", (error,))
        return Verdict("IMPROVED", (error,))
    return Verdict(
        "IMPROVED", ("Nothing was held out, so that nothing was predicted.",)
    )
