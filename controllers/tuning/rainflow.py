"""Rainflow counting of load cycles, with static shapes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


Index = Int[Array, " m"]


def cycles(x: Float[Array, " n"]) -> tuple[Index, Index, Float[Array, " m"]]:
    """Return where each cycle begins and ends, and its count: 1, 1/2 or 0.

    An inner cycle of four turning points is closed and taken out once a later range is
    as large; what is left are half cycles (ASTM E1049, *Standard practices for cycle
    counting in fatigue analysis*, 5.4.4).
    """
    n = len(x)

    def take(carry: tuple, i: Array) -> tuple[tuple, None]:
        stack, size = carry[:2]
        back = lambda k: x[stack[jnp.maximum(size - k, 0)]]
        on = (x[i] - back(1)) * (back(1) - back(2)) >= 0  # goes on as before
        same = (size == 1) & (x[i] == back(1))
        size = jnp.where(((size > 1) & on) | same, size - 1, size)
        carry = (stack.at[size].set(i), size + 1, *carry[2:])
        return jax.lax.while_loop(_closed, _close, carry), None

    def value(carry: tuple, k: int) -> Array:
        return x[carry[0][jnp.maximum(carry[1] - k, 0)]]

    def _closed(carry: tuple) -> Array:
        a, b, c, d = (value(carry, k) for k in (4, 3, 2, 1))
        inner = jnp.abs(b - c)
        small = (inner <= jnp.abs(a - b)) & (inner <= jnp.abs(c - d))
        return (carry[1] >= 4) & small

    def _close(carry: tuple) -> tuple:
        stack, size, first, last, found = carry
        first = first.at[found].set(stack[size - 3])
        last = last.at[found].set(stack[size - 2])
        return stack.at[size - 3].set(stack[size - 1]), size - 2, first, last, found + 1

    none, zero = jnp.zeros(n, int), jnp.zeros((), int)
    carry = (none, zero, none, none, zero)
    (stack, size, first, last, found), _ = jax.lax.scan(take, carry, jnp.arange(n))
    places = jnp.arange(n - 1)
    whole = jnp.where(jnp.arange(n) < found, 1.0, 0.0)
    half = jnp.where(places < size - 1, 0.5, 0.0)
    join = jnp.concatenate
    return (
        join([first, stack[:-1]]),
        join([last, stack[1:]]),
        join([whole, half]).astype(x.dtype),
    )
