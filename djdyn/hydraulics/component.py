"""What stands between the nodes of a circuit."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..parts.base import JointLoad, Load, Signals
from ..typing import Scalar, check_values
from .oil import Oil


States = dict[str, Float[Array, ""]]


@dataclasses.dataclass(frozen=True)
class Conditions:
    """What a component sees: the oil, the pressures of all nodes (Pa), the machine."""

    oil: Oil
    pressures: dict[str, Scalar]
    world: World
    signals: Signals

    def __getitem__(self, node: str) -> Scalar:
        return self.pressures[node]

    def drop(self, inlet: str, outlet: str) -> Scalar:
        return self.pressures[inlet] - self.pressures[outlet]

    def lost(self, q: Scalar, inlet: str, outlet: str) -> Scalar:
        """Power that a flow leaves between two nodes."""
        h = self.oil.enthalpy
        return q * (h(self.pressures[inlet]) - h(self.pressures[outlet]))

    def command(self, signal: str) -> Scalar:
        """A signal of one number."""
        value = self.signals[signal]
        if value.size != 1:
            raise ValueError(
                f"signal {signal!r} has shape {value.shape}, expected one number"
            )
        return value.reshape(())


class Effect(eqx.Module):
    """What a component does at an instant.

    `flows` go into the nodes, as volumes at the atmosphere's pressure; `loss` is turned
    into heat, `source` drawn from outside.
    """

    flows: dict[str, Scalar]
    loss: Scalar
    source: Scalar = eqx.field(converter=jnp.asarray, default=0.0)
    rate: States = eqx.field(default_factory=dict)
    loads: tuple[Load | JointLoad, ...] = ()
    outputs: dict[str, Array] = eqx.field(default_factory=dict)


class AbstractComponent(eqx.Module):
    """Moves oil between the nodes that its ports name.

    `ports` are the fields that name nodes it exchanges oil with, `pilots` those it only
    feels the pressure of.
    """

    ports: eqx.AbstractClassVar[tuple[str, ...]]
    pilots: ClassVar[tuple[str, ...]] = ()

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def initial_state(self) -> States:
        """`{}` if it has none."""

    @abc.abstractmethod
    def act(self, state: States, now: Conditions) -> Effect:
        """Flows, loads, rates, outputs and losses."""

    @abc.abstractmethod
    def chambers(self, world: World) -> Mapping[str, tuple[Scalar, Scalar]]:
        """Volumes that it opens into nodes, and the rates at which they grow."""

    @abc.abstractmethod
    def energy(self, state: States, world: World, oil: Oil) -> Scalar:
        """What it stores beside the oil in its chambers, J."""


class AbstractRigid(AbstractComponent):
    """A component whose oil has no volume to speak of."""

    def chambers(self, world: World) -> Mapping[str, tuple[Scalar, Scalar]]:
        del world
        return {}


class AbstractValve(AbstractRigid):
    """A component that stores nothing."""

    def energy(self, state: States, world: World, oil: Oil) -> Scalar:
        del state, world, oil
        return jnp.zeros(())


class AbstractPassage(AbstractValve):
    """One way for the oil, from `inlet` to `outlet` where the flow is positive."""

    ports: ClassVar[tuple[str, ...]] = ("inlet", "outlet")
    inlet: eqx.AbstractVar[str]
    outlet: eqx.AbstractVar[str]

    @abc.abstractmethod
    def flow(self, now: Conditions) -> Scalar:
        """From inlet to outlet, m3/s."""

    def initial_state(self) -> States:
        return {}

    def act(self, state: States, now: Conditions) -> Effect:
        del state
        q = self.flow(now)
        return Effect(
            {self.inlet: -q, self.outlet: q},
            now.lost(q, self.inlet, self.outlet),
            outputs={"flow": q},
        )
