"""A box on slopes below and above the friction angle, held or sliding."""

from typing import Any

import numpy as np

import djdyn
from djdyn.contact import Contact, Cuboid, HalfSpace, Karnopp, KelvinVoigt, LuGre

from ...harness.study import Study
from .model import G, at, books, over


MU, MU_STATIC = 0.4, 0.5
STIFF = 1e4  # N/m, of each corner
SPAN = 100.0, 5.0  # s, and in a quick run
LAWS = {
    "lugre": LuGre(MU, MU_STATIC, 4000.0, 40.0, width=1e-6),
    "karnopp": Karnopp(MU, MU_STATIC),
}
HELD = np.arctan(MU) * np.array([0.5, 0.95])
SLIDES = np.arctan(MU_STATIC) * np.array([1.2, 1.5])


def cube(law: Any) -> djdyn.System:
    """1 kg on four corners; the slope is in the direction of gravity."""
    normal = KelvinVoigt(STIFF, 40.0, width=1e-5)
    part = Contact("b", Cuboid([0.2, 0.2, 0.2]), "bed", HalfSpace(), normal, law)
    return over(part, 1.0, 0.2**2 / 6)


def tilted(angles: np.ndarray) -> np.ndarray:
    o = np.zeros_like(angles)
    return G * np.stack([np.sin(angles), o, -np.cos(angles)], 1)


def go(law: Any, angles: np.ndarray, span: float, dt: float) -> djdyn.Trajectory:
    """From rest, with bristles unbent, on all slopes at once."""
    system = cube(law)
    y = at(system, 0.1 - G * np.cos(angles.mean()) / (4 * STIFF))
    return djdyn.rollout(
        system,
        span,
        y,
        parameters={"gravity_W": tilted(angles)},
        saveat=np.linspace(0.0, span, 1001),
        solver="rk4",
        dt=dt,
        ledger=True,
    )


def run_slope(study: Study) -> None:
    """At rest for long, and one second of sliding."""
    moved, errors, rows, t = {}, [], [], np.zeros(0)
    span = SPAN[study.quick]
    for name, law in list(LAWS.items())[: 1 if study.quick else None]:
        held = go(law, HELD, span, 2e-4)
        t, x = held.t, 1e3 * np.asarray(held.y.q[..., 0])
        for angle, way in zip(np.rad2deg(HELD), x, strict=True):
            moved[f"{name}, {angle:.1f}°"] = way
            rows.append(
                (name, angle, way[-1], 1e6 * (way[-1] - way[np.searchsorted(t, 1.0)]))
            )
        slid = go(law, SLIDES, 1.0, 5e-5)
        v = np.asarray(slid.y.v[..., 3])
        found = (v[:, -1] - v[:, 500]) / 0.5
        errors.append(found / (G * (np.sin(SLIDES) - MU * np.cos(SLIDES))) - 1)
        books(study, f"slope.{name}", slid, 1e-6)
    study.metric(
        "contact.slope.creep_mm",
        max(x[-1] for x in moved.values()),
        at_most=1.0,
        unit="mm",
        note=f"most in {span:g} s, up to 0.95 of the angle of sliding",
    )
    study.metric(
        "contact.slope.creep_after_1s",
        max(abs(row[-1]) for row in rows),
        at_most=1.0,
        unit="nm",
        note="of it, after the first second",
    )
    study.metric(
        "contact.slope.slide_error",
        np.max(np.abs(errors)),
        at_most=1e-5,
        note="relative to g (sin a - mu cos a), two slopes",
    )
    study.report.table(
        f"A box on a slope for {span:g} s",
        ("law", "slope, deg", "moved, mm", "after 1 s, nm"),
        rows,
    )
    study.report.plot(
        "A box held on a slope",
        ("time", "s", t),
        ("way down the slope", "mm"),
        moved,
    )
