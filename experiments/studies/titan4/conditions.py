"""The Titan 4 with loads, oils and frictions that its controller does not know."""

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
AREA = 4.4e-7  # m2, the most of the tracking run
LOAD, SOFTEST, STIFFEST = 12.0, 0.5, 4.0  # kg; of the source's bulk modulus
LEAST, MOST = 0.3, 1.5  # of the source's friction
Shares = Float[Array, "3 n"]  # of load, stiffness of the oil and friction, 0 to 1


def machine() -> djdyn.System:
    """With the source's gains; the controller knows the arm without load."""
    arm = titan.mechanism(printed=False)
    system = titan.build(arm, model=arm)
    path = ReferenceModel("guide.target", jnp.zeros(6), 10.0 * jnp.ones(6))
    return djdyn.System(arm, {**system.parts, "path": path}, system.inputs)


def drawn(seed: int, count: int) -> Shares:
    """By chance."""
    return jax.random.uniform(jax.random.key(seed), (3, count))


def corners() -> Shares:
    """The least and the most of each, with those of the others."""
    return jnp.stack([x.ravel() for x in jnp.meshgrid(*[jnp.array([0.0, 1.0])] * 3)])


def conditions(x: Shares) -> dict[str, Array]:
    """Loads at the tool's tip, oil and friction, from the least to the most."""
    arm = titan.mechanism(printed=False)
    hand, load = arm.bodies[-1], LOAD * x[0]
    tip = jnp.array([0.0, 0.0, titan.TOOL])

    def gripped(m: Array) -> tuple[Array, Array, Array]:
        mass = hand.mass + m
        centre = (hand.mass * hand.p_BC + m * tip) / mass
        S = skew(tip - hand.p_BC)
        return mass, centre, hand.I_BC + hand.mass * m / mass * S @ S.T

    mass, centre, inertia = jax.vmap(gripped)(load)
    soft = titan.MODULUS * SOFTEST * (STIFFEST / SOFTEST) ** x[1]
    rub = LEAST + (MOST - LEAST) * x[2]
    lanes = {"link6.mass": mass, "link6.p_BC": centre, "link6.I_BC": inertia}
    lanes["oil.oil.bulk_modulus"] = soft
    for i, d in enumerate(titan.column("friction_Nms_per_rad")):
        lanes[f"friction{i + 1}.viscous"] = d * rub
    return lanes


def held_up(system: djdyn.System) -> djdyn.State:
    """At rest, the load carried by the oil."""
    up, down = titan.static_pressures(system.mechanism, jnp.zeros(6))
    y = system.initial_state()
    for k in range(6):
        y.parts["oil"] |= {f"A{k + 1}.bar": up[k] / 1e5}
        y.parts["oil"] |= {f"B{k + 1}.bar": down[k] / 1e5}
    return y


def scenarios(system: djdyn.System, x: Shares) -> Scenarios:
    """Conditions, each with the arm at rest."""
    lanes = conditions(x)
    rest = lambda values: held_up(djdyn.with_parameters(system, values))
    return Scenarios(lanes, jax.vmap(rest)(lanes))
