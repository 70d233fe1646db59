"""Model and cost of the crane to be tuned: payload, hull in water, hoisting cycle."""

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
from djdyn.multibody import mass_matrix
from djdyn.multibody.spatial import translation
from djdyn.multibody.time_functions import Moves
from djdyn.parts import JointSpring
from djdyn.system.instant import Instant

from ...harness.tuning_report import sampled_loop
from ..crane import model as crane


SPEED_UP = 2.0  # of the moves, over the crane study
SPAN, SAVES = 25.0, 501  # s
HULL_STIFFNESS, HULL_DAMPING = 6e5, 5e4  # N m/rad, N m s/rad: added by the water
FOOT = Reaction("king", (0, 1))
MAX_SHORTENING = 1.0  # s, by which a move may begin later, or end earlier
MIN_DAMPING_RATIO = 0.35
MAX_PHASE_LAG = 0.6  # rad, by the delay, where a joint's loop has a gain of one
SN_EXPONENT = 3.0  # slope of the S-N curve of welded steel
NOISE, PERIOD = 1.4e-5, 2e-3  # rad, rms of a 17-bit encoder; s
SIMULATION = sampled_loop(PERIOD)


def build() -> djdyn.System:
    """Return the crane with a payload on a floating vessel, moving twice as fast.

    The cubic springs alone do not stabilise a vessel with its weight above the pivot.
    """
    bare = crane.build()
    m, path = bare.mechanism, crane.moves()
    tip = translation((crane.LENGTHS[3], 0.0, 0.0))
    load = djdyn.Body("payload", "outer", djdyn.Fixed(), 200.0, X_PJ=tip)
    parts = {
        **bare.parts,
        "water": JointSpring("vessel", HULL_STIFFNESS, HULL_DAMPING),
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
    """Return the moves at a higher speed."""
    return Moves(path.first, path.points, path.start / SPEED_UP, path.end / SPEED_UP)


def free() -> list[FreeParameter]:
    """Return the free parameters: gains, and start and end times of the moves."""
    path = sped_up(crane.moves())
    start, end = np.asarray(path.start), np.asarray(path.end)
    pauses = (end[:-1] + start[1:]) / 2
    limits = {
        "start": (np.array([0.0, *pauses]), start + MAX_SHORTENING),
        "end": (end - MAX_SHORTENING, np.array([*pauses, SPAN - 1.0])),
    }
    at = "reference.path."
    times = [FreeParameter(at + k, Box(*x)) for k, x in limits.items()]
    within = lambda x: Box(0.1 * x * np.ones(3), 2.0 * x * np.ones(3))
    gains = {"pd.kp": crane.KP, "pd.kd": crane.KD}
    return [*(FreeParameter(k, within(x)) for k, x in gains.items()), *times]


def parked_state(system: djdyn.System) -> djdyn.State:
    """Return the equilibrium with the crane parked."""
    quiet = djdyn.with_parameters(system, {"noise.deviation": 0.0})
    return djdyn.equilibrium(quiet, crane.start(quiet))


def conditions(system: djdyn.System, count: int, seed: int) -> Scenarios:
    """Return random payloads of 50 to 300 kg and hull stiffnesses, each at rest."""
    laws = {
        "payload.mass": scipy.stats.uniform(50, 250),
        "water.stiffness": scipy.stats.uniform(
            0.75 * HULL_STIFFNESS, 0.5 * HULL_STIFFNESS
        ),
    }
    return controllers.sample(system, count, laws, start=parked_state, seed=seed)


def standing(system: djdyn.System, point: Array) -> tuple[djdyn.System, djdyn.State]:
    """Return the system and its equilibrium at one point of the cycle."""
    path = djdyn.get_parameters(system, "reference.path.points")
    at = {"first": point, "points": jnp.broadcast_to(point, path.shape)}
    still = djdyn.with_parameters(
        system, {f"reference.path.{k}": x for k, x in at.items()}
    )
    still = djdyn.with_parameters(still, {"noise.deviation": 0.0})
    y = still.initial_state(q=dict(zip(crane.JOINTS, point, strict=True)))
    return still, djdyn.equilibrium(still, y)


def speed_error(now: Instant) -> Any:
    """Return the speed error of each joint of the crane, rad/s."""
    return now.signals["reference.rate"] - now.y.v[3:]


def damping(now: Instant) -> Any:
    """Return the damping ratio of each joint, the others being held."""
    inertia = jnp.diagonal(mass_matrix.projected_inertia(now.world))[3:]
    kp, kd = (djdyn.get_parameters(now.system, f"pd.{k}") for k in ("kp", "kd"))
    return kd / (2 * jnp.sqrt(kp * inertia))


def lag(now: Instant) -> Any:
    """Return the phase lag of each joint's loop by the delay, rad, at a gain of one.

    The other joints are free, as they are at high frequencies.
    """
    each = jnp.eye(len(now.y.v))
    freed = jax.vmap(lambda force: mass_matrix.solve_mass_matrix(now.world, force))(
        each
    )
    kd = djdyn.get_parameters(now.system, "pd.kd")
    return 1.5 * PERIOD * kd * jnp.diagonal(freed)[3:]


def cost(peak: float, fatigue: float) -> dict[str, Any]:
    """Return the cost terms, with the scales of peak and fatigue moments (N m)."""
    return {
        "peak": Peak(FOOT, peak),
        "fatigue": DamageEquivalentLoad(FOOT, fatigue, SN_EXPONENT),
        "tracking": MeanSquare("pd.error", 0.08),
        "speed": MeanSquare(speed_error, 0.08),
    }


LIMITS = {
    "damping": Limit(damping, low=MIN_DAMPING_RATIO),
    "lag": Limit(lag, high=MAX_PHASE_LAG),
}
