"""Random small functions: machine code against JAX, operation by operation.

A program is a list of instructions, each an operation on values made before it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from . import direct
from .operations import OPERATIONS, SHAPES, less, like, whole


RTOL = {np.dtype("f8"): 1e-12, np.dtype("f4"): 1e-3}
PLACES = st.integers(0, 40)
INSTRUCTIONS = st.tuples(st.sampled_from(sorted(OPERATIONS)), PLACES, PLACES, PLACES)


def function(program):
    """A program as a function of arrays, with results of all three kinds."""

    def fn(*values):
        values = list(values)
        for name, k, a, b in program:
            x, y = values[a % len(values)], values[b % len(values)]
            z = OPERATIONS[name](k, x, y)
            shape = [s for s in SHAPES if np.prod(s) <= z.size][-1]
            values.append(like(z, np.zeros(shape)))
        return z, whole(z), less(values[-1], values[0])

    return fn


@st.composite
def cases(draw, dtype):
    """A program, its arguments, and which of them are batched."""
    program = draw(st.lists(INSTRUCTIONS, min_size=1, max_size=3))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    batched = draw(st.lists(st.booleans(), min_size=len(shapes), max_size=len(shapes)))
    batch = draw(st.sampled_from((1, 2, 5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = [(batch,) * b + s for b, s in zip(batched, shapes, strict=True)]
    lanes = draw(st.sampled_from((0, 1))) if any(batched) else 1
    return program, [rng.normal(size=s).astype(dtype) for s in sizes], batched, lanes


def check(program, args, batched, lanes):
    fn, flags = function(program), list(zip(args, batched, strict=True))
    batch = max((len(x) for x, b in flags if b), default=1)
    with jax.disable_jit():
        want = [
            fn(*(jnp.asarray(x[i] if b else x) for x, b in flags)) for i in range(batch)
        ]
    found = direct.run(fn, args, batched, lanes=lanes)
    for x, *rows in zip(found, *want, strict=True):
        z = np.stack(rows) if any(batched) else np.asarray(rows[0])
        assert x.dtype == z.dtype
        scale = np.max(np.abs(z), initial=1.0) if x.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(x, z, rtol=0, atol=RTOL.get(x.dtype, 0) * scale)


SETTINGS = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@pytest.mark.slow
@settings(max_examples=1000, **SETTINGS)
@given(cases(np.float64))
def test_random_functions(case):
    check(*case)


@settings(max_examples=25, **SETTINGS)
@given(cases(np.float32))
def test_random_functions_in_single_precision(case):
    check(*case)
