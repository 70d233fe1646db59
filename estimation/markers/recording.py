"""Recorded positions of markers, and when they were visible."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from djdyn.typing import Number, Numbers

from .checks import basic_faults, jump_faults, shape_faults, swaps


class MarkerData(eqx.Module):
    """Recorded positions of labelled markers, m; `visible` is false where hidden.

    Positions of hidden markers are zero, never NaN or interpolated, so computations
    with `positions` must use `visible`. `MarkerData.seen` takes NaN for hidden.
    """

    times: Float[np.ndarray, " n"] = eqx.field(converter=lambda x: np.asarray(x, float))
    labels: tuple[str, ...] = eqx.field(converter=tuple, static=True)
    positions: Float[np.ndarray, "n m 3"]
    visible: Bool[np.ndarray, "n m"]

    def __check_init__(self):
        if not np.all(np.isfinite(self.times)):
            raise ValueError("a time is not a finite number")
        if self.positions.shape != (len(self.times), len(self.labels), 3):
            raise ValueError(
                f"{len(self.times)} times and {len(self.labels)} labels, but positions "
                f"of shape {self.positions.shape}"
            )
        if np.any(self.positions[~self.visible]):
            raise ValueError("positions of hidden markers must be zero")
        for k, i in np.argwhere(~np.all(np.isfinite(self.positions), -1))[:1]:
            raise ValueError(
                f"marker {self.labels[i]!r} is visible at {self.times[k]:g} s, but at "
                f"{self.positions[k, i]}"
            )

    @staticmethod
    def seen(times: Numbers, labels: Sequence[str], positions: Any) -> "MarkerData":
        """Return data from positions in which NaN means hidden."""
        positions = np.asarray(positions, float)
        visible = np.all(np.isfinite(positions), -1)
        kept = np.where(visible[..., None], positions, 0.0)
        return MarkerData(np.asarray(times, float), tuple(labels), kept, visible)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def rate(self) -> float:
        """Samples per second, without gaps and however times were rounded."""
        steps = np.diff(self.times)
        usual = np.median(steps) if len(steps) else 0.0
        if not usual > 0:
            raise ValueError("times must increase to have a rate; see check()")
        return float(1 / np.mean(steps[np.abs(steps / usual - 1) < 0.5]))

    @property
    def with_gaps(self) -> Float[np.ndarray, "n m 3"]:
        """Positions with NaN where a marker is hidden, for plots and files."""
        return np.where(self.visible[..., None], self.positions, np.nan)

    def select(self, labels: Sequence[str]) -> "MarkerData":
        """Return the markers of these labels, in this order."""
        for label in labels:
            if self.labels.count(label) != 1:
                there = ", ".join(self.labels)
                count = "no" if label not in self.labels else "more than one"
                raise ValueError(f"{count} marker {label!r} among {there}")
        at = [self.labels.index(label) for label in labels]
        positions, visible = self.positions[:, at], self.visible[:, at]
        return MarkerData(self.times, tuple(labels), positions, visible)

    def between(self, t0: Number, t1: Number) -> "MarkerData":
        """Return the samples from `t0` to `t1`, s."""
        kept = (self.times >= t0) & (self.times <= t1)
        return MarkerData(
            self.times[kept], self.labels, self.positions[kept], self.visible[kept]
        )

    def resample(self, times: Numbers) -> "MarkerData":
        """Return positions at other times, by linear interpolation.

        A marker is hidden where it is in either neighbouring sample, and outside of the
        record. Nothing is filtered: fewer samples than the motion needs will alias.
        """
        if np.any(np.diff(self.times) <= 0):
            raise ValueError("times must increase to be resampled; see check()")
        wanted = np.asarray(times, float)
        step = np.median(np.diff(self.times))
        right = np.clip(np.searchsorted(self.times, wanted), 1, len(self) - 1)
        t0, t1 = self.times[right - 1], self.times[right]
        s = np.clip((wanted - t0) / (t1 - t0), 0.0, 1.0)
        outside = (wanted < t0 - 1e-9 * step) | (wanted > t1 + 1e-9 * step)
        needed = [(s < 1)[:, None], (s > 0)[:, None]]  # of the left and the right one
        visible = ~outside[:, None] & (t1 - t0 < 1.5 * step)[:, None]
        for need, at in zip(needed, (right - 1, right), strict=True):
            visible = visible & (self.visible[at] | ~need)
        s = s[:, None, None]
        between = (1 - s) * self.positions[right - 1] + s * self.positions[right]
        kept = np.where(visible[..., None], between, 0.0)
        return MarkerData(wanted, self.labels, kept, visible)

    def check(
        self,
        rigid: Sequence[Sequence[str] | Mapping[str, Any]] = (),
        tolerance: Number = 5e-3,
    ) -> tuple[str, ...]:
        """Return the faults of the data, a sentence each; empty if there are none.

        **Arguments:**

        - `rigid`: labels of the markers of each rigid body, or their offsets by label
          (`MarkerSet.rigid`), which also finds markers that are swapped all the time.
        - `tolerance`: how far markers of a rigid body may be out of shape, m.
        """
        said = basic_faults(self.times, self.labels, self.positions, self.visible)
        named = set()
        for cluster in rigid:
            part = self.select(list(cluster))
            shape = None
            if isinstance(cluster, Mapping):
                shape = np.array([cluster[label] for label in part.labels], float)
            record = (part.times, part.labels, part.positions, part.visible)
            sentences, pairs = shape_faults(*record, shape, float(tolerance))
            said, named = said + sentences, named | pairs
        jumps = jump_faults(self.times, self.labels, self.positions, self.visible)
        return (*said, *(text for pair, text in jumps.items() if pair not in named))

    def unswapped(
        self, rigid: Sequence[Mapping[str, Any]], tolerance: Number = 5e-3
    ) -> "MarkerData":
        """Return the data with labels exchanged back where `check` finds a swap."""
        positions, visible = self.positions.copy(), self.visible.copy()
        for body in rigid:
            at = [self.labels.index(label) for label in body]
            shape = np.array([*body.values()], float)
            here = (positions[:, at], visible[:, at])
            pairs, _, pair = swaps(*here, shape, float(tolerance))
            for row, (i, j) in enumerate(pairs):
                rows = np.flatnonzero(pair == row)[:, None]
                to, back = [at[i], at[j]], [at[j], at[i]]
                positions[rows, to] = positions[rows, back]
                visible[rows, to] = visible[rows, back]
        return MarkerData(self.times, self.labels, positions, visible)
