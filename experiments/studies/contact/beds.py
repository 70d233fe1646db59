"""Solids on elastic beds: V28 to V30, a flat box, a tilted box, a bouncing sphere."""

import numpy as np

import djdyn
from djdyn.contact import Cuboid, ElasticFoundation, HalfSpace, Sphere, VolumeContact

from ...harness.study import Study
from .model import G, at, books, over


GROUND = Cuboid([100.0, 100.0, 10.0])  # m
FLAT = Cuboid([5.0, 5.0, 1.0])  # m
TILTED = Cuboid([15.0, 15.0, 5.0])  # m
TILT = np.deg2rad(25.7)


def flat_box(B: float = 50e6) -> djdyn.System:
    """V28: 25 t over a box whose top is 0.1 m below."""
    beds = (ElasticFoundation(950e6, B), ElasticFoundation(950e6, B))
    part = VolumeContact("b", FLAT, "bed", GROUND, beds)
    inertia = np.diag(FLAT.inertia(25000.0 / FLAT.volume())["I_BC"])
    return over(part, 25000.0, inertia, top=-5.6)


def run_flat(study: Study) -> None:
    """V28: the volume that carries 25 t, and how it gets there."""
    system = study.customise(flat_box())
    how = {"rtol": 1e-9, "atol": 1e-11, "max_steps": 1 << 18}
    run = djdyn.simulate(system, 3.0, saveat=3001, ledger=True, **how)
    volume = np.asarray(run.signal("touch.volume"))
    study.metric(
        "contact.flat_box.volume_error",
        volume[-1] / 7.9017059e-3 - 1,
        0.0,
        1e-6,
        note="V28, relative to the unrounded 7.9017059e-3 m³",
    )
    force = np.asarray(run.signal("touch.normal_force"))
    study.metric("contact.flat_box.force", force[-1], 245250.0, 0.1, unit="N")
    depth = -0.1 - np.asarray(run.y.q[:, 2])
    note = "V28, at rest"
    study.metric(
        "contact.flat_box.depth", depth[-1], 3.1607e-4, 1e-8, unit="m", note=note
    )
    books(study, "flat_box", run, 1e-7)
    study.series("flat_box", run)
    lively = djdyn.simulate(
        flat_box(3e6), 1.0, saveat=4001, rtol=1e-9, atol=1e-11, max_steps=1 << 18
    )
    n = np.searchsorted(run.t, 1.0)
    other = (lively.t, -0.1 - np.asarray(lively.y.q[:, 2]))
    study.report.plot(
        "V28: 25 t fall 0.1 m, and settle",
        ("time", "s", run.t[:n]),
        ("height over the bed", "m"),
        {"B 50 MPa s, as printed": -depth[:n], "B 3 MPa s": (other[0], -other[1])},
        {"at rest": np.full(n, -3.1607e-4)},
    )
    study.report.plot(
        "V28: the bed presses",
        ("time", "s", run.t[:n]),
        ("force", "N"),
        {"B 50 MPa s, as printed": force[:n]},
        {"weight": np.full(n, 245250.0)},
    )


def tilted_box() -> djdyn.System:
    """V29, with the mass and stiffness that agree with its result.

    The damping is nearly critical: the print's, 1 s of the stiffness, is far beyond.
    """
    beds = (
        ElasticFoundation(10e6, 0.2e6),
        ElasticFoundation(10e6, 0.2e6, GROUND.equivalent_radius()),
    )
    part = VolumeContact("b", TILTED, "bed", HalfSpace(), beds)
    inertia = np.diag(TILTED.inertia(7950.0 / TILTED.volume())["I_BC"])
    return over(part, 7950.0, inertia, top=-10.0)


