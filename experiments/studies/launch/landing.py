"""Landing of a box on a bed by a crane (Roy, Steinke and Nicoll 2014, section 4.5.4).

The winch pays out the distance to the bed, so a weightless line stretches by as much as
the bed deforms. Of the weight W, the bed carries $W k_b/(k_b + k_l)$.
"""

import equinox as eqx
import numpy as np

import djdyn
from controllers import JointPID, Reference
from djdyn.cable import Cable, CableProperties, PinnedEnd
from djdyn.contact import Coulomb, ElasticFoundation, HalfSpace, VolumeContact
from djdyn.multibody.spatial import translation
from djdyn.multibody.time_functions import Interpolated
from djdyn.parts import JointActuator, Winch

from ...harness.study import Study
from ..boom_crane.model import LANDING, crane, lock
from ..contact.beds import FLAT, GROUND
from .model import GRAVITY, payload
from .runs import simulate


MASS, PAID_OUT, RATE = 7800.0, 0.5, 0.1  # kg, m, m/s
BED_HEIGHT = -1.0  # m
TIP = np.array([-0.65, 0.0, 1.4]) + np.sqrt(0.5) * np.array([6.0, 0.0, 6.0])  # m
LENGTH = TIP[2] - 1.0  # m, of the line, to the hook 1 m above the box's centre
EA = 4.77e9  # N, inferred from the printed forces
DENSITY, DAMPING = 0.226, 2.7e6  # kg/m, sample files; N s, 0.1 of critical
KP, KD, KI = 1e9, 2e7, 2e10  # N m/rad, N m s/rad, N m/(rad s)


def landing() -> djdyn.System:
    """Return the crane with a controlled boom, line, winch, box and bed."""
    links, q = crane(LANDING)
    tip = djdyn.Frame("tip", "link7", translation((0, 0, 1)))
    whole = djdyn.Mechanism(links.bodies, (*links.frames, tip))
    boom = lock(whole, q, ["link2"])
    box, hook = payload(
        MASS,
        tuple(np.diag(FLAT.inertia(MASS / FLAT.volume())["I_BC"])),
        (TIP[0], 0.0, 0.0),
    )
    bed = djdyn.Frame("bed", "world", translation((0, 0, BED_HEIGHT)))
    frames = (*boom.frames, hook, bed)
    mechanism = djdyn.Mechanism((*boom.bodies, box), frames, boom.gravity_W)
    stop = PAID_OUT / RATE
    order = Interpolated([0.0, 0.2, stop, stop + 0.2], [0.0, RATE, RATE, 0.0])
    ends = PinnedEnd(frame="hook"), PinnedEnd(frame="tip", payout="winch.rate")
    beds = (
        ElasticFoundation(950e6, 50e6),
        ElasticFoundation(950e6, 50e6, GROUND.equivalent_radius()),
    )
    return djdyn.System(
        mechanism,
        {
            "line": Cable(
                CableProperties(DENSITY, EA, axial_damping=DAMPING),
                LENGTH,
                *ends,
                mesh=2,
            ),
            "ground": VolumeContact(
                "payload", FLAT, "bed", HalfSpace(), beds, Coulomb(0.05), width=1e-5
            ),
            "place": Reference(q[1:2]),
            "pid": JointPID(("link2",), "place.value", KP, KD, KI),
            "motor": JointActuator(("link2",), "pid.u"),
            "order": Reference(order),
            "winch": Winch("order.value"),
        },
    )


def run_landing(study: Study) -> None:
    """Compare how line and bed share the weight."""
    study.report.text(
        "Landing on a bed (Roy, Steinke and Nicoll 2014, section 4.5.4). The report "
        "has a box 5 m high over a bed 0.1 m below it and lets it touch after 0.5 m. A "
        "box of 1 m over a bed at -1 m touches there, and this study uses it. The "
        "report calls the line stiff and gives no EA. The printed forces follow from "
        f"{EA:.3g} N; with the 4e6 N of the sample files the line would carry a "
        "thousandth of the weight. The printed point of contact, 45 mm from below the "
        "tip, requires a swinging box; this one hangs nearly plumb. A drive holds the "
        "joint of the boom; the other joints are rigid."
    )
    system, weight = landing(), MASS * GRAVITY
    hangs = [0.0, 0.0, -weight * LENGTH / EA, 1.0, 0.0, 0.0, 0.0]
    q0 = {"link2": [np.pi / 4], "payload": hangs}
    y0 = djdyn.equilibrium(system, system.initial_state(q0))
    held = KP * (np.pi / 4 - y0.q[:1])  # avoids sag of the boom and swing of the box
    y0 = eqx.tree_at(lambda y: y.parts["pid"].integral, y0, held)
    y0 = djdyn.equilibrium(system, y0)
    how = {"solver": "rodas4", "rtol": 1e-5, "atol": 1e-8}
    run, seen = simulate(
        study, "landing", system, y0, weight * PAID_OUT, span=10.0, **how
    )
    t, height = np.asarray(run.t), seen["p"][:, -1, 2]
    bed, line = (
        np.asarray(run.signal(k)) for k in ("ground.normal_force", "line.tail_tension")
    )
    stiff = 25 * 950e6 / float(FLAT.equivalent_radius() + GROUND.equivalent_radius())
    pull = EA / (LENGTH + PAID_OUT)
    share = stiff / (stiff + pull)
    lean = np.rad2deg(np.arccos(np.minimum(seen["R"][-1, -1, 2, 2], 1.0)))
    swung = np.abs(np.asarray(run.y.q)[:, 0] - np.pi / 4)
    for name, value, known, within, unit, note in (
        ("force", bed[-1], share * weight, 5.0, "N",
         "force of the bed; reference: springs in parallel"),
        ("tension", line[-1], (1 - share) * weight, 5.0, "N",
         "tension of the line; reference: springs in parallel"),
        ("printed_force", bed[-1], 34859.58, 50.0, "N",
         f"force of the bed; reference: printed, for EA {EA:.3g} N"),
        ("balance", (bed[-1] + line[-1]) / weight - 1, 0.0, 1e-5, "",
         "both forces over the weight, less 1"),
        ("height", height[-1], BED_HEIGHT + 0.5 - share * weight / stiff, 1e-6, "m",
         "final height of the box"),
    ):  # fmt: skip
        name = f"launch.landing.{name}"
        study.metric(name, value, known, within, unit=unit, note=note)
    for name, value, most, unit, note in (
        ("lean", lean, 1e-3, "deg", "final inclination of the box"),
        ("joint", swung[-1], 1e-7, "rad", "final error of the boom's joint"),
        ("joint_most", swung.max(), None, "rad", "largest error of the boom's joint"),
    ):
        name = f"launch.landing.{name}"
        study.metric(name, value, at_most=most, unit=unit, note=note)
    study.report.plot(
        "Landing on a bed: forces of line and bed",
        ("time", "s", t),
        ("force", "N"),
        {"line": line, "bed": bed},
        {"weight": np.full_like(t, weight)},
    )
