"""Identification of oil, valve, leak and friction of a boom from a noisy record."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from estimation import (
    FitResult,
    Problem,
    linearise_residuals,
    parametric_bootstrap,
    residuals,
)

from ...harness.study import Study
from .energy_balance import machine
from .record import FREE, NOISE, TIMES, identify, problem, record


SEED, RUNS = 20160101, 32
STEM = "hydraulic_boom.identified"


def run_fit(study: Study) -> None:
    """Identify five parameters from a synthetic record and report their errors."""
    system = machine()
    clean, noise = record(system), np.array([*NOISE.values()])
    grains = noise * np.random.default_rng(SEED).standard_normal(clean.shape)
    found, truth = identify(system, clean + grains), problem(system, clean)
    error = np.sqrt(np.diag(found.covariance_x))
    log = np.asarray(found.x - truth.x)
    study.metric(
        f"{STEM}.max_z",
        np.abs(log / error).max(),
        at_most=2.0,
        note="largest error of five parameters, in standard errors; "
        f"{found.num_evaluations} simulations with a Jacobian",
    )
    rows = []
    for path, x, s in zip(found.names, log, error, strict=True):
        name, unit, true, off = FREE[path]
        value, first, deviation = true * np.exp(x), true * off, true * s
        note = f"standard error {deviation:.3g}, start {first:.3g}"
        study.metric(f"{STEM}.{name}", value, true, 2 * deviation, unit=unit, note=note)
        rows.append((name, unit, true, first, value, deviation, x / s))
    study.report.table(
        "Parameters identified from pressures (0.2 bar of noise) and stroke (0.1 mm), "
        "5 s at 100 samples a second",
        ("parameter", "unit", "true", "start", "found", "standard error", "z"),
        rows,
    )
    run_slopes(study, truth)
    note = "squared residuals over degrees of freedom; 1 if residuals are noise"
    study.metric(f"{STEM}.chi2", found.chi2, 1.0, 0.15, note=note)
    before = np.asarray(linearise_residuals(found.problem, found.x0)[0]).reshape(-1, 3)
    after = residuals(found)[0].values
    for i, (name, unit) in enumerate(
        {"piston": "bar", "rod": "bar", "stroke": "mm"}.items()
    ):
        scale = NOISE[name] * (1e3 if unit == "mm" else 1.0)
        study.report.plot(
            f"Identification: residual of {name}, model less record",
            ("time", "s", TIMES),
            ("residual", unit),
            {"at the start": scale * before[:, i], "found": scale * after[:, i]},
        )
    run_coverage(study, found, truth)


def run_slopes(study: Study, truth: Problem) -> None:
    """Compare the Jacobian along one direction with differences."""
    d, h = jnp.cos(jnp.arange(1.0, 6.0)), 1e-5
    call = jax.jit(lambda x: truth.residuals(x))
    slope = (call(truth.x + h * d) - call(truth.x - h * d)) / (2 * h)
    off = (
        jnp.abs(slope - linearise_residuals(truth, truth.x)[1] @ d).max()
        / jnp.abs(slope).max()
    )
    note = "relative error of a directional derivative, beside differences"
    study.metric(f"{STEM}.jacobian_error", off, at_most=1e-5, note=note)


def run_coverage(study: Study, found: FitResult, truth: Problem) -> None:
    """Report the coverage of two standard errors over records with other noise."""
    noise = np.random.default_rng(SEED + 1).standard_normal((RUNS + 1, len(found.J)))
    noise[0] = 0.0
    x, _ = parametric_bootstrap(truth, found.x, found.J, jnp.asarray(noise))
    z = np.asarray(x - truth.x[None]) / np.sqrt(np.diag(found.covariance_x))
    bias, z = z[0], z[1:]
    study.metric(
        f"{STEM}.bias_z",
        np.abs(bias).max(),
        at_most=0.2,
        note="largest error of a fit without noise, in standard errors: the effect of "
        "the fit's steps of 2.5 ms",
    )
    for name, value, reference, within, note in (
        ("coverage", np.mean(np.abs(z) < 2), 0.954, 0.05,
         f"share of {z.size} parameters of {RUNS} other records within two standard "
         "errors"),
        ("rms_z", np.sqrt(np.mean(z**2)), 1.0, 0.2,
         f"rms of z over {RUNS} other records"),
    ):  # fmt: skip
        study.metric(f"{STEM}.{name}", value, reference, within, note=note)
    study.report.plot(
        f"Identification from {RUNS} records: distribution of the errors",
        ("share of records", "%", 100 * (np.arange(RUNS) + 0.5) / RUNS),
        ("z", "standard errors"),
        {FREE[path][0]: np.sort(z[:, i]) for i, path in enumerate(found.names)},
        {"normal": scipy.stats.norm.ppf((np.arange(RUNS) + 0.5) / RUNS)},
    )
