"""Periods of small motions of lines, and a cantilever with large motion."""

import jax.numpy as jnp
import numpy as np
import scipy.special

import djdyn
from djdyn.system.equilibrium import equilibrium

from ...harness.study import Study
from .model import (
    along_x,
    beam,
    chain,
    pendulum,
    periods,
    string,
    torsion,
    wet_pendulum,
)


CANTILEVER_PERIOD = 2 * np.pi / 1.8751040687**2 * np.sqrt(7.854 * 3.0**4 / 1e6)  # s


def pairs(found: np.ndarray, n: int) -> np.ndarray:
    """Return the first of each pair of equal periods, for motion in two planes."""
    return found[: 2 * n : 2]


def run_chain(study: Study) -> None:
    """Compare the first four frequencies of a hanging chain."""
    system = chain()
    found = 1 / pairs(periods(system, equilibrium(system)), 4)
    exact = scipy.special.jn_zeros(0, 4) / (4 * np.pi) * np.sqrt(9.80665 / 10)
    study.metric(
        "cable.chain.max_frequency_error",
        np.abs(found / exact - 1).max(),
        at_most=2e-3,
        note="hanging chain: largest relative error of four modes, 10 elements",
    )
    study.report.table(
        "Frequencies of a hanging chain",
        ("mode", "exact, Hz", "10 elements, Hz", "error, %"),
        [(i + 1, exact[i], f, 100 * (f / exact[i] - 1)) for i, f in enumerate(found)],
    )


def run_string(study: Study) -> None:
    """Compare the first two frequencies of a taut string."""
    exact, errors = np.arange(1, 3) / 20 * np.sqrt(1e7 * 1e-3 / 1.001), []
    for n in (10, 20):
        system = string(n)
        found = 1 / pairs(periods(system, along_x(system, 10.01)), 2)
        errors.append(np.abs(found / exact - 1).max())
    study.metric(
        "cable.string.max_frequency_error",
        errors[1],
        at_most=1e-3,
        note="taut string: largest relative error of two modes, 20 elements",
    )
    study.metric(
        "cable.string.order",
        np.log2(errors[0] / errors[1]),
        at_least=2.0,
        note="aim: order of convergence, 10 to 20 elements",
    )


def run_payloads(study: Study) -> None:
    """Compare periods of pendulums and of torsion of a payload on its line."""
    light = 1 - 0.02 / 5 / 12  # correction for the mass of the line
    swing = 2 * np.pi * np.sqrt(20.00123 / 9.81) * light
    cases = [
        ("pendulum", pendulum(), swing, 1.0, 1e-3, "pendulum of 8.9714 s"),
        ("torsion", torsion(), 2 * np.pi, 1.0, 1e-3, "torsion of 6.2832 s"),
    ]
    if not study.quick:
        amplitude = 1 + 0.09967**2 / 16  # correction of the linear period
        note = "pendulum in water of 20.1266 s, line 0.13 %, stretch 0.05 %"
        wet = ("wet_pendulum", wet_pendulum(), 20.1266 * 1.0018, amplitude, 1e-3, note)
        cases.append(wet)
    for name, system, exact, amplitude, tolerance, note in cases:
        found = periods(system, equilibrium(system)) * amplitude
        nearest = found[np.abs(found / exact - 1).argmin()]
        metric = f"cable.{name}.period_error"
        study.metric(
            metric, nearest / exact - 1, 0.0, tolerance, note=f"relative error, {note}"
        )


def run_beam(study: Study) -> None:
    """Compare the period of small vibrations of the cantilever (section 4.1.1)."""
    first = lambda s: periods(s, along_x(s, 3.0))[0]
    study.metric(
        "cable.beam.period_error",
        first(beam(12)) / CANTILEVER_PERIOD - 1,
        0.0,
        5e-4,
        note=f"relative error of {CANTILEVER_PERIOD:.6f} s, exact; 12 elements",
    )
    study.metric(
        "cable.beam3.period",
        first(beam(3, lumping="half")),
        0.04737,
        1e-5,
        unit="s",
        note="three elements with lumped mass; reference: linear model of them",
    )
    if study.quick:
        return
    study.metric(
        "cable.beam3.spline_period_error",
        first(beam(3)) / CANTILEVER_PERIOD - 1,
        0.0,
        1e-2,
        note="relative error, three elements with consistent mass",
    )


STIFFNESSES = {"1e7": (0.04667, 0.4400), "1e9": (0.04641, 0.4377)}  # EA: s, m


def run_far_beam(study: Study) -> None:
    """Compare three elements under a sudden tip force (section 4.1.1)."""
    system, dt, t1 = beam(3, 5e4, 1e7, "half"), 2e-5, 0.4
    EA = jnp.array([float(x) for x in STIFFNESSES])
    y0 = along_x(system, 3.0)
    run = djdyn.rollout(
        system,
        t1,
        y0,
        parameters={"line.rope.EA": EA},
        solver="rk4",
        dt=dt,
        saveat=np.arange(0, t1 + 1e-9, 10 * dt),
    )
    t, z = np.asarray(run.t), np.asarray(run.y.parts["line"]["r"][:, :, -1, 2])
    for (name, (period, mean)), tip in zip(STIFFNESSES.items(), z, strict=True):
        found = swings(t, tip)
        for what, value, known, unit in (
            ("period", found[0], period, "s"),
            ("mean", found[1], mean, "m"),
        ):
            note = f"EA {name} N; reference: independent simulation with chord strains"
            metric = f"cable.beam3.EA{name}.{what}"
            study.metric(metric, value, known, 0.015 * known, unit=unit, note=note)
    study.report.plot(
        "Cantilever under a sudden tip force: deflection",
        ("time", "s", t),
        ("deflection", "m"),
        {f"EA {name} N": tip for name, tip in zip(STIFFNESSES, z, strict=True)},
    )


def swings(t: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    """Return the mean period, and the mean over whole periods."""
    middle = z.mean()
    k = np.flatnonzero((z[:-1] < middle) & (z[1:] >= middle))
    at = t[k] + (t[k + 1] - t[k]) * (middle - z[k]) / (z[k + 1] - z[k])
    whole = (t >= at[0]) & (t < at[-1])
    return float(np.diff(at).mean()), float(z[whole].mean())
