"""Friction where a ball touches the surface that its joint holds it on."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody import reactions
from ..multibody.constraints import AbstractConstraint
from ..multibody.kinematics import World
from ..multibody.point_contact_joints import AbstractPointContact
from ..multibody.spatial import shift_twist
from ..smooth import magnitude, norm
from ..typing import Scalar, Vec3, optional, si
from .base import AbstractPassivePart, Response, Signals
from .loads import Load


class JointPress(AbstractConstraint):
    """The normal force that a joint carries, made known so that friction may use it."""

    load: Load
    drag: Load | None
    slack: Scalar
    joint: str = eqx.field(static=True)
    normal_B: Vec3  # out of the ball, in its axes
    one_sided: bool = eqx.field(static=True, default=False)

    def residual(
        self,
        world: World,
        v_dot: Float[Array, " nv"],
        F_WB: Float[Array, "bodies 6"],
        size: Scalar,
    ) -> Scalar:
        push = jnp.concatenate([jnp.zeros_like(self.normal_B), -self.normal_B])[None]
        carried = reactions.constraint_force(world, v_dot, self.joint, push, F_WB)
        return size - carried[0]


class PointContactFriction(AbstractPassivePart):
    r"""Friction in a `PointContact` or `PlanarPointContact`.

    With $v$ the velocity of the ball's material past the surface where they touch and
    $\omega$ that of its turning, force and torque on the ball are

    $$f = -\Bigl(\frac{F_c + \mu|N|}{\sqrt{v^2 + w^2}} + c\Bigr)v, \qquad
      \tau = -c_\omega\,\omega .$$

    $N$ is the joint's own reaction along the normal, solved for together with the
    accelerations where `mu` is given; it is the signal `normal_force`. Below the speed
    `width` a ball that should roll creeps.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"slip": "m/s", "normal_force": "N"}
    joint: str = eqx.field(static=True)
    coulomb: Scalar = eqx.field(converter=si("N", at_least=0.0), default=0.0)
    viscous: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    turning: Scalar = eqx.field(converter=si("N m s/rad", at_least=0.0), default=0.0)
    mu: Scalar | None = eqx.field(
        converter=optional(si("1", at_least=0.0)), default=None
    )
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    slack: Scalar = eqx.field(converter=si("N", above=0.0), default=1e-3)

    def initial_state(self) -> dict:
        return {}

    def slip(self, world: World) -> tuple[Vec3, Vec3, Vec3, Vec3]:
        """Point of contact, normal out of the ball, slip velocity, turning."""
        mechanism = world.mechanism
        body = mechanism.bodies[mechanism.joint_index(self.joint) - 1]
        if not isinstance(body.joint, AbstractPointContact):
            raise ValueError(
                f"joint {self.joint!r} is a {type(body.joint).__name__}, not a point "
                "contact"
            )
        X_WA = world.pose(body.parent) @ body.X_PJ
        X_WA = X_WA @ body.joint.contact(world.joint(self.joint)[0])
        ball, base = (
            shift_twist(world.twist(name), X_WA.p - world.pose(name).p)
            for name in (body.name, body.parent)
        )
        V = ball - base
        return X_WA.p, X_WA.R[:, 0], V[3:], V[:3]

    def _bodies(self, world: World) -> tuple[str, str]:
        body = world.mechanism.bodies[world.mechanism.joint_index(self.joint) - 1]
        return body.name, body.parent

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        p, n, v, w = self.slip(world)
        on, against = self._bodies(world)
        against_slip = -v / magnitude(norm(v), self.width)
        f = self.coulomb * against_slip - self.viscous * v
        load = Load(on, against, p, f, -self.turning * w)
        outputs: dict[str, Array] = {"slip": norm(v)}
        if self.mu is None:
            return Response(state, (load,), outputs)
        still = jnp.zeros_like(n)
        drag = Load(on, against, p, self.mu * against_slip, still)
        n_B = n @ world.pose(on).R
        nothing = Load(on, against, p, still, still)  # the joint itself holds
        press = JointPress(
            load=nothing, drag=drag, slack=self.slack, joint=self.joint, normal_B=n_B
        )
        return Response(state, (load,), outputs, constraints=(press,))

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        """Losses except those of `mu`: the system counts the work of constraints."""
        del t, state, signals
        _, _, v, w = self.slip(world)
        dry = self.coulomb * (v @ v) / magnitude(norm(v), self.width)
        return dry + self.viscous * (v @ v) + self.turning * (w @ w)
