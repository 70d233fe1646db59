"""Boom crane: free body, single joints, and a crane on its joint stops.

The single-body and boom-crane cases of Roy, Steinke and Nicoll, *Ship Mechanical
Systems API: Final Report* (2014), sections 4.3.1 to 4.3.3, 4.4.1 to 4.4.6, 4.4.9 and
4.4.10. Where an expected value of the report is wrong, the reference is the corrected
one and the row says so.
"""

import concurrent.futures

import numpy as np

from ...harness.study import Study
from . import gradient as gradient, joints as joints, slide as slide, stops as stops
from .stops import build as build


TITLE = "Boom crane: joints, payload and stops"
STAGES = 10
OPTIONS = {"target": 100.0}  # deg, target of joint 2 beyond its stop

REPORTED = (  # section, metric, expected, simulated, remark
    ("4.3.1", "v10.displacement", 0.4, 0.4, "called a velocity; that is 0.04 m/s"),
    ("4.3.2", "v11.angular_velocity", 0.04, 0.0399975, ""),
    ("4.3.3", "v12.velocity", 0.04, 0.03999975, ""),
    ("4.4.1", "v16.period", 2.3153, 2.3076, "expected with g 9.82"),
    ("4.4.2", "v17.displacement", 4414.5, 4414.5, "downwards: negative with z up"),
    ("4.4.3", "v18.fast_period", 3.104088, 3.114829, "g 9.82, point masses"),
    ("4.4.3", "v18.slow_period", 7.662144, 7.550230, "g 9.82, point masses"),
    ("4.4.4", "v19.holding_force", -10.0, -10.00001, ""),
    ("4.4.5", "v20.coriolis_acceleration", 0.019802, 0.019465, "lateral"),
    ("4.4.6", "v21.rate", 1.1547, 1.1565, "expected without the slider's own inertia; "
     "mass centre of link 1 on its axis, in the table 1 m off"),
    ("4.4.9", "v24.equilibrium", -0.7854, -0.7868, "expected the angle of the stop, "
     "without sign; the stop deflects under the boom's weight"),
    ("4.4.10", "v25.angle_clipped", 1.5708, 1.570791, "if the target is clipped to the "
     "limit, which the report does not state"),
)  # fmt: skip


def run(study: Study) -> None:
    """Run all cases and compare with the report."""
    if not study.options["target"] > 90:
        raise ValueError(
            "target must lie beyond the stop of joint 2, above 90 deg, not "
            f"{study.options['target']:g}"
        )
    study.report.text(
        "The single-body and boom-crane cases of Roy, Steinke and Nicoll, Ship "
        "Mechanical Systems API: Final Report (2014). References are closed forms, or "
        "corrected values where the report is wrong. The report calls a displacement a "
        "velocity (linear acceleration, 4.3.1), uses g 9.82 for its pendulums (4.4.1, "
        "4.4.3), drops signs (4.4.2, 4.4.9), gives the Coriolis acceleration along the "
        "slide with a rate in rad/s (4.4.5), and has the mass centre of link 1 off the "
        "axis in its table but not in its result (4.4.6)."
    )
    study.report.text(
        "Tolerances follow from the references: `1e-8` of a closed form, which is a "
        "hundred times the tolerance of the solver; one unit of the last digit of a "
        "rounded number; and ten times the solver's `1e-7` for the stiff controlled "
        "crane. The force of the stop has a transition of `1e-6` rad, which shifts the "
        "boom by less than half of this width."
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # The large systems compile on a second core, in parallel with the small ones.
        big = pool.submit(stops.controlled, study)
        check = None if study.quick else pool.submit(gradient.impact_gradient, study)
        for name, part in (
            ("free body", joints.run_payload),
            ("revolute joint", joints.run_revolute),
            ("prismatic joint", joints.run_prismatic),
            ("double pendulum", joints.run_double_pendulum),
            ("slide on a turning arm", slide.run_driven_slide),
            ("energy of a free slide", slide.run_energy),
        ):
            with study.stage(name):
                part(study)
        with study.stage("passive joint limit, other joints locked"):
            fallen = stops.run_passive_stop(study)
        with study.stage("passive joint limit, under control"):
            stops.run_held(study, fallen, big.result()["passive"])
        with study.stage("active joint limit"):
            stops.run_active_stop(study, big.result())
        with study.stage("gradient through the impact"):
            if check is not None:
                gradient.run_gradient(study, *check.result())
    compare_with_report(study)
    study.answer(summary(study.metrics), stops.SCENE)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"boom_crane.{name}"]
    sag = 1e3 * (stops.LOWER - of("v24.equilibrium"))
    said = (
        "Free body, single joints and double pendulum follow closed forms: the "
        f"pendulum's periods are {of('v18.fast_period'):.4f} and "
        f"{of('v18.slow_period'):.4f} s. A boom that falls onto its stop comes to rest "
        f"{sag:.2f} mrad beyond it, where the report expects the angle of the stop. "
        "A drive that pushes against the other stop holds "
        f"{np.rad2deg(of('v25.angle_clipped')):.2f} deg and keeps its power limit of "
        f"{of('v25.peak_power') / 1e3:.0f} kW."
    )
    if "boom_crane.gradient_error" in found:
        said += (
            " Gradients through the impact agree with differences to "
            f"{of('gradient_error'):.1g} of their size."
        )
    return said


def compare_with_report(study: Study) -> None:
    """Tabulate this run beside the values of the report."""
    checks = {check.quantity: check for check in study.checks}
    rows = []
    for section, name, expected, simulated, remark in REPORTED:
        check = checks[f"boom_crane.{name}"]
        what = name.partition(".")[2].replace("_", " ")
        numbers = (f"{x:.8g}" for x in (expected, simulated, check.value))
        rows.append((section, what, check.unit, *numbers, remark))
    study.report.table(
        "Comparison with Roy, Steinke and Nicoll (2014)",
        ("section", "quantity", "unit", "report, expected", "report, simulated",
         "this run", "remark on the expected value"),
        rows,
    )  # fmt: skip
