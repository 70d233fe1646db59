"""Fixed steps as plain functions of arrays, and runs of them as kernels."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ... import kernels
from ...typing import Scalar
from ..vector_field import Field
from .registry import TABLEAUS
from .rodas4 import rosenbrock_step
from .ros2 import ros2_step


METHODS = ("semi_implicit", "ros2", "rodas4", *TABLEAUS)
Step = Callable[..., Array]  # (i, y, *theta) -> y


class Clock(eqx.Module):
    """Equal steps from `t0` to `t1`, of `longest` or, to fit, a little less."""

    t0: float = eqx.field(static=True)
    t1: float = eqx.field(static=True)
    longest: float = eqx.field(static=True)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return math.ceil((self.t1 - self.t0) / self.longest * (1 - 1e-9))

    @property
    def dt(self) -> float:
        """Length of a step, s."""
        return (self.t1 - self.t0) / self.steps

    def counts(self, times: np.ndarray) -> np.ndarray | None:
        """How many steps lie before each time; None if a time is within a step."""
        exact = (times - self.t0) / self.dt
        counts = np.round(exact).astype(int)
        return counts if np.all(np.abs(exact - counts) < 1e-6) else None

    def at(self, i: Any, dtype: Any) -> Array:
        """When step `i` begins."""
        return self.t0 + jnp.asarray(self.dt, dtype) * i.astype(dtype)


def one_step(field: Field, solver: str, t: Scalar, y: Array, h: Scalar) -> Array:
    """A step of a fixed-step method, with loops closed at its end."""
    return field.project(t + h, _open_step(field, solver, t, y, h))


def _open_step(field: Field, solver: str, t: Scalar, y: Array, h: Scalar) -> Array:
    if solver == "semi_implicit":
        return field.correct_coordinates(y, y + h * field(t, y), h)
    if solver == "ros2":
        return ros2_step(field, t, y, h)
    if solver == "rodas4":
        return rosenbrock_step(field, t, y, h)[0]
    A, b, c = (jnp.asarray(x, y.dtype) for x in TABLEAUS[solver])
    rate = jax.checkpoint(lambda t, y: field(t, y))  # less to store

    def stage(slopes: Array, row: tuple[Array, Array, Array]) -> tuple[Array, None]:
        a, c, here = row
        slope = rate(t + c * h, y + h * (a @ slopes))
        return slopes + here[:, None] * slope[None], None

    # A loop over the stages, so that the field is compiled once.
    start = jnp.zeros((len(b), *y.shape), y.dtype)
    slopes, _ = lax.scan(stage, start, (A, c, jnp.eye(len(b), dtype=y.dtype)))
    return y + h * (b @ slopes)


def _opened(field: Field, fn: Callable[..., Array]) -> tuple[Step, list[Array]]:
    """`fn(field, i, y)` as a function of the field's arrays."""
    arrays, static = eqx.partition(field, eqx.is_array)
    theta, tree = jax.tree.flatten(arrays)

    def step(i: Any, y: Array, *theta: Array) -> Array:
        return fn(eqx.combine(jax.tree.unflatten(tree, theta), static), i, y)

    return step, theta


def patterns(field: Field) -> tuple[bytes | None, ...]:
    """Which entries of the field's arrays are zero or one for good."""
    return tuple(map(kernels.pattern, jax.tree.leaves(eqx.filter(field, eqx.is_array))))


def integrate_fixed(
    field: Field,
    y0: Float[Array, " n"],
    solver: str,
    clock: Clock,
    counts: np.ndarray,
    **how: Any,
) -> Float[Array, "saves n"]:
    """States after some counts of steps."""

    def fn(field: Field, i: Any, y: Array) -> Array:
        t, h = clock.at(i, y.dtype), jnp.asarray(clock.dt, y.dtype)
        return one_step(field, solver, t, y, h)

    step, theta = _opened(field, fn)
    ends = np.union1d(counts[counts > 0], [clock.steps])
    states = jnp.concatenate(
        [y0[None], kernels.time_loop(step, ends, y0, *theta, **how)]
    )
    return states[np.searchsorted(np.concatenate([[0], ends]), counts)]


def march_sampled(
    field: Field,
    y0: Float[Array, " n"],
    solver: str,
    samples: Clock,
    dt: float,
    control_delay: bool = False,
    **how: Any,
) -> tuple[Float[Array, "samples n"], dict[str, dict[str, Array]]]:
    """States at the samples of controllers, and what they send at each.

    It acts from there on, or if they are delayed from the next sample on.
    """
    period = samples.dt
    inner = Clock(0.0, period, dt)
    first = field.outputs(jnp.asarray(samples.t0, y0.dtype), y0)
    start, shape_held = ravel_pytree(first)
    start = start if control_delay else jnp.zeros_like(start)

    def fn(field: Field, i: Any, both: Array) -> Array:
        t = samples.at(i, both.dtype)
        y, sampled = field.sample(t, both[: y0.size], period)
        holding = field.hold(shape_held(both[y0.size :]) if control_delay else sampled)

        def turn(y: Array, k: Array) -> tuple[Array, None]:
            offset, h = inner.at(k, y.dtype), jnp.asarray(inner.dt, y.dtype)
            return one_step(holding, solver, t + offset, y, h), None

        y, _ = lax.scan(turn, y, jnp.arange(inner.steps, dtype=jnp.int32))
        return jnp.concatenate([y, ravel_pytree(sampled)[0]])

    step, theta = _opened(field, fn)
    counts = np.arange(1, samples.steps + 1)
    both = jnp.concatenate([y0, start])
    found = kernels.time_loop(step, counts, both, *theta, **how)
    ys = jnp.concatenate([y0[None], found[:, : y0.size]])
    outputs = jax.vmap(shape_held)(found[:, y0.size :])
    return ys, jax.tree.map(lambda x: jnp.concatenate([x, x[-1:]]), outputs)
