"""Water, current and what they do to bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.marine.water import Buoyancy, Drag, Fluid
from djdyn.parts import JointForce

from ..parts.test_parts import ledgers


G, RHO = 9.81, 1025.0
RADIUS = 0.5
VOLUME = 4 / 3 * np.pi * RADIUS**3
ADDED = np.diag([0, 0, 0, 1, 1, 1]) * RHO * VOLUME / 2  # of a sphere


def ball(mass: float, parts: dict, A_B=None) -> djdyn.System:
    inertia = 0.4 * mass * RADIUS**2 * np.eye(3)
    body = djdyn.Body("ball", "world", djdyn.Free(), mass, I_BC=inertia, A_B=A_B)
    return djdyn.System(djdyn.Mechanism((body,)), parts)


@eqx.filter_jit
def acceleration(system: djdyn.System, p, v):
    y = system.initial_state()
    y = djdyn.State(y.q.at[:3].set(p), y.v.at[3:].set(v), y.parts)
    return system.derivative(0.0, y).v


def test_a_sphere_rises_at_the_textbook_acceleration():
    r"""$(\rho V - m)g/(m + \rho V/2)$, and ends at $\sqrt{2(\rho V-m)g/\rho C_dA}$."""
    mass, area = 300.0, 0.47 * np.pi * RADIUS**2
    parts = {"lift": Buoyancy("ball", VOLUME), "drag": Drag("ball", area)}
    system = ball(mass, parts, ADDED)
    push = (RHO * VOLUME - mass) * G
    found = acceleration(system, jnp.zeros(3), jnp.zeros(3))
    assert jnp.allclose(found[5], push / (mass + RHO * VOLUME / 2))
    end = jnp.array([0.0, 0.0, np.sqrt(2 * push / (RHO * area))])
    assert jnp.allclose(acceleration(system, jnp.zeros(3), end), 0.0, atol=1e-12)


def test_a_floating_sphere_bobs_at_its_frequency():
    r"""Half submerged, $\omega^2 = \rho g\pi R^2/(m + A)$; its lift is exact."""
    surface = Fluid(surface=2.0, air_density=0.0)
    mass = RHO * VOLUME / 2
    lift = Buoyancy("ball", VOLUME, surface, extent=2 * RADIUS)
    system = ball(mass, {"lift": lift}, ADDED)
    height = lambda z: acceleration(system, jnp.array([0.0, 0, 2.0]) + z, jnp.zeros(3))
    slope = jax.jacfwd(lambda z: height(z * jnp.array([0.0, 0, 1.0]))[5])(0.0)
    waterplane = RHO * G * np.pi * RADIUS**2
    assert jnp.allclose(height(jnp.zeros(3)), 0.0, atol=1e-12)
    assert jnp.allclose(slope, -waterplane / (mass + RHO * VOLUME / 2))
    depth = 0.3  # of a spherical cap: V = pi d^2 (R - d/3)
    cap = np.pi * depth**2 * (RADIUS - depth / 3)
    p_W = jnp.array([0.0, 0.0, 2.0 + RADIUS - depth])
    assert jnp.allclose(surface.density(p_W, jnp.array(2 * RADIUS)) * VOLUME, RHO * cap)


def test_munks_moment_in_still_water():
    r"""A body that moves askew feels $(A_{11} - A_{22})\,u_1u_2$ about z."""
    A_B = np.diag([0, 0, 0, 100.0, 400.0, 400.0])
    system = ball(300.0, {}, A_B)
    found = acceleration(system, jnp.zeros(3), jnp.array([2.0, 1.0, 0.0]))
    assert jnp.allclose(found[2], (100.0 - 400.0) * 2.0 * 1.0 / (0.4 * 300 * RADIUS**2))


def test_a_profile_is_linear_between_its_heights_and_constant_beyond():
    heights, speeds = [-50.0, -20.0, 0.0], [[0.1, 0, 0], [0.4, 0.2, 0], [1.0, 0, 0]]
    fluid = Fluid(heights=heights, currents=speeds, corner=0.5)
    at = jax.jit(
        jax.vmap(lambda z: fluid.velocity(z * jnp.array([0.0, 0, 1]), jnp.zeros(())))
    )
    z = np.array([-99.0, -50.6, -40.0, -20.6, -19.0, -7.0, -0.6, 3.0])
    for axis in range(2):
        wanted = np.interp(z, heights, np.array(speeds)[:, axis])
        assert np.allclose(at(jnp.asarray(z))[:, axis], wanted, rtol=1e-12)
    corner = at(jnp.array([-20.0]))[0, 0]
    assert jnp.allclose(corner, 0.4, atol=0.5 / 4 * abs(0.6 / 20 - 0.3 / 30) * 1.001)


def test_a_current_carries_a_body_along():
    """The ledger closes while the current works on it, and it ends at its speed."""
    fluid = Fluid(1000.0, [-10.0, 10.0], [[0.0, 0, 0], [2.0, 0, 0]])
    parts = {
        "lift": Buoyancy("ball", 0.3, fluid),
        "drag": Drag("ball", [0.5, 0.6, 0.7], [0.1, 0.2, 0.3], fluid),
    }
    system = ball(300.0, parts)
    y0 = system.initial_state(v={"ball": [0.2, 0.1, 0.3, 0.0, 0.5, 0.0]})
    found = djdyn.simulate(system, 60.0, y0, ledger=True, saveat=61)
    assert jnp.max(jnp.abs(djdyn.energy_balance(system, found))) < 1e-4
    assert jnp.allclose(found.v("ball")[-1, 3], 1.0, atol=0.1)
    assert jnp.all(jnp.diff(found.work[:, 1]) >= 0)


def test_ledger_and_gradients_at_the_surface_and_at_rest():
    """Half submerged at no speed through the water: all derivatives are finite."""
    fluid = Fluid(surface=0.0, currents=[[0.3, 0.0, 0.0]], surface_width=0.2)
    parts = {
        "lift": Buoyancy("ball", VOLUME, fluid, 2 * RADIUS),
        "drag": Drag("ball", 0.4, 0.1, fluid, 2 * RADIUS),
        "small": Drag("ball", 0.1, 0.1, fluid),
        "push": JointForce("ball", [0.0, 0, 0, 5.0, 0, 0]),
    }
    system = ball(200.0, parts)
    with_flow = jnp.array([0.3, 0.0, 0.0])

    def pushed(x):
        return acceleration(system, jnp.append(jnp.zeros(2), x[0]), with_flow + x[1:])

    x, h = jnp.zeros(4), 1e-6
    reverse, forward = jax.jacrev(pushed)(x), jax.jacfwd(pushed)(x)
    up, down = (jax.vmap(pushed)(x[None] + s * h * jnp.eye(4)) for s in (1, -1))
    assert jnp.allclose(reverse, forward, rtol=1e-12, atol=1e-12)
    assert jnp.allclose(reverse, (up - down).T / (2 * h), atol=1e-5)
    y = system.initial_state(
        q={"ball": [0.1, 0.2, 0.05, 0.9, 0.1, -0.3, 0.2]},
        v={"ball": [0.2, -0.4, 0.3, 0.9, 0.5, -0.7]},
    )
    for name, (gained, expected, loss) in ledgers(system, jnp.array(0.0), y).items():
        assert jnp.allclose(gained, expected, rtol=1e-10, atol=1e-9), name
        assert loss >= 0, name


def test_bad_fluids_are_refused():
    with pytest.raises(
        ValueError, match="heights of a current's profile must increase"
    ):
        Fluid(heights=[0.0, -1.0], currents=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="one velocity of three components a height"):
        Fluid(currents=[1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"water_density must be at least 0 kg/m\^3"):
        Fluid(-1.0)
