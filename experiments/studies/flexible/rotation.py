"""Beams that turn: one that is spun up, and blades at constant speed.

Simo and Vu-Quoc, *On the dynamics of flexible beams under large overall motions*
(1986), give the beam that is spun up. Hodges and Rutkowski, *Free-vibration analysis of
rotating beams by a variable-order finite element method* (1981), give frequencies of
blades.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.multibody.flexible import (
    Beam,
    FlexibleBody,
    Piece,
    Section,
    reduced_mechanism,
)


LENGTH, EA, GA, EI = 10.0, 2.8e7, 1e7, 1.4e4  # m, N, N, N m^2
DENSITY, TURNING = 1.2, 6e-4  # kg/m, kg m
RISE, SPEED, SPAN = 15.0, 6.0, 30.0  # s, rad/s, s
PEAK, PEAK_TIME = -0.574367, 6.762  # m, s: linear model with centrifugal stiffening
WAVE = SPEED * np.sqrt(DENSITY / EA)  # 1/m
STRETCH = np.tan(WAVE * LENGTH) / WAVE - LENGTH  # m
AT_SPEED = (4.5128, 27.635, 71.03)  # rad/s, in the plane of rotation, at 6 rad/s
BLADES = {  # speed: two frequencies across the plane, both over sqrt(EI / rho A L^4)
    0.0: (3.51602, 22.0345),
    2.0: (4.13732, 22.6149),
    6.0: (7.36037, 26.8091),
    12.0: (13.1702, 37.6031),
}


class SpinUp(eqx.Module):
    """The turn about z: the speed rises smoothly for 15 s, to 6 rad/s."""

    def __call__(self, t: Array) -> djdyn.Pose:
        a = 2 * np.pi / RISE
        rising = SPEED / RISE * (t**2 / 2 + (jnp.cos(a * t) - 1) / a**2)
        angle = jnp.where(t < RISE, rising, SPEED * (t - RISE / 2))
        c, s, o = jnp.cos(angle), jnp.sin(angle), jnp.zeros_like(t)
        rows = [jnp.stack([c, -s, o]), jnp.stack([s, c, o])]
        return djdyn.Pose(jnp.stack([*rows, jnp.stack([o, o, o + 1])]), jnp.zeros(3))


def beam(elements: int = 20) -> Beam:
    """Return the beam that is spun up."""
    ratio = EI / EA
    section = Section(1.0, ratio, ratio, 2 * ratio, 1.0, 1.0)
    return Beam(
        (Piece(LENGTH, section, elements=elements),), EA, GA, DENSITY, "timoshenko"
    )


def spin_up(stiffening: bool = True) -> djdyn.Trajectory:
    """Return the motion of the beam, whose tip is its one attachment."""
    arm = FlexibleBody(
        "arm", "world", djdyn.Prescribed(SpinUp()), beam(), {"xy": 4, "axial": 0},
        stress_stiffening=stiffening,
    )  # fmt: skip
    system = djdyn.System(djdyn.Mechanism((arm,), gravity_W=(0.0, 0.0, 0.0)))
    lanes = jax.tree.map(lambda x: x[None], system.initial_state())
    run = djdyn.rollout(
        system, SPAN, lanes, solver="rk4", dt=1e-3, saveat=np.arange(3001) / 100
    )
    return run.lane(0)


def lag(run: djdyn.Trajectory) -> np.ndarray:
    """Return how far the tip stays behind the turning frame, m."""
    hub, tip = run.pose("arm"), run.pose("arm.tip")
    return np.asarray(jnp.einsum("ti,ti->t", tip.p - hub.p, hub.R[:, :, 1]))


def stretch(run: djdyn.Trajectory) -> float:
    """Return the mean elongation of the axis once the speed is constant, m."""
    arm = run.system.mechanism.bodies[0]
    assert isinstance(arm, FlexibleBody)
    along = arm.shape().nodes.Psi[0, :, 0]
    late = np.asarray(run.t) >= RISE
    return float(np.mean(np.asarray(run.q("arm.modes") @ along)[late]))


def frequencies(family: str, speeds: list[float], axis: int) -> np.ndarray:
    """Return the lowest three at speeds of rotation about an axis, rad/s."""
    bar = eqx.tree_at(lambda b: b.pieces[0].length, beam(20), jnp.asarray(LENGTH))
    bar = Beam(bar.pieces, EA, GA, DENSITY, rotary_inertia=False)
    joint = djdyn.Revolute(np.eye(3)[axis])
    blade = FlexibleBody("blade", "world", joint, bar, {family: 6}, method="vibration")
    m = reduced_mechanism(djdyn.Mechanism((blade,), gravity_W=(0.0, 0.0, 0.0)))

    @jax.jit
    def at(speed: Array) -> Array:
        v = jnp.zeros(m.nv).at[0].set(speed)
        force = lambda q: djdyn.inverse_dynamics(m, q, v, 0 * v)[1:]
        return jnp.sqrt(jnp.linalg.eigvalsh(jax.jacfwd(force)(m.q0())[:, 1:])[:3])

    return np.stack([at(jnp.asarray(speed)) for speed in speeds])
