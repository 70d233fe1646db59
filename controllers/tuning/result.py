"""The result of a tuning: gains, costs before and after, sensitivity and margins."""

import json
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from djdyn import System
from djdyn.files import write_text

from ..linear.margins import STABILITY_TOLERANCE, Margins
from .evaluate import cost_of
from .evaluation import Evaluation
from .objective import Objective


SENSITIVITY_STEP = 0.1  # relative change of a gain
SIMULATIONS_PER_GRADIENT = 4  # what a gradient is counted as


class TuningResult(eqx.Module):
    """Tuned gains, and evaluations of all scenarios before and after tuning.

    - `objective`: what was minimised, with the system as given; `x` are the unknowns.
    - `evaluations`: before and after, on the scenarios `"tuned on"` and those
      `"held out"`.
    - `history`: the least cost of each starting point (columns), step by step;
      `simulations`: how many runs through all scenarios had been made by then;
      `seconds`: how long all of them took.
    - `spectral_abscissa`: the largest real part of a pole, 1/s, before and after, in
      every scenario; `margins`: the worst of all scenarios, before and after.
    """

    objective: Objective
    x: Array
    evaluations: dict[str, tuple[Evaluation, Evaluation]]
    history: np.ndarray
    simulations: np.ndarray
    spectral_abscissa: np.ndarray | None
    margins: tuple[Margins, Margins] | None
    seconds: float

    @property
    def system(self) -> System:
        """The system with the tuned gains."""
        return self.objective.system_at(self.x)

    @property
    def gains(self) -> dict[str, Array]:
        """Tuned gains by path."""
        return self.objective.gains(self.x)

    @property
    def before(self) -> dict[str, Array]:
        """Initial gains by path."""
        return self.objective.gains(self.objective.x0)

    def summary(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Return numbers before and after tuning, by set of scenarios and by name.

        **Returns:** the cost, its terms, the largest excess of every limit and the
        number of scenarios that diverged.
        """
        return {
            where: {
                name: (first[name], last[name])
                for first, last in [tuple(_numbers(self.objective, s) for s in both)]
                for name in first
            }
            for where, both in self.evaluations.items()
        }

    @property
    def cost_ratio(self) -> float:
        """Cost after tuning over that before, on held-out scenarios if there are."""
        before, after = [*self.summary().values()][-1]["cost"]
        return after / before

    @property
    def stable(self) -> bool | None:
        """Whether all poles of the tuned loop are stable, also with its delay.

        None if no operating point was named.
        """
        if self.spectral_abscissa is None:
            return None
        held = (
            self.margins is None
            or self.margins[1].spectral_abscissa < STABILITY_TOLERANCE
        )
        return held and bool(np.all(self.spectral_abscissa[1] < STABILITY_TOLERANCE))

    @property
    def better(self) -> bool:
        """Whether the cost fell and neither stability nor a scenario was lost."""
        lost = [*self.summary().values()][-1]["diverged"]
        return self.cost_ratio < 1 and self.stable is not False and lost[1] <= lost[0]

    def sensitivity(self) -> dict[str, tuple[float, float]]:
        """Return how the cost changes with every gain a tenth smaller, and larger.

        **Returns:** relative changes by name, NaN where the gain is out of bounds.
        """
        here, found = float(cost_of(self.objective, self.x)), {}
        paths = {f.path: f.transform for f in self.objective.free}
        x, at = np.asarray(self.x), 0
        for path in sorted(paths):
            value = np.asarray(self.gains[path])
            for place in np.ndindex(value.shape):
                both = []
                for share in (1 - SENSITIVITY_STEP, 1 + SENSITIVITY_STEP):
                    moved = np.array(value)
                    moved[place] *= share
                    theta = np.ravel(paths[path].unconstrain(jnp.asarray(moved)))
                    if not np.all(np.isfinite(theta)):  # beyond its bounds
                        both.append(np.nan)
                        continue
                    new = np.concatenate([x[:at], theta, x[at + theta.size :]])
                    cost = float(cost_of(self.objective, jnp.asarray(new)))
                    both.append(cost / here - 1)
                found[path + "".join(f"[{i}]" for i in place)] = tuple(both)
            at += value.size
        return found

    def gain_table(self) -> list[tuple[str, str, str, str, str]]:
        """Return a row of text for every gain.

        **Returns:** its name, its values before and after tuning, and the change of the
        cost with nine tenths and with eleven tenths of it.
        """
        flat = lambda gains: [y for k in sorted(gains) for y in np.ravel(gains[k])]
        changes = self.sensitivity()
        return [
            (name, f"{old:.5g}", f"{new:.5g}", _percent(less), _percent(more))
            for (name, (less, more)), old, new in zip(
                changes.items(), flat(self.before), flat(self.gains), strict=True
            )
        ]

    def __str__(self) -> str:
        head = ("gain", "before", "after", "cost at -10 %", "+10 %")
        said = [_table([head, *self.gain_table()])]
        for where, numbers in self.summary().items():
            count = len(self.evaluations[where][0].ok)
            lines = [(f"{count} scenarios {where}", "before", "after")]
            lines += [(k, f"{a:.5g}", f"{b:.5g}") for k, (a, b) in numbers.items()]
            said.append(_table(lines))
        if self.spectral_abscissa is not None:
            a, b = self.spectral_abscissa.max(1)
            said.append(
                f"largest real part of a pole: {a:.4g} before, {b:.4g} after, 1/s"
            )
        if self.margins is not None:
            rows = [("margins, worst of all scenarios", "gain", "phase", "modulus")]
            for when, m in zip(("before", "after"), self.margins, strict=True):
                for i, g in enumerate(m.gain):
                    gain = f"{20 * np.log10(g):+.1f} dB"
                    entry = (f"{m.phase[i]:.1f} deg", f"{m.modulus[i]:.2f}")
                    rows.append((f"{when}, entry {i}", gain, *entry))
            said.append(_table(rows))
        return "\n\n".join(said)

    def save(self, path: str | Path) -> None:
        """Write gains, by path, and the summary to a JSON file."""
        gains = {k: np.asarray(x).tolist() for k, x in self.gains.items()}
        text = {"gains": gains, "summary": self.summary()}
        write_text(path, json.dumps(text, indent=2) + "\n")


def load_gains(path: str | Path) -> dict[str, Array]:
    """Read the gains that `TuningResult.save` wrote.

    **Returns:** gains by path, for `djdyn.with_parameters`.
    """
    try:
        gains = json.loads(Path(path).read_text(encoding="utf-8"))["gains"]
        found = {k: jnp.asarray(x, float) for k, x in gains.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path} holds no gains") from None
    for name, value in found.items():
        if not np.all(np.isfinite(value)):
            raise ValueError(f"{path}: the gain {name!r} is not a finite number")
    return found


def _numbers(objective: Objective, evaluation: Evaluation) -> dict[str, float]:
    """Return the summary of one evaluation, by name."""
    ok = np.asarray(evaluation.ok)
    mean = lambda x: float(np.mean(np.asarray(x)[ok]))
    found = {"cost": float(objective.risk_of(evaluation.costs, evaluation.ok))}
    found |= {name: mean(x) for name, x in evaluation.terms.items()}
    for name, g in evaluation.excess.items():
        found[f"{name} exceeded by"] = max(0.0, float(np.max(np.asarray(g)[ok])))
    return found | {"diverged": float(np.sum(~ok))}


def _percent(change: float) -> str:
    return f"{change:+.2%}" if np.isfinite(change) else "out of bounds"


def _table(rows: list[tuple[str, ...]]) -> str:
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    line = lambda row: "  ".join(
        cell.ljust(w) if i == 0 else cell.rjust(w)
        for i, (cell, w) in enumerate(zip(row, wide, strict=True))
    )
    return "\n".join(map(line, rows))
