"""The double pendulum as a system: what its torques are, and how it moves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.multibody.time_functions import Interpolated
from djdyn.parts import JointActuator, JointFriction
from djdyn.typing import si

from .records import STEP


LENGTHS = (0.2, 0.3)  # m, of the links
MASSES = (0.6, 0.6)  # kg, guessed: no trial can tell them from centres and inertias
JOINTS = ("shoulder", "elbow")
WINDOW = 1.0  # s, that is simulated at a time
SAVE_EVERY = 0.02  # s
WIDTH = 0.1  # rad/s, of the transition of Coulomb friction
Motion = tuple[Array, Array, Array]
SIMULATION = {"solver": "rk4", "dt": 0.004}


class DrivenPendulum(eqx.Module):
    """A double pendulum, and how late its angles are beside its torques."""

    system: djdyn.System
    delay: Float[Array, "2"] = eqx.field(converter=si("s"))


def build() -> djdyn.System:
    """Return the pendulum: two links, friction, rotors, and torques as an input.

    Both inertias are about the centres; only those about the y axis matter.
    """
    bodies, parts = [], {}
    for i, (joint, length, mass) in enumerate(
        zip(JOINTS, LENGTHS, MASSES, strict=True)
    ):
        bodies.append(
            djdyn.Body(
                f"link{i + 1}",
                "link1" if i else "world",
                djdyn.Revolute((0, -1, 0)),
                mass,
                (0.0, 0.0, -0.6 * length),
                jnp.diag(jnp.array([0.0, mass * length**2 / 12, 0.0])),
                djdyn.translation((0, 0, -LENGTHS[0] if i else 0.0)),
                joint_name=joint,
                armature=[1e-3],
                any_inertia=True,
            )
        )
        parts[f"friction{i + 1}"] = JointFriction(joint, 0.01, 0.1, WIDTH)
    parts["motors"] = JointActuator(JOINTS, "torque")
    tip = djdyn.Frame("tip", "link2", djdyn.translation((0, 0, -LENGTHS[1])))
    mechanism = djdyn.Mechanism(tuple(bodies), frames=(tip,))
    return djdyn.System(mechanism, parts, {"torque": jnp.zeros(2)})


def combinations(system: djdyn.System) -> dict[str, Array]:
    """Return what the motion in a plane depends on, of masses, centres and inertias."""
    one, two = system.mechanism.bodies
    assert one.armature is not None and two.armature is not None
    c1, c2 = -one.p_BC[2], -two.p_BC[2]
    return {
        "inertia_1": one.I_BC[1, 1] + one.mass * c1**2 + one.armature[0]
        + two.mass * LENGTHS[0] ** 2,
        "inertia_2": two.I_BC[1, 1] + two.mass * c2**2,
        "moment_1": one.mass * c1 + two.mass * LENGTHS[0],
        "moment_2": two.mass * c2,
        "rotor_2": two.armature[0],
    }  # fmt: skip


def torques(
    model: DrivenPendulum,
    times: np.ndarray,
    motion: Motion,
) -> Float[Array, "n 2"]:
    """Return the torques that a motion takes, at times that are shifted by the delay.

    The shift is a Taylor polynomial of the filtered motion.
    """
    del times
    d = model.delay[None]
    q, v, v_dot = motion
    q, v = q + d * v + 0.5 * d**2 * v_dot, v + d * v_dot
    mechanism, parts = model.system.mechanism, model.system.parts

    def needed(q: Array, v: Array, v_dot: Array) -> Array:
        tau = djdyn.inverse_dynamics(mechanism, q, v, v_dot)
        friction = []
        for i in range(2):
            part = parts[f"friction{i + 1}"]
            assert isinstance(part, JointFriction)
            friction.append(part.force(v[i : i + 1]))
        return tau - jnp.concatenate(friction)

    return jax.vmap(needed)(q, v, v_dot)


def simulated(
    model: DrivenPendulum,
    times: np.ndarray,
    given: Motion,
    adjoint: str = "forward",
) -> Float[Array, "rows 2"]:
    """Return the angles of all windows, one below the other, from their torques."""
    del times
    system = model.system
    ticks = STEP * jnp.arange(float(given[2].shape[1]))
    saves = np.arange(0.0, WINDOW + SAVE_EVERY / 2, SAVE_EVERY)

    def window(q0: Array, v0: Array, torque: Array) -> Array:
        driven = {"torque": Interpolated(ticks, torque)}
        y0 = system.initial_state(q0, v0)
        run = djdyn.simulate(
            system, WINDOW, y0, inputs=driven, saveat=saves, adjoint=adjoint,
            **SIMULATION,
        )  # fmt: skip
        return run.y.q

    return jax.vmap(window)(*given).reshape(-1, 2)
