"""Passes on jaxprs, before they are traced into scalar operations.

Dead-code elimination, lifting of constants to arguments, loop-invariant code motion,
and access to the values that `jax.ad_checkpoint.checkpoint_name` has named.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import ClosedJaxpr, Literal
from jax.interpreters.partial_eval import dce_jaxpr


CALLS = {  # primitives that only call the jaxpr in one of their parameters
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}


def eliminate_dead_code(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the jaxpr without what its results do not depend on.

    A compiler would remove it as well, but only after all passes here had seen it.
    """
    used = [True] * len(closed.jaxpr.outvars)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, used, instantiate=True)
    return ClosedJaxpr(jaxpr, closed.consts)


def lift_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Return the jaxpr with its traced constants as first arguments, and these."""
    free = [c for c in closed.consts if isinstance(c, Tracer)]
    if not free:
        return closed, []
    shapes = [jax.ShapeDtypeStruct(c.shape, c.dtype) for c in free]
    args = [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars
    ]
    traced = [isinstance(c, Tracer) for c in closed.consts]

    def fn(*inputs: Any) -> list[Any]:
        given, rest = iter(inputs[: len(free)]), inputs[len(free) :]
        pairs = zip(closed.consts, traced, strict=True)
        consts = [next(given) if is_traced else c for c, is_traced in pairs]
        return eval_jaxpr(closed.jaxpr, consts, *rest)

    return jax.make_jaxpr(fn)(*shapes, *args), free


CONSTANT, INVARIANT, VARYING = range(3)  # what a value depends on
INLINED_CALLS = ("jit", "pjit", "closed_call")


def hoist_invariants(
    closed: ClosedJaxpr, moving: Sequence[bool]
) -> tuple[Callable, Callable]:
    """Split a loop's body by loop-invariant code motion: before the loop, and in it.

    `moving` says which arguments change from iteration to iteration. `before(*still)`
    computes the invariant arrays; `after(arrays, *moved)`, called later, the results.
    Inner loops are split too.
    """
    kinds = [VARYING if m else INVARIANT for m in moving]

    keys: list[tuple] = []  # known once `before` has been traced

    def before(*still: Any) -> list[Any]:
        given = iter(still)
        args = [(k, None if k == VARYING else next(given)) for k in kinds]
        table: dict[tuple, Any] = {}
        _split(closed.jaxpr, closed.consts, args, (), table, True)
        keys[:] = table
        return list(table.values())

    def after(arrays: Sequence[Any], *moved: Any) -> list[Any]:
        given = iter(moved)
        args = [(k, next(given) if k == VARYING else None) for k in kinds]
        table = dict(zip(keys, arrays, strict=True))
        return _split(closed.jaxpr, closed.consts, args, (), table, False)

    return before, after


def _split(
    jaxpr: Any, consts: Any, args: Any, path: tuple, table: dict, first: bool
) -> list[Any]:
    """Evaluate the invariant half of a jaxpr (`first`), or the varying half.

    Values are pairs of a kind and a value. The first half stores in `table` what the
    second reads from it; constants are evaluated in both.
    """
    env: dict[Any, tuple[int, Any]] = {}
    read = lambda v: (CONSTANT, v.val) if isinstance(v, Literal) else env[v]
    env.update((v, (CONSTANT, c)) for v, c in zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def want(v: Any) -> Any:
        """Return a value for the varying half."""
        kind, x = read(v)
        if kind != INVARIANT:
            return x
        key = (path, v)
        if first:
            table.setdefault(key, x)
        return table[key]

    for number, eqn in enumerate(jaxpr.eqns):
        inputs, name = [read(v) for v in eqn.invars], eqn.primitive.name
        kind = max((k for k, _ in inputs), default=CONSTANT)
        inner = (*path, number)
        if kind == VARYING and name in INLINED_CALLS:
            body = eqn.params[CALLS[name]]
            outs = _split(body.jaxpr, body.consts, inputs, inner, table, first)
        elif kind == VARYING and name == "scan":
            found = _split_scan(eqn, inputs, want, inner, table, first)
            outs = [(VARYING, x) for x in found]
        elif kind == VARYING:
            found = [want(v) for v in eqn.invars]
            outs = [
                (VARYING, x)
                for x in ([None] * len(eqn.outvars) if first else _bind(eqn, found))
            ]
        elif kind == INVARIANT and not first:
            outs = [(INVARIANT, None)] * len(eqn.outvars)
        else:
            outs = [(kind, x) for x in _bind(eqn, [x for _, x in inputs])]
        env.update(zip(eqn.outvars, outs, strict=True))
    if path:
        return [read(v) for v in jaxpr.outvars]
    return [want(v) for v in jaxpr.outvars]


def _split_scan(
    eqn: Any, inputs: Any, want: Any, path: tuple, table: dict, first: bool
):
    """Evaluate one half of a loop, whose body is split as well."""
    params, body = eqn.params, eqn.params["jaxpr"]
    n, m = params["num_consts"], params["num_consts"] + params["num_carry"]
    moved = [want(v) for v in eqn.invars[n:]]
    if first:
        args = [*inputs[:n], *((VARYING, None) for _ in eqn.invars[n:])]
        ends = _split(body.jaxpr, body.consts, args, path, table, True)
        for v, (kind, x) in zip(body.jaxpr.outvars, ends, strict=True):
            if kind == INVARIANT:
                table.setdefault((path, v), x)
        return [None] * len(eqn.outvars)

    def iterate(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        args = [*inputs[:n], *((VARYING, value) for value in (*carry, *x))]
        ends = _split(body.jaxpr, body.consts, args, path, table, False)
        outs = [
            table[path, v] if kind == INVARIANT else x
            for v, (kind, x) in zip(body.jaxpr.outvars, ends, strict=True)
        ]
        return outs[: m - n], outs[m - n :]

    carry, ys = lax.scan(
        iterate,
        moved[: m - n],
        moved[m - n :],
        length=params["length"],
        reverse=params["reverse"],
    )
    return [*carry, *ys]


def _bind(eqn: Any, inputs: Sequence[Any]) -> list[Any]:
    """Evaluate one equation."""
    bound = eqn.primitive.get_bind_params(eqn.params)  # a pair up to JAX 0.9
    subfuns, params = bound if isinstance(bound, tuple) else ((), bound)
    outs = eqn.primitive.bind(*subfuns, *inputs, **params)
    return outs if eqn.primitive.multiple_results else [outs]


Visit = Callable[[str, Any], Any]  # (name, value) -> replacement of the value


def evaluate(closed: ClosedJaxpr, visit: Visit, *args: Any) -> list[Any]:
    """Evaluate a jaxpr; `visit` may replace values that `checkpoint_name` has named."""
    return _evaluate(closed.jaxpr, closed.consts, visit, args)


def _evaluate(jaxpr: Any, consts: Any, visit: Visit, args: Sequence[Any]) -> list[Any]:
    env: dict[Any, Any] = {}
    read = lambda v: v.val if isinstance(v, Literal) else env[v]
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        inputs, name = list(map(read, eqn.invars)), eqn.primitive.name
        if name == "name":
            outs = [visit(eqn.params["name"], inputs[0])]
        elif name in CALLS:
            inner = eqn.params[CALLS[name]]
            outs = _evaluate(inner.jaxpr, inner.consts, visit, inputs)
        else:
            outs = _bind(eqn, inputs)
        env.update(zip(eqn.outvars, outs, strict=True))
    return list(map(read, jaxpr.outvars))


def checkpoint_names(closed: ClosedJaxpr) -> list[str]:
    """Return the names of single values; not those inside of loops and branches."""
    found: Counter[str] = Counter()

    def visit(name: str, x: Any) -> Any:
        found[name] += 1
        return x

    shapes = [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars
    ]
    jax.eval_shape(lambda *args: evaluate(closed, visit, *args), *shapes)
    return [name for name, count in found.items() if count == 1]
