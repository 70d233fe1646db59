"""The interface of components, which stand between the nodes of a circuit."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..parts.base import Signals
from ..parts.loads import JointLoad, Load
from ..typing import Scalar, check_values
from .oil import Oil


States = dict[str, Float[Array, ""]]


@dataclasses.dataclass(frozen=True)
class Conditions:
    """The inputs of a component: oil, pressures of nodes (Pa), world and signals."""

    oil: Oil
    pressures: dict[str, Scalar]
    world: World
    signals: Signals

    def __getitem__(self, node: str) -> Scalar:
        return self.pressures[node]

    def drop(self, inlet: str, outlet: str) -> Scalar:
        """Return the pressure drop from inlet to outlet, Pa."""
        return self.pressures[inlet] - self.pressures[outlet]

    def power_drop(self, q: Scalar, inlet: str, outlet: str) -> Scalar:
        """Return the power that a flow loses from inlet to outlet, W."""
        h = self.oil.enthalpy
        return q * (h(self.pressures[inlet]) - h(self.pressures[outlet]))

    def command(self, signal: str) -> Scalar:
        """Return a signal of one number."""
        value = self.signals[signal]
        if value.size != 1:
            raise ValueError(
                f"signal {signal!r} has shape {value.shape}, expected one number"
            )
        return value.reshape(())


class Effect(eqx.Module):
    """The effects of a component at an instant.

    `flows` go into the nodes, as volumes at atmospheric pressure; `loss` is dissipated
    power, `source` power drawn from outside.
    """

    flows: dict[str, Scalar]
    loss: Scalar
    source: Scalar = eqx.field(converter=jnp.asarray, default=0.0)
    rate: States = eqx.field(default_factory=dict)
    loads: tuple[Load | JointLoad, ...] = ()
    outputs: dict[str, Array] = eqx.field(default_factory=dict)


class AbstractComponent(eqx.Module):
    """A component that moves oil between the nodes that its ports name.

    `ports` are the fields that name nodes it exchanges oil with, `pilots` those whose
    pressure it only senses. `signal_units` are those of its states and outputs.
    """

    ports: eqx.AbstractClassVar[tuple[str, ...]]
    pilots: ClassVar[tuple[str, ...]] = ()
    signal_units: ClassVar[Mapping[str, str]] = {}

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def initial_state(self) -> States:
        """Return the states at the start; `{}` if there are none."""

    @abc.abstractmethod
    def act(self, state: States, now: Conditions) -> Effect:
        """Return flows, loads, rates, outputs and losses."""

    @abc.abstractmethod
    def chambers(self, world: World) -> Mapping[str, tuple[Scalar, Scalar]]:
        """Return the volumes of its chambers by node, and their rates."""

    @abc.abstractmethod
    def energy(self, state: States, world: World, oil: Oil) -> Scalar:
        """Return the energy stored besides that of the oil in its chambers, J."""


class AbstractRigid(AbstractComponent):
    """A component whose own volume of oil is neglected."""

    def chambers(self, world: World) -> Mapping[str, tuple[Scalar, Scalar]]:
        del world
        return {}


class AbstractValve(AbstractRigid):
    """A component that stores no energy."""

    def energy(self, state: States, world: World, oil: Oil) -> Scalar:
        del state, world, oil
        return jnp.zeros(())


class AbstractPassage(AbstractValve):
    """A component with one flow, positive from `inlet` to `outlet`."""

    signal_units: ClassVar[Mapping[str, str]] = {"flow": "m^3/s"}
    ports: ClassVar[tuple[str, ...]] = ("inlet", "outlet")
    inlet: eqx.AbstractVar[str]
    outlet: eqx.AbstractVar[str]

    @abc.abstractmethod
    def flow(self, now: Conditions) -> Scalar:
        """Return the flow from inlet to outlet, m3/s."""

    def initial_state(self) -> States:
        return {}

    def act(self, state: States, now: Conditions) -> Effect:
        del state
        q = self.flow(now)
        return Effect(
            {self.inlet: -q, self.outlet: q},
            now.power_drop(q, self.inlet, self.outlet),
            outputs={"flow": q},
        )
