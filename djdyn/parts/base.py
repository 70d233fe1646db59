"""The one extension point: a part pushes on the mechanism and may have a state."""

import abc
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..multibody.kinematics import World
from ..multibody.spatial import cross, skew
from ..typing import Mat3, Scalar, Vec3, check_values


@runtime_checkable
class Signals(Protocol):
    """Commands and measurements by name: `part.output`, `part.state`, `joint.q`.

    A dictionary will do; that of a running system finds its values on demand.
    """

    def __getitem__(self, signal: str, /) -> Array: ...


class Load(eqx.Module):
    """A force and torque on one body, and their opposites on another.

    Both act at the same point P of space, so no momentum can leak.
    """

    on: str = eqx.field(static=True)
    against: str = eqx.field(static=True)
    p_WP: Vec3
    f_W: Vec3
    tau_W: Vec3

    def wrenches(self, world: World) -> Float[Array, "bodies 6"]:
        """About the bodies' origins."""
        rows = range(len(world.V_WB))
        F_WB = jnp.zeros_like(world.V_WB)
        for name, sign in ((self.on, 1.0), (self.against, -1.0)):
            b = world.mechanism.index(name)
            tau_W = self.tau_W + cross(self.p_WP - world.X_WB.p[b], self.f_W)
            here = np.array([sign * (row == b) for row in rows])  # cheaper than scatter
            F = jnp.concatenate([tau_W, self.f_W])
            F_WB = F_WB + jnp.asarray(here, F.dtype)[:, None] * F[None]
        return F_WB

    def power(self, world: World) -> Scalar:
        """What the load does on the mechanism."""
        return jnp.sum(self.wrenches(world) * world.V_WB)


class BodyLoads(eqx.Module):
    """Wrenches on all bodies about their origins, of a part that meets many of them.

    Their sum over bodies and world should be nothing.
    """

    F_WB: Float[Array, "bodies 6"]

    def wrenches(self, world: World) -> Float[Array, "bodies 6"]:
        """Themselves."""
        del world
        return self.F_WB

    def power(self, world: World) -> Scalar:
        """What they do on the mechanism."""
        return jnp.sum(self.F_WB * world.V_WB)


class JointLoad(eqx.Module):
    """A force along each of a joint's speeds, from the parent on the child."""

    joint: str = eqx.field(static=True)
    force: Float[Array, " nv"]

    def forces(self, world: World) -> Float[Array, " nv"]:
        """One for every speed of the mechanism."""
        where = world.mechanism.v_slice(self.joint)
        if self.force.shape != (where.stop - where.start,):
            raise ValueError(
                f"a force of shape {self.force.shape} on joint {self.joint!r}, which "
                f"has {where.stop - where.start} speeds"
            )
        return jnp.pad(self.force, (int(where.start), len(world.v) - int(where.stop)))

    def power(self, world: World) -> Scalar:
        """What the load does on the mechanism."""
        return self.force @ world.joint(self.joint)[1]


class Inertia(eqx.Module):
    """A mass at a point P that moves with a body; a matrix, since added mass of a fluid
    is not alike in all directions.

    It resists acceleration and has no weight. Its kinetic energy is the part's to book.
    """

    body: str = eqx.field(static=True)
    p_WP: Vec3
    mass_W: Mat3

    def _arm(self, world: World) -> Vec3:
        return self.p_WP - world.X_WB.p[world.mechanism.index(self.body)]

    def _rows(self, world: World, x: Array) -> Array:
        """`x` in the body's row."""
        rows = np.arange(len(world.V_WB)) == world.mechanism.index(self.body)
        rows = rows.reshape(-1, *(1,) * x.ndim)
        return jnp.asarray(rows, x.dtype) * x[None]

    def matrices(self, world: World) -> Float[Array, "bodies 6 6"]:
        """About the bodies' origins, in world axes."""
        arm = skew(self._arm(world))
        lever = jnp.concatenate([-arm, jnp.eye(3, dtype=arm.dtype)], 1)
        return self._rows(world, lever.T @ self.mass_W @ lever)

    def wrenches(self, world: World) -> Float[Array, "bodies 6"]:
        """Its pull outwards when the body turns."""
        arm, w = self._arm(world), world.V_WB[world.mechanism.index(self.body), :3]
        f_W = -self.mass_W @ cross(w, cross(w, arm))
        return self._rows(world, jnp.concatenate([cross(arm, f_W), f_W]))

    def power(self, world: World, A_WB: Float[Array, "bodies 6"]) -> Scalar:
        """What it does on the mechanism whose bodies accelerate with `A_WB`."""
        F = self.wrenches(world)
        F = F - jnp.einsum("nij,nj->ni", self.matrices(world), A_WB)
        return jnp.sum(F * world.V_WB)


