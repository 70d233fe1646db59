"""Long or chaotic records in pieces, each from a start of its own."""

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
    """Predicts piece by piece; ends ought to be where the next pieces start."""

    flow: Flow
    pieces: tuple[int, ...] = eqx.field(static=True)  # first rows, and the last
    tightness: Float[Array, " s"]
    alike: bool = eqx.field(static=True)

    def __call__(
        self, model: PyTree, times: np.ndarray, start: list[PyTree]
    ) -> tuple[Array, Array]:
        if self.alike:
            return self._lanes(model, times[: self.pieces[1] + 1], start)
        values, gaps = [], []
        for i, (a, b) in enumerate(zip(self.pieces, self.pieces[1:], strict=False)):
            last = b == len(times)
            some, end = self.flow(model, times[a : b + (not last)], start[i])
            values.append(some[: b - a])
            if not last:
                off = ravel_pytree(end)[0] - ravel_pytree(start[i + 1])[0]
                gaps.append(off / self.tightness)
        return jnp.concatenate(values), jnp.concatenate(gaps)

    def _lanes(
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
    starts: Sequence[PyTree],
    *,
    tightness: Any,
    autonomous: bool = False,
    **more: Any,
) -> Trial:
    """A trial whose record is predicted in pieces, from unknown starts.

    Errors cannot grow over more than a piece, so a fit that would be lost in a long or
    chaotic record finds its way.

    **Arguments:**

    - `flow`: `(model, times, start)` to values at the times and the state at the last.
    - `starts`: a guess for the start of every piece; pieces are equally long.
    - `tightness`: how far apart an end and the next start may be, in the units of the
      state (one number, or one for each of its numbers); small ones close the gaps.
    - `autonomous`: nothing depends on when it happens, and samples are evenly spaced:
      then pieces run as lanes of one batch.
    - `more`: as for `Trial`.
    """
    n, count = len(times), len(starts)
    if not 2 <= count <= n // 2:
        raise ValueError(f"{n} rows make 2 to {n // 2} pieces, not {count}")
    steps = np.diff(np.asarray(times, float))
    if autonomous and (n % count or np.ptp(steps) > 1e-6 * steps.mean()):
        raise ValueError(
            f"lanes need evenly spaced samples in equal pieces, not {n} in {count}"
        )
    pieces = tuple(np.linspace(0, n, count + 1).round().astype(int).tolist())
    size = ravel_pytree(starts[0])[0].shape
    close = jnp.broadcast_to(jnp.asarray(tightness, float), size)
    paths = jax.tree_util.tree_leaves_with_path({"start": list(starts)})
    free = [_dotted(path) for path, _ in paths]
    predict = _Shooting(flow, pieces, close, autonomous)
    return Trial(times, values, predict, start=list(starts), free=free, **more)


def _dotted(path: tuple) -> str:
    keys = [getattr(k, "key", getattr(k, "name", getattr(k, "idx", ""))) for k in path]
    return ".".join(str(k) for k in keys if k != "parts")
