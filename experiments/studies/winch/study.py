"""Winch: tension and velocity modes, and gains tuned by gradient on irregular seas.

The winch cases of Roy, Steinke and Nicoll, *Ship Mechanical Systems API: Final Report*
(2014), sections 4.2.1 to 4.2.4, from rest; then the same winch on a heaving deck.
"""

from typing import Any

import numpy as np

import djdyn
from djdyn.multibody.time_functions import Harmonic
from djdyn.system.instant import Instant

from ...harness.energy import energy_residual
from ...harness.study import Study
from . import loop as loop, tuning as tuning
from .model import (
    DENSITY,
    GRAVITY,
    PAYLOAD,
    SET_POINT,
    SWING,
    build as build,
    static_state,
)


TITLE = "Winch: tension, velocity, and tuning by gradient"
STAGES = 4
SPAN = 20.0  # s
FAST_DRIVE = {"gain": 200.0}  # 1/s: the drive of the report has no lag


def simulate(study: Study, name: str, system: djdyn.System) -> djdyn.Trajectory:
    """Simulate from rest and report the energy residual."""
    system = study.customise(system)
    how: dict[str, Any] = {"solver": "rk4", "dt": 1e-3, "max_steps": 32768}
    y0 = static_state(system)
    run = djdyn.simulate(system, SPAN, y0, saveat=2001, ledger=True, **how)
    energy_residual(study, f"winch.{name}.ledger", run, at_most=1e-6)
    study.series(name, run)
    return run


def figures(study: Study, title: str, run: djdyn.Trajectory, order: Any = None) -> None:
    """Plot payout rate and tension at the drum."""
    time = ("time", "s", run.t)
    rate, tension = run.signal("winch.rate"), run.signal("line.head_tension")
    given = {"set point": order} if order is not None else {}
    tensions = given if order is not None and np.max(order) > 100 else {}
    rates = {} if tensions else given
    study.report.plot(f"{title}: payout", time, ("rate", "m/s"), {"winch": rate}, rates)
    study.report.plot(
        f"{title}: tension", time, ("tension", "N"), {"at the drum": tension}, tensions
    )


def run_tension(study: Study) -> None:
    """Compare tension control under an oscillating load and set point.

    Roy, Steinke and Nicoll 2014, sections 4.2.1 and 4.2.2.
    """
    for name, title, swing, push, until, known in (
        ("tension", "Constant tension, oscillating load", 0.0, 250.0, 10.0, 29.0),
        ("varying_tension", "Oscillating tension set point", 250.0, 0.0, 20.0, 15.0),
    ):
        order = Harmonic(swing, SWING, 0.0, SET_POINT)
        run = simulate(study, name, build(order=order, push=(0.0, push)))
        t = np.asarray(run.t)
        late = (t > 3.0) & (t <= until)
        rms = lambda e, late=late: np.sqrt(np.mean(np.asarray(e)[late] ** 2))
        found = rms(run.signal("pid.error"))
        study.metric(
            f"winch.{name}.rms_after_3s",
            found,
            at_most=known,
            unit="N",
            note="rms error after 3 s; bound: an independent run with the same gains",
        )
        by_hand = rms(loop.tension_error((SET_POINT, swing), push, 1e3, t))
        study.metric(
            f"winch.{name}.rms_on_a_spring",
            found,
            by_hand,
            0.15 * by_hand,
            unit="N",
            note="reference: a model with the line as one spring",
        )
        figures(study, title, run, SET_POINT + swing * np.sin(SWING * t))


def run_velocity(study: Study) -> None:
    """Compare the payload's speed under an oscillating payout rate.

    Roy, Steinke and Nicoll 2014, section 4.2.3.
    """
    speeds = {}
    for damping, known in ((0.0, 1.110), (100.0, 1.097), (1000.0, 1.065)):
        order = Harmonic(1.0, SWING, 0.0, 0.0)
        name = f"velocity_{damping:g}"
        system = build("velocity", order=order, damping=damping, winch=FAST_DRIVE)
        run = simulate(study, name, system)
        t, speed = np.asarray(run.t), np.asarray(run.v("load"))[:, 0]
        peak = np.max(np.abs(speed))
        speeds[f"damping {damping:g} N s"] = speed
        error = "winch.velocity.amplitude_error"
        tail = "" if damping == 0 else f"_{damping:g}"
        study.metric(
            error + tail,
            peak - np.max(np.abs(loop.bounce(damping, t))),
            0.0,
            2e-3,
            unit="m/s",
            note="amplitude less that of a model with a third of the line's mass",
        )
        study.metric(
            f"winch.velocity.amplitude{tail}",
            peak,
            known,
            0.016,
            unit="m/s",
            note="reference: a model without the line's mass",
        )
        light = np.max(np.abs(loop.bounce(damping, t, with_line=False)))
        study.metric(
            f"winch.velocity.massless_amplitude{tail}",
            light,
            known,
            6e-4,
            unit="m/s",
            note="that model, recomputed here",
        )
    figures(study, "Oscillating payout rate", run, np.sin(SWING * t))
    study.report.plot(
        "Oscillating payout rate: speed of the payload",
        ("time", "s", t),
        ("speed", "m/s"),
        speeds,
        {"drum": -np.sin(SWING * t)},
    )


