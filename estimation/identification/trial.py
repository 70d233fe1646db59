"""Trials: the measurements of one run, their noise, and how a model predicts them."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from djdyn.system.parameters import FreeParameter


Predict = Callable[..., Any]
MIN_RELATIVE_NOISE = 1e-6  # of a channel's deviation


def measurement_noise(
    values: Float[np.ndarray, "n c"], present: Bool[np.ndarray, "n c"]
) -> Float[np.ndarray, " c"]:
    r"""Estimate the noise of smooth channels from third differences.

    Third differences of white noise have the variance $20\sigma^2$; those of a well
    sampled motion are small.
    """
    x = np.where(present, values, np.nan)
    third = np.abs(np.diff(x, 3, axis=0))
    seen = np.isfinite(third).any(0)
    rough = np.zeros(x.shape[1])
    rough[seen] = np.nanmedian(third[:, seen], axis=0) / 0.6745 / np.sqrt(20)
    return np.maximum(rough, MIN_RELATIVE_NOISE * np.nanstd(x, axis=0))


class Trial(eqx.Module):
    """A record of several channels, and the function that predicts it.

    **Arguments:**

    - `times`, `values`: one row a time, one column a channel.
    - `predict`: `(model, times)`, or `(model, times, start)` where the trial has a
      `start`, to values. A module or a function of a module's level; the times it gets
      are NumPy's. If it takes `adjoint`, it is given `"forward"` or `"reverse"`. It may
      also return a pair: values, and further residuals that should be zero.
    - `present`: false where nothing was measured; by default wherever a value is NaN.
    - `sigma`: standard deviation of the noise, one or one a channel; by default
      estimated from the roughness of the record.
    - `start`: the initial state, or other data of this trial alone; any pytree.
    - `free`: unknowns of this trial alone: `start.q[0]`, `start.v`, or the path of a
      parameter of the model that has a different value in each trial.
    """

    times: tuple[float, ...] = eqx.field(static=True)
    values: Float[Array, "n c"]
    predict: Predict
    present: Bool[Array, "n c"]
    sigma: Float[Array, " c"]
    start: PyTree
    free: tuple[FreeParameter, ...]
    labels: tuple[str, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    takes_adjoint: bool = eqx.field(static=True)

    def __init__(
        self,
        times: Any,
        values: Any,
        predict: Predict,
        *,
        present: Any = None,
        sigma: Any = None,
        start: PyTree = None,
        free: Sequence[FreeParameter | str] = (),
        labels: Sequence[str] = (),
        name: str = "trial",
    ):
        t, x = np.asarray(times, float), np.asarray(values, float)
        x = x[:, None] if x.ndim == 1 else x
        if t.ndim != 1 or x.ndim != 2 or len(t) != len(x):
            raise ValueError(
                f"trial {name!r}: times of shape {t.shape} do not fit values of shape "
                f"{x.shape}"
            )
        there = np.isfinite(x) if present is None else np.asarray(present, bool)
        if there.shape != x.shape:
            raise ValueError(
                f"trial {name!r}: present has shape {there.shape}, but values {x.shape}"
            )
        self.labels = tuple(labels) or tuple(f"channel {i}" for i in range(x.shape[1]))
        if len(self.labels) != x.shape[1]:
            raise ValueError(
                f"trial {name!r}: {len(self.labels)} labels, {x.shape[1]} channels"
            )
        self.name = name
        check_quality(name, self.labels, t, x, there)
        deviation = (
            measurement_noise(x, there) if sigma is None else np.asarray(sigma, float)
        )
        deviation = np.broadcast_to(deviation, x.shape[1])
        if not np.all(deviation > 0):
            raise ValueError(f"trial {name!r}: sigma must be positive, got {deviation}")
        self.times, self.predict = tuple(t.tolist()), predict
        self.values = jnp.asarray(np.where(there, x, 0.0))
        self.present, self.sigma = jnp.asarray(there), jnp.asarray(deviation)
        self.start = start
        self.free = tuple(FreeParameter(f) if isinstance(f, str) else f for f in free)
        self.takes_adjoint = "adjoint" in inspect.signature(predict).parameters

    def __len__(self) -> int:
        return len(self.times)

    def predicted(
        self, model: PyTree, start: PyTree, adjoint: str
    ) -> tuple[Float[Array, "n c"], Float[Array, " extra"]]:
        """Return predicted values, and further residuals that should be zero."""
        given = (model, np.array(self.times))
        given = given if start is None else (*given, start)
        found = self.predict(
            *given, **({"adjoint": adjoint} if self.takes_adjoint else {})
        )
        values, extra = found if isinstance(found, tuple) else (found, jnp.zeros(0))
        values = values[:, None] if values.ndim == 1 else values
        if values.shape != self.values.shape:
            raise ValueError(
                f"trial {self.name!r}: {values.shape} predicted for "
                f"{self.values.shape} measured"
            )
        return values, jnp.ravel(extra)

    def residuals(
        self, model: PyTree, start: PyTree, adjoint: str = "forward"
    ) -> tuple[Float[Array, " nc"], Float[Array, " extra"]]:
        """Return predicted minus measured, over the noise; zero where not measured."""
        values, extra = self.predicted(model, start, adjoint)
        off = (values - self.values) / self.sigma[None]
        return jnp.where(self.present, off, 0.0).ravel(), extra

    def keep(self, rows: Bool[np.ndarray, " n"]) -> "Trial":
        """Return the trial with only some rows marked as measured."""
        there = self.present & jnp.asarray(rows)[:, None]
        return eqx.tree_at(lambda t: t.present, self, there)


def check_quality(
    name: str,
    labels: Sequence[str],
    t: Float[np.ndarray, " n"],
    x: Float[np.ndarray, "n c"],
    present: Bool[np.ndarray, "n c"],
    longest: float = 0.2,
) -> None:
    """Raise an error, in one sentence, if data cannot be a measurement.

    `longest` is the fraction of the record for which all channels may be absent.
    """
    back = np.flatnonzero(np.diff(t) <= 0)
    if not np.all(np.isfinite(t)) or len(back):
        row = int(back[0]) + 1 if len(back) else int(np.argmin(np.isfinite(t)))
        raise ValueError(
            f"trial {name!r}: time does not run forward at row {row}: "
            f"{t[row]:.6g} s after {t[row - 1]:.6g} s"
        )
    bad = present & ~np.isfinite(x)
    if bad.any():
        row, channel = np.argwhere(bad)[0]
        raise ValueError(
            f"trial {name!r}: {labels[channel]} is {x[row, channel]} at "
            f"{t[row]:.6g} s but marked as present"
        )
    for i, label in enumerate(labels):
        seen = x[present[:, i], i]
        if not len(seen):
            raise ValueError(f"trial {name!r}: {label} was never measured")
        if len(seen) > 2 and np.ptp(seen) == 0.0:
            raise ValueError(
                f"trial {name!r}: {label} has the same value {seen[0]:.6g} throughout: "
                "a dead channel, or one to mark as absent"
            )
    at = np.concatenate([t[:1], t[present.any(1)], t[-1:]])
    gap = int(np.argmax(np.diff(at)))
    if len(t) > 4 and np.diff(at)[gap] > longest * (t[-1] - t[0]):
        raise ValueError(
            f"trial {name!r}: all channels are absent from {at[gap]:.6g} to "
            f"{at[gap + 1]:.6g} s"
        )
