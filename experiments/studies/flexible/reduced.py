"""Reduction of models, and small motions of a hinged boom.

The chain and the boom are of the digits that Baharudin, *Computationally efficient
real-time simulation of mobile machines* (2016), leads to when its equations are worked
out; the boom alone has closed forms.
"""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

import djdyn
from djdyn.multibody.flexible import (
    Beam,
    FlexibleBody,
    Hollow,
    Piece,
    craig_bampton,
    guyan,
    krylov,
    reduced_mechanism,
)
from djdyn.multibody.flexible.reduction import natural_frequencies


Row = tuple[str, float, float, float]  # what, found, published, unit of its last digit


def boom(elements: int = 20) -> Beam:
    """Return the steel boom: 4 m, a box of 0.2 by 0.3 m with walls of 10 mm."""
    piece = Piece(4.0, Hollow(0.2, 0.3, 0.01), elements=elements)
    return Beam((piece,), 2.1e11, 8e10, 7850.0, rotary_inertia=False)


def chain_rows() -> list[Row]:
    """Return a chain of ten masses, held at one end, reduced in three ways."""
    K = 2 * jnp.eye(10) - jnp.eye(10, k=1) - jnp.eye(10, k=-1)
    K, M = K.at[-1, -1].set(1.0), jnp.eye(10)
    exact = 2 * np.pi * np.asarray(natural_frequencies(M, K))
    rows = [
        (f"chain, frequency {i + 1}", exact[i], value, 1e-8)
        for i, value in enumerate((0.14946019, 0.44504187, 0.73068205))
    ]

    def add(name, basis, values) -> None:
        found = 2 * np.pi * np.asarray(natural_frequencies(M, K, basis))
        for i, (value, digit) in enumerate(values):
            error = 100 * (found[i] / exact[i] - 1)
            rows.append((f"{name}, error {i + 1} (%)", error, value, digit))

    add("Guyan", guyan(K, [9]), [(7.83, 0.01)])
    for n, values in enumerate(
        (
            [(0.357, 1e-3), (8.77, 0.01)],
            [(0.0745, 1e-4), (0.804, 1e-3)],
            [(0.0235, 1e-4), (0.226, 1e-3)],
        ),
        start=1,
    ):
        add(f"Craig–Bampton {n}", craig_bampton(M, K, [9], n), values)
    tip = jnp.zeros(10).at[9].set(1.0)
    for n, values in enumerate(
        (
            [(7.83, 0.01)],
            [(0.0171, 1e-4), (22.0, 0.1)],
            [(5.7e-6, 1e-7), (0.691, 1e-3)],
            [(4.4e-10, 1e-11), (0.0065, 1e-4)],
        ),
        start=1,
    ):
        add(f"Krylov {n}", krylov(M, K, tip, n), values)
    return rows


def boom_rows() -> list[Row]:
    """Return the free boom, its reductions, and a load at its clamped end."""
    M, K = boom().matrices()
    own = np.ix_(boom().families["xz"], boom().families["xz"])
    M, K = M[own], K[own]
    full = np.asarray(natural_frequencies(M, K))[2:5]
    rows: list[Row] = [
        (f"free boom, frequency {i + 1} (Hz)", full[i], value, 1e-3)
        for i, value in enumerate((129.080, 355.820, 697.581))
    ]
    for n, first, second in (
        (0, 154.809, 528.772),
        (1, 129.545, 528.772),
        (2, 129.545, 357.379),
        (4, 129.133, 356.145),
    ):
        basis = craig_bampton(M, K, [0, 1, 40, 41], n)
        found = np.asarray(natural_frequencies(M, K, basis))[2:4]
        rows.append((f"free boom, {n} fixed modes, 1 (Hz)", found[0], first, 1e-3))
        rows.append((f"free boom, {n} fixed modes, 2 (Hz)", found[1], second, 1e-3))
    basis = craig_bampton(M, K, [40, 41], 0, held=[0, 1])
    load = jnp.zeros(len(M)).at[40].set(1e4)
    tip = (basis @ jnp.linalg.solve(basis.T @ K @ basis, basis.T @ load))[40]
    rows.append(("load of 10 kN on the clamped tip (mm)", 1e3 * tip, 8.415118, 1e-6))
    return rows


def hinged(modes: int) -> np.ndarray:
    """Return the elastic frequencies of the boom on a hinge, by clamped modes, Hz.

    The published ones are of exact modes: forty elements come near enough.
    """
    body = FlexibleBody(
        "boom", "world", djdyn.Revolute((0, 1, 0)), boom(40), {"xz": modes},
        method="vibration",
    )  # fmt: skip
    m = reduced_mechanism(djdyn.Mechanism((body,), gravity_W=(0.0, 0.0, 0.0)))
    still = jnp.zeros(m.nv)

    @jax.jit
    def linearised(q):
        force = lambda q: djdyn.inverse_dynamics(m, q, still, still)
        return jax.jacfwd(force)(q), djdyn.mass_matrix(m, q)

    values = scipy.linalg.eigh(*linearised(m.q0()), eigvals_only=True)
    return np.sqrt(np.maximum(values[1:], 0)) / (2 * np.pi)


def hinged_rows() -> list[Row]:
    """Return the hinged boom, whose own frequencies are 88.9535 and 288.266 Hz."""
    rows: list[Row] = []
    for n, values in (
        (1, (118.484,)),
        (2, (89.051, 427.151)),
        (4, (88.954, 288.389)),
    ):
        for i, (found, value) in enumerate(zip(hinged(n), values, strict=False)):
            name = f"hinged boom, {n} clamped modes, {i + 1} (Hz)"
            rows.append((name, float(found), value, 1e-3))
    return rows
