"""Model-based controllers: gravity compensation and computed torque.

Both command a force for every joint. With closed loops these are forces of the tree:
the machine then has the accelerations nearest to those wanted, measured by its mass
matrix, that keep its loops closed.
"""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.multibody import dynamics
from djdyn.multibody.kinematics import World, forward_kinematics
from djdyn.multibody.mechanism import Mechanism
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.parts.units import JointUnit, Unit
from djdyn.typing import si


Gain = Float[Array, "*#n"]  # one for all joints, or one each


def wanted(signals: Signals, reference: str, *names: str) -> list[Float[Array, " n"]]:
    """Return outputs of a reference by name."""
    return [jnp.atleast_1d(signals[f"{reference}.{name}"]) for name in names]


def own(world: World, model: Mechanism | None) -> World:
    """Return the kinematics of a controller's model at the state of the machine."""
    if world.q.shape != world.v.shape:
        raise ValueError(
            "model-based control needs a machine whose speeds are the rates of its "
            f"coordinates, not {world.q.size} coordinates and {world.v.size} speeds"
        )
    return (
        world if model is None else forward_kinematics(model, world.q, world.v, world.t)
    )


def coriolis(
    mechanism: Mechanism, q: Array, v: Array, x: Array, t: Array
) -> Float[Array, " n"]:
    r"""Return $C(q, v)\,x$ with the Coriolis matrix of Christoffel symbols.

    Forces at constant speeds are quadratic in the speeds, so a quarter of the
    difference between those at $v + x$ and $v - x$ is the mixed term.
    """
    zero = jnp.zeros_like(v)
    force = lambda u: dynamics.inverse(forward_kinematics(mechanism, q, u, t), zero)
    return (force(v + x) - force(v - x)) / 4


UNITS = {"u": JointUnit.FORCE, "error": JointUnit.COORDINATE}  # of all joints


class PDGravity(AbstractSignalPart):
    r"""PD control of all joints with gravity compensation.

    $$u = K_p(q_d - q) + K_d(\dot q_d - \dot q) + g(q)$$

    `reference` is a part with outputs `value` and `rate`. `model` is the controller's
    model of the machine, by default the machine itself.
    """

    signal_units: ClassVar[Mapping[str, Unit]] = UNITS
    reference: str = eqx.field(static=True)
    kp: Gain = eqx.field(converter=si("N m/rad, N/m", at_least=0.0))
    kd: Gain = eqx.field(converter=si("N m s/rad, N s/m", at_least=0.0))
    model: Mechanism | None = None

    def initial_state(self) -> dict:
        return {}

    def __call__(self, t, state: dict, world: World, signals: Signals) -> Response:
        del t
        here = own(world, self.model)
        q_d, v_d = wanted(signals, self.reference, "value", "rate")
        still = forward_kinematics(here.mechanism, here.q, t=here.t)
        g = dynamics.inverse(still, jnp.zeros_like(here.v))
        u = self.kp * (q_d - here.q) + self.kd * (v_d - here.v) + g
        return Response(state, outputs={"u": u, "error": here.q - q_d})


class ComputedTorque(AbstractSignalPart):
    r"""Computed-torque control of all joints, with $e = q_d - q$.

    $$u = B\,(\ddot q_d + K_d\dot e + K_p e) + C\dot q + g$$

    The error then decays as $\ddot e + K_d\dot e + K_p e = 0$ at every joint.
    `reference` is a part with outputs `value`, `rate` and `acceleration`.
    """

    signal_units: ClassVar[Mapping[str, Unit]] = UNITS
    reference: str = eqx.field(static=True)
    kp: Gain = eqx.field(converter=si("1/s^2", at_least=0.0))
    kd: Gain = eqx.field(converter=si("1/s", at_least=0.0))
    model: Mechanism | None = None

    def initial_state(self) -> dict:
        return {}

    def __call__(self, t, state: dict, world: World, signals: Signals) -> Response:
        del t
        here = own(world, self.model)
        names = ("value", "rate", "acceleration")
        q_d, v_d, a_d = wanted(signals, self.reference, *names)
        a = a_d + self.kd * (v_d - here.v) + self.kp * (q_d - here.q)
        u = dynamics.inverse(here, a)
        return Response(state, outputs={"u": u, "error": here.q - q_d})
