"""A JAX primitive that runs as a kernel on CPUs and through XLA everywhere else.

Its derivatives are kernels too. The primitive `linear_p` is the tangent of a kernel in
the form that JAX can transpose: linear in the tangents, with primals and residuals as
further arguments.
"""

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from .cpu.compile import compile_kernel
from .frontend.passes import lift_constants
from .frontend.trace import UnsupportedError


Arrays = Sequence[Any]
Patterns = tuple[bytes | None, ...]


class Kernel:
    """A flat function of arrays, with its rules of differentiation.

    **Arguments:**

    - `closed`: the function.
    - `forward`: `(*args) -> (results, residuals)`, a JAX function.
    - `tangent`: `(args, residuals, tangents) -> tangents of the results`.
    - `cotangent`: `(args, residuals, cotangents, active) -> cotangents of the active
      arguments`.
    - `patterns`: constant entries of each argument (`pattern`).
    - `compiled`: False runs it through XLA on CPUs too.

    The three functions take and return `None` where there is no tangent; without them
    JAX differentiates the function.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        forward: Callable | None = None,
        tangent: Callable | None = None,
        cotangent: Callable | None = None,
        patterns: Patterns = (),
        compiled: bool = True,
    ):
        self.compiled = compiled
        self.patterns = patterns or (None,) * len(closed.jaxpr.invars)
        self.closed, self.fn = closed, jaxpr_as_fun(closed)
        self.forward = forward or (lambda *args: (bind(self, *args), ()))
        self._tangent = tangent or self._jvp
        self._cotangent = cotangent or self._vjp
        self.plain = cotangent is None  # its cotangent is then no kernel yet

    def _jvp(self, args: Arrays, residuals: Arrays, tangents: Arrays) -> list[Any]:
        del residuals
        active = [k for k, t in enumerate(tangents) if t is not None]
        part = lambda *x: self.fn(*_replace(args, active, x))
        given = ([args[k] for k in active], [tangents[k] for k in active])
        return jax.jvp(part, *given)[1]

    def _vjp(
        self, args: Arrays, residuals: Arrays, cotangents: Arrays, active: Sequence[int]
    ) -> Sequence[Any]:
        del residuals
        part = lambda *x: self.fn(*_replace(args, active, x))
        outs, pull = jax.vjp(part, *(args[k] for k in active))
        none = lambda y: (
            jnp.zeros_like(y) if _is_real(y) else np.zeros(y.shape, jax.dtypes.float0)
        )
        pairs = zip(cotangents, outs, strict=True)
        return pull([none(y) if c is None else c for c, y in pairs])

    def tangent(self, active: tuple[int, ...], n_residuals: int) -> Callable:
        """Return `(*args, *residuals, *active tangents) -> real results' tangents`."""
        n = len(self.closed.jaxpr.invars)
        real = [k for k, v in enumerate(self.closed.jaxpr.outvars) if _is_real(v.aval)]

        def fn(*inputs: Any) -> list[Any]:
            args, residuals = inputs[:n], inputs[n : n + n_residuals]
            tangents = _replace([None] * n, active, inputs[n + n_residuals :])
            found = self._tangent(args, residuals, tangents)
            return [found[k] for k in real]

        return fn

    def cotangent(
        self, active: tuple[int, ...], n_residuals: int, given: tuple[int, ...]
    ) -> Callable:
        """Return `(*args, *residuals, *given cotangents) -> active cotangents`."""
        n, m = len(self.closed.jaxpr.invars), len(self.closed.jaxpr.outvars)

        def fn(*inputs: Any) -> list[Any]:
            args, residuals = inputs[:n], inputs[n : n + n_residuals]
            cotangents = _replace([None] * m, given, inputs[n + n_residuals :])
            return list(self._cotangent(args, residuals, cotangents, active))

        return fn


def _replace(x: Sequence[Any], where: Sequence[int], new: Sequence[Any]) -> list[Any]:
    """Return a list with some items replaced."""
    out = list(x)
    for k, value in zip(where, new, strict=True):
        out[k] = value
    return out


def _is_real(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating)


def pattern(x: Any) -> bytes | None:
    """Return which entries of an array are 0, 1 or -1, or None if it is traced.

    Such entries are constants to a kernel and cost nothing.
    """
    if isinstance(x, Tracer) or not _is_real(x):
        return None
    x = np.asarray(x).ravel()
    plain = np.isin(x, (0.0, 1.0, -1.0))
    return np.where(plain, x, 2).astype(np.int8).tobytes() if plain.any() else None


def as_kernel(
    fn: Callable, *args: Any, patterns: Patterns = (), compiled: bool = True
) -> list[Any]:
    """Return `fn(*args)` on flat arrays, run as a kernel.

    Traced values that `fn` closes over become arguments.
    """
    shapes = [jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)) for x in args]
    closed, free = lift_constants(jax.make_jaxpr(fn)(*shapes))
    known = (None,) * len(free) + (patterns or (None,) * len(args))
    return bind(Kernel(closed, patterns=known, compiled=compiled), *free, *args)


# The primitives -----------------------------------------------------------------------

kernel_p = Primitive("djdyn_kernel")
linear_p = Primitive("djdyn_kernel_tangent")
kernel_p.multiple_results = linear_p.multiple_results = True


def bind(kernel: Kernel, *args: Any) -> list[Any]:
    """Apply a kernel to arrays, without a batch axis."""
    batched = (False,) * len(args)
    return kernel_p.bind(*args, kernel=kernel, batched=batched, batch=None)


def _over_batch(fn: Callable, batched: Sequence[bool], batch: int | None) -> Callable:
    """Return `fn` mapped over a leading axis of the batched arguments."""
    if batch is None:
        return fn
    axes = tuple(0 if b else None for b in batched)
    return jax.vmap(fn, in_axes=axes, axis_size=batch)


def _kernel_shapes(*args, kernel, batched, batch):
    del args, batched
    lead = () if batch is None else (batch,)
    return [
        ShapedArray((*lead, *v.aval.shape), v.aval.dtype)
        for v in kernel.closed.jaxpr.outvars
    ]


def _linear_fn(kernel, active, n_residuals, batched, batch) -> Callable:
    return _over_batch(kernel.tangent(active, n_residuals), batched, batch)


def _linear_shapes(*args, kernel, active, n_residuals, batched, batch):
    del args, active, n_residuals, batched
    lead = () if batch is None else (batch,)
    return [
        ShapedArray((*lead, *v.aval.shape), v.aval.dtype)
        for v in kernel.closed.jaxpr.outvars
        if _is_real(v.aval)
    ]


kernel_p.def_abstract_eval(_kernel_shapes)
linear_p.def_abstract_eval(_linear_shapes)


@functools.partial(jax.jit, static_argnames=("kernel", "batched", "batch"))
def _run(*args, kernel, batched, batch):
    return kernel_p.bind(*args, kernel=kernel, batched=batched, batch=batch)


kernel_p.def_impl(_run)


@functools.partial(
    jax.jit, static_argnames=("kernel", "active", "n_residuals", "batched", "batch")
)
def _run_linear(*args, **how):
    return linear_p.bind(*args, **how)


linear_p.def_impl(_run_linear)


# Differentiation ----------------------------------------------------------------------


def _kernel_jvp(primals, tangents, *, kernel, batched, batch):
    active = tuple(k for k, t in enumerate(tangents) if type(t) is not ad.Zero)
    outs, residuals = _over_batch(kernel.forward, batched, batch)(*primals)
    found = linear_p.bind(
        *primals,
        *residuals,
        *(tangents[k] for k in active),
        kernel=kernel,
        active=active,
        n_residuals=len(residuals),
        batched=(
            *batched,
            *(batch is not None for _ in residuals),
            *(batched[k] for k in active),
        ),
        batch=batch,
    )
    found = iter(found)
    zero = lambda y: ad.Zero(jax.typeof(y).to_tangent_aval())
    return outs, [next(found) if _is_real(y) else zero(y) for y in outs]


def _linear_jvp(primals, tangents, *, kernel, active, n_residuals, batched, batch):
    how = {"n_residuals": n_residuals, "batched": batched, "batch": batch}
    n = len(primals) - len(active)
    if all(type(t) is ad.Zero for t in tangents[:n]):
        fresh = [
            jnp.zeros_like(x) if type(t) is ad.Zero else t
            for x, t in zip(primals[n:], tangents[n:], strict=True)
        ]
        bind = functools.partial(linear_p.bind, kernel=kernel, active=active, **how)
        return bind(*primals), bind(*primals[:n], *fresh)
    fn = _linear_fn(kernel, active, n_residuals, batched, batch)
    real = [k for k, t in enumerate(tangents) if type(t) is not ad.Zero]
    part = lambda *x: fn(*_replace(primals, real, x))
    return jax.jvp(part, [primals[k] for k in real], [tangents[k] for k in real])


def _linear_transpose(cts, *args, kernel, active, n_residuals, batched, batch):
    n = len(args) - len(active)
    real = [k for k, v in enumerate(kernel.closed.jaxpr.outvars) if _is_real(v.aval)]
    given = [(k, c) for k, c in zip(real, cts, strict=True) if type(c) is not ad.Zero]
    fn = kernel.cotangent(active, n_residuals, tuple(k for k, _ in given))
    if kernel.plain:
        known = (*kernel.patterns, *(None,) * (n_residuals + len(given)))
        fn = functools.partial(as_kernel, fn, patterns=known, compiled=kernel.compiled)
    flags = (*batched[:n], *(batch is not None for _ in given))
    found = _over_batch(fn, flags, batch)(*args[:n], *(c for _, c in given))
    summed = [
        jnp.sum(x, 0) if batch is not None and not batched[k] else x
        for k, x in zip(active, found, strict=True)
    ]
    return [None] * n + summed


ad.primitive_jvps[kernel_p] = _kernel_jvp
ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose


# Batching -----------------------------------------------------------------------------


def _batch(primitive, args, axes, *, batched, batch, **how):
    (size,) = {x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None}
    moved = [
        x if a is None else jnp.moveaxis(x, a, 0)
        for x, a in zip(args, axes, strict=True)
    ]
    flags = tuple(b or a is not None for b, a in zip(batched, axes, strict=True))
    if batch is None:
        outs = primitive.bind(*moved, batched=flags, batch=size, **how)
        return outs, [0] * len(outs)
    flat = []
    for x, was, axis, flag in zip(moved, batched, axes, flags, strict=True):
        if flag:
            inner = x.shape[was + (axis is not None) :]
            x = x if axis is not None else x[None]
            x = x if was else x[:, None]
            x = jnp.broadcast_to(x, (size, batch, *inner)).reshape(-1, *inner)
        flat.append(x)
    outs = primitive.bind(*flat, batched=flags, batch=size * batch, **how)
    return [y.reshape(size, batch, *y.shape[1:]) for y in outs], [0] * len(outs)


batching.primitive_batchers[kernel_p] = functools.partial(_batch, kernel_p)
batching.primitive_batchers[linear_p] = functools.partial(_batch, linear_p)


# Lowering -----------------------------------------------------------------------------


def _plain(*args, kernel, batched, batch):
    return _over_batch(kernel.fn, batched, batch)(*args)


@functools.cache
def _warn(reason: str) -> None:
    """Warn once for each reason."""
    warnings.warn(f"{reason}; running it through XLA instead", stacklevel=2)


def _lower_cpu(ctx, *args, kernel, batched, batch):
    empty = batch == 0 or not any(math.prod(a.shape) for a in ctx.avals_out)
    if empty or not kernel.compiled:
        return _lower_plain(ctx, *args, kernel=kernel, batched=batched, batch=batch)
    try:
        name, _ = compile_kernel(kernel.closed, batched, batch or 1, kernel.patterns)
    except UnsupportedError as error:
        _warn(str(error))
        return _lower_plain(ctx, *args, kernel=kernel, batched=batched, batch=batch)
    return jax.ffi.ffi_lowering(name)(ctx, *args)


def _linear(*args, kernel, active, n_residuals, batched, batch):
    return _linear_fn(kernel, active, n_residuals, batched, batch)(*args)


def _linear_cpu(*args, kernel, active, n_residuals, batched, batch):
    """Evaluate the tangent as a kernel of its own."""
    known = (*kernel.patterns, *(None,) * (n_residuals + len(active)))
    fn = kernel.tangent(active, n_residuals)
    fn = functools.partial(as_kernel, fn, patterns=known, compiled=kernel.compiled)
    return _over_batch(fn, batched, batch)(*args)


_lower_plain = mlir.lower_fun(_plain, multiple_results=True)
mlir.register_lowering(kernel_p, _lower_plain)
mlir.register_lowering(kernel_p, _lower_cpu, platform="cpu")
mlir.register_lowering(linear_p, mlir.lower_fun(_linear_cpu, multiple_results=True))
