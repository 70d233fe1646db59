"""Fits of the pendulum to torques and to simulated windows, and their errors."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn import FreeParameter, Positive
from estimation import (
    FitResult,
    Identifiability,
    LogNormal,
    Problem,
    Trial,
    fit,
    identifiability,
)

from .model import (
    JOINTS,
    SAVE_EVERY,
    WINDOW,
    DrivenPendulum,
    Motion,
    simulated,
    torques,
)
from .records import Record, windows


EVERY = 10  # samples from one torque that is fitted to the next: 20 ms
TORQUE_ERROR = 0.12  # N m, of the model: filters, friction and play in the gears
ANGLE_ERROR = np.deg2rad(3.0)  # of the model after up to a second
POSITIVE = ("link1.armature[0]", "link2.armature[0]", "friction1.viscous",
            "friction1.coulomb", "friction2.viscous", "friction2.coulomb")  # fmt: skip
SIGNED = ("link1.p_BC[2]", "link2.p_BC[2]", "link2.I_BC[1][1]")
FREE = [FreeParameter(f"system.{k}", Positive()) for k in POSITIVE]
FREE += [FreeParameter(f"system.{k}") for k in SIGNED] + [FreeParameter("delay")]
MASSES = [FreeParameter(f"system.link{i}.mass", Positive()) for i in (1, 2)]
FRICTION = LogNormal(0.01, 1.0)  # N m s/rad: within a factor of e, say bearings
PRIORS = {f"system.friction{i}.viscous": FRICTION for i in (1, 2)}
HOW: dict[str, Any] = {
    "priors": PRIORS,
    "allow_unidentifiable": True,
    "progress": False,
}


def arrays(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Motion:
    """Return three arrays as JAX's."""
    return jnp.asarray(a), jnp.asarray(b), jnp.asarray(c)


def torque_trial(one: Record) -> Trial:
    """Return a trial whose torques are predicted from its motion."""
    some = slice(None, None, EVERY)
    motion = arrays(one.q[some], one.v[some], one.v_dot[some])
    return Trial(
        one.t[some], one.torque[some], torques, sigma=TORQUE_ERROR, start=motion,
        labels=JOINTS, name=one.name,
    )  # fmt: skip


def window_trial(records: Sequence[Record]) -> Trial:
    """Return a trial of all windows, whose angles are predicted from their torques."""
    cut = windows(records, WINDOW, SAVE_EVERY)
    q = cut.q.reshape(-1, 2)
    given = arrays(cut.q0, cut.v0, cut.torque)
    return Trial(
        np.arange(len(q)) * SAVE_EVERY, q, simulated, sigma=ANGLE_ERROR, start=given,
        labels=JOINTS, name="windows",
    )  # fmt: skip


def undetermined(model: DrivenPendulum, records: Sequence[Record]) -> Identifiability:
    """Return what torques determine if the masses of the links are free, too."""
    trials = [torque_trial(one) for one in records]
    return identifiability(Problem(model, trials, FREE + MASSES, PRIORS, None))


def fit_torques(
    model: DrivenPendulum, records: Sequence[Record], others: Sequence[Record]
) -> FitResult:
    """Fit the torques that the motion takes."""
    trials = [torque_trial(one) for one in records]
    return fit(model, trials, FREE, hold_out=[torque_trial(x) for x in others], **HOW)


def fit_both(
    model: DrivenPendulum, records: Sequence[Record], others: Sequence[Record]
) -> FitResult:
    """Fit torques first, then torques and windows together."""
    first = fit_torques(model, records, others)
    trials = [*(torque_trial(one) for one in records), window_trial(records)]
    held = [*(torque_trial(one) for one in others), window_trial(others)]
    return fit(first.model, trials, FREE, hold_out=held, **HOW)


@eqx.filter_jit
def _torques(model: DrivenPendulum, motion: Motion) -> Array:
    return torques(model, np.zeros(0), motion)


def torque_errors(model: DrivenPendulum, one: Record) -> Float[np.ndarray, "n 2"]:
    """Return predicted less measured torques, N m."""
    motion = arrays(one.q, one.v, one.v_dot)
    return np.asarray(_torques(model, motion)) - one.torque


@eqx.filter_jit
def _windows(model: DrivenPendulum, given: Motion) -> Array:
    return simulated(model, np.zeros(0), given)


def window_errors(
    model: DrivenPendulum, records: Sequence[Record]
) -> Float[np.ndarray, "w k 2"]:
    """Return simulated less measured angles of all windows, rad."""
    cut = windows(records, WINDOW, SAVE_EVERY)
    given = arrays(cut.q0, cut.v0, cut.torque)
    return np.asarray(_windows(model, given)).reshape(cut.q.shape) - cut.q


def rms(x: np.ndarray, axis: int | tuple[int, ...] | None = None) -> np.ndarray:
    """Return root mean squares."""
    return np.sqrt(np.mean(np.square(x), axis=axis))


def replay(model: DrivenPendulum, one: Record) -> djdyn.Trajectory:
    """Return the motion of the first window of a trial."""
    cut = windows([one], WINDOW, SAVE_EVERY)
    system, given = model.system, cut.torque[0]
    ticks = jnp.linspace(0.0, WINDOW, len(given))
    return djdyn.simulate(
        system, WINDOW, system.initial_state(cut.q0[0], cut.v0[0]), saveat=51,
        inputs={"torque": djdyn.Interpolated(ticks, given)}, solver="rk4", dt=0.004,
    )  # fmt: skip
