"""Oil, valve, leak and friction of a boom identified from a noisy record."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from .hydraulic_boom_books import machine
from .hydraulic_boom_lift import SPAN
from .hydraulic_boom_record import (
    FREE,
    NOISE,
    SEED,
    START,
    TRUE,
    Record,
    deviations,
    fit,
    linear,
    refit,
    synthesised,
)
from .study import Study


def run_fit(study: Study) -> None:
    """A record with noise; what it says about five numbers, and how surely."""
    clean = synthesised(machine())
    record, start = clean.noisy(SEED), jnp.log(jnp.asarray(START / TRUE))
    with jax.numpy_dtype_promotion("standard"):  # optimistix mixes types
        found = fit(record, start)
    r, J = linear(found.value, record)
    error, z = deviations(J), found.value / deviations(J)
    stem = "hydraulic_boom.identified"
    study.metric(
        f"{stem}.max_z",
        jnp.abs(z).max(),
        0.0,
        2.0,
        note="true values, in standard errors from those found: farthest of five; "
        f"{int(found.stats['num_steps'])} steps of Levenberg and Marquardt",
    )
    rows = []
    for (name, (unit, true, _)), first, log, s in zip(
        FREE.items(), START, found.value, error, strict=True
    ):
        value, deviation = true * float(jnp.exp(log)), true * float(s)
        note = f"± {deviation:.3g}, from a start of {first:.3g}"
        metric, within = f"{stem}.{name}", 2 * deviation
        study.metric(metric, value, true, within, unit=unit, note=note)
        rows.append((name, unit, true, first, value, deviation, float(log / s)))
    r0, J0 = linear(jnp.zeros(len(FREE)), clean)
    bias = jnp.linalg.solve(J0.T @ J0, J0.T @ r0) / deviations(J0)
    d, h = jnp.cos(jnp.arange(1.0, 6.0)), 1e-5
    ends = [eqx.filter_jit(clean.residuals)(s * h * d) for s in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * h)
    off = jnp.abs(slope - J0 @ d).max() / jnp.abs(slope).max()
    for name, value, reference, within, note in (
        ("chi2", r @ r / (r.size - len(FREE)), 1.0, 0.15, "squares over freedoms; "
         "one, if noise is all that is left"),
        ("bias_z", jnp.abs(bias).max(), 0.0, 0.2, "without noise: what the fit's steps "
         "of 2.5 ms do beside adaptive ones"),
        ("jacobian_error", off, 0.0, 1e-5, "forward mode beside differences"),
    ):  # fmt: skip
        study.metric(f"{stem}.{name}", value, reference, within, note=note)
    study.report.table(
        "Identified from pressures (0.2 bar of noise) and stroke (0.1 mm), 5 s at 100 "
        "samples a second",
        ("number", "unit", "true", "start", "found", "standard error", "z"),
        rows,
    )
    t = np.linspace(0.0, SPAN, len(record.values))
    before = linear(start, record)[0].reshape(-1, 3)
    after = r.reshape(-1, 3)
    for i, (name, unit) in enumerate(
        {"piston": "bar", "rod": "bar", "stroke": "mm"}.items()
    ):
        scale = NOISE[name] * (1e3 if unit == "mm" else 1.0)
        study.report.plot(
            f"Identification, model less record: {name}",
            ("time", "s", t),
            ("residual", unit),
            {"at the start": scale * before[:, i], "found": scale * after[:, i]},
        )
    run_coverage(study, clean)


def run_coverage(study: Study, clean: Record, runs: int = 32) -> None:
    """The same with other noise: do two standard errors hold the truth as they say?"""
    values = jnp.stack([clean.noisy(SEED + 1 + k).values for k in range(runs)])
    theta, error = refit(clean, values)
    z = np.asarray(theta / error)
    note = f"of {z.size} numbers from {runs} other records, within two standard errors"
    stem = "hydraulic_boom.identified"
    study.metric(f"{stem}.coverage", np.mean(abs(z) < 2), 0.954, 0.05, note=note)
    note = f"root mean square of z over {runs} other records"
    study.metric(f"{stem}.rms_z", np.sqrt(np.mean(z**2)), 1.0, 0.2, note=note)
    study.report.plot(
        f"Identification from {runs} records: found less true",
        ("share of records", "%", 100 * (np.arange(runs) + 0.5) / runs),
        ("z", "standard errors"),
        {name: np.sort(z[:, i]) for i, name in enumerate(FREE)},
        {"normal": scipy.stats.norm.ppf((np.arange(runs) + 0.5) / runs)},
    )
