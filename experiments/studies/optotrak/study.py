"""Point-contact joint: a ball in a bowl, simulated, and identified from measurements.

After Knutson, M.Sc. thesis, Queen's University at Kingston, 2007. With
`--set data=FILE` and `static=FILE`, a user's own records of the rig instead.
"""

from ...harness.study import Study
from . import (
    fit as fit,
    inertia as inertia,
    newton_raphson as newton_raphson,
    own_report as own_report,
    planar as planar,
    pose as pose,
    report as report,
    statics as statics,
    trial as trial,
)
from .model import build as build


TITLE = "Optotrak: a ball in a bowl, from equations to friction"
QUICK = (
    ("static equilibrium", statics.run_equilibrium),
    ("linear modes", statics.run_modes),
    ("poses by Newton's method", newton_raphson.run_poses),
    ("inertia of the parts", inertia.run_inertia),
    ("trial 5 without friction", trial.run_frictionless),
    ("trial 5 with friction", trial.run_friction),
    ("observability of the pose", pose.run_pose),
    ("identification from markers", report.run_twin),
)
SLOW = (
    ("planar joint", planar.run_planar),
    ("Lagrangian", planar.run_lagrange),
    ("damped settling", statics.run_settling),
    ("release from stated poses", newton_raphson.run_undamped),
    ("friction by normal force", trial.run_pressed),
    ("identification from measurements", fit.run_measured),
)
STAGES = len(QUICK) + len(SLOW)
OWN_STAGES = 3
OPTIONS = {"data": "", "static": "", "labels": "1 2 3 4", "axes": ""}


def run(study: Study) -> None:
    """Run all cases, or the quick ones; or identify the user's own records."""
    if study.options.get("data"):
        study.progress.update(study.task, total=OWN_STAGES)
        own_report.run_own(study)
        return
    if study.options.get("static"):
        raise ValueError("a static trial needs a trial in motion: give data=FILE")
    study.report.text(
        "A steel ball on a rod rolls and slides in a bowl. Six springs hold the rod "
        "up, and cameras track four markers (Knutson, M.Sc. thesis, Queen's University "
        "at Kingston, 2007). The thesis prints a few measured numbers and results of "
        "its own simulations. All other references were computed independently from "
        "its constants; time series computed in this way are called synthetic."
    )
    study.run_cases(QUICK, SLOW)
    study.answer(summary(study.metrics))


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"optotrak.{name}"]
    off = abs(of("equilibrium.marker1_y") - statics.MEASURED_STATIC_Y)
    said = (
        "With no parameter fitted, the static equilibrium of the model "
        f"differs from the measured one by {off:.1f} mm, and its free motion from that "
        "of an independent program by less than 0.001 mm. Friction determines the "
        "frequency: with more friction the ball rolls instead of sliding, which is "
        "stiffer. "
    )
    if "optotrak.measured.spring.mass" in found:
        said += (
            "The model reproduces the printed measurements with "
            f"{of('measured.contact.coulomb'):.3f} N of Coulomb friction, "
            f"{1e3 * of('measured.contact.turning'):.2f} mN m s of viscous torque and "
            f"springs of {1e3 * of('measured.spring.mass'):.1f} g each. "
        )
    return said + (
        "Marker series of 5 s would determine fifteen parameters of friction, springs, "
        "mass centre and pose: for synthetic series, "
        f"{of('twin.coverage95'):.0%} of the true values lie inside their 95 % "
        "intervals."
    )
