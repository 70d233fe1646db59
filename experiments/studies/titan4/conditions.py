"""Operating conditions of the Titan 4: loads, oils and frictions."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import djdyn
from controllers import ReferenceModel, Scenarios
from djdyn.multibody.spatial import skew

from . import model as titan
from .operator_inputs import Rows


MOVES: Rows = (  # joint, sign, from, to (s)
    (2, 1, 0.5, 1.5), (1, 1, 0.5, 1.5), (3, -1, 0.8, 1.8),
    (4, 1, 1.0, 2.0), (5, -1, 1.2, 2.2), (6, 1, 1.2, 2.2),
)  # fmt: skip
MAX_AREA = 4.4e-7  # m2, largest valve area of the tracking run
MAX_LOAD = 12.0  # kg
MIN_MODULUS, MAX_MODULUS = 0.5, 4.0  # over the bulk modulus of the source
MIN_FRICTION, MAX_FRICTION = 0.3, 1.5  # over the friction of the source
Shares = Float[Array, "3 n"]  # load, oil stiffness and friction, from 0 to 1


def machine() -> djdyn.System:
    """Return the arm with the gains of the source; the controller knows no load."""
    arm = titan.mechanism(printed=False)
    system = titan.build(arm, model=arm)
    path = ReferenceModel("guide.target", jnp.zeros(6), 10.0 * jnp.ones(6))
    return djdyn.System(arm, {**system.parts, "path": path}, system.inputs)


def drawn(seed: int, count: int) -> Shares:
    """Return random conditions."""
    return jax.random.uniform(jax.random.key(seed), (3, count))


def corners() -> Shares:
    """Return the eight combinations of smallest and largest values."""
    return jnp.stack([x.ravel() for x in jnp.meshgrid(*[jnp.array([0.0, 1.0])] * 3)])


def conditions(x: Shares) -> dict[str, Array]:
    """Return parameters by path: load at the tool's tip, oil and friction."""
    arm = titan.mechanism(printed=False)
    hand, load = arm.bodies[-1], MAX_LOAD * x[0]
    tip = jnp.array([0.0, 0.0, titan.TOOL])

    def gripped(m: Array) -> tuple[Array, Array, Array]:
        mass = hand.mass + m
        centre = (hand.mass * hand.p_BC + m * tip) / mass
        S = skew(tip - hand.p_BC)
        return mass, centre, hand.I_BC + hand.mass * m / mass * S @ S.T

    mass, centre, inertia = jax.vmap(gripped)(load)
    modulus = titan.MODULUS * MIN_MODULUS * (MAX_MODULUS / MIN_MODULUS) ** x[1]
    friction = MIN_FRICTION + (MAX_FRICTION - MIN_FRICTION) * x[2]
    lanes = {"link6.mass": mass, "link6.p_BC": centre, "link6.I_BC": inertia}
    lanes["oil.oil.bulk_modulus"] = modulus
    for i, d in enumerate(titan.column("friction_Nms_per_rad")):
        lanes[f"friction{i + 1}.viscous"] = d * friction
    return lanes


def held_up(system: djdyn.System) -> djdyn.State:
    """Return the state at rest, with pressures that carry the load."""
    up, down = titan.static_pressures(system.mechanism, jnp.zeros(6))
    y = system.initial_state()
    for k in range(6):
        y.parts["oil"] |= {f"A{k + 1}.bar": up[k] / 1e5}
        y.parts["oil"] |= {f"B{k + 1}.bar": down[k] / 1e5}
    return y


def scenarios(system: djdyn.System, x: Shares) -> Scenarios:
    """Return scenarios of conditions, each starting at rest."""
    lanes = conditions(x)
    static = lambda values: held_up(djdyn.with_parameters(system, values))
    return Scenarios(lanes, jax.vmap(static)(lanes))
