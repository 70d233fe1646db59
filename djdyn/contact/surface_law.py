"""The law of a pair of surfaces: normal force, friction, rolling and spinning.

The parts (`Contact`, `ContactGroup`) find the points of contact and the velocities
there, and put the forces of a `SurfaceLaw` on the bodies.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import Pose, cross
from ..parts.base import Signals
from ..smooth import magnitude, norm
from ..typing import Scalar, Vec3, Vec6
from .contact_points import ContactPoints
from .friction import AbstractSurfaceFriction
from .normal import AbstractNormalLaw


class ContactForces(eqx.Module):
    """Forces on the first body at points of contact.

    `rate` is the derivative of the bristle state, `loss` the dissipated power.
    """

    points: ContactPoints
    normal_force: Float[Array, " k"]
    f: Float[Array, "k 3"]
    tau: Float[Array, "k 3"]
    rate: dict[str, Array]
    loss: Scalar


class SurfaceLaw(eqx.Module):
    """Everything that decides the forces between two surfaces, but not their shapes.

    A part builds it from its own fields, which carry the units and the checks.

    **Arguments:**

    - `normal`: the law of the normal force.
    - `friction`: the law of sliding friction, or None for smooth surfaces.
    - `rolling`, `spinning`: lever arms of the resisting torques, m.
    - `turn_width`: angular speed below which these torques are regularised, rad/s.
    """

    normal: AbstractNormalLaw
    friction: AbstractSurfaceFriction | None
    rolling: Scalar
    spinning: Scalar
    turn_width: Scalar

    def contact_forces(
        self,
        points: ContactPoints,
        velocity: Float[Array, "k 3"],
        angular_velocity: Vec3,
        pull: Float[Array, "k 3"],
        state: dict[str, Array],
    ) -> ContactForces:
        """Return the forces at all points of one pair of bodies.

        **Arguments:**

        - `velocity`, `angular_velocity`: of the first body relative to the second.
        - `pull`: other forces along the surface, for Karnopp's law.
        - `state`: the bristles of every point; empty for laws without bristles.
        """
        n, rate = points.n, -jnp.sum(points.n * velocity, 1)
        normal_force = jax.vmap(self.normal.force)(points.depth, rate)
        f, state_rate, stored_power = normal_force[:, None] * n, {}, jnp.zeros(())
        width, spin = self.turn_width, n @ angular_velocity
        roll = angular_velocity[None] - spin[:, None] * n
        roll_direction = roll / magnitude(norm(roll), width)[:, None]
        spin_torque = -self.spinning * normal_force * spin / magnitude(spin, width)
        if self.friction is not None:
            sliding = velocity + rate[:, None] * n
            total = jnp.sum(normal_force)
            share = normal_force / jnp.where(total > 0, total, 1.0)
            z = state.get("bristles", jnp.zeros((len(n), 0)))
            z = z - jnp.sum(z * n, 1, keepdims=True) * n if state else z
            law = jax.vmap(self.friction.evaluate)
            found = law(sliding, normal_force, z, share[:, None] * pull)
            f = f + found.force
            if state:  # spinning bends the bristles at the end of a lever arm
                arm = self.spinning / self.friction.mu
                x = jnp.array([[1.0, 0.0, 0.0]])
                wound = state["wound"][:, None] * x
                turned = law(arm * spin[:, None] * x, normal_force, wound, 0 * wound)
                spin_torque = arm * turned.force[:, 0]
                stored_power = jnp.sum(found.stored_power + turned.stored_power)
                state_rate = {"bristles": found.rate, "wound": turned.rate[:, 0]}
                state_rate["stored"] = stored_power
        arm = self.rolling
        tau = spin_torque[:, None] * n - arm * normal_force[:, None] * roll_direction
        spring = jax.vmap(jax.grad(self.normal.energy))(points.depth)
        power = jnp.sum(f * velocity) + jnp.sum(tau, 0) @ angular_velocity
        loss = -power - spring @ rate - stored_power
        return ContactForces(points, normal_force, f, tau, state_rate, loss)


SLOWEST_IMPACT = 1e-3  # m/s


def duration(
    normal: AbstractNormalLaw,
    mass: Scalar,
    points: ContactPoints,
    velocity: Float[Array, "k 3"],
    g: Scalar,
) -> Scalar:
    """Return about how long an impact of a mass takes, from its speed where it touches.

    It falls from its present gap to the surface, with the acceleration `g`. The time is
    exact for a linear spring, and 7 % too long for Hertz' law.
    """
    gap = jnp.maximum(-jnp.max(points.depth), 0.0)
    rate = jnp.max(jnp.abs(jnp.sum(points.n * velocity, 1)))
    speed = jnp.sqrt(rate**2 + 2 * g * gap + SLOWEST_IMPACT**2)
    return jnp.pi * normal.expected_depth(mass, speed) / speed


def reduced_mass(m: Float[Array, "..."], n: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the reduced mass of two bodies; one without mass, the world, is held."""
    inverse = lambda x: jnp.where(x > 0, 1 / jnp.where(x > 0, x, 1.0), 0.0)
    total = inverse(m) + inverse(n)
    return jnp.where(total > 0, 1 / jnp.where(total > 0, total, 1.0), jnp.inf)


def relative_velocity(
    p: Float[Array, "k 3"], X: tuple[Pose, Pose], V: tuple[Vec6, Vec6]
) -> tuple[Float[Array, "k 3"], Vec3]:
    """Return velocities of one frame at points, and its angular velocity, relative to
    another frame, from the poses and twists of both.
    """
    velocity = lambda X, V: V[None, 3:] + cross(V[None, :3], p - X.p[None])
    return velocity(X[0], V[0]) - velocity(X[1], V[1]), V[0][:3] - V[1][:3]


def slip(
    world: World, on: str, against: str, points: ContactPoints
) -> tuple[Float[Array, "k 3"], Vec3]:
    """Return `relative_velocity` of the frame `on` to `against` at contact points."""
    X = world.pose(on), world.pose(against)
    return relative_velocity(points.p, X, (world.twist(on), world.twist(against)))


def tangential_pull(
    world: World, on: str, pull: str, signals: Signals, n: Float[Array, "k 3"]
) -> Float[Array, "k 3"]:
    """Return what pulls along a surface: a body's weight plus the force of a signal."""
    b = world.mechanism.index(world.mechanism.frame(on).body)
    force = world.m[b] * world.gravity_W
    force = force + signals[pull] if pull else force
    return force[None] - (n @ force)[:, None] * n
