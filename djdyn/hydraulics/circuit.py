"""A hydraulic circuit as a part of a machine."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..multibody.kinematics import World
from ..parts.base import AbstractPart, Response, Signals
from ..typing import Scalar, known
from .component import AbstractComponent, Conditions, Effect, States
from .cylinder import HydraulicCylinder
from .nodes import AbstractBoundary, AbstractNode, AbstractVolume, Supply, Tank
from .oil import Oil


BAR = 1e5  # Pa, unit of the pressures in the state


class Circuit(AbstractPart):
    r"""Oil in volumes, and the valves, cylinders and motors that move it.

    `parts` holds nodes and components by name; components name the nodes that their
    ports are connected to. With $V$ the volume at a node, $B$ the oil's bulk modulus
    and $K$ the compliance of walls or gas,

    $$(V/B + K)\,\dot p = v(p)\sum q - \dot V .$$

    The state of a volume `A` of the circuit `lift` is the signal `lift.A.bar`, its
    pressure above the atmosphere's in bar, which keeps it near one for the solver; a
    component's states and outputs are `lift.valve.spool`, `lift.valve.flow`, ….
    """

    oil: Oil
    parts: dict[str, AbstractNode | AbstractComponent]

    def __check_init__(self):
        for name, part in self.parts.items():
            if not isinstance(part, AbstractNode | AbstractComponent):
                raise ValueError(
                    f"{name!r} is a {type(part).__name__}, no node or component"
                )
            if not name or "." in name or name == "oil":
                raise ValueError(f"{name!r} cannot be the name of a part of a circuit")
        changed, seen = set(), set()
        for name, component in self.components.items():
            for port in (*component.ports, *component.pilots):
                node = getattr(component, port)
                if not node:
                    raise ValueError(f"port {port!r} of {name!r} is not connected")
                if node not in self.nodes:
                    there = ", ".join(self.nodes) or "none"
                    raise ValueError(
                        f"port {port!r} of {name!r} is connected to {node!r}, which is "
                        f"no node; there are {there}"
                    )
                seen.add(node)
                if port in component.ports:
                    changed.add(node)
            own = [getattr(component, port) for port in component.ports]
            if len(set(own)) < len(own):
                raise ValueError(f"two ports of {name!r} are connected to one node")
        for name, node in self.nodes.items():
            if name not in seen:
                raise ValueError(f"nothing is connected to node {name!r}")
            if isinstance(node, AbstractVolume) and name not in changed:
                raise ValueError(f"volume {name!r} is isolated: no oil gets in or out")
        self._check_supplies()

    def _check_supplies(self) -> None:
        nodes = self.nodes.items()
        supplies = [(k, node) for k, node in nodes if isinstance(node, Supply)]
        tanks = [(k, node) for k, node in nodes if isinstance(node, Tank)]
        for high, supply in supplies:
            for low, tank in tanks:
                p, p_tank = supply.pressure, tank.pressure
                if known(p, p_tank) and np.any(np.asarray(p) < np.asarray(p_tank)):
                    raise ValueError(
                        f"supply {high!r} at {float(p):g} Pa is below tank {low!r} at "
                        f"{float(p_tank):g} Pa"
                    )

    @property
    def nodes(self) -> dict[str, AbstractNode]:
        """All nodes by name."""
        return {k: x for k, x in self.parts.items() if isinstance(x, AbstractNode)}

    @property
    def volumes(self) -> dict[str, AbstractVolume]:
        """All nodes whose pressure is a state, by name."""
        return {k: x for k, x in self.parts.items() if isinstance(x, AbstractVolume)}

    @property
    def components(self) -> dict[str, AbstractComponent]:
        """All components by name."""
        return {k: x for k, x in self.parts.items() if isinstance(x, AbstractComponent)}

    @property
    def signal_units(self) -> dict[str, str]:
        """Units of states and outputs, by name."""
        units = {f"{k}.bar": "bar" for k in self.volumes}
        for name, component in self.components.items():
            units |= {f"{name}.{k}": x for k, x in component.signal_units.items()}
        return units

    def initial_state(self) -> States:
        state = {f"{k}.bar": x.pressure / BAR for k, x in self.volumes.items()}
        for name, component in self.components.items():
            own = component.initial_state()
            state |= {f"{name}.{k}": x for k, x in own.items()}
        return state

    def check_start(self, state: States, world: World) -> None:
        """Raise an error if a piston does not stand inside its cylinder."""
        del state
        for name, component in self.components.items():
            if isinstance(component, HydraulicCylinder):
                x, stroke = (
                    float(component.extension(world)[0]),
                    float(component.stroke),
                )
                slack = 1e-9 + 8 * stroke * float(
                    np.finfo(np.asarray(world.q).dtype).eps
                )
                if not -slack <= x <= stroke + slack:
                    raise ValueError(
                        f"cylinder {name!r} is extended by {x:.6g} m, outside its "
                        f"stroke of {stroke:.6g} m"
                    )

    # Flows and rates ------------------------------------------------------------------

    def pressures(self, state: States) -> dict[str, Scalar]:
        """Return the pressures of all nodes, Pa."""
        return {
            name: node.pressure
            if isinstance(node, AbstractBoundary)
            else BAR * state[f"{name}.bar"]
            for name, node in self.nodes.items()
        }

    def _effects(
        self, state: States, world: World, signals: Signals
    ) -> tuple[dict[str, Scalar], dict[str, Effect], dict[str, Scalar]]:
        """Return the pressures, the components' effects, and flows into the nodes."""
        p = self.pressures(state)
        now = Conditions(self.oil, p, world, signals)
        effects, flows = {}, {node: jnp.zeros(()) for node in p}
        for name, component in self.components.items():
            own = _own(state, name)
            effects[name] = component.act(own, now)
            for node, q in effects[name].flows.items():
                flows[node] = flows[node] + q
        return p, effects, flows

    def _spaces(self, world: World) -> dict[str, tuple[Scalar, Scalar]]:
        """Return the volumes of the nodes at zero pressure, and their rates."""
        spaces = {k: (x.dead_volume(), jnp.zeros(())) for k, x in self.volumes.items()}
        for component in self.components.values():
            for node, (V, V_dot) in component.chambers(world).items():
                if node in spaces:
                    spaces[node] = spaces[node][0] + V, spaces[node][1] + V_dot
        return spaces

    def __call__(
        self, t: Scalar, state: States, world: World, signals: Signals
    ) -> Response:
        del t
        p, effects, flows = self._effects(state, world, signals)
        rate = {}
        for name, (V, V_dot) in self._spaces(world).items():
            K, gained, _ = self.volumes[name].wall_compliance(p[name], self.oil)
            taken = self.oil.expansion(p[name]) * flows[name] - V_dot
            give = (V + gained) / self.oil.stiffness(p[name]) + K
            rate[f"{name}.bar"] = taken / give / BAR
        outputs, loads = {}, ()
        for name, effect in effects.items():
            rate |= {f"{name}.{k}": x for k, x in effect.rate.items()}
            outputs |= {f"{name}.{k}": x for k, x in effect.outputs.items()}
            loads += effect.loads
        return Response({k: rate[k] for k in state}, loads, outputs)

    # Energy balance -------------------------------------------------------------------

    def energy(self, state: States, world: World) -> Scalar:
        p, total = self.pressures(state), jnp.zeros(())
        for name, (V, _) in self._spaces(world).items():
            _, gained, stored = self.volumes[name].wall_compliance(p[name], self.oil)
            total += (V + gained) * self.oil.energy(p[name]) + stored
        for name, component in self.components.items():
            total += component.energy(_own(state, name), world, self.oil)
        return total

    def power_loss(
        self, t: Scalar, state: States, world: World, signals: Signals
    ) -> Scalar:
        del t
        return sum(self.losses(state, world, signals).values(), start=jnp.zeros(()))

    def losses(
        self, state: States, world: World, signals: Signals
    ) -> dict[str, Scalar]:
        """Return the power that each component dissipates, W."""
        _, effects, _ = self._effects(state, world, signals)
        return {name: effect.loss for name, effect in effects.items()}

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """Return the power from supplies and pump shafts, less that into tanks, W."""
        del t
        p, effects, flows = self._effects(state, world, signals)
        total = sum((x.source for x in effects.values()), start=jnp.zeros(()))
        for name in self.nodes.keys() - self.volumes.keys():
            total -= self.oil.enthalpy(p[name]) * flows[name]
        return total

    def oil_mass(self, state: States, world: World) -> Scalar:
        """Return the mass of oil in the volumes, kg; balanced if `oil` conserves it."""
        p, total = self.pressures(state), jnp.zeros(())
        for name, (V, _) in self._spaces(world).items():
            _, gained, _ = self.volumes[name].wall_compliance(p[name], self.oil)
            total += (V + gained) * self.oil.relative_density(p[name])
        return self.oil.density * total

    def oil_in(self, state: States, world: World, signals: Signals) -> Scalar:
        """Return the mass flow from supplies and tanks, kg/s."""
        _, _, flows = self._effects(state, world, signals)
        q = [flows[name] for name in self.nodes.keys() - self.volumes.keys()]
        return -self.oil.density * sum(q, start=jnp.zeros(()))


def _own(state: Mapping[str, Scalar], name: str) -> States:
    """Return the states of one component."""
    head = f"{name}."
    return {k[len(head) :]: x for k, x in state.items() if k.startswith(head)}
