"""What a tuning found: gains, what they cost before and after, and how surely."""

import json
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from djdyn import System

from ..linear.margins import NEUTRAL, Margins
from .objective import Evaluation, Objective


NUDGE = 0.1
GRADIENT = 4  # simulations that a gradient is counted as


class TuningResult(eqx.Module):
    """Gains, and what became of scenarios with them.

    `seen` has what happened before and after, on the scenarios tuned on and on those
    held out. `growth` are the largest real parts of the poles, before and after, in
    every scenario, and `margins` the worst of all scenarios. `history` are the least
    costs of all starts, step by step, and `simulations` how many runs through all
    scenarios they had cost by then; all of them took `seconds`.
    """

    objective: Objective
    x: Array
    seen: dict[str, tuple[Evaluation, Evaluation]]
    history: np.ndarray
    simulations: np.ndarray
    spectral_abscissa: np.ndarray | None
    margins: tuple[Margins, Margins] | None
    seconds: float

    @property
    def system(self) -> System:
        """With the new gains."""
        return self.objective.placed(self.x)

    @property
    def gains(self) -> dict[str, Array]:
        return self.objective.gains(self.x)

    @property
    def before(self) -> dict[str, Array]:
        return self.objective.gains(self.objective.x0)

    def figures(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Before and after, by scenarios and by name: cost, terms, excess of limits and
        the number of scenarios that diverged."""
        return {
            where: {
                name: (first[name], last[name])
                for first, last in [tuple(_numbers(self.objective, s) for s in both)]
                for name in first
            }
            for where, both in self.seen.items()
        }

    @property
    def cost_ratio(self) -> float:
        """After over before, on the scenarios held out if there are any."""
        before, after = [*self.figures().values()][-1]["cost"]
        return after / before

    @property
    def stable(self) -> bool | None:
        """Whether no pole of the tuned loop grows, with its delay neither.

        None, if no rest was named.
        """
        if self.spectral_abscissa is None:
            return None
        held = self.margins is None or self.margins[1].spectral_abscissa < NEUTRAL
        return held and bool(np.all(self.spectral_abscissa[1] < NEUTRAL))

    @property
    def better(self) -> bool:
        """Cheaper, not unstable, and no scenario lost that was not lost before."""
        lost = [*self.figures().values()][-1]["diverged"]
        return self.cost_ratio < 1 and self.stable is not False and lost[1] <= lost[0]

    def sensitivity(self) -> dict[str, tuple[float, float]]:
        """Relative change of the cost with every gain a tenth smaller, and larger.

        Not a number where that is out of bounds.
        """
        here, found = float(cost_of(self.objective, self.x)), {}
        paths = {f.path: f.transform for f in self.objective.free}
        x, at = np.asarray(self.x), 0
        for path in sorted(paths):
            value = np.asarray(self.gains[path])
            for place in np.ndindex(value.shape):
                both = []
                for share in (1 - NUDGE, 1 + NUDGE):
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

    def __str__(self) -> str:
        rows = [("gain", "before", "after", "cost at -10 %", "+10 %")]
        changed = self.sensitivity()
        flat = lambda gains: [y for k in sorted(gains) for y in np.ravel(gains[k])]
        for (name, (less, more)), old, new in zip(
            changed.items(), flat(self.before), flat(self.gains), strict=True
        ):
            rows.append(
                (name, f"{old:.5g}", f"{new:.5g}", percent(less), percent(more))
            )
        said = [_table(rows)]
        for where, numbers in self.figures().items():
            count = len(self.seen[where][0].ok)
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
        """Writes gains, by path, and figures as JSON."""
        gains = {k: np.asarray(x).tolist() for k, x in self.gains.items()}
        text = {"gains": gains, "figures": self.figures()}
        Path(path).write_text(json.dumps(text, indent=2) + "\n")


def load_gains(path: str | Path) -> dict[str, Array]:
    """Gains that a tuning saved, for `djdyn.with_parameters`."""
    try:
        gains = json.loads(Path(path).read_text())["gains"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise ValueError(f"{path} holds no gains") from None
    return {k: jnp.asarray(x, float) for k, x in gains.items()}


@eqx.filter_jit
def cost_of(objective: Objective, x: Array) -> Array:
    return objective.cost(x)


@eqx.filter_jit
def costs_of(objective: Objective, xs: Array) -> Array:
    return objective.costs(xs)


def _numbers(objective: Objective, seen: Evaluation) -> dict[str, float]:
    ok = np.asarray(seen.ok)
    mean = lambda x: float(np.mean(np.asarray(x)[ok]))
    found = {"cost": float(objective._risk(seen.costs, seen.ok))}
    found |= {name: mean(x) for name, x in seen.terms.items()}
    for name, g in seen.excess.items():
        found[f"{name} exceeded by"] = max(0.0, float(np.max(np.asarray(g)[ok])))
    return found | {"diverged": float(np.sum(~ok))}


def percent(change: float) -> str:
    """A relative change, where there is one."""
    return f"{change:+.2%}" if np.isfinite(change) else "out of bounds"


def _table(rows: list[tuple[str, ...]]) -> str:
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    line = lambda row: "  ".join(
        cell.ljust(w) if i == 0 else cell.rjust(w)
        for i, (cell, w) in enumerate(zip(row, wide, strict=True))
    )
    return "\n".join(map(line, rows))
