"""V8 and V9: the string is cut; without friction, and with more and more of it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import djdyn

from ...harness import tables
from ...harness.study import Study
from .model import at, build, places
from .scene import labelled
from .statics import carried


SPAN, DT = 5.0, 2.5e-4  # s
COULOMB = np.array([0.0, 0.05, 0.10, 0.14, 0.15, 0.16, 0.20, 0.30])  # N
DERIVED = {  # V8, by others: first peak s, ninth peak s, fifth peak mm
    0.0: (0.4439, 3.943, 18.8),
    0.05: (0.4406, 3.916, 11.0),
    0.10: (0.4383, 3.869, -4.1),
    0.14: (0.4371, 3.813, -13.6),
    0.15: (0.4369, 3.805, -14.8),
    0.16: (0.4370, 3.797, -14.9),
    0.20: (0.4367, 3.776, -9.7),
    0.30: (0.4273, 3.754, 6.1),
}
MEASURED_HZ, SIMULATED_HZ = (
    8 / 3.44,
    8 / 3.37,
)  # stated, of peaks at 0.44 and 3.88, 3.81 s
CHANNELS = tuple(f"m{i}{k}_mm" for i in range(1, 5) for k in "xyz")


def release(
    system: djdyn.System,
    y0: djdyn.State,
    lanes: dict[str, Any],
    span: float = SPAN,
    **how: Any,
) -> djdyn.Trajectory:
    """From rest, all lanes at once, saved every 2.5 ms."""
    saves = np.linspace(0.0, span, round(400 * span) + 1)
    how = {"solver": "rk4", "dt": DT, "saveat": saves, **how}
    return djdyn.rollout(system, span, y0, parameters=lanes, **how)


def peaks(t: jax.Array, y: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Times and heights of the first maxima, by parabolas through three samples."""
    top = (y[1:-1] > y[:-2]) & (y[1:-1] >= y[2:])
    i = jnp.flatnonzero(top, size=count, fill_value=0) + 1
    h, bend, slope = t[1] - t[0], y[i + 1] - 2 * y[i] + y[i - 1], y[i + 1] - y[i - 1]
    return t[i] - h * slope / (2 * bend), y[i] - slope**2 / (8 * bend)


def run_frictionless(study: Study) -> None:
    """V9: all markers for five seconds, beside another program's."""
    system = study.customise(build())
    lanes = {"contact.coulomb": np.zeros(1)}
    run = release(system, at(system, "trial_5"), lanes, dt=1.25e-4).lane(0)
    known = tables.columns(
        tables.read("optotrak/synthetic_trial5_frictionless.csv"), *CHANNELS
    )
    seen = places(system.mechanism, run.y.q)
    found = 1e3 * np.asarray(seen).reshape(len(run), -1)
    errors = np.abs(found[::4] - known)
    stem = "optotrak.frictionless"
    note = "V9, synthetic: twelve channels at 5 s; printed to 1e-4"
    study.metric(
        f"{stem}.marker_error_mm", errors[-1].max(), 0.0, 1e-3, unit="mm", note=note
    )
    note = "V9, synthetic: twelve channels at all times"
    study.metric(
        f"{stem}.marker_error_ever_mm", errors.max(), 0.0, 1e-3, unit="mm", note=note
    )
    then = lambda i: jax.tree.map(lambda x: x[i], run.y)
    energies = [carried(system, then(i))[1] for i in range(0, len(run), 40)]
    study.metric(
        f"{stem}.energy", energies[0], 1.82501712, 1e-8, unit="J", note="V9, derived"
    )
    study.metric(
        f"{stem}.energy_drift",
        np.ptp(energies),
        0.0,
        1e-8,
        unit="J",
        note="V9: none ought to be lost",
    )
    study.series("frictionless", labelled(run.t, model=seen))
    t = np.asarray(run.t)
    for k, axis in enumerate("xyz"):
        study.report.plot(
            f"V9, trial 5 without friction: {axis} (reference: synthetic)",
            ("time", "s", t[::2]),
            (axis, "mm"),
            {f"marker {i + 1}": found[::2, 3 * i + k] for i in range(4)},
            {f"marker {i + 1}": (t[::4], known[:, 3 * i + k]) for i in range(4)},
        )


