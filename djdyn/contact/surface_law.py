"""What parts that touch do at their points: pressing, friction, rolling, spinning."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._smooth import magnitude, norm
from ..multibody.kinematics import World
from ..multibody.spatial import Pose, cross
from ..parts.base import Signals
from ..typing import Scalar, Vec3, Vec6
from .contact_points import ContactPoints


class Action(eqx.Module):
    """Forces and torques at points, growth of their state, and what is lost."""

    touch: ContactPoints
    normal_force: Float[Array, " k"]
    f: Float[Array, "k 3"]
    tau: Float[Array, "k 3"]
    growth: dict[str, Array]
    loss: Scalar


def act(
    part: Any,
    touch: ContactPoints,
    velocity: Float[Array, "k 3"],
    turning: Vec3,
    pull: Float[Array, "k 3"],
    state: dict[str, Array],
) -> Action:
    """By the laws and arms of a part, where points pass each other with `velocity`."""
    n, rate = touch.n, -jnp.sum(touch.n * velocity, 1)
    normal_force = jax.vmap(part.normal.force)(touch.depth, rate)
    f, growth, storing = normal_force[:, None] * n, {}, jnp.zeros(())
    about = n @ turning
    roll = turning[None] - about[:, None] * n
    rolled = roll / magnitude(norm(roll), part.turn_width)[:, None]
    twist = -part.spinning * normal_force * about / magnitude(about, part.turn_width)
    if part.friction is not None:
        slide = velocity + rate[:, None] * n
        total = jnp.sum(normal_force)
        share = normal_force / jnp.where(total > 0, total, 1.0)
        bent = state.get("bristles", jnp.zeros((len(n), 0)))
        bent = bent - jnp.sum(bent * n, 1, keepdims=True) * n if state else bent
        law = jax.vmap(part.friction.act)
        grip = law(slide, normal_force, bent, share[:, None] * pull)
        f = f + grip.force
        if state:  # bristles about the normal bend where those at an arm's end do
            arm = part.spinning / part.friction.mu
            x = jnp.array([[1.0, 0.0, 0.0]])
            wound = state["wound"][:, None] * x
            turn = law(arm * about[:, None] * x, normal_force, wound, 0 * wound)
            twist = arm * turn.force[:, 0]
            storing = jnp.sum(grip.storing + turn.storing)
            growth = {"bristles": grip.rate, "wound": turn.rate[:, 0]}
            growth["stored"] = storing
    tau = twist[:, None] * n - part.rolling * normal_force[:, None] * rolled
    spring = jax.vmap(jax.grad(part.normal.energy))(touch.depth)
    power = jnp.sum(f * velocity) + jnp.sum(tau, 0) @ turning
    loss = -power - spring @ rate - storing
    return Action(touch, normal_force, f, tau, growth, loss)


def passing(
    p: Float[Array, "k 3"], X: tuple[Pose, Pose], V: tuple[Vec6, Vec6]
) -> tuple[Float[Array, "k 3"], Vec3]:
    """Velocity of points of one frame past those of another, and how fast it turns."""
    moved = lambda X, V: V[None, 3:] + cross(V[None, :3], p - X.p[None])
    return moved(X[0], V[0]) - moved(X[1], V[1]), V[0][:3] - V[1][:3]


def relative(
    world: World, on: str, against: str, touch: ContactPoints
) -> tuple[Float[Array, "k 3"], Vec3]:
    """Velocity of the solid's points past the surface, and how fast it turns there."""
    X = world.pose(on), world.pose(against)
    return passing(touch.p, X, (world.twist(on), world.twist(against)))


def share_of_weight(
    world: World, on: str, pull: str, signals: Signals, n: Float[Array, "k 3"]
) -> Float[Array, "k 3"]:
    """A body's weight, and what a signal adds, along a surface."""
    b = world.mechanism.index(world.mechanism.frame(on).body)
    force = world.m[b] * world.gravity_W
    force = force + signals[pull] if pull else force
    return force[None] - (n @ force)[:, None] * n
