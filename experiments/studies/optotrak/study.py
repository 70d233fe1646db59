"""Point-contact joint: a ball in a bowl, simulated, and identified from measurements.

After Knutson, M.Sc. thesis, Queen's University at Kingston, 2007.
"""

from ...harness.study import Study
from . import (
    fit as fit,
    planar as planar,
    pose as pose,
    report as twin,
    statics as rest,
    trial as trial,
)
from .model import build as build


TITLE = "Optotrak: a ball in a bowl, from equations to friction"
QUICK = (
    ("equilibrium (V2)", rest.run_rest),
    ("modes (V7, V13)", rest.run_modes),
    ("no friction (V9)", trial.run_frictionless),
    ("friction (V8)", trial.run_friction),
    ("pose by markers", pose.run_pose),
    ("identified from markers (V14)", twin.run_twin),
)
SLOW = (
    ("planar joint (V1)", planar.run_planar),
    ("Lagrangian (V15)", planar.run_lagrange),
    ("settling (V3)", rest.run_settling),
    ("friction by normal force", trial.run_pressed),
    ("identified from stated numbers", fit.run_measured),
)
STAGES = len(QUICK) + len(SLOW)


def run(study: Study) -> None:
    study.report.text(
        "A steel ball on a rod rolls and slides in a bowl, six springs hold it up, and "
        "cameras follow four markers (Knutson, M.Sc. thesis, Queen's University at "
        "Kingston, 2007). Of the measurements a few numbers were printed: they are "
        "called stated measured. Stated simulated are results of the thesis' own "
        "program. Derived are numbers that others worked out again from its constants, "
        "and synthetic are time series so made: neither was measured."
    )
    cases = QUICK if study.quick else (*QUICK, *SLOW)
    study.progress.update(study.task, total=len(cases))
    for name, part in cases:
        with study.stage(name):
            part(study)
    study.report.text(summary(study.metrics))


def summary(found: dict[str, float]) -> str:
    """What it all comes to."""
    of = lambda name: found[f"optotrak.{name}"]
    off = abs(of("equilibrium.marker1_y") - rest.STATED_STATIC_Y)
    said = (
        "In plain words: with nothing fitted the model rests where the rod was "
        f"measured to rest, to {off:.1f} mm, and swings as an independent program "
        "says, to less than a thousandth of a millimetre. Friction makes the "
        "frequency: more of it lets the ball roll instead of slide, which is stiffer. "
    )
    if "optotrak.measured.spring.mass" in found:
        said += (
            "The few numbers stated as measured are met by "
            f"{of('measured.contact.coulomb'):.3f} N of Coulomb's force, "
            f"{1e3 * of('measured.contact.turning'):.2f} mN m s of viscous torque and "
            f"springs of {1e3 * of('measured.spring.mass'):.1f} g each. "
        )
    return said + (
        "Were there series of the markers, fifteen numbers of friction, springs, mass "
        "centre and pose could be found from 5 s of them: of synthetic ones, "
        f"{of('twin.coverage95'):.0%} of the true values lie inside of intervals that "
        "promise 95 %."
    )
