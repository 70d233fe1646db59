r"""Contact by the volume that two solids share: Winkler foundations with dampers.

Two elastic foundations of depth $h$ in series press with

$$F = \frac{E_A E_B\,V}{h_B E_A + h_A E_B}
    + \frac{B_A B_B\,\dot V}{h_B B_A + h_A B_B}, \qquad F \ge 0,$$

along the area vector of its faces (Roy, Steinke and Nicoll, *Ship Mechanical Systems
API: Final Report*, 2014, eq. 87). Springs act at the centroid $c$ of the volume. The
dampers of all columns have the first moment $d(Vc)/dt$, not $\dot V c$: hence a torque
$\propto V\dot c \times n$ about $c$, which damps rocking that leaves $V$ as it is.
"""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..multibody.kinematics import World
from ..multibody.spatial import Pose, cross
from ..parts.base import AbstractPassivePart, Response, Signals
from ..parts.loads import Load
from ..smooth import norm, step
from ..typing import Scalar, Vec3, check_values, optional, si
from .contact_points import ContactPoints, unit
from .convex import Solid
from .friction import AbstractSurfaceFriction
from .overlap import Overlap, overlap
from .shapes import AbstractPolyhedron, AbstractShape, AbstractSolid, HalfSpace, Sphere
from .surface_law import slip, tangential_pull


def shared(A: AbstractSolid, X_WA: Pose, B: AbstractShape, X_WB: Pose) -> Overlap:
    """Return the intersection of two shapes."""
    if isinstance(A, Sphere) and isinstance(B, HalfSpace):
        return _cap(A, X_WA.p, X_WB)
    if not isinstance(A, AbstractPolyhedron):
        raise TypeError(
            f"no volume of intersection for {type(A).__name__} and "
            f"{type(B).__name__}: it is known for polyhedra with polyhedra or "
            "half-spaces, and for spheres with half-spaces"
        )
    a = Solid.of(A, X_WA)
    if isinstance(B, HalfSpace):
        n = X_WB.R[None, :, 2]
        normals, offsets = n, n @ X_WB.p
    elif isinstance(B, AbstractPolyhedron):
        b = Solid.of(B, X_WB)
        normals, offsets = b.normals, b.offsets
    else:
        raise TypeError(
            f"no volume of intersection for a polyhedron and {type(B).__name__}"
        )
    planes = jnp.concatenate([a.normals, normals])
    far = jnp.concatenate([a.offsets, offsets])
    return overlap(planes, far, len(a.normals), X_WA.act(A.centre()))


def _cap(ball: Sphere, p: Vec3, X_WB: Pose) -> Overlap:
    """Return the part of a sphere below a plane."""
    r, n = ball.radius, X_WB.R[:, 2]
    h = jnp.clip(r - (p - X_WB.p) @ n, 0.0, 2 * r)
    volume = jnp.pi * h**2 * (r - h / 3)
    below = 3 * (2 * r - h) ** 2 / (4 * (3 * r - h))
    return Overlap(volume, p - below * n, -jnp.pi * h * (2 * r - h) * n)


class ElasticFoundation(eqx.Module):
    """An elastic foundation (Winkler): modulus `E`, damping `B` and thickness `depth`.

    Without `depth` the thickness is the radius of the sphere with the solid's volume; a
    half-space needs one.
    """

    E: Scalar = eqx.field(converter=si("Pa", above=0.0))
    B: Scalar = eqx.field(converter=si("Pa s", at_least=0.0), default=0.0)
    depth: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )

    def __check_init__(self):
        check_values(self)

    def thickness(self, shape: AbstractShape) -> Scalar:
        """Return the thickness of the foundation under a shape's surface."""
        if self.depth is not None:
            return self.depth
        if not isinstance(shape, AbstractSolid):
            raise ValueError(
                f"the elastic foundation of a {type(shape).__name__} needs a depth"
            )
        return shape.equivalent_radius()


class VolumeForces(eqx.Module):
    """Wrench on the solid at `p`, rates of the state, and dissipated power."""

    p: Vec3
    f: Vec3
    tau: Vec3
    normal_force: Scalar
    volume: Scalar
    rate: dict[str, Array]
    loss: Scalar


