"""Two shapes that touch, as a part."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._smooth import magnitude, norm
from .._types import Scalar, Vec3
from .._units import si
from ..kinematics import World
from ..part import AbstractPassivePart, Load, Response, Signals
from ..spatial import cross, identity_pose
from .friction import AbstractSurfaceFriction
from .normal import AbstractNormalLaw
from .pairs import touches
from .shapes import AbstractShape, AbstractSolid
from .touch import Touch


class Contact(AbstractPassivePart):
    """A solid on the frame `on`, and a shape on the frame `against`.

    **Arguments:**

    - `normal`, `friction`: laws; without the second nothing resists sliding.
    - `rolling`, `spinning`: lever arms, m: the torque against rolling, and against
      turning about the normal, per normal force.
    - `pull`: signal of a force on the solid besides its weight, for Karnopp's law.

    Outputs: the summed `force` on the solid and its `torque` about the world's origin,
    the normal forces of all points together as `pressing`, and the greatest `depth`.
    """

    on: str = eqx.field(static=True)
    shape: AbstractSolid
    against: str = eqx.field(static=True)
    surface: AbstractShape
    normal: AbstractNormalLaw
    friction: AbstractSurfaceFriction | None = None
    rolling: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    spinning: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    turn_width: Scalar = eqx.field(converter=si("rad/s", above=0.0), default=1e-3)
    pull: str = eqx.field(static=True, default="")

    def __check_init__(self):
        for name, kind, what in (
            ("shape", AbstractSolid, "solid"),
            ("surface", AbstractShape, "shape"),
            ("normal", AbstractNormalLaw, "law of the normal force"),
            ("friction", AbstractSurfaceFriction | None, "law of friction"),
        ):
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise ValueError(f"{name} is a {what}, not a {type(given).__name__}")

    def initial_state(self) -> dict[str, Array]:
        friction = self.friction
        if friction is None or not friction.bristles:
            return {}
        points = jax.eval_shape(
            lambda X: touches(self.shape, X, self.surface, X).depth, identity_pose()
        )
        shape = (*points.shape, friction.bristles)
        return {"bristles": jnp.zeros(shape), "stored": jnp.zeros(())}

    def touch(self, world: World) -> Touch:
        """Where the two are near each other."""
        poses = world.pose(self.on), world.pose(self.against)
        return touches(self.shape, poses[0], self.surface, poses[1])

    def _act(self, state: dict, world: World, signals: Signals) -> "_Action":
        touch = self.touch(world)
        velocity, turning = relative(world, self.on, self.against, touch)
        n, rate = touch.n, -jnp.sum(touch.n * velocity, 1)
        pressing = jax.vmap(self.normal.force)(touch.depth, rate)
        f, growth, storing = pressing[:, None] * n, {}, jnp.zeros(())
        if self.friction is not None:
            slide = velocity + rate[:, None] * n
            total = jnp.sum(pressing)
            share = pressing / jnp.where(total > 0, total, 1.0)
            pull = share_of_weight(world, self.on, self.pull, signals, n)
            pull = share[:, None] * pull
            bent = state.get("bristles", jnp.zeros((len(n), 0)))
            bent = bent - jnp.sum(bent * n, 1, keepdims=True) * n if state else bent
            grip = jax.vmap(self.friction.act)(slide, pressing, bent, pull)
            f = f + grip.force
            if state:
                storing = jnp.sum(grip.storing)
                growth = {"bristles": grip.rate, "stored": storing}
        about = jnp.sum(n * turning[None], 1)
        roll = turning[None] - about[:, None] * n
        rolled = roll / magnitude(norm(roll), self.turn_width)[:, None]
        spun = (about / magnitude(about, self.turn_width))[:, None] * n
        tau = -pressing[:, None] * (self.rolling * rolled + self.spinning * spun)
        spring = jax.vmap(jax.grad(self.normal.energy))(touch.depth)
        power = jnp.sum(f * velocity) + jnp.sum(tau, 0) @ turning
        loss = -power - spring @ rate - storing
        return _Action(touch, pressing, f, tau, growth, loss)

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t
        x = self._act(state, world, signals)
        on, against = (world.mechanism.frame(k).body for k in (self.on, self.against))
        middle = jnp.mean(x.touch.p, 0)
        f = jnp.sum(x.f, 0)
        tau = jnp.sum(cross(x.touch.p - middle[None], x.f) + x.tau, 0)
        outputs = {
            "force": f,
            "torque": tau + cross(middle, f),
            "pressing": jnp.sum(x.pressing),
            "depth": jnp.max(x.touch.depth),
        }
        return Response(x.growth, (Load(on, against, middle, f, tau),), outputs)

    def energy(self, state: dict, world: World) -> Scalar:
        elastic = jnp.sum(jax.vmap(self.normal.energy)(self.touch(world).depth))
        return elastic + state["stored"] if state else elastic

    def power_loss(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        del t
        return self._act(state, world, signals).loss


class _Action(eqx.Module):
    touch: Touch
    pressing: Float[Array, " k"]
    f: Float[Array, "k 3"]
    tau: Float[Array, "k 3"]
    growth: dict[str, Array]
    loss: Scalar


def relative(
    world: World, on: str, against: str, touch: Touch
) -> tuple[Float[Array, "k 3"], Vec3]:
    """Velocity of the solid's points past the surface, and how fast it turns there."""
    velocity, turning = jnp.zeros_like(touch.p), jnp.zeros(3, touch.p.dtype)
    for frame, sign in ((on, 1.0), (against, -1.0)):
        V, p = world.twist(frame), world.pose(frame).p
        moved = V[None, 3:] + cross(V[None, :3], touch.p - p[None])
        velocity, turning = velocity + sign * moved, turning + sign * V[:3]
    return velocity, turning


def share_of_weight(
    world: World, on: str, pull: str, signals: Signals, n: Float[Array, "k 3"]
) -> Float[Array, "k 3"]:
    """A body's weight, and what a signal adds, along a surface."""
    b = world.mechanism.index(world.mechanism.frame(on).body)
    force = world.m[b] * world.gravity_W
    force = force + signals[pull] if pull else force
    return force[None] - (n @ force)[:, None] * n
