"""Linear waves against their closed forms, and what they do to bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.marine.drag import BodyDamping, WaveForce
from djdyn.marine.hull import Hydrostatics, ResponseMotion
from djdyn.marine.water import Fluid
from djdyn.marine.wave_field import (
    LinearWaves,
    irregular_waves,
    pierson_moskowitz,
    regular_waves,
    wave_number,
)
from djdyn.marine.waves import jonswap
from djdyn.marine.wind import Wind, kaimal_gusts

from ..gradients import assert_gradient


G, RHO = 9.81, 1025.0


def test_dispersion_from_long_to_short_waves():
    w = jnp.geomspace(0.01, 20.0, 200)
    k = wave_number(w, G, jnp.asarray(20.0))
    assert jnp.allclose(G * k * jnp.tanh(20.0 * k), w**2, rtol=1e-12)
    assert jnp.allclose(wave_number(w[-5:], G), w[-5:] ** 2 / G, rtol=1e-14)
    assert jnp.allclose(k[0], 0.01 / np.sqrt(G * 20.0), rtol=1e-4)  # shallow


def test_orbital_motion_has_a_potential_and_meets_the_surface():
    r"""$\nabla\cdot u = 0$, $\nabla\times u = 0$, $w = \dot\eta$ at the mean surface,
    $w = 0$ at the bottom, and the acceleration is the velocity's rate.
    """
    sea = irregular_waves(
        1.0, 7.0, seed=2, components=9, depth=25.0, spreading=3.0, stretching="none"
    )
    p, t = jnp.array([3.0, -8.0, -4.0]), jnp.asarray(5.0)
    D, rate = jax.jit(jax.jacfwd(sea.velocity, (0, 1)))(p, t)
    assert jnp.allclose(jnp.trace(D), 0.0, atol=1e-14)
    assert jnp.allclose(D, D.T, atol=1e-14)
    assert jnp.allclose(sea.acceleration(p, t), rate, rtol=1e-12)
    rising = jax.grad(sea.elevation, 1)
    near = jnp.array([3.0, -8.0, -1.1e-3])
    assert jnp.allclose(sea.velocity(near, t)[2], rising(near, t), rtol=2e-3)
    bottom = jnp.array([3.0, -8.0, -25.0])
    assert jnp.allclose(sea.velocity(bottom, t)[2], 0.0, atol=1e-14)
    assert jnp.allclose(jax.grad(sea.elevation)(p, t)[:2], sea.slope(p, t))


def test_orbits_in_deep_and_finite_water():
    """Speeds at crests, one wave: the closed form to 1e-6 and better."""
    a, T, z = 0.8, 6.0, -3.0
    w = 2 * np.pi / T
    at = jnp.array([0.0, 0.0, z])
    deep = regular_waves(2 * a, T, stretching="none").velocity(at, jnp.zeros(()))
    k = w**2 / G
    assert jnp.allclose(deep, jnp.array([a * w * np.exp(k * z), 0, 0]), rtol=1e-12)
    h = 10.0
    sea = regular_waves(2 * a, T, np.pi / 2, depth=h, stretching="none")
    k = float(sea.wave_number[0])
    u = a * w * np.cosh(k * (z + h)) / np.sinh(k * h)
    found = sea.velocity(at, jnp.zeros(()))
    assert jnp.allclose(found, jnp.array([0, u, 0]), rtol=1e-12, atol=1e-15)
    quarter = sea.velocity(at, jnp.asarray(T / 4))
    rising = -a * w * np.sinh(k * (z + h)) / np.sinh(k * h)
    assert jnp.allclose(quarter, jnp.array([0, 0, rising]), rtol=1e-12, atol=1e-13)


def test_wheeler_carries_the_mean_surface_to_the_crest():
    a, T = 0.8, 6.0
    sea, plain = (regular_waves(2 * a, T, stretching=s) for s in ("wheeler", "none"))
    crest = sea.velocity(jnp.array([0.0, 0.0, a - 2e-3]), jnp.zeros(()))
    k = float(sea.wave_number[0])
    wanted = a * 2 * np.pi / T * np.exp(-2e-3 * k)
    assert jnp.allclose(crest[0], wanted, rtol=1e-12)
    above = plain.velocity(jnp.array([0.0, 0.0, 5.0]), jnp.zeros(()))
    assert jnp.allclose(above[0], a * 2 * np.pi / T, rtol=1e-12)


def test_energy_flux_against_the_work_of_pressure():
    r"""The mean of $\int p\,u\,dz$ over depth and period, for one wave."""
    a, T, h = 0.5, 8.0, 15.0
    sea = regular_waves(2 * a, T, depth=h, stretching="none")
    w, k = 2 * np.pi / T, float(sea.wave_number[0])
    z, dz = np.polynomial.legendre.leggauss(40)
    z, dz = (z - 1) * h / 2, dz * h / 2
    at = jnp.stack([0 * z, 0 * z, jnp.asarray(z)], 1)
    u = jax.vmap(lambda p: sea.velocity(p, jnp.zeros(())))(at)[:, 0]
    pressure = RHO * G * a * np.cosh(k * (z + h)) / np.cosh(k * h)
    crest = np.sum(pressure * np.asarray(u) * dz)  # in phase: half of it on average
    assert jnp.allclose(sea.energy_flux(RHO), jnp.array([crest / 2, 0]), rtol=1e-6)
    deep = regular_waves(2 * a, T)
    assert jnp.allclose(deep.group_speed, G / (2 * w), rtol=1e-12)


def test_moments_of_seas_and_of_their_directions():
    sea = irregular_waves(2.0, 9.0, seed=5, components=400, spreading=8.0)
    assert jnp.allclose(jnp.sum(sea.amplitude**2) / 2, 4.0 / 16, rtol=1e-12)
    plain = jonswap(2.0, 9.0, seed=5, components=400)
    t = jnp.linspace(0.0, 50.0, 7)
    here = jax.vmap(lambda t: sea.elevation(jnp.zeros(3), t))(t)
    assert jnp.allclose(here, jax.vmap(plain)(t), rtol=1e-12, atol=1e-12)
    # The mean of cos(theta) of cos^2s(theta/2) is s/(s + 1).
    assert jnp.allclose(jnp.mean(jnp.cos(sea.direction)), 8 / 9, atol=5e-3)
    wind = pierson_moskowitz(12.0, components=2000, seed=1)
    m0 = jnp.sum(wind.amplitude**2) / 2
    assert jnp.allclose(m0, 0.0081 * 12.0**4 / (4 * 0.74 * G**2), rtol=1e-12)
    m1 = jnp.sum(wind.amplitude**2 * wind.frequency) / 2
    # m1 of A w^-5 exp(-B w^-4) is A Gamma(3/4) / (4 B^(3/4)).
    A, B = 0.0081 * G**2, 0.74 * (G / 12.0) ** 4
    assert jnp.allclose(m1, A * 1.2254167024651776 / (4 * B**0.75), rtol=2e-3)


def test_gusts_have_their_spectrum_and_wind_its_profile():
    gusts = kaimal_gusts(15.0, 0.2, 300.0, components=2000, seed=3)
    assert jnp.allclose(jnp.sum(gusts.amplitude**2) / 2, 9.0, rtol=1e-12)
    f = np.array([0.005, 0.02, 0.1])
    below = [np.mean(gusts.frequency / (2 * np.pi) < x) for x in f]
    share = lambda f: 1 - (1 + 6 * f * 300.0 / 15.0) ** (-2 / 3)
    assert np.allclose(below, share(f) / share(5.0), atol=2e-3)
    wind = Wind(15.0, np.pi / 2, 0.12, gusts=gusts)
    t = jnp.asarray(7.0)
    found = wind.velocity(jnp.array([0.0, 0.0, 40.0]), t)
    assert jnp.allclose(found[1], 15.0 * 4**0.12 + gusts(t), rtol=1e-12)
    with pytest.raises(ValueError, match="gusts have no energy: their intensity is 0"):
        kaimal_gusts(10.0, 0.0)


# A hull in a regular wave -------------------------------------------------------------

MASS, AREA, DRAFT = 4100.0, 4.0, 1.0  # of a box of 2 x 2 m; kg, m2, m
ADDED, DAMPING = 3000.0, 2500.0  # kg, N s/m


def buoy(sea: LinearWaves | None) -> djdyn.System:
    """A box that floats with its waterplane at the surface, in a plane."""
    water = Fluid(RHO, surface=0.0, waves=sea)
    A_B = np.diag([0.0, 0, 0, 0, 0, ADDED])
    body = djdyn.Body(
        "box", "world", djdyn.Free(), MASS, (0, 0, -0.3), 3e3 * np.eye(3), A_B=A_B
    )
    middle = djdyn.Frame("middle", "box", djdyn.translation((0.0, 0.0, -DRAFT / 2)))
    second = (4 / 3, 4 / 3)
    parts = {
        "hull": Hydrostatics(
            "box", MASS / RHO, (0, 0, -DRAFT / 2), AREA, second, fluid=water
        ),
        "wave": WaveForce("middle", AREA * DRAFT, [0.0, 0.0, ADDED], water, 0.1),
        "damping": BodyDamping("box", [0, 0, 0, 0, 0, DAMPING], fluid=Fluid()),
    }
    return djdyn.System(djdyn.Mechanism((body,), (middle,)), parts)


def test_metacentric_height_and_heave_stiffness():
    """The stiffness of small motions, and equilibrium at rest."""
    system = buoy(None)

    @jax.jit
    @jax.jacfwd
    def stiffness(x):
        quarter = jnp.concatenate([jnp.ones(1), x[1:] / 2])
        q = jnp.concatenate([jnp.zeros(2), x[:1], quarter])
        return system.at(0.0, system.initial_state(q)).F_WB[1]

    K = -stiffness(jnp.zeros(4))
    GM = (4 / 3) / (MASS / RHO) - DRAFT / 2 + 0.3
    assert jnp.allclose(K[5, 0], RHO * G * AREA)
    assert jnp.allclose(K[0, 1], MASS * G * (GM - 0.3))  # weight has a lever of its own
    assert jnp.allclose(system.derivative(0.0, system.initial_state()).v, 0, atol=1e-12)


def test_heave_in_a_regular_wave_against_the_linear_solution():
    r"""$z = \Re\,\frac{c + i\omega b - (m_d + A)\omega^2e^{-kd/2}}
    {c + i\omega b - (m + A)\omega^2}\,a e^{i\omega t}$, where damping is in the water
    at rest and so has no share in the numerator.
    """
    a, T = 1e-3, 5.0
    w = 2 * np.pi / T
    system = buoy(regular_waves(2 * a, T))
    k = w**2 / G
    c = RHO * G * AREA
    moved = (RHO * AREA * DRAFT + ADDED) * w**2 * np.exp(-k * DRAFT / 2)
    z = a * (c - moved) / (c + 1j * w * DAMPING - (MASS + ADDED) * w**2)
    start = system.initial_state(
        {"box": [0, 0, z.real, 1, 0, 0, 0]},
        {"box": [0, 0, 0, 0, 0, (1j * w * z).real]},
    )
    run = djdyn.simulate(system, 2 * T, start, saveat=41, rtol=1e-9, atol=1e-12)
    wanted = (z * np.exp(1j * w * np.asarray(run.t))).real
    # Head on, the box surges and pitches; heave is off by the square of the wave.
    assert np.allclose(run.q("box")[:, 2], wanted, atol=3e-3 * a)


def test_motion_by_response_amplitudes():
    sea = irregular_waves(2.0, 8.0, seed=1, components=6, direction=0.3)
    w = jnp.linspace(0.2, 8.0, 9)
    amplitudes = jnp.tile(jnp.array([0.5, 0.3, 0.9, 0.02, 0.03, 0.01]), (9, 1))
    lags = jnp.zeros((9, 6)).at[:, 0].set(np.pi / 2)
    mean = jnp.array([30.0, 20.0, 1.0, 0.0, 0.0, 0.4])
    motion = ResponseMotion(sea, w, amplitudes, lags, mean)
    t = jnp.asarray(3.0)
    eta = sea.elevation(mean[:3], t)
    X = motion(t)
    assert jnp.allclose(X.p[2], 1.0 + 0.9 * eta, rtol=1e-12)
    speed = jax.grad(sea.elevation, 1)(mean[:3], t)
    one = regular_waves(2.0, 8.0)
    surge = ResponseMotion(one, w, amplitudes, lags)(t).p[0]
    fast = jax.grad(one.elevation, 1)(jnp.zeros(3), t)
    assert jnp.allclose(surge, 0.5 * fast / one.frequency[0], rtol=1e-12)
    assert jnp.isfinite(speed)


def test_gradients_and_batches_of_seas():
    def loss(x):
        sea = irregular_waves(
            x[0], x[1], x[2], x[3], spreading=x[4], depth=x[5], components=5
        )
        p, t = jnp.array([3.0, 4.0, -1.5]), jnp.asarray(6.0)
        return jnp.sum(sea.velocity(p, t)) + jnp.sum(sea.acceleration(p, t))

    x = jnp.array([2.0, 7.0, 3.3, 0.3, 5.0, 12.0])
    assert_gradient(loss, x, h=1e-5, rtol=1e-5, modes_rtol=1e-9)
    assert jax.jit(jax.vmap(loss))(jnp.stack([x, 1.1 * x])).shape == (2,)


def test_bad_seas_are_refused():
    with pytest.raises(ValueError, match="the sea has no energy: all its amplitudes"):
        LinearWaves([0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="the sea has no energy: its significant heig"):
        irregular_waves(0.0, 8.0)
    with pytest.raises(ValueError, match="the sea has no energy: the wind blows at 0"):
        pierson_moskowitz(0.0)
    with pytest.raises(ValueError, match="one amplitude, frequency, phase and directi"):
        LinearWaves([1.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="water with waves needs the height of its"):
        Fluid(waves=regular_waves(1.0, 8.0))
    with pytest.raises(ValueError, match="a floating hull needs water with a surface"):
        Hydrostatics("hull", 1.0, (0, 0, 0), 1.0, (1.0, 1.0), fluid=Fluid())
    with pytest.raises(ValueError, match=r"volume must be above 0 m\^3, got 0"):
        Hydrostatics("hull", 0.0, (0, 0, 0), 1.0, (1.0, 1.0))
    assert eqx.is_array(regular_waves(1.0, 8.0).amplitude)
