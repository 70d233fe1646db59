"""Fixed steps as a kernel against a plain loop over them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from djdyn.kernels import time_loop
from djdyn.kernels.time_loop import _TimeLoop


pytestmark = pytest.mark.filterwarnings("error")  # such as of what kernels do not know

N, H = 3, 0.02
SAVES = {
    "each": np.arange(1, 13),
    "even": np.arange(4, 21, 4),
    "uneven": np.array([1, 2, 7, 8, 20]),
    "first": np.array([1]),
    "last": np.array([23]),
}


def step(i, y, K, c, order):
    """Masses on springs: new speeds first, then places; still and moving work mixed."""
    stiff = jnp.linalg.cholesky(K @ K.T + jnp.eye(N, dtype=K.dtype))
    q, v = y[:N], y[N:]
    t = H * i.astype(y.dtype)
    load = checkpoint_name(jnp.sin(stiff @ q + t), "load")
    v = v - H * (checkpoint_name(jnp.exp(c * load), "drag") + load)[order]
    for w in (v, v / 2):  # a name that stands for two values
        v = v - H * checkpoint_name(jnp.cos(w), "twice")
    return jnp.concatenate([q + H * jnp.tanh(v), v])


def arguments(*lead):
    rng = np.random.default_rng(5)
    real = [rng.normal(size=(*lead, *s)) for s in ((2 * N,), (N, N), ())]
    return [
        *map(jnp.asarray, real),
        jnp.asarray(np.broadcast_to([2, 0, 1], (*lead, N))),
    ]


def plain(saves, y0, *theta):
    def turn(y, i):
        y = step(i, y, *theta)
        return y, y

    ys = lax.scan(turn, y0, jnp.arange(saves[-1], dtype=jnp.int32))[1]
    return ys[saves - 1]


def kernel(saves, checkpoints="all"):
    return lambda *args: time_loop(step, saves, *args, checkpoints=checkpoints)


def assert_same(found, wanted, rtol=1e-12):
    found, wanted = jax.tree.leaves(found), jax.tree.leaves(wanted)
    for x, z in zip(found, wanted, strict=True):
        assert x.shape == z.shape
        np.testing.assert_allclose(x, z, rtol=rtol, atol=rtol * np.max(np.abs(z)))


def loss(fn):
    return lambda *args: jnp.sum(jnp.sin(3 * fn(*args)))


DERIVATIVES = {
    "values": lambda fn: fn,
    "grad": lambda fn: jax.grad(loss(fn), (0, 1, 2)),
    "grad of one": lambda fn: jax.grad(loss(fn), 2),
    "jacfwd": lambda fn: jax.jacfwd(fn, (0, 2)),
    "jacrev": lambda fn: jax.jacrev(fn),
    "hessian": lambda fn: jax.hessian(loss(fn), (0, 2)),
}


@pytest.mark.parametrize("checkpoints", ["all", "sqrt"])
@pytest.mark.parametrize("saves", SAVES.values(), ids=SAVES)
def test_values_and_gradients(saves, checkpoints):
    fns = (kernel(saves, checkpoints), lambda *args: plain(saves, *args))
    for name in ("values", "grad"):
        assert_same(*(jax.jit(DERIVATIVES[name](fn))(*arguments()) for fn in fns))


@pytest.mark.parametrize("checkpoints", ["all", "sqrt"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, checkpoints):
    saves = SAVES["uneven"]
    fns = (kernel(saves, checkpoints), lambda *args: plain(saves, *args))
    assert_same(*(jax.jit(DERIVATIVES[name](fn))(*arguments()) for fn in fns), 1e-11)


@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (0, None, 0, None), (None, 0, None, 0)])
@pytest.mark.parametrize("name", ["values", "grad", "jacfwd"])
def test_batches(axes, name):
    args = [
        x if a == 0 else y
        for a, x, y in zip(axes, arguments(5), arguments(), strict=True)
    ]
    saves = SAVES["even"]
    fns = (kernel(saves), kernel(saves, "sqrt"), lambda *args: plain(saves, *args))
    run = lambda fn: jax.jit(jax.vmap(DERIVATIVES[name](fn), in_axes=axes))(*args)
    every, some, wanted = map(run, fns)
    assert_same(every, wanted)
    assert_same(some, wanted)


def test_gradient_of_a_batch_sums_over_shared_arguments():
    saves, axes = SAVES["even"], (0, None, 0, None)
    y0, _, c, _ = arguments(5)
    _, K, _, order = arguments()
    total = lambda fn: lambda *x: jnp.sum(jnp.cos(jax.vmap(fn, axes)(*x, order)))
    fns = (kernel(saves), lambda *args: plain(saves, *args))
    assert_same(*(jax.grad(total(fn), (0, 1, 2))(y0, K, c) for fn in fns))


def residuals(fn, *args) -> int:
    """Numbers that wait between the forward and the reverse sweep."""
    _, pull = jax.vjp(fn, *args)
    return sum(x.size for x in jax.tree.leaves(pull))


def test_memory_grows_with_the_root_of_the_steps():
    saves, args = np.array([1000]), arguments()
    every, some = (residuals(kernel(saves, r), *args) for r in ("all", "sqrt"))
    known = sum(x.size for x in args) + 100  # arguments, and what is computed from them
    assert every >= 1000 * (2 * N + 2 * N)  # states, and what the step has named
    assert 32 * 2 * N <= some <= 32 * 2 * N + known
    fns = (*(kernel(saves, r) for r in ("all", "sqrt")), lambda *x: plain(saves, *x))
    every, some, wanted = (jax.jit(jax.grad(loss(fn)))(*args) for fn in fns)
    assert_same(every, wanted, 1e-10)
    assert_same(some, wanted, 1e-10)


def test_named_values_are_kept_only_if_all_are():
    y0, *theta = arguments()
    for checkpoints, kept in (
        ("all", [(7, 2 * N), (7, N), (7, N)]),
        ("sqrt", [(3, 2 * N)]),
    ):
        steps = _TimeLoop(
            lambda i, y, *x: step(i, y, *x), np.array([7]), checkpoints, (), True
        )
        found = jax.eval_shape(steps.forward, y0, *theta)[1]
        assert [x.shape for x in found] == kept


def test_closing_over_traced_values():
    def fn(run, y0, K, c, order):
        close = lambda i, y, K: step(i, y, K, c, order)
        return run(close, SAVES["even"], y0, K)

    def loop(step, saves, y0, K):
        turn = lambda y, i: (step(i, y, K),) * 2
        return lax.scan(turn, y0, jnp.arange(saves[-1], dtype=jnp.int32))[1][saves - 1]

    gradient = lambda run: jax.grad(loss(lambda *args: fn(run, *args)), (0, 1, 2))
    assert_same(gradient(time_loop)(*arguments()), gradient(loop)(*arguments()))


def test_forward_mode_saves_more_than_a_kernel_unrolls():
    y0, *theta = arguments()
    saves = np.arange(1, 4001)
    K, c, order = theta

    def along(run):
        of_c = lambda c: run(y0, K, c, order)
        return jax.jit(lambda c: jax.jvp(of_c, (c,), (jnp.ones(()),)))(c)

    assert_same(along(kernel(saves)), along(partial(plain, saves)), 1e-9)


def test_bad_saves_are_refused():
    for saves in ([], [0, 1], [2, 2], [3, 1]):
        with pytest.raises(ValueError, match="increase from one"):
            time_loop(step, saves, *arguments())


@pytest.mark.parametrize("checkpoints", ["all", "sqrt"])
def test_xla_marches_too(checkpoints):
    saves = SAVES["uneven"]
    slow = lambda *args: time_loop(
        step, saves, *args, checkpoints=checkpoints, compiled=False
    )
    fns = (slow, lambda *args: plain(saves, *args))
    for name in ("values", "grad", "jacfwd"):
        assert_same(*(jax.jit(DERIVATIVES[name](fn))(*arguments()) for fn in fns))
