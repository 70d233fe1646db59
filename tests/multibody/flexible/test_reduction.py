"""Reduced models against published digits, closed forms and the full model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io
import scipy.linalg
import scipy.sparse

from djdyn.multibody.flexible import (
    Beam,
    FiniteElements,
    Piece,
    Rectangle,
    Section,
    Tube,
    craig_bampton,
    guyan,
    krylov,
    read_finite_elements,
    reduction_report,
    vibration_modes,
)
from djdyn.multibody.flexible.reduction import natural_frequencies, symmetric_eigen

from ...gradients import assert_gradient
from .booms import family, soft_beam, steel_boom


# A chain of ten unit masses and springs, held at one end (Baharudin's digest, V11).
K = 2 * jnp.eye(10) - jnp.eye(10, k=1) - jnp.eye(10, k=-1)
K = K.at[-1, -1].set(1.0)
M = jnp.eye(10)
TIP = jnp.zeros(10).at[9].set(1.0)


def relative_errors(basis):
    """Errors of the first two circular frequencies, per cent."""
    exact = 2 * np.sin((2 * np.arange(1, 3) - 1) * np.pi / 42)
    found = 2 * np.pi * np.asarray(natural_frequencies(M, K, basis))
    n = min(2, len(found))
    return 100 * (found[:n] / exact[:n] - 1)


def test_the_chain_has_its_closed_form():
    found = 2 * np.pi * natural_frequencies(M, K)[:3]
    assert np.allclose(found, [0.14946019, 0.44504187, 0.73068205], atol=5e-9)


def test_guyan_of_the_chain():
    basis = guyan(K, [9])
    assert np.allclose(basis.T @ M @ basis, 3.85, atol=1e-12)
    assert np.allclose(basis.T @ K @ basis, 0.1, atol=1e-13)
    assert np.allclose(relative_errors(basis), 7.83, atol=0.005)


@pytest.mark.parametrize(
    ("modes", "first", "second", "digits"),
    [(1, 0.357, 8.77, 5e-3), (2, 0.0745, 0.804, 5e-4), (3, 0.0235, 0.226, 5e-4)],
)
def test_craig_bampton_of_the_chain(modes, first, second, digits):
    errors = relative_errors(craig_bampton(M, K, [9], modes))
    assert np.allclose(errors[0], first, atol=5e-4 if modes == 1 else 5e-5)
    assert np.allclose(errors[1], second, atol=digits)


@pytest.mark.parametrize("method", ["lanczos", "arnoldi"])
def test_krylov_of_the_chain(method):
    published = [(7.83,), (0.0171, 22.0), (5.7e-6, 0.691), (4.4e-10, 0.0065)]
    for m, expected in enumerate(published, start=1):
        basis = krylov(M, K, TIP, m, method=method)
        assert np.allclose(basis.T @ M @ basis, np.eye(m), atol=1e-12)
        # Two or three digits; the last error is near the round-off of the frequency.
        assert np.allclose(relative_errors(basis), expected, rtol=9e-3, atol=2e-11)


def test_free_boom_has_the_published_frequencies():
    Mb, Kb = family(steel_boom(), "xz")
    found = natural_frequencies(Mb, Kb)[2:5]
    assert np.allclose(found, [129.080, 355.820, 697.581], atol=5e-4)
    analytic = np.array([129.0799, 355.8138, 697.5373])
    assert np.allclose(found, analytic, rtol=1e-4)


@pytest.mark.parametrize(
    ("modes", "first", "second"),
    [
        (0, 154.809, 528.772),
        (1, 129.545, 528.772),
        (2, 129.545, 357.379),
        (4, 129.133, 356.145),
    ],
)
def test_craig_bampton_of_the_free_boom(modes, first, second):
    Mb, Kb = family(steel_boom(), "xz")
    basis = craig_bampton(Mb, Kb, [0, 1, 40, 41], modes)
    found = natural_frequencies(Mb, Kb, basis)[2:4]
    assert np.allclose(found, [first, second], atol=5e-4)


def test_static_modes_alone_are_exact_for_a_load_at_the_boundary():
    Mb, Kb = family(steel_boom(), "xz")
    load = jnp.zeros(len(Mb)).at[40].set(1e4)
    basis = craig_bampton(Mb, Kb, [40, 41], 0, held=[0, 1])
    small = basis @ jnp.linalg.solve(basis.T @ Kb @ basis, basis.T @ load)
    assert np.allclose(small[40], 8.415118e-3, atol=5e-10)
    report = reduction_report(Mb, Kb, basis, load, held=[0, 1])
    assert report.static < 1e-9
    assert np.all(report.frequency_error > 0) and report.assurance[0] > 0.99
    assert "MAC" in str(report)


def test_timoshenko_beam_against_closed_forms():
    """Tip deflection by bending and shear, and the frequency lowered by both."""
    section, L = Rectangle(0.05, 0.2, shear=0.8), 1.0
    beam = Beam((Piece(L, section, elements=40),), 2e11, 7.7e10, 7800.0, "timoshenko")
    Mb, Kb = family(beam, "xz")
    flexibility = jnp.linalg.inv(Kb[2:, 2:])[-2, -2]
    s = section.properties()
    exact = L**3 / (3 * 2e11 * s.I_y) + L / (7.7e10 * s.shear_z)
    assert np.allclose(flexibility, exact, rtol=1e-9)
    # Timoshenko's frequency equation of a hinged beam, lower root, first mode.
    k, EI, rA = np.pi / L, 2e11 * s.I_y, 7800.0 * s.area
    rI, GA = 7800.0 * s.I_y, 7.7e10 * s.shear_z
    a, b = rI * rA / GA, rA + k**2 * (rI + EI * rA / GA)
    exact = np.sqrt((b - np.sqrt(b**2 - 4 * a * EI * k**4)) / (2 * a)) / (2 * np.pi)
    rows = np.delete(np.arange(82), [0, 80])
    own = np.ix_(rows, rows)
    assert np.allclose(natural_frequencies(Mb[own], Kb[own])[0], exact, rtol=4e-5)


def test_tapered_beam_against_integrals():
    """Stretch and mass of a cone, and tip deflection by the unit load method."""
    ends = Tube(0.1), Tube(0.04)
    beam = Beam((Piece(2.0, *ends, elements=40),), 2e11, 8e10, 7800.0)
    x = np.linspace(0, 2, 20001)
    d = 0.1 - 0.03 * x
    volume = np.trapezoid(np.pi / 4 * d**2, x)
    assert np.allclose(beam.mass(), 7800.0 * volume, rtol=1e-8)
    _, Ka = family(beam, "axial")
    stretch = jnp.linalg.inv(Ka[1:, 1:])[-1, -1]
    exact = np.trapezoid(1 / (2e11 * np.pi / 4 * d**2), x)
    assert np.allclose(stretch, exact, rtol=1e-4)
    _, Kb = family(beam, "xy")
    deflection = jnp.linalg.inv(Kb[2:, 2:])[-2, -2]
    exact = np.trapezoid((2 - x) ** 2 / (2e11 * np.pi / 64 * d**4), x)
    assert np.allclose(deflection, exact, rtol=1e-5)


def test_rectangles_twist_as_published():
    """Saint-Venant's constants of a square and of a strip, from both sides."""
    square = Rectangle(1.0, 1.0).properties().torsion
    flat = Rectangle(1.0, 10.0).properties().torsion
    tall = Rectangle(10.0, 1.0).properties().torsion
    assert np.allclose(square, 0.140577, atol=1e-6)
    assert np.allclose(flat, 3.123, atol=1e-3)
    assert np.allclose(flat, tall, rtol=3e-4)