def run_friction(study: Study) -> None:
    """V8: frequency against Coulomb's force, with the inertia as printed."""
    system = study.customise(build(inertia="as printed"))
    run = release(system, at(system, "trial_5"), {"contact.coulomb": COULOMB})
    seen = 1e3 * np.asarray(places(system.mechanism, run.y.q))
    middle = COULOMB.tolist().index(0.15)
    rows = tables.read("optotrak/synthetic_trial5_coulomb.csv")
    known, y1 = tables.columns(rows, *CHANNELS), seen[:, :, 0, 1]
    error = np.abs(seen[middle, ::4].reshape(known.shape) - known).max()
    note = "V8, synthetic: twelve channels at all times, 0.15 N"
    name = "optotrak.friction.marker_error_mm"
    study.metric(name, error, 0.0, 5e-3, unit="mm", note=note)
    times, heights = jax.vmap(lambda y: peaks(run.t, y, 9))(jnp.asarray(y1))
    first, ninth, fifth = map(np.asarray, (times[:, 0], times[:, 8], heights[:, 4]))
    hertz = 8 / (ninth - first)
    rows = [
        (Fc, first[i], ninth[i], hertz[i], fifth[i], *DERIVED[Fc])
        for i, Fc in enumerate(COULOMB.tolist())
    ]
    off = np.array([[r[1] - r[5], r[2] - r[6], r[4] - r[7]] for r in rows])
    at_015 = hertz[middle]
    note = "V8: derived; 2.3739 stated simulated, 2.3256 stated measured"
    study.metric(
        "optotrak.frequency_at_fc015", at_015, 2.375, 0.005, unit="Hz", note=note
    )
    for name, column, within, unit in (
        ("first_peak_error", 0, 2e-4, "s"),
        ("ninth_peak_error", 1, 1e-3, "s"),
        ("fifth_height_error", 2, 0.1, "mm"),
    ):
        note = "V8, derived: largest over eight forces"
        study.metric(
            f"optotrak.friction.{name}",
            np.abs(off[:, column]).max(),
            0.0,
            within,
            unit=unit,
            note=note,
        )
    study.report.table(
        "V8, peaks of marker 1 y against Coulomb's force; the last three are derived",
        (
            "Fc, N",
            "first, s",
            "ninth, s",
            "8 cycles, Hz",
            "fifth, mm",
            "first, s",
            "ninth, s",
            "fifth, mm",
        ),
        rows,
    )
    study.report.plot(
        "V8, frequency against friction",
        ("Coulomb force", "N", COULOMB),
        ("frequency of 8 cycles", "Hz"),
        {
            "this run": hertz,
            "stated measured": np.full(len(COULOMB), MEASURED_HZ),
            "stated simulated": np.full(len(COULOMB), SIMULATED_HZ),
        },
        {"derived": [8 / (DERIVED[k][1] - DERIVED[k][0]) for k in COULOMB.tolist()]},
    )


def run_pressed(study: Study) -> None:
    """The same where friction goes by what the joint carries."""
    system = study.customise(build(inertia="as printed", mu=0.25))
    mu = np.array([0.25, 0.30])
    run = release(system, at(system, "trial_5"), {"contact.mu": mu})
    y1 = 1e3 * places(system.mechanism, run.y.q)[:, :, 0, 1]
    times, _ = jax.vmap(lambda y: peaks(run.t, y, 9))(y1)
    for k, known in enumerate((2.362, 2.379)):
        note = f"friction of {mu[k]:.2f} times what the joint carries; derived"
        hertz = 8 / (times[k, 8] - times[k, 0])
        study.metric(
            f"optotrak.frequency_at_mu{100 * mu[k]:.0f}",
            hertz,
            known,
            1e-3,
            unit="Hz",
            note=note,
        )
