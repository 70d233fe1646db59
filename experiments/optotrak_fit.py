"""What the measured numbers that were printed say about friction and springs."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

import djdyn

from .optotrak_rest import STATED_STATIC_Y, rest
from .optotrak_rig import SPRING_MASS, SPRINGS, TWIN, build, markers
from .optotrak_trial import MEASURED_HZ, peaks, release, replay
from .study import Study


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


class Trial(eqx.Module):
    """The machine with its free numbers put in, seen as the numbers measured."""

    system: djdyn.System
    still: Float[
        Array, "2"
    ]  # mm, y at rest without the springs' mass, and by the guess
    pose: str = eqx.field(static=True, default=START)

    def values(self, log: jax.Array) -> dict[str, jax.Array]:
        coulomb, turning, mass = GUESS * jnp.exp(log)
        masses = {f"spring_{row['spring']}.mass": mass for row in SPRINGS}
        return {"contact.coulomb": coulomb, "contact.turning": turning, **masses}

    def seen(self, log: jax.Array) -> jax.Array:
        """In the order of `MEASURED`."""
        values = self.values(log)
        lanes = {k: x[None] for k, x in values.items()}
        how: dict[str, Any] = {"span": 4.5, "adjoint": "forward"}
        run = release(self.system, self.pose, lanes, **how)
        world = lambda q: djdyn.look(self.system.mechanism, q).pose("marker_1").p[1]
        times, heights = peaks(run.t, 1e3 * jax.vmap(world)(run.y.q[0]), 9)
        light, heavy = self.still
        still = light + (heavy - light) * jnp.exp(log[2])
        return jnp.stack([times[0], times[8], heights[4], heights[6], still])


def resting(system: djdyn.System) -> jax.Array:
    """Of marker 1 y at rest, mm: with springs of no mass, and of the guess."""
    found = []
    for mass in (0.0, SPRING_MASS):
        masses = {f"spring_{row['spring']}.mass": mass for row in SPRINGS}
        q = rest(djdyn.put(system, masses)).q
        found.append(1e3 * djdyn.look(system.mechanism, q).pose("marker_1").p[1])
    return jnp.stack(found)


def residuals(log: jax.Array, trial: Trial) -> jax.Array:
    """Of numbers measured and of priors, in standard errors."""
    return jnp.concatenate([(trial.seen(log) - MIDDLE) / SIGMA, log / WIDTH])


@eqx.filter_jit
def fit(trial: Trial) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Logarithms over the guess, their residuals and Jacobian, and steps."""
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
    log = found.value
    twice = lambda log: (residuals(log, trial),) * 2
    J, r = jax.jacfwd(twice, has_aux=True)(log)
    return log, r, J, found.stats["num_steps"]


def run_measured(study: Study) -> None:
    """Three numbers from five, and from priors."""
    system = study.customise(build(**TWIN))
    trial = Trial(system, resting(system))
    log, r, J, steps = map(np.asarray, fit(trial))
    n, values = len(MEASURED), np.asarray(GUESS) * np.exp(log)
    seen = np.asarray(MIDDLE) + r[:n] * np.asarray(SIGMA)
    stem, spread = "optotrak.measured", np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
    hertz = 8 / (seen[1] - seen[0])
    note = f"identified; stated measured 2.3256 Hz; {int(steps)} steps"
    study.metric(
        f"{stem}.frequency_error_hz",
        hertz - MEASURED_HZ,
        0.0,
        0.005,
        unit="Hz",
        note=note,
    )
    late = 1e3 * np.abs(seen[:2] - np.asarray(MIDDLE)[:2]).max()
    note = "first and ninth peak beside 0.44 and 3.88 s, stated measured"
    study.metric(f"{stem}.peak_time_error_ms", late, 0.0, 10.0, unit="ms", note=note)
    off = np.abs(r[2:n] * np.asarray(SIGMA)[2:]).max()
    note = "two peaks and rest beside -17.6, -25.0 and -38.3 mm, stated measured"
    study.metric(f"{stem}.height_error_mm", off, 0.0, 0.5, unit="mm", note=note)
    rows = []
    for (path, (guess, width, unit)), x, s in zip(
        FREE.items(), values, spread, strict=True
    ):
        note = f"times or over {np.exp(s):.2f}; prior {guess:g}, {np.exp(width):.2f}"
        study.metric(f"{stem}.{path}", x, unit=unit, note=note)
        rows.append((path, unit, guess, np.exp(width), x, np.exp(s)))
    study.report.table(
        "Identified from five numbers stated as measured; factors of one deviation",
        ("number", "unit", "prior", "times or over", "found", "times or over"),
        rows,
    )
    study.report.table(
        "The numbers stated as measured, and the model's (marker 1 y)",
        ("number", "unit", "stated measured", "taken as good to", "this run"),
        [
            (k, u, m, s, x)
            for (k, (m, s, u)), x in zip(MEASURED.items(), seen, strict=True)
        ],
    )
    sizes, ways = np.linalg.svd(J[:n])[1:]
    study.report.table(
        "What the five numbers see: a step of one in logarithms, in standard errors",
        ("seen", *FREE),
        [(size, *way) for size, way in zip(sizes, ways, strict=True)],
    )
    blind = ways[-1] / np.abs(ways[-1]).max()
    study.metric(
        f"{stem}.weakest_direction",
        sizes[-1],
        note="standard errors per unit of logarithm, without priors",
    )
    words = ", ".join(f"{w:+.2f} {k}" for k, w in zip(FREE, blind, strict=True))
    study.report.text(
        "Coulomb's force and the viscous torque are told apart by how the two peaks "
        "fall, to the widths above. The springs' mass rests on its prior where its "
        f"width hardly shrank. Least is seen of the direction ({words}) in logarithms. "
        "Not determined by so few numbers: the pose at release (taken from the stated "
        "one less the bias of the static trial, which is derived, not measured), the "
        "form of the damping (drag of the air instead of a torque fits too), the mass "
        "centre and the springs' zero-force lengths."
    )
    show(study, trial, log, seen)


def show(study: Study, trial: Trial, log: np.ndarray, seen: np.ndarray) -> None:
    """Marker channels and replay of the machine found."""
    lanes = {k: np.asarray(x)[None] for k, x in trial.values(jnp.asarray(log)).items()}
    run = release(trial.system, trial.pose, lanes).lane(0)
    found, t = np.asarray(run.map(markers)), np.asarray(run.t)
    study.series("identified", run)
    study.report.plot(
        "Identified: marker 1 y, and the peaks and rest stated as measured",
        ("time", "s", t[::2]),
        ("y", "mm"),
        {"marker 1": found[::2, 0, 1]},
        {
            "stated measured": (
                [0.44, 2.2, 3.1, 3.88, 5.0],
                [np.nan, -17.6, -25.0, np.nan, STATED_STATIC_Y],
            ),
            "first and ninth peak": ([0.44, 3.88], found[[176, 1552], 0, 1]),
        },
    )
    study.report.plot(
        "Identified: x and z of marker 1",
        ("time", "s", t[::2]),
        ("x and z", "mm"),
        {"marker 1 x": found[::2, 0, 0], "marker 1 z": found[::2, 0, 2]},
    )
    study.report.scene(replay(run), "Trial 5 as identified: rod, springs and markers")
