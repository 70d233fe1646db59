r"""Few modes in place of many nodes.

A basis $\Phi$ has one column a mode and stands for $u = \Phi\eta$; matrices become
$\Phi^\top M\Phi$ and $\Phi^\top K\Phi$. All functions take free matrices and the
degrees of freedom that are `held`, whose rows in the basis are zero.

Eigenvectors are differentiated by the rule of distinct eigenvalues. Within a pair that
coincides they are arbitrary up to a turn, and so is the derivative of the turn: it is
taken as zero, which is right for everything that does not depend on it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import known


Basis = Float[Array, "dofs modes"]
Held = Sequence[int] | np.ndarray
COINCIDE = 1e-9  # relative distance of eigenvalues that count as one


@jax.custom_jvp
def symmetric_eigen(A: Float[Array, "n n"]) -> tuple[Array, Array]:
    """Eigenvalues, rising, and eigenvectors of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(A, symmetrize_input=False)
    return values, vectors


@symmetric_eigen.defjvp
def _symmetric_eigen_jvp(primals: tuple, tangents: tuple) -> tuple:
    (A,), (dA,) = primals, tangents
    values, V = symmetric_eigen(A)
    inside = V.T @ (0.5 * (dA + dA.T)) @ V
    apart = values[None] - values[:, None]
    one = jnp.abs(apart) <= COINCIDE * jnp.max(jnp.abs(values))
    turn = jnp.where(one, 0.0, inside / jnp.where(one, 1.0, apart))
    return (values, V), (jnp.diagonal(inside), V @ turn)


def natural_modes(
    M: Float[Array, "n n"], K: Float[Array, "n n"]
) -> tuple[Array, Array]:
    r"""All $\omega^2$, rising, and modes with $\Phi^\top M\Phi = 1$.

    A mode's largest entry is positive.
    """
    if not len(M):
        return jnp.zeros(0, M.dtype), M
    L = jnp.linalg.cholesky(M)
    half = jax.scipy.linalg.solve_triangular(L, K, lower=True)
    A = jax.scipy.linalg.solve_triangular(L, half.T, lower=True)
    values, V = symmetric_eigen(0.5 * (A + A.T))
    modes = jax.scipy.linalg.solve_triangular(L.T, V, lower=False)
    largest = jnp.argmax(jnp.abs(jax.lax.stop_gradient(modes)), 0)
    sign = jnp.sign(modes[largest, jnp.arange(modes.shape[1])])
    return values, modes * jax.lax.stop_gradient(sign)[None]


def natural_frequencies(M: Array, K: Array, basis: Basis | None = None) -> Array:
    """Frequencies of the model, or of what a basis leaves of it, Hz, rising.

    Those of rigid motions are zero up to round-off.
    """
    if basis is not None:
        M, K = basis.T @ M @ basis, basis.T @ K @ basis
    values, _ = natural_modes(M, K)
    return jnp.sqrt(jnp.maximum(values, 0.0)) / (2 * jnp.pi)


def _others(n: int, *held: Held) -> np.ndarray:
    """Degrees of freedom that are not among those given."""
    out = np.concatenate([np.zeros(0, int), *(np.asarray(h, int) for h in held)])
    if out.size and not (0 <= out.min() and out.max() < n):
        raise ValueError(f"degree of freedom {out.max()} is not among {n}")
    return np.setdiff1d(np.arange(n), out)


def _check_count(modes: int, dofs: int) -> None:
    if not 0 <= modes <= dofs:
        raise ValueError(
            f"{modes} modes are asked for, but there are {dofs} degrees of freedom"
        )


def _whole(n: int, rows: np.ndarray, part: Array) -> Array:
    """A basis of all degrees of freedom from some of its rows."""
    return jnp.zeros((n, part.shape[1]), part.dtype).at[rows].set(part)


def vibration_modes(M: Array, K: Array, n: int, held: Held = ()) -> Basis:
    """Return the lowest `n` modes of vibration."""
    rows = _others(len(M), held)
    _check_count(n, len(rows))
    own = np.ix_(rows, rows)
    _, modes = natural_modes(M[own], K[own])
    return _whole(len(M), rows, modes[:, :n])


def guyan(K: Array, boundary: Held, held: Held = ()) -> Basis:
    """Return static modes: a unit displacement of each boundary degree of freedom."""
    boundary = np.asarray(boundary, int)
    inside = _others(len(K), boundary, held)
    n = len(boundary)
    modes = jnp.zeros((len(K), n), K.dtype).at[boundary].set(jnp.eye(n, dtype=K.dtype))
    if len(inside):
        static = jnp.linalg.solve(
            K[np.ix_(inside, inside)], -K[np.ix_(inside, boundary)]
        )
        modes = modes.at[inside].set(static)
    return modes


def craig_bampton(M: Array, K: Array, boundary: Held, n: int, held: Held = ()) -> Basis:
    """Return static modes and the lowest `n` modes with the boundary at rest.

    Craig and Bampton, *Coupling of substructures for dynamic analyses*, 1968.
    """
    boundary = np.asarray(boundary, int)
    fixed = vibration_modes(M, K, n, np.concatenate([boundary, np.asarray(held, int)]))
    return jnp.concatenate([guyan(K, boundary, held), fixed], 1)


