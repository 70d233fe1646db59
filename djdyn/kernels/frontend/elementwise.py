"""Rules for arithmetic, comparisons and elementary functions, element by element."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..ir.graph import Graph, Value
from ..ir.operations import UNARY, Kind, kind_of
from .trace import Trace, UnsupportedError, rule


def _each(fn: Callable[..., Value], *arrays: np.ndarray) -> np.ndarray:
    """Apply an operation to all elements of broadcast arrays."""
    arrays = np.broadcast_arrays(*arrays)
    out = [
        fn(*items) for items in zip(*(a.ravel().tolist() for a in arrays), strict=True)
    ]
    return np.array(out, np.int64).reshape(arrays[0].shape)


def elementwise(*names: str) -> Callable:
    """Register a rule `(graph, kind, parameters) -> operation on values`."""

    def register(make: Callable[[Graph, Kind, dict], Callable[..., Value]]) -> Callable:
        def apply(trace: Trace, eqn: Any, *inputs: Any) -> np.ndarray:
            dtype, name = np.dtype(eqn.invars[0].aval.dtype), eqn.primitive.name
            if dtype.kind == "u" and name in ("neg", "mul", "integer_pow"):
                raise UnsupportedError(f"kernels do not support {name!r} on {dtype}")
            kind, params = kind_of(dtype), {**eqn.params, "primitive": name}
            op = make(trace.graph, kind, params)
            return _each(op, *map(trace.values, inputs))

        return rule(*names)(apply) and make

    return register


def _typed(name: str, real: str, whole: str | None) -> None:
    """Register a primitive that exists for real numbers and for integers."""

    @elementwise(name)
    def make(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
        del params
        if kind == "f":
            return getattr(graph, real)
        if kind == "i" and whole:
            return partial(graph.integer, whole)
        raise UnsupportedError(f"kernels do not support {name!r} on {kind!r}")


_typed("add", "add", "iadd")
_typed("add_any", "add", "iadd")
_typed("sub", "sub", "isub")
_typed("mul", "mul", "imul")


@elementwise("div")
def _divide(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del params
    return graph.div if kind == "f" else partial(_divide_by_constant, graph, "idiv")


def _divide_by_constant(graph: Graph, name: str, a: Value, b: Value) -> Value:
    """Divide integers; a divisor of 0 or -1 could end the process, so it is refused."""
    if graph.constants.get(b) in (None, 0, -1):
        raise UnsupportedError("kernels divide integers by constants only")
    return graph.integer(name, a, b)


@elementwise(*UNARY, "round_nearest_even")
def _unary(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    name = params["primitive"]
    if kind == "i" and name == "abs":
        zero = graph.constant(0, "i")
        return lambda a: graph.integer("imax", a, graph.integer("isub", zero, a))
    if kind != "f":
        raise UnsupportedError(f"kernels do not support {name!r} on integers")
    if name == "round":
        ways = {0: _round_away, 1: partial(graph.unary, "round")}
        way = ways[int(params["rounding_method"])]
        return partial(way, graph) if way is _round_away else way
    return partial(graph.unary, name)


def _round_away(graph: Graph, a: Value) -> Value:
    """Round to the nearest integer, halves away from zero."""
    near = graph.unary("trunc", a)
    rest = graph.unary("abs", graph.sub(a, near))
    next_one = graph.add(near, graph.binary("copysign", graph.constant(1.0), a))
    return graph.select(graph.compare("le", graph.constant(0.5), rest), next_one, near)


@elementwise("neg")
def _neg(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del params
    if kind == "i":
        return partial(graph.integer, "isub", graph.constant(0, "i"))
    return graph.neg


@elementwise("pow", "atan2", "rem")
def _binary(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    if kind == "i" and params["primitive"] == "rem":
        return partial(_divide_by_constant, graph, "irem")
    if kind != "f":
        raise UnsupportedError(
            f"kernels do not support {params['primitive']!r} on integers"
        )

    def power(a: Value, b: Value) -> Value:
        if graph.kinds[b] == "i":
            b = graph.convert(b, "f")
        return graph.binary("pow", a, b)

    return (
        power
        if params["primitive"] == "pow"
        else partial(graph.binary, params["primitive"])
    )


@elementwise("max", "min")
def _extreme(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    name = params["primitive"]
    if kind == "i":
        return partial(graph.integer, f"i{name}")
    if kind == "b":
        return partial(graph.logic, "or" if name == "max" else "and")
    return partial(extreme, graph, name)


def extreme(graph: Graph, name: str, a: Value, b: Value) -> Value:
    """Return the larger or smaller of two numbers; NaN if either is."""
    wins = graph.compare("lt", b, a) if name == "max" else graph.compare("lt", a, b)
    keep = graph.logic("or", wins, graph.compare("ne", a, a))
    return graph.select(keep, a, b)


@elementwise("eq", "ne", "lt", "le", "gt", "ge")
def _compare(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    name = params["primitive"]
    if kind == "b":
        same = partial(graph.logic, "xor")
        if name not in ("eq", "ne"):
            raise UnsupportedError(f"kernels do not support {name!r} on booleans")
        return same if name == "ne" else lambda a, b: graph.logical_not(same(a, b))
    return partial(graph.compare, name)


@elementwise("lt_to", "le_to")
def _compare_in_order(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    """Compare in the total order, with NaN above the rest; zeros have no sign here."""
    name = params["primitive"].removesuffix("_to")
    if kind != "f":
        return partial(graph.compare, name)

    def compare(a: Value, b: Value) -> Value:
        last = graph.compare("ne", b, b)
        if name == "lt":
            last = graph.logic("and", last, graph.compare("eq", a, a))
        return graph.logic("or", graph.compare(name, a, b), last)

    return compare


@elementwise("and", "or", "xor")
def _logic(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    if kind != "b":
        raise UnsupportedError(
            f"kernels do not support bitwise {params['primitive']!r}"
        )
    return partial(graph.logic, params["primitive"])


@elementwise("not")
def _not(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del params
    if kind != "b":
        raise UnsupportedError("kernels do not support bitwise 'not'")
    return graph.logical_not


@elementwise("sign")
def _sign(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del params
    zero, one = (0, 1) if kind == "i" else (0.0, 1.0)
    zero, one, minus = (graph.constant(x, kind) for x in (zero, one, -one))

    def sign(a: Value) -> Value:
        rest = graph.select(graph.compare("lt", a, zero), minus, a)  # 0, -0, NaN
        return graph.select(graph.compare("lt", zero, a), one, rest)

    return sign


@elementwise("is_finite")
def _is_finite(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del kind, params
    infinity = graph.constant(float("inf"))
    return lambda a: graph.compare("lt", graph.unary("abs", a), infinity)


@elementwise("square")
def _square(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del params
    times = graph.mul if kind == "f" else partial(graph.integer, "imul")
    return lambda a: times(a, a)


@elementwise("rsqrt")
def _rsqrt(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del kind, params
    return lambda a: graph.div(graph.constant(1.0), graph.unary("sqrt", a))


@elementwise("logistic")
def _logistic(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del kind, params
    one = graph.constant(1.0)
    return lambda a: graph.div(one, graph.add(one, graph.unary("exp", graph.neg(a))))


@elementwise("integer_pow")
def _integer_pow(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    n = params["y"]
    times = graph.mul if kind == "f" else partial(graph.integer, "imul")

    def power(a: Value) -> Value:
        found, square, left = None, a, abs(n)
        while left:
            if left & 1:
                found = square if found is None else times(found, square)
            left >>= 1
            square = times(square, square) if left else square
        if found is None:
            return graph.constant(1.0 if kind == "f" else 1, kind)
        return graph.div(graph.constant(1.0), found) if n < 0 else found

    return power


@elementwise("copy", "copy_p", "stop_gradient", "real", "name")
def _same(graph: Graph, kind: Kind, params: dict) -> Callable[..., Value]:
    del graph, kind, params
    return lambda a: a


@rule("convert_element_type")
def _convert(trace: Trace, eqn: Any, x: Any) -> Any:
    old, new = np.dtype(eqn.invars[0].aval.dtype), np.dtype(eqn.params["new_dtype"])
    if kind_of(old) == kind_of(new):
        if old.kind == "f" and old != new and not getattr(eqn.invars[0], "val", None):
            values = trace.values(x).ravel().tolist()
            if not all(v in trace.graph.constants for v in values):
                raise UnsupportedError(f"a kernel does not convert {old} to {new}")
        return x
    graph, kind = trace.graph, kind_of(new)
    out = _each(partial(graph.convert, kind=kind), trace.values(x))
    if old.kind == "f" and new == np.int32:  # saturates, as machines do at 64 bits
        limits = np.iinfo(new)
        least, most = (graph.constant(int(x), "i") for x in (limits.min, limits.max))
        clip = lambda i: graph.integer("imax", graph.integer("imin", i, most), least)
        return _each(clip, out)
    return out


@rule("select_n")
def _select(trace: Trace, eqn: Any, which: Any, *cases: Any) -> np.ndarray:
    graph, which = trace.graph, trace.values(which)
    arrays = [trace.values(c) for c in cases]
    if kind_of(np.dtype(eqn.invars[0].aval.dtype)) == "b":
        no, yes = arrays if len(arrays) == 2 else (arrays[0], arrays[0])
        return _each(graph.select, which, yes, no)
    found = arrays[-1]
    for i in range(len(arrays) - 2, -1, -1):
        at = partial(graph.compare, "le", b=graph.constant(i, "i"))
        found = _each(graph.select, _each(at, which), arrays[i], found)
    return found


@rule("clamp")
def _clamp(trace: Trace, eqn: Any, low: Any, x: Any, high: Any) -> np.ndarray:
    graph = trace.graph
    make = _extreme(
        graph, kind_of(np.dtype(eqn.invars[1].aval.dtype)), {"primitive": "max"}
    )
    least = _extreme(
        graph, kind_of(np.dtype(eqn.invars[1].aval.dtype)), {"primitive": "min"}
    )
    low, x, high = map(trace.values, (low, x, high))
    return _each(least, _each(make, x, low), high)
