"""ROV: an underwater vehicle with an arm lifts and places an object, and its tuning.

After Rokseth, master's thesis, NTNU, 2014: case study 2. The source shows plots only;
references are independent simulations of its equations, with corrections.
"""

import math

from ...harness.study import Study
from ...harness.tuning_report import searched
from . import (
    bluerov as bluerov,
    fixtures as fixtures,
    lift as lift,
    thrusters as thrusters,
    tuning as tuning,
)
from .model import build as build


TITLE = "ROV: an underwater vehicle with an arm"
STAGES = 13
CASES = (
    ("quasi-coordinates", fixtures.run_identity),
    ("momentum", fixtures.run_momentum),
    ("mass matrix", fixtures.run_mass_matrix),
    ("hydrostatics", fixtures.run_hydrostatics),
    ("added mass", fixtures.run_added_mass),
    ("drag", fixtures.run_drag),
    ("allocation", thrusters.run_allocation),
    ("thruster", thrusters.run_thruster),
    ("reference models", thrusters.run_reference),
    ("roots", fixtures.run_roots),
    ("object", thrusters.run_object),
    ("BlueROV2", bluerov.run),
)


def run(study: Study) -> None:
    """Run all cases, the lift and the tuning; a quick run leaves out the tuning."""
    study.progress.update(study.task, total=len(CASES) + 1 + (not study.quick))
    study.report.text(
        "The vehicle weighs four tonnes and has an arm of three joints, six ducted "
        "thrusters with shaft and water as states, and PID control of vehicle and arm "
        "(Rokseth, master's thesis, NTNU, 2014). It grips an object of 70 kg on a "
        "pillar, rises by half a metre, turns, sinks and lets go. The source leaves "
        "out the arm's mount, areas, widths of strips, volumes of links and set "
        "points; those of the reference runs are used. Where the printed equations "
        "contradict mechanics (sign of the added mass's Coriolis term, volumes of "
        "links, sign of the arm's gain), the study follows mechanics."
    )
    for name, case in CASES:
        with study.stage(name):
            case(study)
    with study.stage("lift and place"):
        done = lift.run_lift(study)
        study.report.scene(lift.scene(done), lift.LIFT_SCENE)
    if not study.quick:
        with study.stage("tuning"):
            tuning.run(study)
    study.answer(summary(study.metrics), lift.LIFT_SCENE)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"rov.{name}"]
    said = (
        "While the vehicle carries 70 kg, its depth is off by up to "
        f"{100 * of('lift.depth_carrying'):.0f} cm and its pitch by up to "
        f"{of('lift.pitch_carrying'):.3f} rad with the gains of the source; the peaks "
        f"differ by at most {of('lift.max_error'):.1%} from those of an independent "
        f"run. Momentum of the free vehicle is kept to {of('momentum.error'):.0e}. "
    )
    if "rov.tuned.cost_ratio" in found:
        said += (
            f"Tuned gains leave {of('tuned.cost_ratio'):.0%} of the cost on payloads, "
            "currents and seas that were not tuned on, with "
            f"{of('tuned.thrust_ratio'):.0%} of the thrust. "
        )
    ratio = found.get("rov.simulations_vs_cmaes", 1.0)
    if not math.isfinite(ratio):
        return said + "CMA-ES reaches a lower cost, with more simulations."
    return said + searched(found, "rov")
