"""The sea bed: heights, forces and gradients, also at touching; members in water."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.marine.current_grid import CurrentGrid
from djdyn.marine.member import MorisonMember
from djdyn.marine.sea_bed import SeaBed
from djdyn.marine.water import Fluid

from ..gradients import assert_gradient
from ..parts.test_parts import ledgers, machine, state


GRID: dict[str, Any] = dict(x=[0.0, 10.0, 20.0], y=[0.0, 5.0])
HEIGHT = np.array([[-10.0, -12.0], [-8.0, -9.0], [-11.0, -7.0]])
LAW: dict[str, Any] = dict(stiffness=1e4, damping=1e3, friction=0.4, slip_speed=0.1)
LAW["width"] = 0.01


def test_heights_are_bilinear_and_end_at_the_edge():
    bed = SeaBed(HEIGHT, **GRID, corner=1e-3)
    places = jnp.array([[5, 2, 0], [15, 4, 0], [-30, 5, 0], [40, 40, 0], [10, 0, 0.0]])
    found = jax.vmap(bed.level)(places)
    middle = HEIGHT[:2].mean(0) @ [0.6, 0.4], HEIGHT[1:].mean(0) @ [0.2, 0.8]
    wanted = [*middle, -12.0, -7.0, -8.0]
    assert np.allclose(found, wanted, atol=1e-3)


def test_an_area_at_rest_sinks_by_its_weight_over_the_stiffness():
    bed = SeaBed(-5.0, **LAW)
    f = bed.push(jnp.array([1.0, 2.0, -5.3]), jnp.array(0.2))
    assert np.allclose(f, [0, 0, 1e4 * 0.3 * 0.2], rtol=1e-12)
    slides = bed.resistance(
        jnp.array([1.0, 2.0, -5.3]), jnp.array([300.0, 0, -0.1]), jnp.array(0.2)
    )
    assert np.allclose(slides, [-0.4 * 600, 0, 1e3 * 0.1 * 0.2], rtol=1e-6)
    above = bed.push(jnp.array([0.0, 0, -4.9]), jnp.array(0.2))
    assert not above.any()


@pytest.mark.parametrize("depth", [0.0, 0.004, 0.3])
def test_gradients_are_right_also_at_touching_and_at_rest(depth):
    """All numbers of the law, at the very surface with no speed along the bed."""
    bed = SeaBed(HEIGHT, **GRID, **LAW)
    p = jnp.array([4.0, 2.0, 0.0])
    p = p.at[2].set(bed.level(p) - depth)

    def loss(bed):
        v = jnp.array([0.0, 0.0, -0.2])
        forces = bed.push(p, jnp.array(0.3)) + bed.resistance(p, v, jnp.array(0.3))
        return forces @ jnp.array([0.3, -0.5, 1.0])

    assert_gradient(loss, bed, h=1e-6, rtol=1e-6)


def test_bad_beds_are_said():
    with pytest.raises(ValueError, match="one height, or one at each point"):
        SeaBed(HEIGHT, x=[0.0, 1.0], y=[0.0, 1.0])
    with pytest.raises(ValueError, match="must increase"):
        SeaBed(HEIGHT, x=[0.0, 1.0, 1.0], y=[0.0, 1.0])


def test_currents_on_a_grid_are_linear_between_its_points():
    u = np.arange(2 * 1 * 2 * 2 * 3.0).reshape(2, 1, 2, 2, 3)
    grid = CurrentGrid([0.0, 4.0], [0.0], [-10.0, 0.0], [0.0, 2.0], u)
    water = Fluid(currents=[[0.5, 0, 0]], grid=grid)
    found = water.velocity(jnp.array([1.0, 9.0, -5.0]), jnp.array(0.5))
    wanted = (0.75 * u[0, 0] + 0.25 * u[1, 0]).mean(0)
    wanted = 0.75 * wanted[0] + 0.25 * wanted[1] + np.array([0.5, 0, 0])
    assert np.allclose(found, wanted, rtol=1e-12)


def member(bed: SeaBed | None = None, **more) -> MorisonMember:
    law = dict(normal_drag=1.1, end_drag=0.8, added_mass=1.0, end_added_mass=0.6)
    return MorisonMember("buoy", 1.4, 0.2, **law, ground=bed, **more)


def test_a_member_keeps_its_ledger_across_the_surface_and_on_the_bed():
    """It crosses the surface and presses on a sloping bed while it turns."""
    grid = dict(x=[-2.0, 3.0], y=[-2.0, 2.0])
    bed = SeaBed([[-1.0, 0.2], [0.8, 1.5]], **(LAW | {"width": 0.3}), **grid)
    water = Fluid(currents=[[0.3, 0.1, 0]], surface=0.8)
    system = djdyn.System(machine(), {"leg": member(bed, fluid=water, strips=2)})
    ledger = ledgers(system, jnp.array(0.4), state(system, 0.7))
    for name, (gained, expected, loss) in ledger.items():
        assert jnp.allclose(gained, expected, rtol=1e-10), name
        assert loss > 0, name


def test_a_buoyant_member_rises_with_the_water_it_carries():
    """a = g (rho V - m) / (m + C_a rho V) across its axis, for a horizontal one."""
    mass, V = 200.0, np.pi / 4 * 0.5**2 * 2
    leg = MorisonMember("rod", 2.0, 0.5, added_mass=1.0, strips=4)
    inertia = np.diag([mass * 2**2 / 12] * 2 + [mass * 0.5**2 / 8])
    rod = djdyn.Body("rod", "world", djdyn.Free(), mass, (0, 0, 1.0), inertia)
    system = djdyn.System(djdyn.Mechanism((rod,)), {"leg": leg})
    y = system.initial_state(q={"rod": [0, 0, -10, np.sqrt(0.5), 0, np.sqrt(0.5), 0]})
    now = eqx.filter_jit(system.at)(0.0, y)
    wet = 1025.0 * V
    wanted = 9.81 * (wet - mass) / (mass + wet)
    assert np.allclose(now.v_dot, [0, 0, 0, 0, 0, wanted], rtol=1e-12, atol=1e-10)
