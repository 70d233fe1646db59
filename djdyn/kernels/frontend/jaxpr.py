"""Jaxprs cut in two, and values in them found and replaced by name."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Literal
from jax.interpreters.partial_eval import dce_jaxpr


CALLS = {  # primitives that are no more than the jaxpr in one of their parameters
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}


def eliminate_dead_code(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Without what the results do not depend on.

    A compiler would drop it as well, but only after all passes here had seen it.
    """
    used = [True] * len(closed.jaxpr.outvars)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, used, instantiate=True)
    return ClosedJaxpr(jaxpr, closed.consts)


CONSTANT, STILL, MOVING = range(3)
INLINE = ("jit", "pjit", "closed_call")


def hoist_invariants(
    closed: ClosedJaxpr, moving: Sequence[bool]
) -> tuple[Callable, Callable]:
    """What depends only on arguments that do not move, and the rest.

    `before(*still)` gives arrays; `after(arrays, *moving)`, once it has, the results.
    Loops are cut too: what stands still in all of their turns is done before.
    """
    kinds = [MOVING if m else STILL for m in moving]

    places: list[tuple] = []  # known once `before` has been traced

    def before(*still: Any) -> list[Any]:
        given = iter(still)
        args = [(k, None if k == MOVING else next(given)) for k in kinds]
        table: dict[tuple, Any] = {}
        _cut(closed.jaxpr, closed.consts, args, (), table, True)
        places[:] = table
        return list(table.values())

    def after(arrays: Sequence[Any], *moved: Any) -> list[Any]:
        given = iter(moved)
        args = [(k, next(given) if k == MOVING else None) for k in kinds]
        table = dict(zip(places, arrays, strict=True))
        return _cut(closed.jaxpr, closed.consts, args, (), table, False)

    return before, after


def _cut(
    jaxpr: Any, consts: Any, args: Any, path: tuple, table: dict, first: bool
) -> list[Any]:
    """Evaluates the half that stands still, or the one that moves.

    Values are pairs of a kind and a value. The first half writes down in `table` what
    the second wants of it; constants are worked out in both.
    """
    env: dict[Any, tuple[int, Any]] = {}
    read = lambda v: (CONSTANT, v.val) if isinstance(v, Literal) else env[v]
    env.update((v, (CONSTANT, c)) for v, c in zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def want(v: Any) -> Any:
        """A value for the half that moves."""
        kind, x = read(v)
        if kind != STILL:
            return x
        key = (path, v)
        if first:
            table.setdefault(key, x)
        return table[key]

    for number, eqn in enumerate(jaxpr.eqns):
        inputs, name = [read(v) for v in eqn.invars], eqn.primitive.name
        kind = max((k for k, _ in inputs), default=CONSTANT)
        inner = (*path, number)
        if kind == MOVING and name in INLINE:
            body = eqn.params[CALLS[name]]
            outs = _cut(body.jaxpr, body.consts, inputs, inner, table, first)
        elif kind == MOVING and name == "scan":
            found = _cut_scan(eqn, inputs, want, inner, table, first)
            outs = [(MOVING, x) for x in found]
        elif kind == MOVING:
            found = [want(v) for v in eqn.invars]
            outs = [
                (MOVING, x)
                for x in ([None] * len(eqn.outvars) if first else _bind(eqn, found))
            ]
        elif kind == STILL and not first:
            outs = [(STILL, None)] * len(eqn.outvars)
        else:
            outs = [(kind, x) for x in _bind(eqn, [x for _, x in inputs])]
        env.update(zip(eqn.outvars, outs, strict=True))
    if path:
        return [read(v) for v in jaxpr.outvars]
    return [want(v) for v in jaxpr.outvars]


def _cut_scan(eqn: Any, inputs: Any, want: Any, path: tuple, table: dict, first: bool):
    """A loop of which the body is cut as well."""
    params, body = eqn.params, eqn.params["jaxpr"]
    n, m = params["num_consts"], params["num_consts"] + params["num_carry"]
    moved = [want(v) for v in eqn.invars[n:]]
    if first:
        args = [*inputs[:n], *((MOVING, None) for _ in eqn.invars[n:])]
        ends = _cut(body.jaxpr, body.consts, args, path, table, True)
        for v, (kind, x) in zip(body.jaxpr.outvars, ends, strict=True):
            if kind == STILL:
                table.setdefault((path, v), x)
        return [None] * len(eqn.outvars)

    def turn(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        args = [*inputs[:n], *((MOVING, value) for value in (*carry, *x))]
        ends = _cut(body.jaxpr, body.consts, args, path, table, False)
        outs = [
            table[path, v] if kind == STILL else x
            for v, (kind, x) in zip(body.jaxpr.outvars, ends, strict=True)
        ]
        return outs[: m - n], outs[m - n :]

    carry, ys = lax.scan(
        turn,
        moved[: m - n],
        moved[m - n :],
        length=params["length"],
        reverse=params["reverse"],
    )
    return [*carry, *ys]


def _bind(eqn: Any, inputs: Sequence[Any]) -> list[Any]:
    bound = eqn.primitive.get_bind_params(eqn.params)  # a pair up to JAX 0.9
    subfuns, params = bound if isinstance(bound, tuple) else ((), bound)
    outs = eqn.primitive.bind(*subfuns, *inputs, **params)
    return outs if eqn.primitive.multiple_results else [outs]


Visit = Callable[[str, Any], Any]  # of a named value; gives what stands for it


def evaluate(closed: ClosedJaxpr, visit: Visit, *args: Any) -> list[Any]:
    """Evaluates a jaxpr; `visit` sees the values that `checkpoint_name` has named."""
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


def names(closed: ClosedJaxpr) -> list[str]:
    """Names that stand for one value; not those inside of loops and branches."""
    found: Counter[str] = Counter()

    def visit(name: str, x: Any) -> Any:
        found[name] += 1
        return x

    shapes = [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars
    ]
    jax.eval_shape(lambda *args: evaluate(closed, visit, *args), *shapes)
    return [name for name, count in found.items() if count == 1]
