r"""Cubic splines through the nodes of a line, on a mesh of fixed fractions.

Nodes lie at $s_i = x_i L$ with fixed $x_i$. In an element of length $h$ between nodes
0 and 1, with $\xi$ from 0 to 1 and $m = r_{xx}$,

$$r = (1-\xi) r_0 + \xi r_1 + \tfrac{h^2}{6}\bigl[((1-\xi)^3 - (1-\xi)) m_0
+ (\xi^3 - \xi) m_1\bigr].$$

Continuity of the slope gives $m$ by a symmetric tridiagonal system whose matrix, also
the Gram matrix of $m$, follows from the mesh alone: it is factored in NumPy while
tracing, and solved by two sweeps.
"""

import dataclasses
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..typing import Scalar


Nodes = Float[Array, "nodes 3"]
# Gauss's three points in an element, and their weights.
GAUSS = np.array([0.5 - np.sqrt(0.15), 0.5, 0.5 + np.sqrt(0.15)])
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Fractions of the length, from 0 to 1, and at which ends the slope is given.

    At the other ends the curvature is zero.
    """

    x: tuple[float, ...]
    clamped: tuple[bool, bool] = (False, False)

    @cached_property
    def h(self) -> np.ndarray:
        return np.diff(self.x)

    @cached_property
    def gram(self) -> tuple[np.ndarray, np.ndarray]:
        """Diagonal and off-diagonal of the spline's matrix; an end of no curvature
        stands alone.
        """
        h, n = self.h, len(self.x)
        diagonal, off = np.zeros(n), h / 6
        diagonal[:-1] += h / 3
        diagonal[1:] += h / 3
        for clamped, node, edge in zip(self.clamped, (0, -1), (0, -1), strict=True):
            if not clamped:
                diagonal[node], off[edge] = 1.0, 0.0
        return diagonal, off

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Pivots, and what each row takes of the one before."""
        pivots, off = self.gram
        pivots, lower = pivots.copy(), np.zeros(len(self.x))
        for i in range(1, len(pivots)):
            lower[i] = off[i - 1] / pivots[i - 1]
            pivots[i] -= lower[i] * off[i - 1]
        return pivots, lower

    def solve(self, b: Float[Array, "nodes k"]) -> Float[Array, "nodes k"]:
        """Solves with the spline's matrix: down with the rows, up with the unknowns."""
        pivots, lower = (jnp.asarray(x, b.dtype) for x in self.factors)

        def down(y, row):
            y = row[0] - row[1] * y
            return y, y

        def up(carry, row):
            m = row[0] - carry
            return row[1] * m, m

        zero = jnp.zeros_like(b[0])
        _, y = lax.scan(down, zero, (b, lower))
        _, m = lax.scan(up, zero, (y / pivots[:, None], lower), reverse=True)
        return m

    @cached_property
    def influence(self) -> tuple[np.ndarray, np.ndarray]:
        """Solutions for a unit in the first and in the last row."""
        diagonal, off = self.gram
        A = np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1)
        inverse = np.linalg.inv(A)
        return inverse[0], inverse[-1]

    @cached_property
    def weights(self) -> np.ndarray:
        """Integrals of the cardinal splines: exact for splines, of sum one."""
        n, h = len(self.x), self.h
        chords = (np.eye(n)[1:] - np.eye(n)[:-1]) / h[:, None]
        B = np.zeros((n, n))
        B[:-1] += chords
        B[1:] -= chords
        for clamped, node in zip(self.clamped, (0, -1), strict=True):
            B[node] *= clamped
        diagonal, off = self.gram
        A = np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1)
        cubes = np.zeros(n)
        cubes[:-1] += h**3
        cubes[1:] += h**3
        return self.halves - B.T @ np.linalg.solve(A, cubes) / 24

    @cached_property
    def halves(self) -> np.ndarray:
        """Half of each element to either of its nodes: integrals of hats."""
        return (np.append(self.h, 0.0) + np.insert(self.h, 0, 0.0)) / 2

    # Splines -----------------------------------------------------------------------

    def curvatures(
        self, r: Nodes, tangents: tuple[Array | None, Array | None]
    ) -> Nodes:
        r"""$r_{xx}$ at the nodes.

        A clamp gives the direction $t$ of the slope. How long the slope is follows from
        the line: along $t$ the end is as free as it would be without the clamp,
        $t\cdot r_{xx} = 0$, so it can stretch.
        """
        chord = (r[1:] - r[:-1]) / jnp.asarray(self.h, r.dtype)[:, None]
        tail, head = (jnp.asarray(float(c), r.dtype) for c in self.clamped)
        rows = (tail * chord[:1], chord[1:] - chord[:-1], -head * chord[-1:])
        m = self.solve(jnp.concatenate(rows))
        first, last = (jnp.asarray(z, r.dtype) for z in self.influence)
        t0, t1 = tangents
        if t0 is not None and t1 is not None:
            a, b, across = m[0] @ t0, m[-1] @ t1, first[-1] * (t0 @ t1)
            det = first[0] * last[-1] - across**2
            slope0 = (a * last[-1] - b * across) / det
            slope1 = (a * across - b * first[0]) / det
            m = m - (slope0 * t0)[None] * first[:, None]
            return m + (slope1 * t1)[None] * last[:, None]
        if t0 is not None:
            return m - (m[0] @ t0 / first[0] * t0)[None] * first[:, None]
        if t1 is not None:
            return m - (m[-1] @ t1 / last[-1] * t1)[None] * last[:, None]
        return m

    def slopes(self, r: Nodes, m: Nodes) -> Nodes:
        r"""$r_x$ at the nodes."""
        h = jnp.asarray(self.h, r.dtype)[:, None]
        chord = (r[1:] - r[:-1]) / h
        ahead = chord - h * (m[:-1] / 3 + m[1:] / 6)
        last = chord[-1:] + h[-1:] * (m[-2:-1] / 6 + m[-1:] / 3)
        return jnp.concatenate([ahead, last])

    def gauss_slopes(self, r: Nodes, m: Nodes) -> Float[Array, "3 elements 3"]:
        r"""$r_x$ at the Gauss points of the elements."""
        h = jnp.asarray(self.h, r.dtype)[:, None]
        chord = (r[1:] - r[:-1]) / h
        return jnp.stack(
            [
                chord
                + h * ((1 - 3 * (1 - g) ** 2) / 6 * m[:-1] + (3 * g**2 - 1) / 6 * m[1:])
                for g in GAUSS.tolist()
            ]
        )

    def nodal(self, y: Float[Array, "3 elements"]) -> Float[Array, " nodes"]:
        """Values at Gauss points, averaged with the hats of the nodes."""
        h = jnp.asarray(self.h, y.dtype)
        left = jnp.asarray(WEIGHTS * (1 - GAUSS), y.dtype) @ y * h
        right = jnp.asarray(WEIGHTS * GAUSS, y.dtype) @ y * h
        zero = jnp.zeros_like(h[:1])
        total = jnp.concatenate([left, zero]) + jnp.concatenate([zero, right])
        return total / jnp.asarray(self.halves, y.dtype)

    def product(self, a: Nodes, b: Nodes) -> Scalar:
        r"""$\int a\cdot b\,dx$ of two piecewise linear curvatures."""
        diagonal, off = (jnp.asarray(x, a.dtype)[:, None] for x in self.gram)
        mixed = a[1:] * b[:-1] + a[:-1] * b[1:]
        return jnp.sum(diagonal * a * b) + jnp.sum(off * mixed)

    def at(self, r: Nodes, m: Nodes, x: Scalar) -> tuple[Array, Array, Array]:
        """The spline, its slope and its curvature at any fraction of the length."""
        start, end = (jnp.asarray(e, r.dtype) for e in (self.x[:-1], self.x[1:]))
        x, h = jnp.clip(x, 0.0, 1.0), end - start
        here = ((x >= start) & (x < end)) | ((x >= 1) & (end == 1))
        b = jnp.where(here, (x - start) / h, 0.0)[:, None]
        h, a = h[:, None], 1 - b
        pick = lambda y: jnp.sum(jnp.where(here[:, None], y, 0.0), 0)
        bow = (a**3 - a) * m[:-1] + (b**3 - b) * m[1:]
        tilt = (1 - 3 * a**2) * m[:-1] + (3 * b**2 - 1) * m[1:]
        return (
            pick(a * r[:-1] + b * r[1:] + h**2 / 6 * bow),
            pick((r[1:] - r[:-1]) / h + h / 6 * tilt),
            pick(a * m[:-1] + b * m[1:]),
        )

    def hats(self, x: Scalar) -> Float[Array, " nodes"]:
        """Piecewise linear shares of the nodes in what sits at a fraction."""
        nodes, h = jnp.asarray(self.x, x.dtype), jnp.asarray(self.h, x.dtype)
        wide = jnp.ones_like(h[:1])
        left = (x - nodes) / jnp.concatenate([wide, h])
        right = (nodes - x) / jnp.concatenate([h, wide])
        return jnp.maximum(0.0, 1 - jnp.maximum(-left, -right))


def graded(elements: int, power: float = 1.0) -> tuple[float, ...]:
    r"""Fractions $(i/n)^p$: above one, elements shrink towards the tail."""
    return tuple(float(x) for x in (np.arange(elements + 1) / elements) ** power)
