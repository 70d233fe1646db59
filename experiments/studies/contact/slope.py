"""Box on slopes below and above the friction angle: sticking and sliding."""

from typing import Any

import numpy as np

import djdyn
from djdyn.contact import Contact, Cuboid, HalfSpace, Karnopp, KelvinVoigt, LuGre

from ...harness.study import Study
from .model import G, at, ledger, over


MU, MU_STATIC = 0.4, 0.5
STIFFNESS = 1e4  # N/m, each corner
SPAN = 100.0, 5.0  # s, full and quick run
LAWS = {
    "lugre": LuGre(MU, MU_STATIC, 4000.0, 40.0, width=1e-6),
    "karnopp": Karnopp(MU, MU_STATIC),
}
STICKING_PLOT = "Box sticking on a slope, by law and angle"
STICKING = np.arctan(MU) * np.array([0.5, 0.95])
SLIDING = np.arctan(MU_STATIC) * np.array([1.2, 1.5])


def cube(law: Any) -> djdyn.System:
    """Return a cube of 1 kg on four corners; gravity is tilted instead of the plane."""
    normal = KelvinVoigt(STIFFNESS, 40.0, width=1e-5)
    part = Contact("b", Cuboid([0.2, 0.2, 0.2]), "bed", HalfSpace(), normal, law)
    return over(part, 1.0, 0.2**2 / 6)


def tilted(angles: np.ndarray) -> np.ndarray:
    """Return gravity in the axes of slopes, m/s^2."""
    o = np.zeros_like(angles)
    return G * np.stack([np.sin(angles), o, -np.cos(angles)], 1)


def go(law: Any, angles: np.ndarray, span: float, dt: float) -> djdyn.Trajectory:
    """Simulate all slopes from rest, with undeflected bristles."""
    system = cube(law)
    y = at(system, 0.1 - G * np.cos(angles.mean()) / (4 * STIFFNESS))
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
    """Compare the creep of a sticking box and the acceleration of a sliding one."""
    moved, errors, rows, t = {}, [], [], np.zeros(0)
    span = SPAN[study.quick]
    for name, law in list(LAWS.items())[: 1 if study.quick else None]:
        held = go(law, STICKING, span, 2e-4)
        t, x = held.t, 1e3 * np.asarray(held.y.q[..., 0])
        for angle, way in zip(np.rad2deg(STICKING), x, strict=True):
            moved[f"{name}, {angle:.1f}°"] = way
            rows.append(
                (name, angle, way[-1], 1e6 * (way[-1] - way[np.searchsorted(t, 1.0)]))
            )
        slid = go(law, SLIDING, 1.0, 5e-5)
        v = np.asarray(slid.y.v[..., 3])
        found = (v[:, -1] - v[:, 500]) / 0.5
        errors.append(found / (G * (np.sin(SLIDING) - MU * np.cos(SLIDING))) - 1)
        ledger(study, f"slope.{name}", slid, 1e-6)
    study.metric(
        "contact.slope.creep_mm",
        max(x[-1] for x in moved.values()),
        at_most=1.0,
        unit="mm",
        note=f"largest creep in {span:g} s, at up to 0.95 of the friction angle",
    )
    study.metric(
        "contact.slope.creep_after_1s",
        max(abs(row[-1]) for row in rows),
        at_most=1.0,
        unit="nm",
        note="largest creep after the first second",
    )
    study.metric(
        "contact.slope.slide_error",
        np.max(np.abs(errors)),
        at_most=1e-5,
        note="largest relative error of g (sin a - mu cos a), two slopes",
    )
    study.report.table(
        f"Creep of a box on a slope in {span:g} s",
        ("law", "slope, deg", "creep, mm", "creep after 1 s, nm"),
        rows,
    )
    study.report.plot(
        STICKING_PLOT,
        ("time", "s", t),
        ("displacement", "mm"),
        moved,
    )
