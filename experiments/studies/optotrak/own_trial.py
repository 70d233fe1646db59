"""Identification from a user's own records: a static trial and one in motion, jointly.

The machine is the thesis's rig (Knutson 2007), whose constants are the first guess.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.typing import Scalar, si
from estimation import FitResult, LogNormal, MarkerSet, StaticMean, Trial, fit
from estimation.scenario.measured import interpolate

from .fit import FREE as FRICTION
from .identification import CENTRE, FIT_OPTIONS, FREE, LOSSES, STIFFNESSES, held
from .model import CONSTANTS, SET, places
from .own_record import BEFORE, OwnRecord
from .statics import generalised_forces, static_state


STEP = 8e-4  # s: resolves sticking
PLACE, CLOCK = "start.state.q", "start.time"
PRIOR_DEVIATION: dict[str, float] = {  # N/m, m, rad, s
    **dict.fromkeys(STIFFNESSES, 0.13),
    **dict.fromkeys(CENTRE, 2e-3),
    f"motion/{PLACE}": np.deg2rad(15.0),
    f"motion/{CLOCK}": 0.05,
    "static/start.q": np.deg2rad(15.0),
}


class Release(eqx.Module):
    """The state in which the rod is held, and when it is released, s."""

    state: djdyn.State
    time: Scalar = eqx.field(converter=si("s"))


class ReleasedLater(eqx.Module):
    """Prediction of markers of a rod that is held at first, and then released."""

    markers: MarkerSet
    period: float = eqx.field(static=True)

    def __call__(
        self, system: djdyn.System, times: np.ndarray, start: Release, adjoint: str
    ) -> Float[Array, "n c"]:
        count = len(times)
        saves = self.period * np.arange(count)
        y0 = jax.tree.map(lambda x: x[None], start.state)
        dt = self.period / np.ceil(self.period / STEP)
        run = djdyn.rollout(
            system, saves[-1], y0, saveat=saves, solver="rk4", dt=float(dt),
            adjoint=adjoint,
        )  # fmt: skip
        seen = places(system.mechanism, run.y.q[0], self.markers).reshape(count, -1)
        at = (jnp.asarray(times) - start.time) / self.period
        moved = jax.vmap(lambda x: interpolate(x, jnp.maximum(at, 0.0)), 1, 1)(seen)
        return jnp.where((at > 0)[:, None], moved, seen[:1])


class RestingMarkers(eqx.Module):
    """Prediction of markers of a rod at rest, and of the forces that would move it.

    These may be as large as friction, `hold`, N m, can be.
    """

    markers: MarkerSet
    hold: Float[Array, "5"] = eqx.field(converter=si("N m"))

    def __call__(
        self, system: djdyn.System, times: np.ndarray, start: djdyn.State
    ) -> tuple[Float[Array, "n c"], Float[Array, "5"]]:
        seen = places(system.mechanism, start.q, self.markers).reshape(1, -1)
        forces = generalised_forces(system, start)
        return jnp.broadcast_to(seen, (len(times), seen.size)), forces / self.hold


@dataclasses.dataclass(frozen=True)
class OwnFound:
    """What was found from a user's own records; `static` is None without one."""

    record: OwnRecord
    static: StaticMean | None
    fit: FitResult


def motion_trial(record: OwnRecord, pose: djdyn.State) -> Trial:
    """Return the trial of a record in motion; its times begin at zero."""
    data = record.data
    times = data.times - data.times[0]
    labels = [f"marker {i} {k}" for i in SET.labels for k in "xyz"]
    return Trial(
        times, data.with_gaps.reshape(len(times), -1),
        ReleasedLater(SET, float(np.mean(np.diff(times)))),
        start=Release(pose, BEFORE - 0.02), sigma=record.noise.ravel(),
        free=[PLACE, CLOCK], labels=labels, name="motion",
    )  # fmt: skip


def static_trial(mean: StaticMean, noise: np.ndarray, pose: djdyn.State) -> Trial:
    """Return the trial of a rod at rest, near its equilibrium but for friction."""
    arms = np.array([CONSTANTS["RA"]] * 2 + [CONSTANTS["RB"]] * 3)  # m
    hold = FRICTION["contact.coulomb"][0] * arms
    return Trial(
        [0.0], mean.positions.reshape(1, -1), RestingMarkers(SET, hold), start=pose,
        sigma=noise.ravel(), free=["start.q"], name="static",
    )  # fmt: skip


def find_pose(system: djdyn.System, seen: np.ndarray) -> djdyn.State:
    """Return the pose that markers show, near equilibrium where they show little."""
    rest = static_state(system)
    near = {"start.q": (np.asarray(rest.q), PRIOR_DEVIATION[f"motion/{PLACE}"])}
    found = fit(system, held(rest, seen), priors=near, hold_out=0.0, progress=False)
    return found.trial_starts[0]


def identify_own(
    system: djdyn.System, record: OwnRecord, static: StaticMean | None
) -> OwnFound:
    """Fit friction, springs, mass centre and poses to all records at once."""
    model = djdyn.with_parameters(system, {k: FRICTION[k][0] for k in LOSSES})
    rest = np.asarray(static_state(model).q)
    before = record.data.times < record.release - 0.5 * BEFORE
    place = np.nanmedian(record.data.with_gaps[before], 0)
    pose = find_pose(model, place)
    trials = [motion_trial(record, pose)]
    if static is not None:
        at_rest = find_pose(model, static.positions)
        trials.append(static_trial(static, record.noise, at_rest))
    priors: dict[str, Any] = {k: LogNormal(*FRICTION[k][:2]) for k in LOSSES}
    for path, deviation in PRIOR_DEVIATION.items():
        trial, _, own = path.rpartition("/")
        if trial == "static" and static is None:
            continue
        if trial:
            mean = rest if own.endswith(".q") else trials[0].start.time
        else:
            mean = np.asarray(djdyn.get_parameters(model, path))
        priors[path] = (mean, deviation)
    found = fit(model, trials, FREE, priors=priors, **FIT_OPTIONS)
    return OwnFound(record, static, found)
