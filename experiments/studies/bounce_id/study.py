"""Bounce identification: contact stiffness and dissipation from a bouncing sphere.

A sphere of 0.2 kg and 20 mm falls 0.1 m; one marker at 303 Hz with 0.1 mm of noise.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn import FreeParameter, Positive
from djdyn.contact import Contact, HalfSpace, HuntCrossley, Sphere, dissipation
from estimation import FitResult, Trial, fit, random_starts, residuals

from ...harness.study import Study
from ..contact.model import G, over


TITLE = "Bounce identification: stiffness and dissipation from a marker"
STAGES = 2
ENDS_PLOT = "Stiffness at the end of each fit, over the true one"
MASS, RADIUS, DROP = 0.2, 0.02, 0.1  # kg, m, m
STIFFNESS, RESTITUTION = 2e6, 0.7  # N/m^1.5, 1
RATE, SPAN, STEPS_PER_SAMPLE = 303, 0.5, 16  # Hz, s, 1
NOISE = 1e-4  # m
WINDOWS = (0.4, 0.7)  # shares of the record that are fitted first: one bounce, two
FREE = [
    FreeParameter("touch.normal.stiffness", Positive()),
    FreeParameter("touch.normal.dissipation", Positive()),
]
TIMES = np.arange(1, round(RATE * SPAN) + 1) / RATE  # s


def build() -> djdyn.System:
    """Return a sphere over a plane with Hunt–Crossley contact."""
    D = dissipation(RESTITUTION, np.sqrt(2 * G * DROP))
    law = HuntCrossley(STIFFNESS, D)
    part = Contact("b", Sphere(RADIUS), "bed", HalfSpace(), law)
    return over(part, MASS, 0.4 * MASS * RADIUS**2, joint=djdyn.Prismatic((0, 0, 1)))


def height(system: djdyn.System, times: np.ndarray) -> Array:
    """Return the height of the centre, m."""
    y0 = system.initial_state(q=[RADIUS + DROP])
    run = djdyn.rollout(
        system, times[-1], jax.tree.map(lambda x: x[None], y0), saveat=times,
        solver="rk4", dt=1 / (RATE * STEPS_PER_SAMPLE),
    )  # fmt: skip
    return run.y.q[0]


def record(system: djdyn.System, seed: int = 0) -> np.ndarray:
    """Return a noisy record, simulated with adaptive steps unlike those of the fit."""
    y0 = system.initial_state(q=[RADIUS + DROP])
    run = djdyn.simulate(system, TIMES[-1], y0, saveat=TIMES, rtol=1e-11, atol=1e-13)
    grains = NOISE * np.random.default_rng(seed).standard_normal((len(TIMES), 1))
    return np.asarray(run.y.q) + grains


def identify(system: djdyn.System, values: np.ndarray, starts: int) -> FitResult:
    """Fit from random starts over two decades, all at once."""
    trial = Trial(TIMES, values, height, sigma=NOISE, labels=("height",), name="drop")
    spread = random_starts(system, FREE, starts, decades=2.0)
    return fit(
        system,
        trial,
        FREE,
        starts=spread,
        growing_windows=WINDOWS,
        hold_out=0.0,
        allow_unidentifiable=True,
    )


def recovered(found: FitResult, truth: djdyn.System) -> np.ndarray:
    """Return which starts ended within three standard errors of the true values."""
    deviation = np.sqrt(np.diag(found.covariance_x))
    names = found.problem.names
    true = np.array(
        [np.log(float(djdyn.get_parameters(truth, name))) for name in names]
    )
    return np.all(np.abs(found.all_x - true) < 3 * deviation, axis=1)


def run(study: Study) -> None:
    """Identify a synthetic record and report both parameters."""
    study.report.text(
        "Only the duration of a bounce depends on the stiffness, and only a few "
        "samples fall into it. A fit that starts far from the true values may end in a "
        "local minimum. This study fits from many random starts over two decades of "
        "both parameters and takes the best."
    )
    system = study.customise(build())
    starts = 32 if study.quick else 100
    with study.stage("record"):
        values = record(system)
    with study.stage(f"{starts} starts in one fit"):
        found = identify(system, values, starts)
    good = recovered(found, system)
    study.metric(
        "bounce_id.recovered", 100 * good.mean(), at_least=95.0, unit="%",
        note=f"share of {starts} starts that end within 3 standard errors",
    )  # fmt: skip
    units = djdyn.parameters(system).units
    for name, value in found.values.items():
        true, deviation = (
            float(djdyn.get_parameters(system, name)),
            float(found.deviations[name]),
        )
        study.metric(
            f"bounce_id.{name.rsplit('.', 1)[-1]}", value, true, 3 * deviation,
            unit=units[name], note=f"± {deviation:.2g}, one standard error",
        )  # fmt: skip
    note = "squared residuals over degrees of freedom"
    study.metric("bounce_id.chi2", found.chi2, 1.0, 0.3, note=note)
    p = residuals(found)[0].p_white[0]
    note = "p value of the Ljung–Box test: residuals that are noise exceed 0.01"
    study.metric("bounce_id.p_white", p, at_least=0.01, note=note)
    study.metric("bounce_id.steps", len(found.history), note="steps of the batch")
    began, ended = np.exp(found.all_x0), np.exp(found.all_x)
    i, j = (found.problem.names.index(f.path) for f in FREE)
    order = np.argsort(began[:, i])
    study.report.plot(
        ENDS_PLOT,
        ("start over true, decades", "", np.log10(began[order, i] / STIFFNESS)),
        ("end over true, decades", ""),
        {"ends": np.log10(ended[order, i] / STIFFNESS)},
        {"starts": np.log10(began[order, i] / STIFFNESS)},
    )
    if not good.all():
        study.report.table(
            "Starts that ended in another minimum",
            ("stiffness", "dissipation", "ended at", "", "cost over least"),
            [
                (began[n, i], began[n, j], ended[n, i], ended[n, j],
                 found.costs[n] / found.cost)
                for n in np.flatnonzero(~good)
            ],
        )  # fmt: skip
    study.answer(summary(study.metrics, starts), ENDS_PLOT)
    fitted = predicted(found)
    study.report.plot(
        "Synthetic marker and identified model",
        ("time", "s", TIMES),
        ("height", "mm"),
        {"model": 1e3 * fitted},
        {"record": 1e3 * values[:, 0]},
    )


def summary(found: dict[str, float], starts: int) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"bounce_id.{name}"]
    return (
        f"Of {starts} fits from random starts over two decades, "
        f"{of('recovered'):.0f} % end within three standard errors of the truth. The "
        f"best one finds a stiffness of {of('stiffness') / 1e6:.3f} MN/m^1.5, where "
        f"{STIFFNESS / 1e6:g} is true, and a dissipation of "
        f"{of('dissipation'):.4f} s/m. Its residuals are noise (p of "
        f"{of('p_white'):.2f} in the Ljung–Box test)."
    )


def predicted(found: FitResult) -> np.ndarray:
    """Return the heights that the identified model predicts, m."""
    return np.asarray(jnp.ravel(jax.jit(lambda m: height(m, TIMES))(found.model)))
