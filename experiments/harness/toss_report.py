"""Metrics, tables, plots and a replay of fits to recorded tosses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from djdyn.multibody.spatial import quat_to_rotation
from djdyn.view import Scene

from .study import Study


SCENE = "Toss with the median error, measured and simulated"
Quantities = Sequence[tuple[str, str, Sequence[str]]]  # name, unit, columns


class Kind(NamedTuple):
    """A kind of error: its metric, and the axis of its plots."""

    name: str
    unit: str
    note: str
    axis: tuple[str, str]


def report_mean(
    study: Study,
    name: str,
    kinds: Sequence[Kind],
    found: Sequence[Any],
    most: Sequence[Any] = (None, None, None),
    note: str = "tosses",
) -> None:
    """Report mean errors over some tosses, with their bounds."""
    for kind, e, bound in zip(kinds, found, most, strict=False):
        study.metric(
            f"{name}.{kind.name}",
            np.mean(e),
            at_most=bound,
            unit=kind.unit,
            note=f"{kind.note}; {len(e)} {note}",
        )


def report_parameters(
    study: Study,
    name: str,
    first: Mapping[str, float],
    best: Mapping[str, float],
    others: Sequence[Mapping[str, float]],
) -> None:
    """Tabulate the parameters fitted to all tosses, and the scatter of small fits."""
    scatter = {k: np.std([y[k] for y in others]) if others else np.nan for k in best}
    rows = [(k, first[k], value, scatter[k]) for k, value in best.items()]
    header = ("quantity", "first guess", "fitted", f"scatter of {len(others)} fits")
    study.report.table("Identified parameters", header, rows)
    for label, value in best.items():
        plain, _, unit = label.partition(", ")
        study.metric(
            f"{name}.fitted.{plain.replace(' ', '_')}",
            value,
            unit=unit,
            note=f"scatter of small fits {scatter[label]:.3g}" if others else "",
        )


def report_errors(
    study: Study, kinds: Sequence[Kind], found: Mapping[str, Sequence[Any]]
) -> None:
    """Plot the distribution of errors over held-out tosses, by what predicts them."""
    for i, kind in enumerate(kinds):
        part = lambda e: (np.arange(len(e)) + 0.5) / len(e)
        curves = {k: (np.sort(e[i]), part(e[i])) for k, e in found.items()}
        study.report.plot(
            f"Held-out tosses: mean {kind.axis[0]} of a toss",
            (*kind.axis, np.sort(next(iter(found.values()))[i])),
            ("share of tosses below", "1"),
            curves,
        )


def report_learning(
    study: Study,
    name: str,
    kinds: Sequence[Kind],
    scores: Mapping[int, Sequence[Sequence[Any]]],
) -> None:
    """Plot errors on held-out tosses over the number of fitted tosses."""
    count = np.array(list(scores))
    for i, kind in enumerate(kinds):
        means = [np.array([np.mean(e[i]) for e in some]) for some in scores.values()]
        each = np.repeat(count, [len(m) for m in means])
        study.report.plot(
            f"Learning curve: {kind.axis[0]} on held-out tosses",
            ("tosses fitted", "1", count),
            kind.axis,
            {"mean of fits": np.array([m.mean() for m in means])},
            {"single fits": (each, np.concatenate(means))},
            log="x",
        )
        for n, m in zip(count, means, strict=True):
            note = f"on held-out tosses; mean of {len(m)} fits"
            metric = f"{name}.learning.{n}.{kind.name}"
            study.metric(metric, m.mean(), unit=kind.unit, note=note)


def report_toss(
    study: Study,
    t: np.ndarray,
    q: np.ndarray,
    seen: np.ndarray,
    quantities: Quantities,
    boxes: Callable[[Scene, str, np.ndarray, float], None],
) -> None:
    """Plot a toss and replay it, measured and simulated.

    `boxes(scene, name, poses, opacity)` draws a path.
    """
    columns = [column for _, _, some in quantities for column in some]
    both = {
        "measured": (("time", "column"), seen),
        "simulated": (("time", "column"), q),
    }
    study.series("toss", xr.Dataset(both, {"time": t, "column": columns}))
    start = 0
    for what, unit, some in quantities:
        pick = lambda a, start=start, some=some: {
            c: a[:, start + j] for j, c in enumerate(some)
        }
        study.report.plot(
            f"Held-out toss with the median error: {what} (reference: measured)",
            ("time", "s", t),
            (what, unit),
            pick(q),
            pick(seen),
        )
        start += len(some)
    scene = Scene(t, ground=0.0)
    for name, path, opacity in (("measured", seen, 0.4), ("simulated", q, 1.0)):
        boxes(scene, name, path, opacity)
    study.report.scene(scene, SCENE)


def rotations(quaternions: np.ndarray) -> np.ndarray:
    """Return the rotation matrices of a path."""
    return np.asarray(jax.vmap(quat_to_rotation)(jnp.asarray(quaternions)))
