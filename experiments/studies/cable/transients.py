"""Slack and snap loads, payout from a drum, and a sheave with friction."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array

import djdyn
from djdyn.cable import CableProperties, Sheave
from djdyn.multibody.time_functions import Harmonic, Interpolated
from djdyn.system.equilibrium import equilibrium

from ...harness.energy import energy_residual
from ...harness.study import Study
from .model import dropped, hoist, payload, shaken


def ledger(study: Study, case: str, run: djdyn.Trajectory, exchanged: float) -> None:
    """Report the energy residual, relative to the energy that is exchanged."""
    name = f"cable.{case}.energy_residual"
    energy_residual(study, name, run, at_most=1e-4, scale=exchanged)


def run_shaken(study: Study) -> None:
    """Compare a payload under an oscillating top, slack and taut in turns.

    Roy, Steinke and Nicoll 2014, section 4.1.4.
    """
    system = shaken()
    run = djdyn.simulate(system, 8.0, saveat=801, rtol=1e-6, atol=1e-7, ledger=True)
    t, z = np.asarray(run.t), np.asarray(run.y.q[:, 2]) - 20
    for second, known in ((1, -17.30), (2, -19.99), (3, -21.74)):
        study.metric(
            f"cable.shaken.z_at_{second}s",
            z[100 * second],
            known,
            0.02,
            unit="m",
            note="oscillating top: height; reference: independent simulation",
        )
    tension = np.asarray(run.signal("line.tail_tension"))
    slack = tension < 50.0  # the end node has weight and inertia
    first, peak = t[20:][slack[20:]][0], tension[250:450].argmax() + 250
    early = "oscillating top; reference: independent simulation"
    study.metric("cable.shaken.first_slack", first, 0.74, 0.02, unit="s", note=early)
    study.metric("cable.shaken.peak", tension[peak], 46.1e3, 500, unit="N", note=early)
    study.metric("cable.shaken.peak_time", t[peak], 3.56, 0.02, unit="s", note=early)
    ledger(study, "shaken", run, 1400 * 9.81 * 4)
    study.report.plot(
        "Oscillating top: tension at the payload",
        ("time", "s", t),
        ("tension", "N"),
        {"tension": tension},
        {"slack": (t[slack][::4], 0 * t[slack][::4])},
    )
    top = 2 * np.sin(1.5 * t)
    study.report.plot(
        "Oscillating top: heights of payload and top",
        ("time", "s", t),
        ("height over its start", "m"),
        {"payload": z + 20, "top": top},
    )
    study.series("shaken", run)


def run_snap(study: Study) -> None:
    """Compare the snap load of a payload that falls into its slack line."""
    system, y = dropped()
    run = djdyn.simulate(system, 1.5, y, ledger=True, saveat=301, rtol=1e-7, atol=1e-9)
    tension = np.asarray(run.signal("line.tail_tension"))
    ledger(study, "snap", run, 20 * 9.81)
    fall = 20 * 9.81 * (1 + np.sqrt(1 + 2 * 1.0 * 2e4 / 3 / (20 * 9.81)))
    study.metric(
        "cable.snap.peak_over_spring",
        tension.max() / fall,
        1.0,
        0.1,
        note=f"peak tension over {fall:.0f} N of a massless, undamped spring",
    )
    study.report.plot(
        "Snap load: tension of a line",
        ("time", "s", run.t),
        ("tension", "N"),
        {"tension": tension},
    )


def run_winch(study: Study) -> None:
    """Compare the peak tension of a winch with a ramped and a stepped rate."""
    system, mass, a = hoist(100.0, 20.0, CableProperties(0.5, 1e6)), 110.0, 0.5
    y, curves = equilibrium(system), {}
    for name, over in (("ramp of 2 s", 2.0), ("step", 1e-3)):
        rate = Interpolated([0.0, over, 4.0], [0.0, -2 * a, -2 * a])
        run = djdyn.simulate(
            system,
            3.0,
            y,
            inputs={"rate": rate},
            saveat=601,
            rtol=1e-6,
            atol=1e-8,
            jumps=[over],
            ledger=True,
        )
        curves[name] = np.asarray(run.signal("line.head_tension"))
    t, static = np.asarray(run.t), mass * 9.81
    study.metric(
        "cable.winch.ramp_peak",
        (curves["ramp of 2 s"][t < 2.0].max() - static) / (2 * mass * a),
        1.0,
        0.1,
        note="ramp: peak above the static tension, over 2 m a of an undamped spring",
    )
    snap, wave = 2 * a * np.sqrt([1e6 / 20 * (100 + 10 / 3), 1e6 * 0.5])
    study.metric(
        "cable.winch.step_peak",
        curves["step"].max() - static,
        snap,
        wave,
        unit="N",
        note="step of 1 m/s: peak above the static tension; reference: u sqrt(k m); "
        "tolerance: travelling wave u sqrt(EA mu)",
    )
    study.report.plot(
        "Winch that starts to reel in at 1 m/s: tension",
        ("time", "s", t),
        ("tension", "N"),
        curves,
    )


def run_payout(study: Study) -> None:
    """Report the energy balance of a line paid out from 4 to 20 m and retrieved."""
    system = hoist(50.0, 4.0, CableProperties(0.5, 1e5, axial_damping=200.0))
    rate = Harmonic(16 / 10 * np.pi / 2, 2 * np.pi / 20)  # out in 10 s, back in 10 s
    run = djdyn.simulate(
        system,
        20.0,
        equilibrium(system),
        inputs={"rate": rate},
        ledger=True,
        saveat=201,
        rtol=1e-7,
        atol=1e-9,
    )
    energy, length = np.asarray(run.energy()), np.asarray(run.signal("line.length"))
    ledger(study, "payout", run, np.ptp(energy))
    ratio = length.max() / length[0]
    study.metric(
        "cable.payout.ratio", ratio, 5.0, 1e-3, note="longest over initial length"
    )
    study.metric(
        "cable.payout.returned",
        (energy[-1] - energy[0]) / np.ptp(energy),
        0.0,
        0.01,
        note="final change of the energy over its range",
    )
    study.report.plot(
        "Payout to five times the length and retrieval",
        ("time", "s", run.t),
        ("length", "m"),
        {"length": length},
    )


def run_capstan(study: Study) -> None:
    """Compare the tension ratio of a line sliding over a sheave (capstan equation)."""
    sheave, angle = Sheave("a", "b", friction=0.2, inertia=3.0), 0.7

    @jax.jit
    def rate(T2: float, way: float) -> Array:
        world = djdyn.forward_kinematics(payload(1.0, 1.0, 1.0), jnp.zeros(7))
        given = {
            "a.head_tension": jnp.array(100.0),
            "b.head_tension": jnp.asarray(T2),
            "a.head_slope": jnp.array([0.0, 0.0, 1.1]),
            "b.head_slope": jnp.array([np.sin(angle), 0.0, -np.cos(angle)]),
        }
        state = {"rate": 0.1 * jnp.asarray(way)}
        return sheave(jnp.array(0.0), state, world, given).rate["rate"]

    errors = []
    for way in (1.0, -1.0):
        found = scipy.optimize.root_scalar(
            lambda T2, way=way: float(rate(T2, way)), bracket=(10.0, 1000.0)
        )
        errors.append(found.root / 100 / np.exp(way * 0.2 * angle) - 1)
    worst = max(errors, key=abs)
    note = "relative error of exp(0.2 x 0.7), sliding in either direction"
    study.metric("cable.capstan.ratio_error", worst, 0.0, 1e-9, note=note)
