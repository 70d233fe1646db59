"""Titan 4: a hydraulic arm of six joints under backstepping control, and its tuning.

After Rokseth, master's thesis, NTNU, 2014: case study 1 and paper 2. The source shows
plots only; references are independent simulations of its equations, with corrections.
"""

from ...harness.study import Study
from ...harness.tuning_report import searched
from . import (
    fixtures as fixtures,
    realtime as realtime,
    rig as rig,
    scene as scene,
    tracking as tracking,
    tuning as tuning,
)
from .model import build as build


TITLE = "Titan 4: a hydraulic arm under backstepping control"
STAGES = 10
SCENE = "Tracking: the arm under its sticks"
SLOW = (fixtures.run_swing, rig.run_steps)  # left out of a quick run


def run(study: Study) -> None:
    """Run all cases; a quick run leaves out those that compile slowly."""
    study.report.text(
        "The arm has six revolute joints (Rokseth, master's thesis, NTNU, 2014). "
        "Hydraulic motors drive five of them and a cylinder drives one, each through a "
        "servo valve. Sticks move the targets, a third-order filter turns them into "
        "references, and a backstepping controller sets the valve areas. Where the "
        "printed equations contradict mechanics (Coriolis matrix, signs, the area of a "
        "piston), the study follows mechanics. The inertias of links 3 and 4 are the "
        "printed ones."
    )
    for name, part in (
        ("kinematics and dynamics", fixtures.run_poses),
        ("passive swing", fixtures.run_swing),
        ("guidance", fixtures.run_guidance),
        ("closed-loop eigenvalues", fixtures.run_eigenvalues),
        ("frequency response", rig.run_frequencies),
        ("valve steps", rig.run_steps),
    ):
        with study.stage(name):
            if part not in SLOW or not study.quick:
                part(study)
    with study.stage("tracking and joint limit"):
        followed, stopped, bonded = tracking.runs(study.sets)
        tracking.run_tracking(study, followed)
        tracking.run_energy_balance(study, followed)
        tracking.run_stop(study, stopped, bonded)
        study.report.scene(scene.scene(followed), SCENE)
    for name, part in (
        ("other controllers", tracking.run_variants),
        ("real time", realtime.run),
        ("tuning", tuning.run),
    ):
        with study.stage(name):
            if not study.quick:
                part(study)
    study.answer(summary(study.metrics), SCENE)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"titan4.{name}"]
    said = (
        "While sticks move one joint after another, the arm stays within "
        f"{1e3 * of('tracking.max_error'):.2f} mrad of its references; an independent "
        f"run differs from this one by {1e3 * of('tracking.max_error_gap'):.2f} mrad. "
        "Energy is balanced to "
        f"{of('tracking.energy_ledger'):.1g} of what the supply gives. "
    )
    if "titan4.realtime_factor" in found:
        said += (
            f"A sampled loop runs {of('realtime_factor'):.1f} times as fast as real "
            f"time. Tuned gains have {of('tuned.cost_ratio'):.0%} of the cost of those "
            f"of the source, and a modulus margin of {of('modulus_margin'):.2f} in all "
            "conditions."
        )
    return said + searched(found, "titan4")
