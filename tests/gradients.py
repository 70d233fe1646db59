"""Checks of gradients: reverse mode, forward mode and differences must agree."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def quick_jit(f: Callable) -> Callable:
    """`jit` with less optimisation: compiles in half the time, for what runs once."""
    return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


def assert_gradient(
    loss: Callable[[PyTree], jax.Array],
    theta: PyTree,
    *,
    forward: Callable[[PyTree], jax.Array] | None = None,
    h: float = 1e-4,
    rtol: float = 1e-7,
    modes_rtol: float = 1e-12,
    seed: int = 0,
    jit: Callable = jax.jit,
):
    r"""Checks reverse mode against central differences, and against forward mode.

    Along one random direction $d$: $\nabla L\cdot d$, `jvp(L, d)` and
    $(L(\theta + hd) - L(\theta - hd))/2h$ must agree, and not be zero. Fixed-step
    rollouts only: an adaptive solver does not differentiate its own choice of steps.

    **Arguments:**

    - `loss`: a scalar function of a pytree of float arrays.
    - `forward`: the same function fit for forward mode, if `loss` itself is not; a
      rollout needs another adjoint for it. Without it `loss` is used for both modes.
    - `rtol`: of the difference; `modes_rtol` is that between the two modes.
    - `jit`: `quick_jit` for what is large and runs once.
    """
    assert jax.config.jax_enable_x64  # pyright: ignore
    d = random_direction(theta, seed)
    move = lambda s: jax.tree.map(lambda x, dx: x + s * dx, theta, d)

    traced = jax.jit(loss)  # once
    value, gradient = jit(traced), jit(jax.grad(traced))
    along = jit(lambda x: jax.jvp(forward or traced, (x,), (d,))[1])

    products = jax.tree.map(jnp.vdot, gradient(theta), d)
    reverse, tangent = sum(jax.tree.leaves(products)), along(theta)
    difference = (value(move(h)) - value(move(-h))) / (2 * h)
    assert jnp.abs(reverse) > 0, "the loss does not depend on theta"
    assert jnp.allclose(reverse, tangent, rtol=modes_rtol, atol=0.0), (reverse, tangent)
    assert jnp.allclose(reverse, difference, rtol=rtol, atol=0.0), (reverse, difference)


def random_direction(theta: PyTree, seed: int = 0) -> PyTree:
    """Normal numbers in the shape of `theta`."""
    leaves, treedef = jax.tree.flatten(theta)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    d = [
        jax.random.normal(k, jnp.shape(x), jnp.result_type(x))
        for k, x in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(treedef, d)
