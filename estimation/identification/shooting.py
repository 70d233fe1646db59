"""Multiple shooting: long or chaotic records in pieces, each with its own start."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from .trial import Trial


Flow = Callable[..., tuple[Array, PyTree]]  # (model, times, start) -> values, end


class _Shooting(eqx.Module):
    """Predict a record piece by piece; the gaps between pieces should be zero."""

    flow: Flow
    pieces: tuple[int, ...] = eqx.field(static=True)  # first rows, and the last
    tightness: Float[Array, " s"]
    batched: bool = eqx.field(static=True)

    def __call__(
        self, model: PyTree, times: np.ndarray, start: list[PyTree]
    ) -> tuple[Array, Array]:
        if self.batched:
            return self._batch(model, times[: self.pieces[1] + 1], start)
        values, gaps = [], []
        for i, (a, b) in enumerate(zip(self.pieces, self.pieces[1:], strict=False)):
            last = b == len(times)
            some, end = self.flow(model, times[a : b + (not last)], start[i])
            values.append(some[: b - a])
            if not last:
                off = ravel_pytree(end)[0] - ravel_pytree(start[i + 1])[0]
                gaps.append(off / self.tightness)
        return jnp.concatenate(values), jnp.concatenate(gaps)

    def _batch(
        self, model: PyTree, times: np.ndarray, start: list[PyTree]
    ) -> tuple[Array, Array]:
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *start)
        flow = lambda start: self.flow(model, times, start)
        values, ends = jax.vmap(flow)(stacked)
        flat = jax.vmap(lambda y: ravel_pytree(y)[0])
        gaps = (flat(ends)[:-1] - flat(stacked)[1:]) / self.tightness[None]
        values = values[:, :-1]
        return values.reshape(-1, *values.shape[2:]), gaps.ravel()


def multiple_shooting(
    times: Any,
    values: Any,
    flow: Flow,
    piece_starts: Sequence[PyTree],
    *,
    tightness: Any,
    autonomous: bool = False,
    **more: Any,
) -> Trial:
    """Return a trial whose record is predicted in pieces, from unknown starts.

    Errors grow over one piece only, so that fits to long or chaotic records converge.

    **Arguments:**

    - `flow`: `(model, times, start)` to values at the times and the state at the last.
    - `piece_starts`: a guess of the start of every piece; pieces are equally long.
    - `tightness`: standard deviation of the gap between an end and the next start, in
      the units of the state (one number, or one for each of its entries).
    - `autonomous`: the model does not depend on time and samples are evenly spaced, so
      that pieces can run in one batch.
    - `more`: further arguments of `Trial`.

    **Returns:** the trial; the starts of its pieces are its own free parameters.
    """
    n, count = len(times), len(piece_starts)
    if not 2 <= count <= n // 2:
        raise ValueError(f"{n} rows make 2 to {n // 2} pieces, not {count}")
    steps = np.diff(np.asarray(times, float))
    if autonomous and (n % count or np.ptp(steps) > 1e-6 * steps.mean()):
        raise ValueError(
            f"autonomous pieces need evenly spaced samples and equal lengths, not {n} "
            f"samples in {count} pieces"
        )
    pieces = tuple(np.linspace(0, n, count + 1).round().astype(int).tolist())
    size = ravel_pytree(piece_starts[0])[0].shape
    close = jnp.broadcast_to(jnp.asarray(tightness, float), size)
    paths = jax.tree_util.tree_leaves_with_path({"start": list(piece_starts)})
    free = [_dotted(path) for path, _ in paths]
    predict = _Shooting(flow, pieces, close, autonomous)
    return Trial(times, values, predict, start=list(piece_starts), free=free, **more)


def _dotted(path: tuple) -> str:
    keys = [getattr(k, "key", getattr(k, "name", getattr(k, "idx", ""))) for k in path]
    return ".".join(str(k) for k in keys if k != "parts")
