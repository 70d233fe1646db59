"""Point-contact joint: a ball in a bowl, simulated, and identified from measurements.

After Knutson, M.Sc. thesis, Queen's University at Kingston, 2007.
"""

from . import (
    optotrak_fit as fit,
    optotrak_planar as planar,
    optotrak_pose as pose,
    optotrak_rest as rest,
    optotrak_trial as trial,
    optotrak_twin_show as twin,
)
from .optotrak_rig import build as build
from .study import Study


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
