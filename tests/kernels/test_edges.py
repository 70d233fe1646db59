"""Kernels at the limits: NaN, overflow, ties, indices outside of their arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from djdyn.kernels import as_kernel
from djdyn.kernels.primitive import _warn

from . import direct


pytestmark = pytest.mark.filterwarnings("error")  # such as of what kernels do not know

NAN, INF = np.nan, np.inf
PLACES = np.array([0, 2, 3, 7, -1, -9], np.int32)
ROWS = np.tile([1.0, 2.0, 3.0], (6, 1))
TIES = np.array([0.5, -0.5, 2.5, -1.5, 0.49999999999999994, 2.0**52 + 1, -0.2])
SINGLE = np.array([0.5, -0.5, 2.5, 0.49999997, 2.0**23 + 1], np.float32)
ODD = np.array([NAN, INF, -INF, 0.0, -0.0, 1e300, -3e9, 2.7, -2.7])
LINES = np.array([[1.0, NAN, 3.0], [NAN, 1, NAN], [2, 2, 1], [-1, -1, 2], [3, 1, NAN]])

FUNCTIONS = {
    "round away from zero": (lambda x: [lax.round(x), jnp.trunc(x)], TIES),
    "round to even": (lambda x: [jnp.round(x), jnp.floor(x), jnp.ceil(x)], TIES),
    "round singles": (lambda x: [lax.round(x), jnp.round(x)], SINGLE),
    "whole numbers": (lambda x: [x.astype(jnp.int32), x.astype(jnp.int64)], ODD),
    "whole singles": (lambda x: [x.astype(jnp.int32)], ODD[:5].astype(np.float32)),
    "kinds of numbers": (
        lambda x: [jnp.isnan(x), jnp.isinf(x), jnp.isfinite(x), x != 0, jnp.sign(x)],
        ODD,
    ),
    "comparisons with NaN": (
        lambda x: [x < 1, x >= 1, x == x, jnp.maximum(x, 1.0), jnp.clip(x, -1.0, 2.0)],
        ODD,
    ),
    "extremes with NaN": (
        lambda x: [jnp.argmax(x), jnp.argmin(x), jnp.max(x), jnp.min(x)],
        LINES,
    ),
    "first of booleans": (lambda x: [jnp.argmax(x > 1), jnp.argmin(x > 1)], LINES),
    "constants that are not finite": (
        lambda x: [x - INF, x + jnp.exp(jnp.float64(1e3)), jnp.where(x > 1, NAN, x)],
        LINES,
    ),
    "remainders": (
        lambda x: [jnp.mod(x, 2.0), jnp.fmod(x, 2.0), x // 2.0, jnp.mod(x, -1.5)],
        np.array([3.7, -3.7, 0.3, -0.0, 4.0]),
    ),
    "whole remainders": (
        lambda n: [n // 3, n % 3, n // -2, n % -2],
        np.array([7, -7, 6, -6, 0, -1]),
    ),
    "reading outside": (
        lambda x, i: [x[i], jnp.take(x, i), x.at[i].get(mode="fill", fill_value=-5.0)],
        ROWS,
        PLACES,
    ),
    "reading at the ends": (
        lambda x, i: [x.at[i].get(mode="clip"), lax.dynamic_slice(x, (i,), (2,))],
        ROWS,
        PLACES,
    ),
    "writing outside": (
        lambda x, i: [x.at[i].add(1.0), x.at[i].set(9.0), x.at[i].add(1, mode="clip")],
        ROWS,
        PLACES,
    ),
    "constants outside": (
        lambda x: [x.at[5].add(1.0), x.at[np.array([0, 7])].set(9.0), x[np.array([2])]],
        ROWS,
    ),
    "writing twice": (
        lambda x, i: [x.at[i].add(1.0), x[i]],
        ROWS[:3],
        np.array([[0, 2], [1, 1], [2, -1]]),
    ),
    "between the lines": (
        lambda x: [jnp.searchsorted(jnp.array([0.0, 1.0, 2.0]), x)],
        np.array([0.5, -1.0, 3.0, 1.0, NAN]),
    ),
    "of no size": (
        lambda x: [x[:0] @ x[:0], jnp.sum(x[:0]), jnp.cumsum(x[:0]), x[:0]],
        ROWS,
    ),
}


@pytest.mark.parametrize("lanes", [1, 0], ids=["one lane", "lanes"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name, lanes):
    fn, *args = FUNCTIONS[name]
    found = direct.run(fn, args, (True,) * len(args), lanes=lanes)
    rows = [fn(*(jnp.asarray(x[i]) for x in args)) for i in range(len(args[0]))]
    for x, *wanted in zip(found, *rows, strict=True):
        z = np.stack(wanted)
        assert x.dtype == z.dtype
        np.testing.assert_array_equal(x, z)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32])
def test_integers_that_wrap_are_left_to_xla(dtype):
    n = jnp.asarray([100, 3], dtype)
    fn = lambda n: [n + n, n * n, (n + n) > 0]
    _warn.cache_clear()
    with pytest.warns(UserWarning, match="integers"):
        found = jax.vmap(lambda n: as_kernel(fn, n))(n)
    for x, z in zip(found, fn(n), strict=True):
        np.testing.assert_array_equal(x, z)