def drum_tension(now: Instant) -> Any:
    """Return the tension half-way between the drum and 20 m above the payload."""
    line: Any = now.system.parts["line"]
    length = line.length_out(now.y.parts["line"])
    return line.at(now, "line", (20.0 + length) / 2)["tension"]


def run_ramp(study: Study) -> None:
    """Compare a ramped payout rate with a light payload under an oscillating force.

    Roy, Steinke and Nicoll 2014, section 4.2.4.
    """
    order = Harmonic(0.0, SWING, 0.0, 1.0)
    slow = {**FAST_DRIVE, "acceleration": 0.1, "deceleration": 0.1}
    light: dict[str, Any] = {"mass": 1.0, "push": (-40.0, 30.0)}
    run = simulate(study, "ramp", build("velocity", order=order, winch=slow, **light))
    t, tension = np.asarray(run.t), np.asarray(run.map(drum_tension))
    rate, length = (np.asarray(run.signal(k)) for k in ("winch.rate", "line.length"))
    speed = np.asarray(run.v("load"))[:, 0]
    drum, early, late = np.asarray(run.signal("line.head_tension")), t <= 5, t >= 15
    weight = lambda when: 40 + (1 + DENSITY * length[when].mean()) * GRAVITY
    lag = 0.1 * (1 + DENSITY * length[early].mean())  # N, while it speeds up
    for what, value, reference, tolerance, unit, note in (
        ("rate_5s", rate[500], 0.5, 1e-3, "m/s", "t / 10"),
        ("length_10s", length[1000], 35.0, 2e-3, "m", "30 + t^2 / 20"),
        ("length_20s", length[-1], 45.0, 2e-3, "m", "35 + t - 10"),
        ("drum_0_to_5s", drum[early].mean(), weight(early) - lag, 0.2, "N",
         "mean over 5 s; reference: weight and inertia force"),
        ("drum_15_to_20s", drum[late].mean(), weight(late), 0.2, "N",
         "mean over 5 s; reference: weight"),
        ("tension_0_to_5s", tension[early].mean(), 86.9, 2.0, "N", "mean of the upper "
         "10 m; reference: a line of three elements"),
        ("tension_15_to_20s", tension[late].mean(), 96.2, 2.0, "N", "mean of "
         "all but the lower 20 m; reference: a line of three elements"),
        ("speed", speed[t > 10.5].mean(), -1.0, 2e-3, "m/s", "mean, as the drum"),
    ):  # fmt: skip
        study.metric(
            f"winch.ramp.{what}", value, reference, tolerance, unit=unit, note=note
        )
    figures(study, "Ramped payout rate", run, np.minimum(0.1 * t, 1.0))


def run(study: Study) -> None:
    """Run the winch cases and tune the winch on irregular seas."""
    study.report.text(
        "The winch cases of Roy, Steinke and Nicoll, Ship Mechanical Systems API: "
        "Final Report (2014), sections 4.2.1 to 4.2.4. The report shows plots only. "
        "References are closed forms, independent simulations with the gains of the "
        "report, and models with the line as one spring. All runs start from "
        f"equilibrium with {PAYLOAD:g} kg on 30 m of line; the initial state of the "
        "report is not in equilibrium."
    )
    study.run_cases(
        (
            ("tension mode", run_tension),
            ("velocity mode", run_velocity),
            ("ramped velocity", run_ramp),
            ("tuning on seas", tuning.run),
        )
    )
    study.answer(summary(study.metrics), f"{tuning.HELD_OUT_SEA}: tension")


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"winch.{name}"]
    said = (
        "In tension mode the error under an oscillating load of 250 N is "
        f"{of('tension.rms_after_3s'):.1f} N rms. Gains and drive limits tuned by "
        "gradient on irregular seas have "
        f"{of('tuned.cost_ratio'):.0%} of the first cost on other seas, and "
        f"{of('tuned.rms_ratio'):.0%} of the first tension error, with a phase margin "
        f"of {of('tuned.phase_margin'):.0f} degrees. "
    )
    if "winch.tuned.vs_cmaes" in found:
        said += (
            "Their cost is "
            f"{of('tuned.vs_cmaes'):.2f} times that found by CMA-ES and "
            f"{of('tuned.vs_nelder_mead'):.2f} times that found by Nelder–Mead."
        )
    return said
