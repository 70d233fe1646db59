"""Identification of fifteen parameters from twelve noisy marker channels.

The parameters are friction, spring stiffnesses, mass centre and pose at release. The
record is synthetic: another program's simulation of trial 5 (Knutson 2007), with noise.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn import FreeParameter, Positive
from estimation import (
    FitResult,
    LogNormal,
    MarkerData,
    MarkerSet,
    Problem,
    Trial,
    fit,
    parametric_bootstrap,
)

from ...harness import tables
from .fit import FREE as FRICTION, START
from .model import SET, SPRINGS, at, places
from .trial import CHANNELS


RATE, SPAN, STEPS_PER_SAMPLE = 157, 5.0, 8  # Hz, s, 1
TIMES = np.arange(round(RATE * SPAN) + 1) / RATE
NOISE = 1e-4  # m
GAPS = (  # markers hidden, from and to, s
    ((1,), 1.00, 1.20),
    ((3,), 2.30, 2.65),
    ((0, 1, 2, 3), 3.60, 3.65),
)
SWAPPED = ((0, 2), 0.64, 0.82)  # markers, from and to, s
STIFFNESSES = [f"spring_{row['spring']}.stiffness" for row in SPRINGS]
CENTRE = ["rod.p_BC[1]", "rod.p_BC[2]"]
POSE = "start.q"
LOSSES = ["contact.coulomb", "contact.turning"]
FREE = [
    *(FreeParameter(path, Positive()) for path in LOSSES),
    *map(FreeParameter, STIFFNESSES + CENTRE),
]
PRIOR_DEVIATION = {  # N/m, m, rad
    **dict.fromkeys(STIFFNESSES, 0.13),
    **dict.fromkeys(CENTRE, 2e-3),
    POSE: np.deg2rad(5.0),
}
FIT_OPTIONS: dict[str, Any] = {"method": "dogleg", "tolerance": 1e-5}


def released(
    system: djdyn.System, start: Any, times: np.ndarray, adjoint: str = "forward"
) -> djdyn.Trajectory:
    """Simulate the release, as a batch of one, with steps that resolve sticking."""
    y0 = jax.tree.map(lambda x: x[None], start)
    how: dict[str, Any] = {"solver": "rk4", "dt": 1 / (RATE * STEPS_PER_SAMPLE)}
    return djdyn.rollout(system, times[-1], y0, saveat=times, adjoint=adjoint, **how)


class ReleasedMarkers(eqx.Module):
    """Prediction of the marker positions after the release."""

    markers: MarkerSet

    def __call__(
        self, system: djdyn.System, times: np.ndarray, start: Any, adjoint: str
    ) -> Float[Array, "n c"]:
        q = released(system, start, times, adjoint).y.q[0]
        return places(system.mechanism, q, self.markers).reshape(len(times), -1)


class HeldMarkers(eqx.Module):
    """Prediction of the marker positions while a string holds the rod."""

    markers: MarkerSet

    def __call__(
        self, system: djdyn.System, times: np.ndarray, start: Any
    ) -> Float[Array, "n c"]:
        seen = places(system.mechanism, start.q, self.markers).reshape(1, -1)
        return jnp.broadcast_to(seen, (len(times), seen.size))


# The record ---------------------------------------------------------------------------


def clean() -> Float[np.ndarray, "n 4 3"]:
    """Return the noise-free positions from another program's simulation, m."""
    rows = tables.read("optotrak/synthetic_trial5_twin.csv")[: len(TIMES)]
    return 1e-3 * tables.columns(rows, *CHANNELS).reshape(-1, 4, 3)


def recorded(seed: int) -> MarkerData:
    """Return the series with noise, gaps and exchanged labels, as cameras give it."""
    noise = np.random.default_rng(seed).standard_normal((len(TIMES), 4, 3))
    p, inside = clean() + NOISE * noise, lambda a, b: (TIMES >= a) & (TIMES <= b)
    (i, j), *when = SWAPPED
    p[np.ix_(inside(*when), [i, j])] = p[np.ix_(inside(*when), [j, i])]
    for markers, *when in GAPS:
        p[np.ix_(inside(*when), markers)] = np.nan
    return MarkerData.seen(TIMES, SET.labels, p)


