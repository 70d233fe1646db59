"""The crane that is tuned: a payload, a hull in water, its hoisting cycle, its cost."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jaxtyping import Array

import controllers
import djdyn
from controllers import (
    DamageEquivalentLoad,
    JointPID,
    Limit,
    MeanSquare,
    Peak,
    Reaction,
    Scenarios,
    multisine,
)
from djdyn import Box, FreeParameter
from djdyn.multibody import dynamics
from djdyn.multibody.spatial import translation
from djdyn.multibody.time_functions import Moves
from djdyn.parts import JointSpring
from djdyn.system.system import Instant

from ...harness.tuning_report import as_built
from ..crane import study as crane


FASTER = 2.0  # than the moves of the crane study
SPAN, SAVES = 25.0, 501  # s
HULL, DAMPING = 6e5, 5e4  # N m/rad, N m s/rad: what the water adds to the springs
FOOT = Reaction("king", (0, 1))
SHORTER = 1.0  # s, by which a move may begin later, or end earlier
DAMPED = 0.35  # of critical, at least
LATEST = 0.6  # rad, at most, that the delay turns a joint's loop where its gain is one
EXPONENT = 3.0  # of the S-N curve, welded steel
NOISE, PERIOD = 1.4e-5, 2e-3  # rad, of an encoder of 17 bits; s
HOW = as_built(PERIOD)


def build() -> djdyn.System:
    """The crane with a payload, on a vessel that floats upright, twice as fast.

    Cubic springs alone leave a vessel with its weight above the pivot unstable.
    """
    bare = crane.build()
    m, path = bare.mechanism, crane.moves()
    tip = translation((crane.LENGTHS[3], 0.0, 0.0))
    load = djdyn.Body("payload", "outer", djdyn.Fixed(), 200.0, X_PJ=tip)
    parts = {
        **bare.parts,
        "water": JointSpring("vessel", HULL, DAMPING),
        "reference": controllers.Reference(sped_up(path)),
        "noise": multisine(
            "reference.value", "reference.rate", size=3, deviation=NOISE
        ),
        "pd": JointPID(
            crane.JOINTS,
            "noise.value",
            jnp.full(3, crane.KP),
            jnp.full(3, crane.KD),
            rate="noise.rate",
        ),
    }
    mechanism = djdyn.Mechanism((*m.bodies, load), m.frames, m.gravity_W)
    return djdyn.System(mechanism, parts)


def sped_up(path: Moves) -> Moves:
    return Moves(path.first, path.points, path.start / FASTER, path.end / FASTER)


def free() -> list[FreeParameter]:
    """Gains, and moves within their pauses."""
    path = sped_up(crane.moves())
    start, end = np.asarray(path.start), np.asarray(path.end)
    pauses = (end[:-1] + start[1:]) / 2
    limits = {
        "start": (np.array([0.0, *pauses]), start + SHORTER),
        "end": (end - SHORTER, np.array([*pauses, SPAN - 1.0])),
    }
    at = "reference.path."
    times = [FreeParameter(at + k, Box(*x)) for k, x in limits.items()]
    within = lambda x: Box(0.1 * x * np.ones(3), 2.0 * x * np.ones(3))
    gains = {"pd.kp": crane.KP, "pd.kd": crane.KD}
    return [*(FreeParameter(k, within(x)) for k, x in gains.items()), *times]


def rest(system: djdyn.System) -> djdyn.State:
    """Parked, on a hull that has come to rest."""
    quiet = djdyn.with_parameters(system, {"noise.deviation": 0.0})
    return djdyn.equilibrium(quiet, crane.start(quiet))


def conditions(system: djdyn.System, count: int, seed: int) -> Scenarios:
    """Payloads of 50 to 300 kg, and hulls from soft to stiff, each at rest."""
    laws = {
        "payload.mass": scipy.stats.uniform(50, 250),
        "water.stiffness": scipy.stats.uniform(0.75 * HULL, 0.5 * HULL),
    }
    return controllers.sample(system, count, laws, start=rest, seed=seed)


def standing(system: djdyn.System, point: Array) -> tuple[djdyn.System, djdyn.State]:
    """All at rest at one point of the cycle."""
    path = djdyn.get_parameters(system, "reference.path.points")
    at = {"first": point, "points": jnp.broadcast_to(point, path.shape)}
    still = djdyn.with_parameters(
        system, {f"reference.path.{k}": x for k, x in at.items()}
    )
    still = djdyn.with_parameters(still, {"noise.deviation": 0.0})
    y = still.initial_state(q=dict(zip(crane.JOINTS, point, strict=True)))
    return still, djdyn.equilibrium(still, y)


def speed_error(now: Instant) -> Any:
    """Of each joint of the crane, rad/s."""
    return now.signals["reference.rate"] - now.y.v[3:]


def damping(now: Instant) -> Any:
    """Of each joint where it is, the others held: a share of what is critical."""
    inertia = jnp.diagonal(dynamics.projected_inertia(now.world))[3:]
    kp, kd = (djdyn.get_parameters(now.system, f"pd.{k}") for k in ("kp", "kd"))
    return kd / (2 * jnp.sqrt(kp * inertia))


def lag(now: Instant) -> Any:
    """What the delay costs each joint, rad, where its damping has a gain of one.

    The others are free: at high frequencies a joint moves no more than it must.
    """
    each = jnp.eye(len(now.y.v))
    freed = jax.vmap(lambda force: dynamics.solve_mass_matrix(now.world, force))(each)
    kd = djdyn.get_parameters(now.system, "pd.kd")
    return 1.5 * PERIOD * kd * jnp.diagonal(freed)[3:]


def cost(peak: float, fatigue: float) -> dict[str, Any]:
    return {
        "peak": Peak(FOOT, peak),
        "fatigue": DamageEquivalentLoad(FOOT, fatigue, EXPONENT),
        "tracking": MeanSquare("pd.error", 0.08),
        "speed": MeanSquare(speed_error, 0.08),
    }


LIMITS = {
    "damping": Limit(damping, low=DAMPED),
    "lag": Limit(lag, high=LATEST),
}
