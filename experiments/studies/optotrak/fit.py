"""Identification of friction and spring mass from the five printed measurements."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

import djdyn

from ...harness.study import Study
from .model import SPRING_MASS, SPRINGS, TWIN, at, build, places
from .scene import labelled, replay
from .statics import MEASURED_STATIC_Y, static_state
from .trial import MEASURED_HZ, peaks, release


START = "trial_5_bias_corrected"
MEASURED = {  # printed measurements of marker 1 y: value, standard error, unit
    "first peak": (0.44, 0.005, "s"),
    "ninth peak": (3.88, 0.005, "s"),
    "fifth peak": (-17.6, 0.3, "mm"),
    "seventh peak": (-25.0, 0.3, "mm"),
    "at rest": (MEASURED_STATIC_Y, 0.3, "mm"),
}
FREE = {  # prior: middle, where the fit starts, and width in logarithms; unit
    "contact.coulomb": (0.15, 1.0, "N"),
    "contact.turning": (1e-3, 2.0, "N m s/rad"),
    "spring.mass": (SPRING_MASS, 0.3, "kg"),
}
GUESS, WIDTH = (jnp.array([x[i] for x in FREE.values()]) for i in (0, 1))
MIDDLE, SIGMA = (jnp.array([x[i] for x in MEASURED.values()]) for i in (0, 1))
MARKER_SIGMA, POSE_SIGMA = 0.5, np.deg2rad(15.0)  # mm, rad: of the pose at release


class Trial(eqx.Module):
    """Prediction of the five measured numbers from the free parameters.

    `still` is y of marker 1 at rest, mm, for springs without mass and for springs of
    the prior mass.
    """

    system: djdyn.System
    still: Float[Array, "2"]

    def values(self, log: jax.Array) -> dict[str, jax.Array]:
        """Return parameters by path from logarithms over the prior medians."""
        coulomb, turning, mass = GUESS * jnp.exp(log)
        masses = {f"spring_{row['spring']}.mass": mass for row in SPRINGS}
        return {"contact.coulomb": coulomb, "contact.turning": turning, **masses}

    def start(self, turned: jax.Array) -> djdyn.State:
        """Return the state at rest when the string is cut, offset by some angles."""
        y0 = at(self.system, START)
        return eqx.tree_at(lambda y: y.q, y0, y0.q + turned)

    def places(self, q: jax.Array) -> jax.Array:
        """Return the positions of the markers, mm."""
        return 1e3 * places(self.system.mechanism, q)

    def seen(self, log: jax.Array, turned: jax.Array) -> jax.Array:
        """Predict the measured numbers in the order of `MEASURED`.

        The static height is interpolated linearly in the springs' mass.
        """
        lanes = {k: x[None] for k, x in self.values(log).items()}
        how: dict[str, Any] = {"span": 4.5, "adjoint": "forward"}
        run = release(self.system, self.start(turned), lanes, **how)
        y = self.places(run.y.q[0])[:, 0, 1]
        times, heights = peaks(run.t, y, 9)
        light, heavy = self.still
        still = light + (heavy - light) * jnp.exp(log[2])
        return jnp.stack([times[0], times[8], heights[4], heights[6], still])


def trial(system: djdyn.System) -> Trial:
    """Return the prediction of a system, with its static marker heights."""
    found = Trial(system, jnp.zeros(2))
    still = []
    for mass in (0.0, SPRING_MASS):
        masses = {f"spring_{row['spring']}.mass": mass for row in SPRINGS}
        still.append(
            found.places(static_state(djdyn.with_parameters(system, masses)).q)[0, 1]
        )
    return Trial(system, jnp.stack(still))


def residuals(log: jax.Array, trial: Trial) -> jax.Array:
    """Return the residuals of measurements and priors, in standard errors."""
    seen = trial.seen(log, jnp.zeros(5))
    return jnp.concatenate([(seen - MIDDLE) / SIGMA, log / WIDTH])


@eqx.filter_jit
def fit(trial: Trial) -> tuple[jax.Array, jax.Array]:
    """Return logarithms of the parameters over their priors, and the steps taken."""
    with jax.numpy_dtype_promotion("standard"):  # optimistix mixes types
        found = optx.least_squares(
            residuals,
            optx.LevenbergMarquardt(rtol=1e-4, atol=1e-4),
            jnp.zeros(len(FREE)),
            trial,
            options={"jac": "fwd"},
            max_steps=30,
            throw=False,
        )
    return found.value, found.stats["num_steps"]


@eqx.filter_jit
def linearise_prediction(
    trial: Trial, log: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the prediction, its Jacobian, and that of the markers at release.

    The first Jacobian is with respect to the parameters' logarithms and the angles at
    release; the second with respect to the angles.
    """
    n = len(log)

    def both(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        seen = trial.seen(x[:n], x[n:])
        return seen, seen

    J, seen = jax.jacfwd(both, has_aux=True)(jnp.concatenate([log, jnp.zeros(5)]))
    placed = lambda turned: trial.places(trial.start(turned).q).ravel()
    return seen, J / SIGMA[:, None], jax.jacfwd(placed)(jnp.zeros(5))


def widths(J: np.ndarray, placed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standard deviations of the logarithms.

    The first are for a known pose at release; the second for a pose known from markers.
    """
    n, prior = len(FREE), np.diag(1 / np.asarray(WIDTH) ** 2)
    told = placed.T @ placed / MARKER_SIGMA**2 + np.eye(5) / POSE_SIGMA**2
    whole = J.T @ J
    whole[:n, :n] += prior
    whole[n:, n:] += told
    spread = lambda A: np.sqrt(np.diag(np.linalg.inv(A)))[:n]
    return spread(whole[:n, :n]), spread(whole)


def run_measured(study: Study) -> None:
    """Fit three parameters to five measured numbers and priors; report both."""
    found = trial(study.customise(build(**TWIN)))
    log, steps = fit(found)
    seen, J, placed = map(np.asarray, linearise_prediction(found, log))
    off, stem = np.abs(seen - np.asarray(MIDDLE)), "optotrak.measured"
    study.metric(
        f"{stem}.frequency_error_hz",
        8 / (seen[1] - seen[0]) - MEASURED_HZ,
        0.0,
        0.005,
        unit="Hz",
        note="identified model less the measured 2.3256 Hz (Knutson 2007); "
        f"{int(steps)} steps",
    )
    for name, value, most, unit, note in (
        ("peak_time_error_ms", 1e3 * off[:2].max(), 10.0, "ms",
         "largest error of the first and ninth peak, measured at 0.44 and 3.88 s "
         "(Knutson 2007)"),
        ("height_error_mm", off[2:].max(), 0.5, "mm",
         "largest error of two peaks and the static height, measured at -17.6, -25.0 "
         "and -38.3 mm (Knutson 2007)"),
    ):  # fmt: skip
        study.metric(f"{stem}.{name}", value, at_most=most, unit=unit, note=note)
    rows = []
    for (path, (guess, width, unit)), x, *spread in zip(
        FREE.items(), np.asarray(GUESS * jnp.exp(log)), *widths(J, placed), strict=True
    ):
        known, free = np.exp(spread)
        note = "identified from printed measurements; standard error a factor of "
        note += f"{known:.2f}, or {free:.2f} if the pose is known from markers only"
        study.metric(f"{stem}.{path}", x, unit=unit, note=note)
        rows.append((path, unit, guess, np.exp(width), x, known, free))
    study.report.table(
        "Parameters identified from five printed measurements (Knutson 2007); factors "
        "are one standard deviation",
        ("parameter", "unit", "prior", "factor", "found", "factor, pose known",
         "factor, pose from markers"),
        rows,
    )  # fmt: skip
    study.report.table(
        "Printed measurements (Knutson 2007) and the model's values, marker 1 y",
        ("quantity", "unit", "measured", "assumed standard error", "this run"),
        [
            (name, unit, value, good, x)
            for (name, (value, good, unit)), x in zip(
                MEASURED.items(), seen, strict=True
            )
        ],
    )
    sizes, ways = np.linalg.svd(J[:, : len(FREE)])[1:]
    study.report.table(
        "Singular values and directions of the five measurements, for a known pose",
        ("singular value", *FREE),
        [(size, *way) for size, way in zip(sizes, ways, strict=True)],
    )
    study.report.text(
        "The assumed pose at release is the printed one less the bias of the static "
        "trial; it is derived, not measured. For this pose, the heights of the two "
        "peaks separate the Coulomb force from the viscous torque, and the times of "
        "the peaks determine the mass of the springs. The last column holds the "
        f"standard errors for a pose known only from markers with {MARKER_SIGMA:g} mm "
        "of error each, to first order. Markers hardly register a ball that slides "
        "while the rod tilts back, and such a motion hardly changes these peaks. The "
        "measurements do not determine the pose itself, the form of the damping (air "
        "drag instead of a torque fits as well), the mass centre, and the zero-force "
        "lengths of the springs. The latter may explain the remaining 0.2 mm at rest."
    )
    show(study, found, log)


def show(study: Study, found: Trial, log: jax.Array) -> None:
    """Plot the marker channels of the identified system and add a replay."""
    lanes = {k: np.asarray(x)[None] for k, x in found.values(log).items()}
    run = release(found.system, found.start(jnp.zeros(5)), lanes).lane(0)
    p, t = np.asarray(found.places(run.y.q)), np.asarray(run.t)
    study.series("identified", labelled(t, model=1e-3 * p))
    study.report.plot(
        "Identified model: y of marker 1, with measured peaks and static height",
        ("time", "s", t[::2]),
        ("y", "mm"),
        {"marker 1": p[::2, 0, 1]},
        {
            "fifth peak, measured": ([2.2], [-17.6]),
            "seventh peak, measured": ([3.1], [-25.0]),
            "static height, measured": ([0.0, 5.0], [MEASURED_STATIC_Y] * 2),
            "time of first peak, measured": ([0.44] * 2, [-90.0, 25.0]),
            "time of ninth peak, measured": ([3.88] * 2, [-90.0, 25.0]),
        },
    )
    study.report.plot(
        "Identified model: x and z of marker 1, less their values at release",
        ("time", "s", t[::2]),
        ("x and z", "mm"),
        {f"marker 1 {k}": p[::2, 0, i] - p[0, 0, i] for i, k in ((0, "x"), (2, "z"))},
    )
    study.report.scene(replay(run), "Trial 5, identified model")
