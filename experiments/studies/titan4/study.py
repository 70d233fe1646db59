"""Titan 4: a hydraulic arm of six joints under backstepping control, and tuned.

After Rokseth, master's thesis, NTNU, 2014: case study 1 and paper 2, cases V5 to V21.
The source shows plots; references are another's simulations of its equations, with its
slips put right.
"""

from ...harness.study import Study
from . import (
    fixtures as fixtures,
    realtime as realtime,
    rig as rig,
    scene as scene,
    tracking as tracking,
    tuning as tune,
)
from .model import build as build


TITLE = "Titan 4: a hydraulic arm under backstepping control"
STAGES = 9
SLOW = (fixtures.run_swing, rig.run_steps)  # to compile; left out of a quick run


def run(study: Study) -> None:
    study.report.text(
        "Six revolute joints, five turned by hydraulic motors and one by a cylinder, "
        "each behind a servo valve. Sticks move targets, a filter of third order makes "
        "references of them, and backstepping makes valve areas of those. Where print "
        "and mechanics disagree (Coriolis matrix, signs, a piston's area), the study "
        "follows mechanics; the inertias of links 3 and 4 are those of the print."
    )
    for name, part in (
        ("poses (V5 to V7)", fixtures.run_poses),
        ("swing (V8)", fixtures.run_swing),
        ("guidance (V16, V17)", fixtures.run_guidance),
        ("eigenvalues (V18)", fixtures.run_eigenvalues),
        ("frequency response (V12)", rig.run_frequencies),
        ("steps (V13, V14)", rig.run_steps),
    ):
        with study.stage(name):
            if part not in SLOW or not study.quick:
                part(study)
    with study.stage("tracking and a stop (V20, V21)"):
        followed, stopped, bonded = tracking.runs(study.sets)
        tracking.run_tracking(study, followed)
        tracking.run_books(study, followed)
        tracking.run_stop(study, stopped, bonded)
        study.report.scene(scene.scene(followed), "Tracking (V20)")
    for name, part in (("real time", realtime.run), ("tuning", tune.run)):
        with study.stage(name):
            if not study.quick:
                part(study)
