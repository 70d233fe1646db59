"""Winch: tension and velocity modes, and gains tuned by gradient on irregular seas.

The winch cases V6 to V9 of Roy, Steinke and Nicoll, *Ship Mechanical Systems API: Final
Report* (2014), chapter 4, from rest; then the same winch on a heaving deck.
"""

from typing import Any

import numpy as np

import djdyn
from djdyn.multibody.time_functions import Harmonic
from djdyn.system.system import Instant

from ...harness.study import Study
from . import loop as loop, tuning as tune
from .model import DENSITY, GRAVITY, PAYLOAD, SET_POINT, SWING, build as build, rest


TITLE = "Winch: tension, velocity, and tuning by gradient"
STAGES = 4
SPAN = 20.0  # s
FAST = {"gain": 200.0}  # 1/s: the print's winch has no lag


def simulate(study: Study, name: str, system: djdyn.System) -> djdyn.Trajectory:
    """From rest, with the books audited."""
    system = study.customise(system)
    how: dict[str, Any] = {"solver": "rk4", "dt": 1e-3, "max_steps": 32768}
    run = djdyn.simulate(system, SPAN, rest(system), saveat=2001, ledger=True, **how)
    scale = np.ptp(run.energy())
    study.metric(
        f"winch.{name}.ledger",
        np.max(np.abs(djdyn.energy_balance(system, run))) / scale,
        0.0,
        1e-6,
        note=f"energy unaccounted for, of {scale:.4g} J moved",
    )
    study.series(name, run)
    return run


def figures(study: Study, title: str, run: djdyn.Trajectory, order: Any = None) -> None:
    """Payout rate and tension at the drum."""
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
    """V6 and V7: a set tension held under a swinging load, and one that swings."""
    for name, title, swing, push, until, known in (
        ("tension", "V6, load swings", 0.0, 250.0, 10.0, 29.0),
        ("varying_tension", "V7, set point swings", 250.0, 0.0, 20.0, 15.0),
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
            0.0,
            known,
            unit="N",
            note="no more than another's run with the print's gains had",
        )
        by_hand = rms(loop.tension_error((SET_POINT, swing), push, 1e3, t))
        study.metric(
            f"winch.{name}.rms_on_a_spring",
            found,
            by_hand,
            0.15 * by_hand,
            unit="N",
            note="reference with the line as one spring that carries a third of itself",
        )
        figures(study, title, run, SET_POINT + swing * np.sin(SWING * t))


def run_velocity(study: Study) -> None:
    """V8: the payload follows a swinging rate, and bounces."""
    speeds = {}
    for damping, known in ((0.0, 1.110), (100.0, 1.097), (1000.0, 1.065)):
        order = Harmonic(1.0, SWING, 0.0, 0.0)
        name = f"velocity_{damping:g}"
        system = build("velocity", order=order, damping=damping, winch=FAST)
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
            note="a third of the line moves with the payload",
        )
        study.metric(
            f"winch.velocity.amplitude{tail}",
            peak,
            known,
            0.016,
            unit="m/s",
            note="reference without the line's mass",
        )
        light = np.max(np.abs(loop.bounce(damping, t, with_line=False)))
        study.metric(
            f"winch.velocity.massless_amplitude{tail}",
            light,
            known,
            6e-4,
            unit="m/s",
            note="by hand without the line's mass, to the digits that are known",
        )
    figures(study, "V8, rate swings", run, np.sin(SWING * t))
    study.report.plot(
        "V8, rate swings: the payload follows and bounces",
        ("time", "s", t),
        ("speed", "m/s"),
        speeds,
        {"drum": -np.sin(SWING * t)},
    )


def drum_tension(now: Instant) -> Any:
    """Half-way from the drum to the point that lies 20 m above the payload."""
    line: Any = now.system.parts["line"]
    length = line.length_out(now.y.parts["line"])
    return line.at(now, "line", (20.0 + length) / 2)["tension"]


def run_ramp(study: Study) -> None:
    """V9: a rate reached by a slow ramp, a light payload pulled by a swinging force."""
    order = Harmonic(0.0, SWING, 0.0, 1.0)
    slow = {**FAST, "acceleration": 0.1, "deceleration": 0.1}
    light: dict[str, Any] = {"mass": 1.0, "push": (-40.0, 30.0)}
    run = simulate(study, "ramp", build("velocity", order=order, winch=slow, **light))
    t, tension = np.asarray(run.t), np.asarray(run.map(drum_tension))
    rate, length = (np.asarray(run.signal(k)) for k in ("winch.rate", "line.length"))
    speed = np.asarray(run.v("load"))[:, 0]
    drum, early, late = np.asarray(run.signal("line.head_tension")), t <= 5, t >= 15
    weight = lambda when: 40 + (1 + DENSITY * length[when].mean()) * GRAVITY
    lag = 0.1 * (1 + DENSITY * length[early].mean())  # N, while it speeds up
    for what, value, reference, tolerance, unit, note in (
        ("rate_5s", rate[500], 0.5, 1e-3, "m/s", "a tenth of the time"),
        ("length_10s", length[1000], 35.0, 2e-3, "m", "30 + t^2 / 20"),
        ("length_20s", length[-1], 45.0, 2e-3, "m", "35 + t - 10"),
        ("drum_0_to_5s", drum[early].mean(), weight(early) - lag, 0.2, "N", "weights"),
        ("drum_15_to_20s", drum[late].mean(), weight(late), 0.2, "N", "weights"),
        ("tension_0_to_5s", tension[early].mean(), 86.9, 2.0, "N", "mean of the first "
         "10 m, in a line of three elements"),
        ("tension_15_to_20s", tension[late].mean(), 96.2, 2.0, "N", "of all but 20 m"),
        ("speed", speed[t > 10.5].mean(), -1.0, 2e-3, "m/s", "mean, that of the drum"),
    ):  # fmt: skip
        study.metric(
            f"winch.ramp.{what}", value, reference, tolerance, unit=unit, note=note
        )
    figures(study, "V9, ramp", run, np.minimum(0.1 * t, 1.0))


def run(study: Study) -> None:
    study.report.text(
        "Cases V6 to V9 of Roy, Steinke and Nicoll, Ship Mechanical Systems API: Final "
        "Report (2014), which shows them as plots. References are closed forms, runs "
        "of others with the print's sample gains, and the same cases with the line as "
        f"one spring. All start from rest, with {PAYLOAD:g} kg on 30 m of line; the "
        "print's own start is not in balance."
    )
    for name, part in (
        ("tension mode (V6, V7)", run_tension),
        ("velocity mode (V8)", run_velocity),
        ("ramp (V9)", run_ramp),
        ("tuning on seas", tune.run),
    ):
        with study.stage(name):
            part(study)
