"""The one extension point: a part pushes on the mechanism and may have a state."""

import abc
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..multibody.constraints import AbstractConstraint
from ..multibody.kinematics import World
from ..typing import Scalar, Vec6, check_values
from .loads import BodyLoads, Inertia, JointLoad, Load


@runtime_checkable
class Signals(Protocol):
    """Commands and measurements by name: `part.output`, `part.state`, `joint.q`.

    A dictionary will do; that of a running system finds its values on demand.
    """

    def __getitem__(self, signal: str, /) -> Array: ...


@runtime_checkable
class ChecksStart(Protocol):
    """A part that cannot start from everywhere."""

    def check_start(self, state: Any, world: World) -> None:
        """Raises where it cannot."""


@runtime_checkable
class HasImpacts(Protocol):
    """A part whose force comes and goes within impacts."""

    def impact_time(self, world: World) -> Scalar:
        """Return about how long an impact at the present speed takes, s."""
        ...


@runtime_checkable
class InstantView(Protocol):
    """What a part may see of the whole system at one instant; see `Instant`."""

    @property
    def world(self) -> World:
        """Kinematics of the mechanism."""
        ...

    @property
    def y(self) -> Any:
        """State of the system."""
        ...

    @property
    def signals(self) -> Any:
        """All signals, by name."""
        ...

    @property
    def A_WB(self) -> Float[Array, "bodies 6"]:
        """Accelerations of the bodies, angular first."""
        ...

    def reaction(self, joint: str, /) -> Vec6: ...


@runtime_checkable
class MeasuresMotion(Protocol):
    """A part with signals that are known only once accelerations are."""

    def outputs_at(self, now: InstantView, /) -> dict[str, Array]:
        """Its further signals; no part can read them."""
        ...


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