def test_frequency_has_exact_derivatives():
    def frequency(theta):
        E, height = theta
        piece = Piece(1.0, Rectangle(0.05, height), elements=4)
        M, K = family(Beam((piece,), E, 8e10, 7800.0), "xz")
        basis = craig_bampton(M, K, [8, 9], 2, held=[0, 1])
        return jnp.sum(natural_frequencies(M, K, basis)[:2])

    # Scaled: a step of differences is the same for both.
    assert_gradient(
        lambda x: frequency((2e11 * x[0], 0.08 * x[1])), jnp.ones(2), rtol=1e-6
    )


def test_coinciding_eigenvalues_leave_derivatives_finite():
    """The sum over a pair does not depend on how its two vectors are turned."""
    A, dA = jnp.diag(jnp.array([1.0, 2.0, 2.0])), jnp.ones((3, 3))

    def weight(s):
        _, V = symmetric_eigen(A + s * dA)
        return jnp.sum(V[0, 1:] ** 2)

    assert np.allclose(jax.grad(weight)(0.0), 0.0)
    value, slope = jax.jvp(
        lambda s: jnp.sum(symmetric_eigen(A + s * dA)[0]), (0.0,), (1.0,)
    )
    assert value == 5.0 and np.allclose(slope, 3.0)


def test_finite_elements_from_files(tmp_path):
    beam = soft_beam()
    M, K = beam.matrices()
    scipy.io.mmwrite(tmp_path / "m.mtx", scipy.sparse.coo_matrix(np.asarray(M)))
    np.save(tmp_path / "k.npy", K)
    model = read_finite_elements(tmp_path / "m.mtx", tmp_path / "k.npy", beam.positions)
    assert np.allclose(model.mass(), beam.mass())
    assert np.allclose(model.stiffness_matrix, K)
    with pytest.raises(ValueError, match=r"neither a \.npy nor a \.mtx"):
        read_finite_elements("m.csv", "k.npy", beam.positions)


def test_bad_models_are_refused_in_a_sentence():
    beam = soft_beam()
    M, K = map(np.asarray, beam.matrices())
    x = np.asarray(beam.positions)
    with pytest.raises(
        ValueError, match="stiffness_matrix has the negative eigenvalue"
    ):
        FiniteElements(x, M, K - 10 * np.eye(len(K)))
    bare = M.copy()
    bare[6:9], bare[:, 6:9] = 0, 0
    with pytest.raises(ValueError, match="node 1 has no mass"):
        FiniteElements(x, bare, K)
    with pytest.raises(ValueError, match="must be symmetric"):
        FiniteElements(x, M + np.triu(M), K)
    with pytest.raises(ValueError, match="12 or 24 degrees of freedom"):
        FiniteElements(x, M[1:, 1:], K)
    with pytest.raises(ValueError, match="30 modes are asked for, but there are 24"):
        vibration_modes(jnp.asarray(M), jnp.asarray(K), 30)
    with pytest.raises(ValueError, match="same kind of section"):
        Piece(1.0, Rectangle(1.0, 1.0), Section(1.0, 1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="no room for two walls"):
        Tube(0.1, 0.06)