def krylov(
    M: Array,
    K: Array,
    load: Float[Array, " dofs"],
    n: int,
    held: Held = (),
    *,
    method: Literal["lanczos", "arnoldi"] = "lanczos",
    shift: float = 0.0,
) -> Basis:
    r"""Return an $M$-orthonormal basis of $b, Wb, \dots, W^{n-1}b$, $W = K^{-1}M$.

    With $b = K^{-1}f$ the static answer to a load $f$, the basis is exact for it, and
    good for what follows from it at low frequencies. Lanczos takes two earlier vectors
    from each new one, then all of them again for round-off; Arnoldi takes all.

    **Arguments:**

    - `shift`: $s^2$ in $K - s^2 M$, which takes the place of $K$ where a model is free.
    """
    rows = _others(len(M), held)
    _check_count(n, len(rows))
    if method not in ("lanczos", "arnoldi"):
        raise ValueError(f"method is lanczos or arnoldi, not {method!r}")
    own = np.ix_(rows, rows)
    M_, K_ = M[own], K[own] - shift * M[own]
    factor = jax.scipy.linalg.lu_factor(K_)
    solve = lambda b: jax.scipy.linalg.lu_solve(factor, b)
    vectors: list[Array] = []
    new = solve(load[rows])
    for _ in range(n):
        earlier = vectors if method == "arnoldi" else vectors[-2:]
        for past in (earlier, vectors):
            for v in past:
                new = new - (v @ M_ @ new) * v
        vectors.append(new / jnp.sqrt(new @ M_ @ new))
        new = solve(M_ @ vectors[-1])
    basis = jnp.stack(vectors, 1) if vectors else jnp.zeros((len(rows), 0), M.dtype)
    return _whole(len(M), rows, basis)


def orthonormal(
    M: Array, K: Array, basis: Basis, n: int | None = None
) -> tuple[Array, Basis]:
    r"""Return $\omega^2$ and modes of vibration within a basis: its lowest `n`, or all.

    Rigid motions among them have $\omega^2 = 0$ and come first.
    """
    values, turn = natural_modes(basis.T @ M @ basis, basis.T @ K @ basis)
    return values[:n], (basis @ turn)[:, :n]


# Reports ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ReductionReport:
    """A reduced model beside the full one.

    `frequency_error` is relative, of the elastic modes; `assurance` is the modal
    assurance criterion of each pair, `static` the relative error of the deflection
    under the load.
    """

    full: np.ndarray  # Hz
    reduced: np.ndarray  # Hz
    frequency_error: np.ndarray
    assurance: np.ndarray
    static: float

    def __str__(self) -> str:
        names = ("mode", "full (Hz)", "reduced (Hz)", "error", "MAC")
        wide = (4, 12, 13, 10, 9)
        head = " ".join(f"{k:>{w}}" for k, w in zip(names, wide, strict=True))
        rows = [
            f"{i + 1:>4} {a:>12.6g} {b:>13.6g} {e:>10.3e} {c:>9.6f}"
            for i, (a, b, e, c) in enumerate(
                zip(
                    self.full,
                    self.reduced,
                    self.frequency_error,
                    self.assurance,
                    strict=True,
                )
            )
        ]
        return "\n".join([head, *rows, f"static deflection: {self.static:.3e}"])


def reduction_report(
    M: Array,
    K: Array,
    basis: Basis,
    load: Float[Array, " dofs"] | None = None,
    held: Held = (),
    *,
    rigid: int = 0,
) -> ReductionReport:
    """Compare a basis with the full model.

    **Arguments:**

    - `load`: whose static deflection is compared; by default there is none.
    - `rigid`: how many modes of no frequency come first, which are left out.
    """
    if not known(M, K, basis):
        raise ValueError("a report of a reduction is made outside of jit and grad")
    rows = _others(len(M), held)
    own = np.ix_(rows, rows)
    values, modes = natural_modes(M[own], K[own])
    less, turned = orthonormal(M, K, basis)
    m = len(less)
    hertz = lambda x: np.sqrt(np.maximum(np.asarray(x), 0.0)) / (2 * np.pi)
    full, reduced = hertz(values[rigid:m]), hertz(less[rigid:])
    a, b = modes[:, rigid:m], turned[rows][:, rigid:]
    mass = M[own]
    dot = lambda x, y: jnp.einsum("ij,ik,kj->j", x, mass, y)
    assurance = np.asarray(dot(a, b) ** 2 / (dot(a, a) * dot(b, b)))
    static = float("nan")
    if load is not None:
        exact = jnp.linalg.solve(K[own], load[rows])
        small = jnp.linalg.solve(basis.T @ K @ basis, basis.T @ load)
        found = (basis @ small)[rows]
        static = float(jnp.linalg.norm(found - exact) / jnp.linalg.norm(exact))
    return ReductionReport(full, reduced, reduced / full - 1, assurance, static)