class AbstractConstraint(eqx.Module):
    r"""A force of unknown size $\lambda$, and an equation for it.

    Its equation is affine in accelerations, wrenches and $\lambda$. One-sided, it holds
    only where $\lambda > 0$; elsewhere the residual is positive. `slack` is the size
    below which the one passes into the other. Friction is a load per unit of
    $|\lambda|$.
    """

    load: eqx.AbstractVar[Load]  # per unit of size
    drag: eqx.AbstractVar[Load | None]  # per unit of its magnitude
    one_sided: eqx.AbstractVar[bool]
    slack: eqx.AbstractVar[Scalar]

    @abc.abstractmethod
    def residual(
        self,
        world: World,
        v_dot: Float[Array, " nv"],
        F_WB: Float[Array, "bodies 6"],
        size: Scalar,
    ) -> Scalar:
        """Zero where the constraint is met; rises with `size`."""


@runtime_checkable
class ChecksStart(Protocol):
    """A part that cannot start from everywhere."""

    def check_start(self, state: Any, world: World) -> None:
        """Raises where it cannot."""


class Response(eqx.Module):
    """What a part does at an instant."""

    rate: PyTree  # of the part's own state
    loads: tuple[Load | BodyLoads | JointLoad, ...] = ()
    outputs: dict[str, Array] = eqx.field(default_factory=dict)
    inertias: tuple[Inertia, ...] = ()
    constraints: tuple[AbstractConstraint, ...] = ()


class AbstractPart(eqx.Module):
    r"""Anything that pushes on the mechanism: a spring, a cable, a controller.

    Its ledger closes at every instant: with $P$ the power of its loads and inertias on
    the mechanism,

    $$\frac{d}{dt}\text{energy} = \text{power\_in} - \text{power\_loss} - P .$$
    """

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def initial_state(self) -> PyTree[Float[Array, "..."]]:
        """`{}` if the part has none."""

    @abc.abstractmethod
    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        """Rate of change of the state, loads on the mechanism, output signals."""

    @abc.abstractmethod
    def energy(self, state: Any, world: World) -> Scalar:
        """What the part stores, J."""

    @abc.abstractmethod
    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        """What it turns into heat, W; never negative."""

    @abc.abstractmethod
    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """What it draws from outside the system, W: a supply, a drive, a moving end."""


class AbstractPlacedPart(AbstractPart):
    """A part that lies in space: a state of positions `r` and velocities `v`.

    Its first state depends on where the mechanism is, and statics moves its `r`.
    """

    @abc.abstractmethod
    def start(self, world: World) -> PyTree[Float[Array, "..."]]:
        """The state to start from, with the mechanism at rest."""

    @abc.abstractmethod
    def failure_reason(self, state: Any) -> str:
        """Why a run stopped in this state, where the part knows; else nothing."""


class Chain(eqx.Module):
    r"""What is stiff in a line: masses in a row, with springs and dampers between them.

    `fed` is how a spring grows with what winches have paid out. `held` gives, for end
    nodes 0 and -1 that are held, the body or None, the point, and point and velocity as
    a function of time and world. `free` are the nodes whose states are the part's `r`
    and `v`.
    """

    mass: Float[Array, "nodes 3 3"]
    stiffness: Float[Array, "elements 3 3"]
    damping: Float[Array, "elements 3 3"]
    fed: Float[Array, "elements 3"]
    held: dict[int, tuple[str | None, Vec3, Callable[[Scalar, World], Any]]]
    free: slice = eqx.field(static=True)

    def pad(self, rows: Float[Array, "free 3"]) -> Float[Array, "nodes 3"]:
        """Zeros for the ends that are held."""
        ends = (self.free.start, len(self.mass) - self.free.stop)
        return jnp.pad(rows, (ends, (0, 0)))


class AbstractLinePart(AbstractPlacedPart):
    """A part with nodes `r` and velocities `v` among its states, stiff along a line."""

    @abc.abstractmethod
    def chain(
        self, t: Scalar, state: Any, world: World, signals: Signals, h: Scalar
    ) -> Chain:
        """Its stiffness for steps of `h`; may be rough."""


class AbstractPassivePart(AbstractPart):
    """A part that draws nothing from outside."""

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())


class AbstractIdealPart(AbstractPart):
    """A part that neither stores nor loses energy."""

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())


class AbstractDrive(AbstractIdealPart):
    """A part that hands all it draws from outside to the mechanism: an ideal motor."""

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        loads = self(t, state, world, signals).loads
        return sum((load.power(world) for load in loads), start=jnp.zeros(()))


class AbstractSignalPart(AbstractIdealPart):
    """A reference, sensor or controller: signals only, no mechanics.

    These are the parts that run at the control period when one is asked for.
    """

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())
