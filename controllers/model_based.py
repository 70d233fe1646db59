"""Controllers that know the machine: gravity, inertia, Coriolis forces."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.multibody import dynamics
from djdyn.multibody.kinematics import World, forward_kinematics
from djdyn.multibody.mechanism import Mechanism
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.typing import si


Gain = Float[Array, "*#n"]  # one for all joints, or one each


def wanted(signals: Signals, reference: str, *names: str) -> list[Float[Array, " n"]]:
    """Outputs of a reference."""
    return [jnp.atleast_1d(signals[f"{reference}.{name}"]) for name in names]


def own(world: World, model: Mechanism | None) -> World:
    """What a controller's own model of the machine looks like here."""
    if world.q.shape != world.v.shape:
        raise ValueError(
            "model-based control takes machines whose speeds are the rates of their "
            f"coordinates: this has {world.q.size} for {world.v.size} speeds"
        )
    return (
        world if model is None else forward_kinematics(model, world.q, world.v, world.t)
    )


def coriolis(
    mechanism: Mechanism, q: Array, v: Array, x: Array, t: Array
) -> Float[Array, " n"]:
    r"""$C(q, v)\,x$ with Christoffel's symbols.

    Forces at constant speeds are quadratic in them, so a quarter of their difference at
    $v + x$ and $v - x$ is the mixed term.
    """
    zero = jnp.zeros_like(v)
    force = lambda u: dynamics.inverse(forward_kinematics(mechanism, q, u, t), zero)
    return (force(v + x) - force(v - x)) / 4


class PDGravity(AbstractSignalPart):
    r"""$u = K_p(q_d - q) + K_d(\dot q_d - \dot q) + g(q)$ on all of a machine's joints.

    `reference` is a part with outputs `value` and `rate`; `model` what the controller
    takes the machine for, itself if not given.
    """

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
    r"""$u = B\,(\ddot q_d + K_d\dot e + K_p e) + C\dot q + g$ with $e = q_d - q$.

    The error then decays as $\ddot e + K_d\dot e + K_p e = 0$ at every joint.
    """

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
