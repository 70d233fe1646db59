"""Contact of two shapes, as a part."""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..multibody.kinematics import World
from ..multibody.spatial import cross, identity_pose
from ..parts.base import AbstractPassivePart, Response, Signals
from ..parts.loads import Load
from ..smooth import norm
from ..typing import Scalar, si
from .contact_points import ContactPoints
from .detection import find_contacts
from .friction import AbstractSurfaceFriction
from .normal import AbstractNormalLaw
from .shapes import AbstractShape, AbstractSolid
from .surface_law import (
    ContactForces,
    SurfaceLaw,
    duration,
    reduced_mass,
    slip,
    tangential_pull,
)


class Contact(AbstractPassivePart):
    """Compliant contact of a solid on the frame `on` with a shape on `against`.

    **Arguments:**

    - `normal`, `friction`: laws; without the second nothing resists sliding.
    - `rolling`, `spinning`: lever arms, m: the torque against rolling, and against
      turning about the normal, per normal force. With bristles the latter also acts
      at rest.
    - `turn_width`: angular speed below which both torques are regularised.
    - `pull`: signal of a force on the solid besides its weight, for Karnopp's law.

    Outputs: the summed `force` on the solid and its `torque` about the world's origin,
    the sum of the normal forces of all points as `normal_force`, and the greatest
    `depth`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "force": "N",
        "torque": "N m",
        "normal_force": "N",
        "depth": "m",
        "stored": "J",
    }
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
            lambda X: find_contacts(self.shape, X, self.surface, X).depth,
            identity_pose(),
        )
        bristles = jnp.zeros((*points.shape, friction.bristles))
        wound = jnp.zeros(points.shape)
        return {"bristles": bristles, "wound": wound, "stored": jnp.zeros(())}

    @property
    def law(self) -> SurfaceLaw:
        """The law of the two surfaces, from the fields of this part."""
        return SurfaceLaw(
            self.normal, self.friction, self.rolling, self.spinning, self.turn_width
        )

    def contact_points(self, world: World) -> ContactPoints:
        """Return the points at which the two shapes may touch."""
        poses = world.pose(self.on), world.pose(self.against)
        return find_contacts(self.shape, poses[0], self.surface, poses[1])

    def contact_forces(
        self, state: dict, world: World, signals: Signals
    ) -> ContactForces:
        """Return the forces on the solid at all points."""
        points = self.contact_points(world)
        motion = slip(world, self.on, self.against, points)
        pull = tangential_pull(world, self.on, self.pull, signals, points.n)
        return self.law.contact_forces(points, *motion, pull, state)

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t
        x = self.contact_forces(state, world, signals)
        on, against = (world.mechanism.frame(k).body for k in (self.on, self.against))
        middle = jnp.mean(x.points.p, 0)
        f = jnp.sum(x.f, 0)
        tau = jnp.sum(cross(x.points.p - middle[None], x.f) + x.tau, 0)
        outputs = {
            "force": f,
            "torque": tau + cross(middle, f),
            "normal_force": jnp.sum(x.normal_force),
            "depth": jnp.max(x.points.depth),
        }
        return Response(x.rate, (Load(on, against, middle, f, tau),), outputs)

    def impact_time(self, world: World) -> Scalar:
        """Return about how long an impact at the present speed takes, s."""
        points = self.contact_points(world)
        velocity, _ = slip(world, self.on, self.against, points)
        rows = [
            world.mechanism.index(world.mechanism.frame(k).body)
            for k in (self.on, self.against)
        ]
        mass = reduced_mass(*(world.m[row] for row in rows))
        return duration(self.normal, mass, points, velocity, norm(world.gravity_W))

    def energy(self, state: dict, world: World) -> Scalar:
        elastic = jnp.sum(
            jax.vmap(self.normal.energy)(self.contact_points(world).depth)
        )
        return elastic + state["stored"] if state else elastic

    def power_loss(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        del t
        return self.contact_forces(state, world, signals).loss
