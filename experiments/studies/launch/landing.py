"""V31: a crane sets a box down on a bed, and line and bed share its weight.

Paid out as far as the bed is away, a line without weight stretches by as much as the
bed gives. So of the weight W the bed carries $W k_b/(k_b + k_l)$.
"""

import equinox as eqx
import numpy as np

import djdyn
from controllers import JointPID, Reference, Winch
from djdyn.cable import Cable, CableProperties, PinnedEnd
from djdyn.contact import Coulomb, ElasticFoundation, HalfSpace, VolumeContact
from djdyn.multibody.spatial import translation
from djdyn.multibody.time_functions import Interpolated
from djdyn.parts import JointActuator

from ...harness.study import Study
from ..boom_crane.model import LANDING, crane, lock
from ..contact.beds import FLAT, GROUND
from .model import GRAVITY, payload
from .runs import simulate


MASS, PAID_OUT, RATE = 7800.0, 0.5, 0.1  # kg, m, m/s
TOP = -1.0  # m, of the bed
TIP = np.array([-0.65, 0.0, 1.4]) + np.sqrt(0.5) * np.array([6.0, 0.0, 6.0])  # m
LENGTH = TIP[2] - 1.0  # m, of the line, to the hook 1 m above the box's centre
EA = 4.77e9  # N: what the printed forces ask for
DENSITY, DAMPING = 0.226, 2.7e6  # kg/m of the sample files; N s, a tenth of critical
HOLD, CALM, TRIM = 1e9, 2e7, 2e10  # N m/rad, N m s/rad, N m/(rad s)


def landing() -> djdyn.System:
    """The crane with its boom held by a drive, line, winch and box, and the bed."""
    links, q = crane(LANDING)
    tip = djdyn.Frame("tip", "link7", translation((0, 0, 1)))
    whole = djdyn.Mechanism(links.bodies, (*links.frames, tip))
    boom = lock(whole, q, ["link2"])
    box, hook = payload(
        MASS,
        tuple(np.diag(FLAT.inertia(MASS / FLAT.volume())["I_BC"])),
        (TIP[0], 0.0, 0.0),
    )
    bed = djdyn.Frame("bed", "world", translation((0, 0, TOP)))
    frames = (*boom.frames, hook, bed)
    mechanism = djdyn.Mechanism((*boom.bodies, box), frames, boom.gravity_W)
    stop = PAID_OUT / RATE
    order = Interpolated([0.0, 0.2, stop, stop + 0.2], [0.0, RATE, RATE, 0.0])
    ends = PinnedEnd(frame="hook"), PinnedEnd(frame="tip", payout="winch.rate")
    beds = ElasticFoundation(950e6, 50e6), ElasticFoundation(950e6, 50e6, GROUND.bed())
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
            "pid": JointPID(("link2",), "place.value", HOLD, CALM, TRIM),
            "motor": JointActuator(("link2",), "pid.u"),
            "order": Reference(order),
            "winch": Winch("order.value"),
        },
    )


def run_landing(study: Study) -> None:
    """V31: how line and bed share the weight, and that nothing else moves."""
    study.report.text(
        "V31: the print has a box of 5 m in height over a bed 0.1 m below it, and lets "
        "it touch 0.5 m down, where a box of 1 m over a bed at -1 m does: that is what "
        "is run. It calls the line stiff and gives no EA. The forces printed follow "
        f"from {EA:.3g} N; with the 4e6 N of its sample files the line would keep a "
        "thousandth of the weight. The printed point of touch, 45 mm from under the "
        "tip, needs a box that swings; this one hangs nearly plumb. Of the joints the "
        "boom's is held by a drive, the others are rigid."
    )
    system, weight = landing(), MASS * GRAVITY
    hangs = [0.0, 0.0, -weight * LENGTH / EA, 1.0, 0.0, 0.0, 0.0]
    q0 = {"link2": [np.pi / 4], "payload": hangs}
    y0 = djdyn.equilibrium(system, system.initial_state(q0))
    held = HOLD * (np.pi / 4 - y0.q[:1])  # without it the boom sags, and the box swings
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
    stiff = 25 * 950e6 / float(FLAT.bed() + GROUND.bed())
    pull = EA / (LENGTH + PAID_OUT)
    share = stiff / (stiff + pull)
    eliminate_dead_code = np.rad2deg(
        np.arccos(np.minimum(seen["R"][-1, -1, 2, 2], 1.0))
    )
    swung = np.abs(np.asarray(run.y.q)[:, 0] - np.pi / 4)
    for name, value, known, within, unit, note in (
        ("force", bed[-1], share * weight, 5.0, "N", "of the bed: springs in parallel"),
        ("tension", line[-1], (1 - share) * weight, 5.0, "N", "of the line"),
        ("printed_force", bed[-1], 34859.58, 50.0, "N", f"V31, with EA {EA:.3g} N"),
        ("balance", (bed[-1] + line[-1]) / weight - 1, 0.0, 1e-5, "", "of the weight"),
        ("height", height[-1], TOP + 0.5 - share * weight / stiff, 1e-6, "m", ""),
        ("lean", eliminate_dead_code, 0.0, 1e-3, "deg", "it lies flat"),
        ("joint", swung[-1], 0.0, 1e-7, "rad", "of the boom, held in the end"),
        ("joint_most", swung.max(), None, None, "rad", "at any time"),
    ):
        name = f"launch.landing.{name}"
        study.metric(name, value, known, within, unit=unit, note=note)
    study.report.plot(
        "V31: who carries the box",
        ("time", "s", t),
        ("force", "N"),
        {"line": line, "bed": bed},
        {"weight": np.full_like(t, weight)},
    )
