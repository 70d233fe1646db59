"""Rules for products and small factorisations."""

import math
from typing import Any

import numpy as np

from ..ir.graph import Graph, Value
from ..ir.operations import kind_of
from .trace import Trace, UnsupportedError, rule


def dot(graph: Graph, a: list[Value], b: list[Value]) -> Value:
    """Return the scalar product of two lists of values."""
    total = graph.constant(0.0)
    for x, y in zip(a, b, strict=True):
        total = graph.add(total, graph.mul(x, y))
    return total


@rule("dot_general")
def _dot_general(trace: Trace, eqn: Any, x: Any, y: Any) -> np.ndarray:
    if kind_of(np.dtype(eqn.outvars[0].aval.dtype)) != "f":
        raise UnsupportedError("kernels do not support products of integer arrays")
    x, y = trace.values(x), trace.values(y)
    (sum_x, sum_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    free_x = [a for a in range(x.ndim) if a not in (*sum_x, *batch_x)]
    free_y = [a for a in range(y.ndim) if a not in (*sum_y, *batch_y)]
    lead = [x.shape[a] for a in batch_x]
    count = lambda x, axes: math.prod(x.shape[a] for a in axes)
    n, k = math.prod(lead), count(x, sum_x)
    left = x.transpose([*batch_x, *free_x, *sum_x]).reshape(n, count(x, free_x), k)
    right = y.transpose([*batch_y, *free_y, *sum_y]).reshape(n, count(y, free_y), k)
    graph = trace.graph
    out = [
        dot(graph, row, column)
        for rows, columns in zip(left.tolist(), right.tolist(), strict=True)
        for row in rows
        for column in columns
    ]
    shape = [*lead, *(x.shape[a] for a in free_x), *(y.shape[a] for a in free_y)]
    return np.array(out, np.int64).reshape(shape)


@rule("cholesky")
def _cholesky(trace: Trace, eqn: Any, x: Any) -> np.ndarray:
    graph, x = trace.graph, trace.values(x)
    out = np.full(x.shape, graph.constant(0.0), np.int64)
    for at in np.ndindex(*x.shape[:-2]):
        A, L = x[at].tolist(), out[at]
        for j in range(len(A)):
            row = L[j, :j].tolist()
            pivot = graph.unary("sqrt", graph.sub(A[j][j], dot(graph, row, row)))
            L[j, j] = pivot
            scale = graph.div(graph.constant(1.0), pivot)
            for i in range(j + 1, len(A)):
                rest = graph.sub(A[i][j], dot(graph, L[i, :j].tolist(), row))
                L[i, j] = graph.mul(rest, scale)
    return out


def _substitute(graph: Graph, A: list, b: list, lower: bool, unit: bool) -> list:
    """Solve with a triangular matrix, one right-hand side."""
    n = len(A)
    x: list[Any] = [None] * n
    order = range(n) if lower else range(n - 1, -1, -1)
    one = graph.constant(1.0)
    for i in order:
        done = range(i) if lower else range(i + 1, n)
        known = dot(graph, [A[i][j] for j in done], [x[j] for j in done])
        rest = graph.sub(b[i], known)
        x[i] = rest if unit else graph.mul(rest, graph.div(one, A[i][i]))
    return x


@rule("triangular_solve")
def _triangular_solve(trace: Trace, eqn: Any, a: Any, b: Any) -> np.ndarray:
    params, graph = eqn.params, trace.graph
    a, b = trace.values(a), trace.values(b)
    lower = params["lower"] != params["transpose_a"]
    if params["transpose_a"]:
        a = np.swapaxes(a, -1, -2)
    if not params["left_side"]:  # x a = b is a' x' = b'
        a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower
    out = np.empty_like(b)
    for at in np.ndindex(*b.shape[:-2]):
        A = a[at].tolist()
        for k in range(b.shape[-1]):
            column = b[at][:, k].tolist()
            out[at][:, k] = _substitute(
                graph, A, column, lower, params["unit_diagonal"]
            )
    return out if params["left_side"] else np.swapaxes(out, -1, -2)
