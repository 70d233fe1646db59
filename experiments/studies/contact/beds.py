"""Solids on elastic beds: flat box, tilted box and bouncing sphere.

Roy, Steinke and Nicoll 2014, sections 4.5.1 to 4.5.3.
"""

import numpy as np

import djdyn
from djdyn.contact import Cuboid, ElasticFoundation, HalfSpace, Sphere, VolumeContact

from ...harness.study import Study
from .model import G, at, ledger, over


GROUND = Cuboid([100.0, 100.0, 10.0])  # m
FLAT = Cuboid([5.0, 5.0, 1.0])  # m
TILTED = Cuboid([15.0, 15.0, 5.0])  # m
TILT = np.deg2rad(25.7)


def flat_box(B: float = 50e6) -> djdyn.System:
    """Return a flat box of 25 t, 0.1 m above a bed (section 4.5.1)."""
    beds = (ElasticFoundation(950e6, B), ElasticFoundation(950e6, B))
    part = VolumeContact("b", FLAT, "bed", GROUND, beds)
    inertia = np.diag(FLAT.inertia(25000.0 / FLAT.volume())["I_BC"])
    return over(part, 25000.0, inertia, top=-5.6)


def run_flat(study: Study) -> None:
    """Compare the equilibrium of a flat box after a fall of 0.1 m."""
    system = study.customise(flat_box())
    how = {"rtol": 1e-9, "atol": 1e-11, "max_steps": 1 << 18}
    run = djdyn.simulate(system, 3.0, saveat=3001, ledger=True, **how)
    volume = np.asarray(run.signal("touch.volume"))
    study.metric(
        "contact.flat_box.volume_error",
        volume[-1] / 7.9017059e-3 - 1,
        0.0,
        1e-6,
        note="flat box: relative error of the overlap volume, 7.9017059e-3 m³",
    )
    force = np.asarray(run.signal("touch.normal_force"))
    note = "flat box: final force; reference: weight"
    study.metric(
        "contact.flat_box.force", force[-1], 245250.0, 0.1, unit="N", note=note
    )
    depth = -0.1 - np.asarray(run.y.q[:, 2])
    note = "flat box: final depth"
    study.metric(
        "contact.flat_box.depth", depth[-1], 3.1607e-4, 1e-8, unit="m", note=note
    )
    ledger(study, "flat_box", run, 1e-7)
    study.series("flat_box", run)
    lively = djdyn.simulate(
        flat_box(3e6), 1.0, saveat=4001, rtol=1e-9, atol=1e-11, max_steps=1 << 18
    )
    n = np.searchsorted(run.t, 1.0)
    other = (lively.t, -0.1 - np.asarray(lively.y.q[:, 2]))
    study.report.plot(
        "Flat box (Roy, Steinke and Nicoll 2014, section 4.5.1): height",
        ("time", "s", run.t[:n]),
        ("height over the bed", "m"),
        {"B 50 MPa s, as printed": -depth[:n], "B 3 MPa s": (other[0], -other[1])},
        {"at rest": np.full(n, -3.1607e-4)},
    )
    study.report.plot(
        "Flat box: force of the bed",
        ("time", "s", run.t[:n]),
        ("force", "N"),
        {"B 50 MPa s, as printed": force[:n]},
        {"weight": np.full(n, 245250.0)},
    )


def tilted_box() -> djdyn.System:
    """Return a tilted box above a bed (section 4.5.2).

    Mass and stiffness agree with the printed result. The damping is nearly critical;
    the printed one is far higher.
    """
    beds = (
        ElasticFoundation(10e6, 0.2e6),
        ElasticFoundation(10e6, 0.2e6, GROUND.equivalent_radius()),
    )
    part = VolumeContact("b", TILTED, "bed", HalfSpace(), beds)
    inertia = np.diag(TILTED.inertia(7950.0 / TILTED.volume())["I_BC"])
    return over(part, 7950.0, inertia, top=-10.0)


def run_tilted(study: Study) -> None:
    """Compare the equilibrium of a box that falls on a corner."""
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
        note="tilted box: relative error of the final overlap volume, 0.274882 m³",
    )
    first = np.sqrt(2 * (10.0 + lowest) / G)
    note = "tilted box: time of the first contact"
    study.metric("contact.tilted_box.touch", first, 0.60359, 1e-5, unit="s", note=note)
    q = np.asarray(run.y.q[:, 3:])
    lean = np.rad2deg(2 * np.arcsin(np.hypot(q[:, 1], q[:, 2])))
    note = "tilted box: final inclination"
    study.metric(
        "contact.tilted_box.lean",
        lean[-1],
        at_most=1e-4,
        unit="deg",
        note=note,
    )
    ledger(study, "tilted_box", run, 1e-5)
    study.report.plot(
        "Tilted box (Roy, Steinke and Nicoll 2014, section 4.5.2): inclination",
        ("time", "s", run.t[:401]),
        ("inclination", "deg"),
        {"upright axis": lean[:401]},
    )


def bouncing_sphere() -> djdyn.System:
    """Return a sphere of 3 t, 20 m above a stiff bed (section 4.5.3)."""
    beds = (
        ElasticFoundation(200e9, 1.0),
        ElasticFoundation(200e9, 1.0, GROUND.equivalent_radius()),
    )
    part = VolumeContact("b", Sphere(1.0), "bed", HalfSpace(), beds)
    return over(part, 3000.0, 1200.0, top=-20.0)


def run_sphere(study: Study) -> None:
    """Compare five bounces of a sphere without loss of energy."""
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
        note="sphere: largest change in five bounces, over 559 170 J",
    )
    force = np.asarray(run.signal("touch.normal_force"))
    inside = run.t[force > 0]
    inside = inside[inside < 1.99]
    tops = [
        np.max(z[(run.t > a) & (run.t < a + 2.0)]) for a in 3.0 + 3.9426 * np.arange(5)
    ]
    note = "sphere: first impact; reference: closed form"
    for name, value, known, within, unit in (
        ("depth", np.max(-19.0 - z), 0.043196, 1e-6, "m"),
        ("force", np.max(force), 3.8782e7, 1e3, "N"),
        ("volume", np.max(run.signal("touch.volume")), 5.7774e-3, 1e-7, "m^3"),
        ("impact", inside[0], 1.968146, 6e-6, "s"),
        ("contact", np.ptp(inside), 6.276e-3, 1e-5, "s"),
    ):
        study.metric(
            f"contact.sphere.{name}", value, known, within, unit=unit, note=note
        )
    study.metric(
        "contact.sphere.height",
        min(tops),
        0.0,
        1e-3,
        unit="m",
        note="sphere: lowest of five tops, saved every 10 ms",
    )
    study.series("sphere", run)
    study.report.plot(
        "Bouncing sphere (Roy, Steinke and Nicoll 2014, section 4.5.3): height",
        ("time", "s", run.t),
        ("height of its centre", "m"),
        {"sphere": z},
    )
    study.report.plot(
        "Bouncing sphere: change of the energy",
        ("time", "s", run.t),
        ("change of 559 170 J", "1e-6"),
        {"kinetic, potential and elastic": 1e6 * drift},
    )