class VolumeContact(AbstractPassivePart):
    """Elastic-foundation contact of a solid on `on` with a shape on `against`.

    `beds` are the foundations of the two. The force comes in over the first `width` of
    mean thickness.

    Outputs: the `force` on the solid, its normal part `normal_force`, the shared
    `volume` and its `centroid`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "force": "N",
        "normal_force": "N",
        "volume": "m^3",
        "centroid": "m",
        "stored": "J",
    }
    on: str = eqx.field(static=True)
    shape: AbstractSolid
    against: str = eqx.field(static=True)
    surface: AbstractShape
    beds: tuple[ElasticFoundation, ElasticFoundation]
    friction: AbstractSurfaceFriction | None = None
    pull: str = eqx.field(static=True, default="")
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-6)

    def __check_init__(self):
        for bed, shape in zip(self.beds, (self.shape, self.surface), strict=True):
            bed.thickness(shape)

    def initial_state(self) -> dict[str, Array]:
        bristles = 0 if self.friction is None else self.friction.bristles
        state = {"bristles": jnp.zeros(bristles)} if bristles else {}
        return {**state, "stored": jnp.zeros(())}

    def series(self) -> tuple[Scalar, Scalar]:
        """Return stiffness and damping per volume of both foundations in series, N/m^3
        and N s/m^3.
        """
        a, b = self.beds
        ha, hb = a.thickness(self.shape), b.thickness(self.surface)
        some = a.B * b.B > 0
        damper = hb * a.B + ha * b.B
        damping = jnp.where(some, a.B * b.B / jnp.where(some, damper, 1.0), 0.0)
        return a.E * b.E / (hb * a.E + ha * b.E), damping

    def overlap_and_rate(self, world: World) -> tuple[Overlap, Overlap]:
        """Return the intersection of the two shapes, and its time derivative."""
        frames = (self.on, self.against)
        poses = tuple(world.pose(k) for k in frames)
        twists = tuple(world.twist(k) for k in frames)
        rates = tuple(
            Pose(cross(V[None, :3], X.R.T).T, V[3:])
            for X, V in zip(poses, twists, strict=True)
        )
        share = lambda X: shared(self.shape, X[0], self.surface, X[1])
        return jax.jvp(share, (poses,), (rates,))

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t
        x = self.contact_forces(state, world, signals)
        on, against = (world.mechanism.frame(k).body for k in (self.on, self.against))
        outputs = {
            "force": x.f,
            "normal_force": x.normal_force,
            "volume": x.volume,
            "centroid": x.p,
        }
        load = Load(on, against, x.p, x.f, x.tau)
        return Response(x.rate, (load,), outputs)

    def contact_forces(
        self, state: dict, world: World, signals: Signals
    ) -> VolumeForces:
        """Return the forces on the solid at the centroid of the shared volume."""
        now, change = self.overlap_and_rate(world)
        n = unit(-now.area, jnp.array([0.0, 0.0, 1.0]))
        K, C = self.series()
        area = norm(now.area)
        thick = now.volume / jnp.where(area > 0, area, 1.0)
        total = K * now.volume + C * change.volume
        eased = step(thick, self.width)
        contact = jnp.where(total > 0, eased, 0.0)
        normal_force = total * contact
        point = ContactPoints(now.centroid[None], n[None], now.volume[None])
        velocity, angular_velocity = slip(world, self.on, self.against, point)
        v = velocity[0]
        V, p = world.twist(self.against), world.pose(self.against).p
        moves = change.centroid - V[3:] - cross(V[:3], now.centroid - p)
        tau = contact * C * now.volume * cross(moves, n)
        slide = v - (v @ n) * n
        f, rate, stored = normal_force * n, {}, -eased * K * now.volume * (v @ n)
        if self.friction is not None:
            z = state.get("bristles", jnp.zeros(0))
            z = z - (z @ n) * n if self.friction.bristles else z
            pull = tangential_pull(world, self.on, self.pull, signals, n[None])[0]
            found = self.friction.evaluate(slide, normal_force, z, pull)
            f, stored = f + found.force, stored + found.stored_power
            rate = {"bristles": found.rate} if self.friction.bristles else {}
        return VolumeForces(
            p=now.centroid,
            f=f,
            tau=tau,
            normal_force=normal_force,
            volume=now.volume,
            rate={**rate, "stored": stored},
            loss=-f @ v - tau @ angular_velocity - stored,
        )

    def energy(self, state: dict, world: World) -> Scalar:
        del world
        return state["stored"]

    def power_loss(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        del t
        return self.contact_forces(state, world, signals).loss
