"""The one extension point: a part pushes on the mechanism and may have a state."""

import abc
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ._types import Scalar, Vec3
from ._units import check_values
from .kinematics import World
from .spatial import cross


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


@runtime_checkable
class ChecksStart(Protocol):
    """A part that cannot start from everywhere."""

    def check_start(self, state: Any, world: World) -> None:
        """Raises where it cannot."""


class Response(eqx.Module):
    """What a part does at an instant."""

    rate: PyTree  # of the part's own state
    loads: tuple[Load | JointLoad, ...] = ()
    outputs: dict[str, Array] = eqx.field(default_factory=dict)


class AbstractPart(eqx.Module):
    r"""Anything that pushes on the mechanism: a spring, a cable, a controller.

    Its ledger closes at every instant: with $P$ the power of its loads on the
    mechanism,

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
