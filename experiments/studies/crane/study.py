"""Offshore crane on a moving vessel: its motion and the loads in its slewing bearing.

A vessel on cubic rotational springs carries a crane of three joints under PD control.
The five constraint loads between crane and vessel come from auxiliary generalized
speeds (Cibicik and Egeland, *Determination of constraint forces for an offshore crane
on a moving base*). The paper does not print masses, gains and the motion sequence;
those here are chosen, and the reference series were computed for them.
"""

import jax.numpy as jnp

import djdyn

from ...harness.study import Study
from .cases import fixtures, gradient, scenario, scenario_gradients
from .model import GRAVITY, build as build
from .report import scene


TITLE = "Offshore crane on a moving vessel"
STAGES = 6
SCENE = "Scenario A: crane and vessel, with the force on the king"


def run(study: Study) -> None:
    """Run single states, both hoisting cycles and the gradients."""
    report = study.report
    report.text(
        "The vessel turns about a fixed pivot on cubic springs and moves only because "
        "the crane moves. The crane slews, reaches out, lifts and slews back (Cibicik "
        "and Egeland). The paper does not print masses, gains and timing; those of "
        "this study are chosen. The reference series were computed independently for "
        "the same choice."
    )
    with study.stage("single states"):
        worst = fixtures(study)
    seen, residuals = {}, []
    for name, gravity, checked in (("A", GRAVITY, 20.0), ("B", 0.0, 50.0)):
        with study.stage(f"scenario {name}"):
            t1 = 5.0 if study.quick else 50.0
            trajectory, found = scenario(study, name, gravity, t1, checked)
            seen[name] = trajectory.t, found
            gap = jnp.max(jnp.abs(found["loads"] - found["recursive"]))
            worst = max(worst, float(gap))
            residual = jnp.max(
                jnp.abs(djdyn.energy_balance(trajectory.system, trajectory))
            )
            residuals.append(float(residual / jnp.max(jnp.abs(found["energy"]))))
    study.metric(
        "crane.constraint_force.max_error",
        worst,
        at_most=1e-6,
        unit="N, N m",
        note="largest difference between loads by auxiliary speeds and by recursive "
        "Newton–Euler, in all states and runs",
    )
    study.metric(
        "crane.energy_residual",
        max(residuals),
        at_most=1e-8,
        note="largest energy residual of both scenarios, over the energy",
    )
    with study.stage("gradient of the peak moment"):
        gradient(study)
    with study.stage("gradients through scenario A"):
        if not study.quick:
            scenario_gradients(study)
    with study.stage("replay"):
        report.scene(scene(*seen["A"]), SCENE)
    study.answer(summary(study.metrics), SCENE)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"crane.{name}"]
    return (
        "The bending moment in the slewing bearing peaks at "
        f"{of('scenario_a.peak_moment') / 1e3:.1f} kN m in a hoisting cycle with "
        f"gravity, and at {of('scenario_b.peak_moment') / 1e3:.1f} kN m without. "
        "Auxiliary speeds and recursive Newton–Euler give the same constraint loads, "
        f"to {of('constraint_force.max_error'):.1g} N and N m. The gradient of the "
        "peak moment by gains and masses agrees with differences to "
        f"{of('gradient_error'):.1g} of its size."
    )
