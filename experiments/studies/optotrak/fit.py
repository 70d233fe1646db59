"""What the measured numbers that were printed say about friction and springs."""

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
from .statics import STATED_STATIC_Y, rest
from .trial import MEASURED_HZ, peaks, release


START = "trial_5_bias_corrected"
MEASURED = {  # stated measured, of marker 1 y: value, standard error, unit
    "first peak": (0.44, 0.005, "s"),
    "ninth peak": (3.88, 0.005, "s"),
    "fifth peak": (-17.6, 0.3, "mm"),
    "seventh peak": (-25.0, 0.3, "mm"),
    "at rest": (STATED_STATIC_Y, 0.3, "mm"),
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
    """The machine with its free numbers put in, seen as the numbers measured.

    `still` is y of marker 1 at rest, mm: with springs of no mass, and of the guess.
    """

    system: djdyn.System
    still: Float[Array, "2"]

    def values(self, log: jax.Array) -> dict[str, jax.Array]:
        coulomb, turning, mass = GUESS * jnp.exp(log)
        masses = {f"spring_{row['spring']}.mass": mass for row in SPRINGS}
        return {"contact.coulomb": coulomb, "contact.turning": turning, **masses}

    def start(self, turned: jax.Array) -> djdyn.State:
        """At rest where the string is cut, up to some angles."""
        y0 = at(self.system, START)
        return eqx.tree_at(lambda y: y.q, y0, y0.q + turned)

    def places(self, q: jax.Array) -> jax.Array:
        """Of the markers, mm."""
        return 1e3 * places(self.system.mechanism, q)

    def seen(self, log: jax.Array, turned: jax.Array) -> jax.Array:
        """In the order of `MEASURED`; rest goes as good as linearly with mass."""
        lanes = {k: x[None] for k, x in self.values(log).items()}
        how: dict[str, Any] = {"span": 4.5, "adjoint": "forward"}
        run = release(self.system, self.start(turned), lanes, **how)
        y = self.places(run.y.q[0])[:, 0, 1]
        times, heights = peaks(run.t, y, 9)
        light, heavy = self.still
        still = light + (heavy - light) * jnp.exp(log[2])
        return jnp.stack([times[0], times[8], heights[4], heights[6], still])


def trial(system: djdyn.System) -> Trial:
    found = Trial(system, jnp.zeros(2))
    still = []
    for mass in (0.0, SPRING_MASS):
        masses = {f"spring_{row['spring']}.mass": mass for row in SPRINGS}
        still.append(found.places(rest(djdyn.with_parameters(system, masses)).q)[0, 1])
    return Trial(system, jnp.stack(still))


def residuals(log: jax.Array, trial: Trial) -> jax.Array:
    """Of numbers measured and of priors, in standard errors."""
    seen = trial.seen(log, jnp.zeros(5))
    return jnp.concatenate([(seen - MIDDLE) / SIGMA, log / WIDTH])


@eqx.filter_jit
def fit(trial: Trial) -> tuple[jax.Array, jax.Array]:
    """Logarithms over the guess, and steps."""
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
def linear(trial: Trial, log: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What is seen; its slopes by numbers and angles at release; those of markers."""
    n = len(log)

    def both(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        seen = trial.seen(x[:n], x[n:])
        return seen, seen

    J, seen = jax.jacfwd(both, has_aux=True)(jnp.concatenate([log, jnp.zeros(5)]))
    placed = lambda turned: trial.places(trial.start(turned).q).ravel()
    return seen, J / SIGMA[:, None], jax.jacfwd(placed)(jnp.zeros(5))


def widths(J: np.ndarray, placed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deviations of logarithms: the pose at release known, or as markers tell it."""
    n, prior = len(FREE), np.diag(1 / np.asarray(WIDTH) ** 2)
    told = placed.T @ placed / MARKER_SIGMA**2 + np.eye(5) / POSE_SIGMA**2
    whole = J.T @ J
    whole[:n, :n] += prior
    whole[n:, n:] += told
    spread = lambda A: np.sqrt(np.diag(np.linalg.inv(A)))[:n]
    return spread(whole[:n, :n]), spread(whole)


def run_measured(study: Study) -> None:
    """Three numbers from five, and from priors."""
    found = trial(study.customise(build(**TWIN)))
    log, steps = fit(found)
    seen, J, placed = map(np.asarray, linear(found, log))
    off, stem = np.abs(seen - np.asarray(MIDDLE)), "optotrak.measured"
    for name, value, within, unit, note in (
        ("frequency_error_hz", 8 / (seen[1] - seen[0]) - MEASURED_HZ, 0.005, "Hz",
         f"identified; stated measured 2.3256 Hz; {int(steps)} steps"),
        ("peak_time_error_ms", 1e3 * off[:2].max(), 10.0, "ms",
         "first and ninth peak beside 0.44 and 3.88 s, stated measured"),
        ("height_error_mm", off[2:].max(), 0.5, "mm",
         "two peaks and rest beside -17.6, -25.0 and -38.3 mm, stated measured"),
    ):  # fmt: skip
        study.metric(f"{stem}.{name}", value, 0.0, within, unit=unit, note=note)
    rows = []
    for (path, (guess, width, unit)), x, *spread in zip(
        FREE.items(), np.asarray(GUESS * jnp.exp(log)), *widths(J, placed), strict=True
    ):
        known, free = np.exp(spread)
        note = "from stated measured numbers; good to a factor of "
        note += f"{known:.2f}, or {free:.2f} with the pose as markers tell"
        study.metric(f"{stem}.{path}", x, unit=unit, note=note)
        rows.append((path, unit, guess, np.exp(width), x, known, free))
    study.report.table(
        "Identified from five numbers stated as measured; factors of one deviation",
        ("number", "unit", "prior", "factor", "found", "factor, pose known",
         "factor, pose as markers tell"),
        rows,
    )  # fmt: skip
    study.report.table(
        "The numbers stated as measured, and the model's (marker 1 y)",
        ("number", "unit", "stated measured", "taken as good to", "this run"),
        [
            (name, unit, value, good, x)
            for (name, (value, good, unit)), x in zip(
                MEASURED.items(), seen, strict=True
            )
        ],
    )
    sizes, ways = np.linalg.svd(J[:, : len(FREE)])[1:]
    study.report.table(
        "What the five numbers see, were the pose known: steps in logarithms",
        ("seen, deviations a step", *FREE),
        [(size, *way) for size, way in zip(sizes, ways, strict=True)],
    )
    study.report.text(
        "With the pose at release as assumed (the stated one less the bias of the "
        "static trial: derived, not measured), the two peaks' heights tell Coulomb's "
        "force from the viscous torque, and the peaks' times the springs' mass. With "
        f"the pose only as markers tell it, each to {MARKER_SIGMA:g} mm, the widths "
        "are those of the last column, to first order: a ball that slides while the "
        "rod tilts back is hardly seen by markers, and hardly moves these peaks. Not "
        "determined: that pose itself, the form of the damping (others found that drag "
        "of the air instead of a torque fits too), the mass centre, and the springs' "
        "zero-force lengths, to which the 0.2 mm left at rest may belong."
    )
    show(study, found, log)


def show(study: Study, found: Trial, log: jax.Array) -> None:
    """Marker channels and replay of the machine found."""
    lanes = {k: np.asarray(x)[None] for k, x in found.values(log).items()}
    run = release(found.system, found.start(jnp.zeros(5)), lanes).lane(0)
    p, t = np.asarray(found.places(run.y.q)), np.asarray(run.t)
    study.series("identified", labelled(t, model=1e-3 * p))
    study.report.plot(
        "Identified: marker 1 y, and the peaks and rest stated as measured",
        ("time", "s", t[::2]),
        ("y", "mm"),
        {"marker 1": p[::2, 0, 1]},
        {
            "fifth peak, stated measured": ([2.2], [-17.6]),
            "seventh peak, stated measured": ([3.1], [-25.0]),
            "rest, stated measured": ([0.0, 5.0], [STATED_STATIC_Y] * 2),
            "time of first peak, stated measured": ([0.44] * 2, [-90.0, 25.0]),
            "time of ninth peak, stated measured": ([3.88] * 2, [-90.0, 25.0]),
        },
    )
    study.report.plot(
        "Identified: x and z of marker 1, less those at release",
        ("time", "s", t[::2]),
        ("x and z", "mm"),
        {f"marker 1 {k}": p[::2, 0, i] - p[0, 0, i] for i, k in ((0, "x"), (2, "z"))},
    )
    study.report.scene(replay(run), "Trial 5 as identified: rod, springs and markers")
