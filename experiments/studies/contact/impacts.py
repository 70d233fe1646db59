"""Impacts beside closed forms: Hunt–Crossley, Hertz, Kelvin–Voigt, and a drop."""

from typing import Any

import numpy as np

import djdyn
from djdyn.contact import (
    Contact,
    HalfSpace,
    HuntCrossley,
    KelvinVoigt,
    Sphere,
    dissipation,
)

from ...harness.study import Study
from .model import at, ledger, over


BALL = Sphere(0.1)  # m
SPEED = 0.5  # m/s
TIGHT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
TIGHTER: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14}  # for smooth laws


def ball(law: Any, mass: float = 1.0, **more: Any) -> djdyn.System:
    """Return a ball over a plane with a contact law."""
    return over(Contact("b", BALL, "bed", HalfSpace(), law), mass, 0.01, **more)


def rebound(system: djdyn.System, span: float, name: str, values: Any) -> np.ndarray:
    """Return restitution coefficients of an impact, for many values of a parameter."""
    run = djdyn.rollout(
        system,
        span,
        at(system, 0.1, (0, 0, -SPEED)),
        parameters={f"touch.normal.{name}": values},
        saveat=[span],
        **TIGHT,
    )
    return np.asarray(run.y.v[:, -1, 5]) / SPEED


def run_restitution(study: Study) -> None:
    """Compare restitution coefficients with the ones the law was set up for."""
    asked = np.array([0.1, 0.25, 0.5, 0.6, 0.75, 0.9, 0.98])
    D = np.asarray(dissipation(asked, SPEED))
    rows, worst = [], 0.0
    for n in (1.0,) if study.quick else (1.0, 1.5, 2.0):
        law = HuntCrossley(10.0 ** (3 + 2 * n), 0.0, n, width=1e-8)
        found = rebound(ball(law, gravity=(0, 0, 0)), 0.2, "dissipation", D)
        worst = max(worst, np.abs(found - asked).max())
        rows += [(f"{n:g}", e, x, x - e) for e, x in zip(asked, found, strict=True)]
    study.metric(
        "contact.restitution.max_error",
        worst,
        at_most=1e-4,
        note="largest error of restitutions from 0.1 to 0.98, exponents 1 to 2",
    )
    s = np.array([0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
    known = [0.993377, 0.967739, 0.937476, 0.882190, 0.748435, 0.593624, 0.410720]
    law = HuntCrossley(1e6, 0.0)
    found = rebound(ball(law, gravity=(0, 0, 0)), 0.04, "dissipation", s / SPEED)
    study.metric(
        "contact.restitution.closed_form_error",
        np.abs(found - known).max(),
        at_most=1e-6,
        note="Hunt–Crossley, seven products of dissipation and speed",
    )
    study.report.table(
        "Restitution coefficients",
        ("exponent", "set", "found", "difference"),
        rows,
    )


def run_hertz(study: Study) -> None:
    """Compare Hertz impacts of 1 kg at 0.5 m/s, and Kelvin–Voigt restitutions."""
    system = ball(HuntCrossley(1e6, 0.0), gravity=(0, 0, 0))
    y = at(system, 0.1, (0, 0, -SPEED))
    run = djdyn.simulate(system, 0.02, y, saveat=20001, ledger=True, **TIGHTER)
    depth, push = (
        np.asarray(run.signal(f"touch.{k}")) for k in ("depth", "normal_force")
    )
    for name, value, known, within, unit in (
        ("depth", 1e3 * depth.max(), 2.5, 1e-5, "mm"),
        ("force", push.max(), 125.0, 1e-3, "N"),
        ("duration", np.sum(push > 0) * 1e-3, 14.71637, 2e-3, "ms"),
    ):
        note = "Hertz impact: 1 kg, 0.5 m/s, 1e6 N/m^1.5"
        study.metric(
            f"contact.hertz.{name}", value, known, within, unit=unit, note=note
        )
    ledger(study, "hertz", run, 1e-8, SPEED**2 / 2)
    zeta = np.array([0.05, 0.1, 0.2, 0.4])
    system = ball(KelvinVoigt(1e4, width=1e-9), gravity=(0, 0, 0))
    found = rebound(system, 0.1, "damping", 200 * zeta)
    study.metric(
        "contact.kelvin_voigt.restitution_error",
        np.abs(found - [0.858758, 0.744079, 0.571740, 0.363527]).max(),
        at_most=1e-5,
        note="largest error, damping ratios 0.05 to 0.4, no tensile force",
    )


def run_drop(study: Study) -> None:
    """Compare the drop of 900 kg from 0.1 m on a Kelvin–Voigt contact.

    After the contact model of Baharudin 2016; the force is never tensile.
    """
    system = ball(KelvinVoigt(1e6, 1e4, width=1e-7), 900.0)
    y = at(system, 0.2)
    run = djdyn.simulate(system, 3.0, y, saveat=60001, ledger=True, **TIGHT)
    t, z = np.asarray(run.t), np.asarray(run.y.q[:, 2]) - 0.1
    push = np.asarray(run.signal("touch.normal_force"))
    first = np.argmax(push > 0)
    leaves = first + np.argmax(push[first:] <= 0)
    speed = np.asarray(run.y.v[:, 5])
    note = "drop of 900 kg; reference: closed form"
    for name, value, known, within, unit in (
        ("impact", -speed[first], 1.400714, 6e-4, "m/s"),
        ("depth", -z.min(), 0.040396, 1e-6, "m"),
        ("depth_time", t[z.argmin()] - t[first], 0.04913, 1e-4, "s"),
        ("force", push.max(), 42234.0, 1.0, "N"),
        ("release", t[leaves] - t[first], 0.103458, 1e-4, "s"),
        ("release_speed", speed[leaves], 0.771013, 1e-3, "m/s"),
        ("apex", z[leaves : leaves + 4000].max(), 0.022589, 1e-6, "m"),
        ("rest", -z[-1], 8.829e-3, 1e-6, "m"),
    ):
        study.metric(f"contact.drop.{name}", value, known, within, unit=unit, note=note)
    ledger(study, "drop", run, 1e-7)
    study.report.plot(
        "Drop of 900 kg from 0.1 m (contact model of Baharudin 2016)",
        ("time", "s", t),
        ("height", "m"),
        {"spring and damper": z},
        {"at rest": np.full_like(t, -8.829e-3)},
    )
