"""Kernels under JAX's transformations, against the same functions without them."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from djdyn.kernels import as_kernel
from djdyn.kernels.primitive import _warn


pytestmark = pytest.mark.filterwarnings("error")  # such as of what kernels do not know


def plain(x, A, s):
    """Arrays of three ranks in, of three ranks out."""
    y = jnp.tanh(A @ x) * s
    return [y, jnp.sum(y * x), jnp.outer(x, jnp.sin(y))]


def kernel(*args):
    return as_kernel(plain, *args)


def arguments(*lead, dtype=np.float64):
    rng = np.random.default_rng(3)
    shapes = ((3,), (3, 3), ())
    return [jnp.asarray(rng.normal(size=(*lead, *s)), dtype) for s in shapes]


def scalar(fn):
    return lambda *args: sum(jnp.sum(jnp.sin(y)) for y in fn(*args))


def assert_same(found, wanted, rtol=1e-12):
    found, wanted = jax.tree.leaves(found), jax.tree.leaves(wanted)
    for x, z in zip(found, wanted, strict=True):
        assert x.shape == z.shape and x.dtype == z.dtype
        np.testing.assert_allclose(x, z, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("wrap", [lambda fn: fn, jax.jit], ids=["eager", "jit"])
def test_values(wrap):
    assert_same(wrap(kernel)(*arguments()), plain(*arguments()))


@pytest.mark.parametrize("batch", [1, 2, 7, 8, 9, 33])
def test_batch_sizes(batch):
    assert_same(jax.vmap(kernel)(*arguments(batch)), jax.vmap(plain)(*arguments(batch)))


@pytest.mark.parametrize("axes", list(itertools.product((0, None), repeat=3))[:-1])
def test_vmap_of_some_arguments(axes):
    args = [
        x if a == 0 else y
        for a, x, y in zip(axes, arguments(5), arguments(), strict=True)
    ]
    fns = (jax.vmap(fn, in_axes=axes) for fn in (kernel, plain))
    assert_same(*(fn(*args) for fn in fns))
    fns = (jax.vmap(jax.grad(scalar(fn), (0, 1, 2)), axes) for fn in (kernel, plain))
    assert_same(*(fn(*args) for fn in fns))


def test_vmap_over_other_axes():
    x, A, s = arguments(4)
    args = x.T, jnp.moveaxis(A, 0, 1), s
    how = {"in_axes": (1, 1, 0), "out_axes": [1, 0, 2]}
    assert_same(jax.vmap(kernel, **how)(*args), jax.vmap(plain, **how)(*args))


@pytest.mark.parametrize("axes", list(itertools.product((0, None), repeat=2)))
def test_nested_vmap(axes):
    """The inner axis on one argument, the outer on others, or on the same."""
    x, A, s = arguments()
    many = jnp.stack([x, 2 * x, x - 1])
    x = jnp.stack([many, -many]) if axes[0] == 0 else many
    A = jnp.stack([A, A.T]) if axes[1] == 0 else A
    s = jnp.stack([s, -s])
    nest = lambda fn: jax.vmap(jax.vmap(fn, in_axes=(0, None, None)), (*axes, 0))
    assert_same(nest(kernel)(x, A, s), nest(plain)(x, A, s))
    nest = lambda fn: jax.vmap(
        jax.vmap(jax.grad(scalar(fn)), (0, None, None)), (*axes, 0)
    )
    assert_same(nest(kernel)(x, A, s), nest(plain)(x, A, s))


DERIVATIVES = {
    "grad": lambda fn: jax.grad(scalar(fn), (0, 1, 2)),
    "jacfwd": lambda fn: jax.jacfwd(fn, (0, 2)),
    "jacrev": lambda fn: jax.jacrev(fn, (1, 2)),
    "jvp": lambda fn: lambda *x: jax.jvp(fn, x, tuple(jnp.cos(y) for y in x)),
    "hessian": lambda fn: jax.hessian(scalar(fn), (0, 2)),
    "reverse twice": lambda fn: jax.jacrev(jax.grad(scalar(fn))),
    "forward twice": lambda fn: jax.jacfwd(jax.jacfwd(fn)),
    "value and grad": lambda fn: jax.value_and_grad(scalar(fn), 1),
    "linearize": lambda fn: lambda *x: jax.linearize(fn, *x)[1](*x),
    "remat": lambda fn: jax.grad(jax.checkpoint(scalar(fn))),
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("lead", [(), (3,)], ids=["one", "batch"])
def test_derivatives(name, lead):
    wrap = jax.vmap if lead else lambda fn: fn
    fns = (jax.jit(wrap(DERIVATIVES[name](fn))) for fn in (kernel, plain))
    assert_same(*(fn(*arguments(*lead)) for fn in fns))


def test_gradient_of_a_batch_sums_over_shared_arguments():
    many = lambda fn: jax.grad(scalar(jax.vmap(fn, in_axes=(0, None, 0))), (0, 1, 2))
    x, _, s = arguments(5)
    args = x, arguments()[1], s
    assert_same(many(kernel)(*args), many(plain)(*args))


def test_single_precision():
    args = arguments(5, dtype=np.float32)
    assert_same(jax.vmap(kernel)(*args), jax.vmap(plain)(*args), 1e-5)
    gradients = (jax.vmap(jax.grad(scalar(fn))) for fn in (kernel, plain))
    assert_same(*(fn(*args) for fn in gradients), 1e-5)


def counted(x, n, on):
    """Integers and booleans on both sides."""
    y = jnp.where(on, x * n.astype(x.dtype), x[n % 3])
    return [y, jnp.argmax(y), y > 0, n + 1, ~on]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_and_booleans(dtype):
    x = jnp.asarray(np.random.default_rng(1).normal(size=(5, 3)))
    n = jnp.asarray([2, -1, 0, 4, 7], dtype)
    on = jnp.asarray([True, False, True, False, False])
    fn = lambda *args: as_kernel(counted, *args)
    assert_same(jax.vmap(fn)(x, n, on), jax.vmap(counted)(x, n, on))
    first = lambda fn: jax.vmap(jax.grad(lambda *args: jnp.sum(fn(*args)[0] ** 2)))
    assert_same(first(fn)(x, n, on), first(counted)(x, n, on))


def test_nothing_to_do():
    assert_same(jax.vmap(kernel)(*arguments(0)), jax.vmap(plain)(*arguments(0)))
    empty = lambda x: [x[:0], jnp.zeros((0, 2))]
    assert_same(as_kernel(empty, jnp.ones(3)), empty(jnp.ones(3)))
    assert as_kernel(lambda: [jnp.ones(2)]) is not None


def test_closing_over_traced_values():
    def fn(run, x, c):
        return run(lambda x: [jnp.sin(x) * c + c], x)[0]

    x, c = jnp.arange(3.0), jnp.asarray(0.7)
    direct = lambda fn, *args: fn(*args)
    for wrap in (jax.jit, lambda f: jax.jacrev(f, (0, 1)), jax.jit):
        assert_same(
            *(wrap(lambda x, c, r=r: fn(r, x, c))(x, c) for r in (as_kernel, direct))
        )
    over = lambda r: jax.vmap(lambda c: fn(r, x, c))(jnp.arange(4.0))
    assert_same(over(as_kernel), over(direct))


def test_unknown_primitives_go_through_xla_with_one_warning():
    fn = lambda x: [jnp.sort(jnp.sin(x)), lax.lgamma(2 + x)]
    x = jnp.asarray([0.3, -0.2, 0.9])
    _warn.cache_clear()
    with pytest.warns(UserWarning, match=r"primitive 'sort'.*XLA instead") as said:
        assert_same(as_kernel(fn, x), fn(x))
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(as_kernel(lambda x: fn(2 * x), x), fn(2 * x))


@pytest.mark.parametrize("name", ["values", "gradient"])
def test_other_platforms_get_the_function_itself(name):
    fn = jax.vmap(kernel if name == "values" else jax.grad(scalar(kernel)))
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arguments(4)]
    module = lambda p: jax.export.export(jax.jit(fn), platforms=[p])(
        *shapes
    ).mlir_module()
    assert "custom_call" not in module("cuda")