def priors(system: djdyn.System, q: Array, seed: int | None) -> dict[str, Any]:
    """Return priors about the true values, with a random error if a seed is given.

    The priors of friction are as wide as those for the printed measurements.
    """
    rng = np.random.default_rng([seed or 0, 1])  # not the record's stream
    off = lambda like: 0.0 if seed is None else rng.standard_normal(np.shape(like))
    found: dict[str, Any] = {path: LogNormal(*FRICTION[path][:2]) for path in LOSSES}
    for path, deviation in PRIOR_DEVIATION.items():
        true = np.asarray(q if path == POSE else djdyn.get_parameters(system, path))
        found[path] = (true + deviation * off(true), deviation)
    return found


# Fits ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Found:
    """An identification: record, truth and fit.

    `raw` is the record as recorded, `data` the record with its labels corrected.
    """

    raw: MarkerData
    data: MarkerData
    truth: djdyn.System
    start: djdyn.State
    fit: FitResult

    @property
    def z(self) -> Float[np.ndarray, " k"]:
        """Errors of the unconstrained parameters, in standard errors."""
        true = problem(self.truth, self.start, clean(), self.data.visible).x
        return np.asarray(self.fit.x - true) / np.sqrt(np.diag(self.fit.covariance_x))


def trial(values: np.ndarray, visible: np.ndarray, start: djdyn.State) -> Trial:
    """Return the trial of a record of the released rod."""
    labels = [f"marker {i} {k}" for i in SET.labels for k in "xyz"]
    return Trial(
        TIMES, values.reshape(len(TIMES), -1), ReleasedMarkers(SET), start=start,
        sigma=NOISE,
        present=np.repeat(visible, 3, 1), free=[POSE], labels=labels, name="twin",
    )  # fmt: skip


def problem(
    system: djdyn.System, start: djdyn.State, values: np.ndarray, visible: np.ndarray
) -> Problem:
    """Return the fit problem with priors about the system's own values."""
    record = trial(np.where(visible[..., None], values, 0.0), visible, start)
    return Problem(system, record, FREE, priors(system, start.q, None))


def held(start: djdyn.State, seen: np.ndarray, markers: MarkerSet = SET) -> Trial:
    """Return a trial of one sample of the held rod."""
    return Trial(
        [0.0], seen.reshape(1, -1), HeldMarkers(markers), sigma=NOISE, start=start,
        free=[POSE], name="held",
    )  # fmt: skip


def identify(truth: djdyn.System, seed: int = 0) -> Found:
    """Fit the pose to the first sample, then all parameters to the whole record."""
    y0 = at(truth, START)
    raw = recorded(seed)
    data = raw.unswapped(SET.rigid)
    known = priors(truth, y0.q, seed)
    guess = {p: known[p].median for p in LOSSES}
    guess |= {p: known[p][0] for p in (*STIFFNESSES, *CENTRE)}
    model = djdyn.with_parameters(truth, guess)
    begin = eqx.tree_at(lambda y: y.q, y0, jnp.asarray(known[POSE][0]))
    first = held(begin, data.positions[0])
    about = {POSE: known[POSE]}
    pose = fit(model, first, priors=about, hold_out=0.0, progress=False)
    record = trial(data.positions, data.visible, pose.trial_starts[0])
    found = fit(model, record, FREE, priors=known, **FIT_OPTIONS)
    return Found(raw, data, truth, y0, found)


def draws(found: Found, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return errors of refits, in standard errors of the first fit.

    They are those of refits with other noise and priors, of a refit without noise, and
    the sizes of the last steps.
    """
    used = found.fit.problem.trials[0].present
    truth = problem(found.truth, found.start, clean(), np.asarray(used)[:, ::3])
    n = len(found.fit.J)
    noise = np.random.default_rng([0, 2]).standard_normal((count + 1, n))
    noise[0] = 0.0
    noise[:, : used.size] *= np.asarray(used).ravel()
    x, last = parametric_bootstrap(truth, found.fit.x, found.fit.J, jnp.asarray(noise))
    error = np.sqrt(np.diag(found.fit.covariance_x))
    z = np.asarray(x - truth.x[None]) / error
    return z[1:], z[0], np.asarray(last) / error