def run_tilted(study: Study) -> None:
    """V29: a box that falls on a corner comes to lie flat."""
    system = tilted_box()
    R = djdyn.pose_rpy((0.0, 0.0, 0.0), (TILT, TILT, 0.0)).R
    lowest = np.min(np.asarray(TILTED.core() @ R.T)[:, 2])
    c, s = np.cos(TILT / 2), np.sin(TILT / 2)
    y = system.initial_state(q={"b": [0, 0, 0, c * c, s * c, c * s, -s * s]})
    how = {"rtol": 1e-8, "atol": 1e-10, "max_steps": 1 << 16}
    run = djdyn.simulate(system, 20.0, y, saveat=2001, ledger=True, **how)
    volume = np.asarray(run.signal("touch.volume"))
    study.metric(
        "contact.tilted_box.volume_error",
        volume[-1] / 0.274882 - 1,
        0.0,
        2e-6,
        note="V29, relative to 0.274882 m³, at rest; 7950 kg, 10 MPa",
    )
    first = np.sqrt(2 * (10.0 + lowest) / G)
    note = "V29: when its lowest corner is there"
    study.metric("contact.tilted_box.touch", first, 0.60359, 1e-5, unit="s", note=note)
    q = np.asarray(run.y.q[:, 3:])
    eliminate_dead_code = np.rad2deg(2 * np.arcsin(np.hypot(q[:, 1], q[:, 2])))
    note = "V29: lies flat"
    study.metric(
        "contact.tilted_box.lean",
        eliminate_dead_code[-1],
        at_most=1e-4,
        unit="deg",
        note=note,
    )
    books(study, "tilted_box", run, 1e-5)
    study.report.plot(
        "V29: a box falls on a corner",
        ("time", "s", run.t[:401]),
        ("lean", "deg"),
        {"of its upright axis": eliminate_dead_code[:401]},
    )


def bouncing_sphere() -> djdyn.System:
    """V30: 3 t over a stiff bed 20 m below."""
    beds = (
        ElasticFoundation(200e9, 1.0),
        ElasticFoundation(200e9, 1.0, GROUND.equivalent_radius()),
    )
    part = VolumeContact("b", Sphere(1.0), "bed", HalfSpace(), beds)
    return over(part, 3000.0, 1200.0, top=-20.0)


def run_sphere(study: Study) -> None:
    """V30: five bounces, and no energy lost."""
    system = bouncing_sphere()
    t = np.linspace(0.0, 21.6, 2161)
    t = np.union1d(t, np.linspace(1.967, 1.976, 1801))
    how = {"rtol": 1e-10, "atol": 1e-11, "max_steps": 1 << 16}
    run = djdyn.simulate(system, 21.6, at(system, 0.0), saveat=t, ledger=True, **how)
    z, energy = np.asarray(run.y.q[:, 2]), np.asarray(run.energy())
    whole = 3000.0 * G * 19.0
    drift = (energy - energy[0]) / whole
    study.metric(
        "contact.sphere.energy_drift",
        np.max(np.abs(drift)),
        at_most=1e-6,
        note="V30: most in five bounces, of 559 170 J",
    )
    force = np.asarray(run.signal("touch.normal_force"))
    inside = run.t[force > 0]
    inside = inside[inside < 1.99]
    tops = [
        np.max(z[(run.t > a) & (run.t < a + 2.0)]) for a in 3.0 + 3.9426 * np.arange(5)
    ]
    for name, value, known, within, unit in (
        ("depth", np.max(-19.0 - z), 0.043196, 1e-6, "m"),
        ("force", np.max(force), 3.8782e7, 1e3, "N"),
        ("volume", np.max(run.signal("touch.volume")), 5.7774e-3, 1e-7, "m^3"),
        ("impact", inside[0], 1.968146, 6e-6, "s"),
        ("contact", np.ptp(inside), 6.276e-3, 1e-5, "s"),
    ):
        study.metric(
            f"contact.sphere.{name}", value, known, within, unit=unit, note="V30"
        )
    study.metric(
        "contact.sphere.height",
        min(tops),
        0.0,
        1e-3,
        unit="m",
        note="V30: lowest of five tops, saved every 10 ms",
    )
    study.series("sphere", run)
    study.report.plot(
        "V30: a sphere bounces",
        ("time", "s", run.t),
        ("height of its centre", "m"),
        {"sphere": z},
    )
    study.report.plot(
        "V30: energy since the start",
        ("time", "s", run.t),
        ("change of 559 170 J", "1e-6"),
        {"kinetic, potential and elastic": 1e6 * drift},
    )
