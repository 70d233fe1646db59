"""Gradients through impacts with default settings, against differences of fine runs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.contact import (
    Contact,
    Coulomb,
    HalfSpace,
    HuntCrossley,
    KelvinVoigt,
    Sphere,
    dissipation,
    hertz_stiffness,
)


MASS, RADIUS, HEIGHT, MU = 0.62, 0.07, 0.83, 0.3
FALL = float(np.sqrt(2 * 9.81 * (HEIGHT - RADIUS)))
LOSS = dissipation(0.7, FALL)
LAWS = {
    "kelvin-voigt": KelvinVoigt(1e5, 50.0),
    "hunt-crossley 1": HuntCrossley(1e5, LOSS, 1.0),
    "hunt-crossley 1.5": HuntCrossley(1e6, LOSS, 1.5),
    "hertz": HuntCrossley(hertz_stiffness((5e6, 2e11), (0.49, 0.3), RADIUS), 0.05, 1.5),
}
DAMPING = {"kelvin-voigt": "damping"}


def ball(law, friction=None) -> djdyn.System:
    inertia = 0.4 * MASS * RADIUS**2 * jnp.eye(3)
    body = djdyn.Body("ball", "world", djdyn.Free(), mass=MASS, I_BC=inertia)
    floor = Contact("ball", Sphere(RADIUS), "world", HalfSpace(), law, friction)
    return djdyn.System(djdyn.Mechanism((body,)), {"floor": floor})


def end(system, name, theta, spin, **how):
    """x and z at 1.1 s, of a ball thrown from a height."""
    damping = DAMPING.get(name, "dissipation")
    values = {
        "floor.normal.stiffness": theta[1],
        f"floor.normal.{damping}": theta[2],
    }
    if len(theta) > 3:
        values["floor.friction.mu"] = theta[3]
    here = djdyn.with_parameters(system, values)
    q = jnp.array([0.0, 0, 0, 1, 0, 0, 0]).at[2].set(theta[0])
    v = jnp.array([0.0, spin, 0, 1, 0, 0])
    run = djdyn.simulate(here, 1.1, here.initial_state(q=q, v=v), saveat=[1.1], **how)
    return run.y.q[-1, jnp.array([0, 2])]


def ball_slopes(name, spin, friction):
    """Differences of fine runs, and gradients forward and in reverse.

    Rows are x and z; columns are changes by the whole size of each parameter.
    """
    law = LAWS[name]
    damping = getattr(law, DAMPING.get(name, "dissipation"))
    theta = jnp.stack([jnp.array(HEIGHT), law.stiffness, damping])
    if friction is not None:
        theta = jnp.append(theta, MU)
    system = ball(law, friction)
    how = {"max_steps": 100_000}
    run = lambda x, **more: end(system, name, x * theta, spin, **how, **more)

    @eqx.filter_jit
    def tangent(x, d, tol):
        at = lambda x: run(x, adjoint="forward", rtol=tol, atol=tol)
        return jax.jvp(at, (x,), (d,))

    one, slopes = jnp.ones_like(theta), []
    for e in jnp.eye(len(theta)):
        fine = lambda h, e=e: tangent(one + h * e, e, jnp.array(1e-11))[0]
        wide, narrow = ((fine(h) - fine(-h)) / (2 * h) for h in (1e-3, 5e-4))
        slopes.append((4 * narrow - wide) / 3)
    differences = jnp.stack(slopes, 1)
    default = jnp.array(1e-8)
    forward = [tangent(one, e, default)[1] for e in jnp.eye(len(theta))]
    forward = jnp.stack(forward, 1)
    reverse = eqx.filter_jit(jax.jacrev(run))(one)
    return differences, forward, reverse


def errors(name, spin, friction):
    """Relative errors of gradients in both modes, those near zero left out."""
    differences, forward, reverse = ball_slopes(name, spin, friction)
    there = jnp.abs(differences) > 1e-4  # metres for a change by its whole size
    gap = lambda g: jnp.max(jnp.abs(g / differences - 1), where=there, initial=0.0)
    return float(gap(forward)), float(gap(reverse))


def test_a_bounce_with_default_settings():
    """Without friction: to height, stiffness and damping, in both modes."""
    assert max(errors("kelvin-voigt", 0.0, None)) < 0.01


@pytest.mark.slow
def test_a_thrown_ball_with_friction_and_spin():
    """Sliding turns to sticking inside the impact."""
    assert max(errors("kelvin-voigt", 10.0, Coulomb(MU))) < 0.01


def test_fixed_steps_that_skip_impacts_warn():
    system = ball(LAWS["hunt-crossley 1"])
    loss = lambda h: end(
        system, "", jnp.stack([h, 1e5, 0.1]), 0.0, solver="rk4", dt=2e-3
    )[1]
    with pytest.warns(
        UserWarning, match=r"impacts of part 'floor' that last 3.9 steps"
    ):
        jax.block_until_ready(jax.grad(loss)(jnp.array(HEIGHT)))
        jax.effects_barrier()


def test_ros2_refuses_stiff_contact():
    system = ball(LAWS["hunt-crossley 1"])
    y0 = system.initial_state(q=jnp.array([0.0, 0, 0.83, 1, 0, 0, 0]))
    with pytest.raises(ValueError, match="contact of part 'floor' explicitly"):
        djdyn.simulate(system, 1.0, y0, solver="ros2", dt=0.01)


def test_expected_depth():
    """Hertz' sphere of 1 kg at 0.5 m/s with 1e6 N/m^1.5: 2.5 mm."""
    one, speed = jnp.ones(()), jnp.array(0.5)
    assert jnp.allclose(HuntCrossley(1e6).expected_depth(one, speed), 2.5e-3)
    depth = KelvinVoigt(1e4).expected_depth(one, speed)
    assert jnp.allclose(depth, 0.5 * np.sqrt(1 / 1e4))
