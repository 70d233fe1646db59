"""Gradient of the depth of an impact on a joint stop, by the stop and the masses."""

import equinox as eqx
import numpy as np
import scipy.integrate
from jaxtyping import Array, Float

import djdyn
from djdyn.simulation.gradient_check import GradientCheck

from ...harness.study import Study
from .joints import GRAVITY
from .stops import (
    DAMPING,
    LOWER,
    NAMES,
    STIFFNESS,
    TOUCH,
    TOUCH_RATE,
    boom,
    build,
    rigid,
)


SOFT_WIDTH = 1e-4  # rad, transition of the stop's force, wider than elsewhere


class Impact(eqx.Module):
    """Angle of joint 2, 20 ms after the contact; steps end at `edges`."""

    edges: Float[np.ndarray, " n"]

    def __call__(self, system: djdyn.System, simulate) -> Float[Array, ""]:
        trajectory = simulate(
            rigid(system),
            0.5,
            saveat=np.array([0.5]),
            solver="dopri8",
            rtol=1e-12,
            atol=1e-12,
            jumps=self.edges,
            max_steps=1024,
        )
        return trajectory.y.q[-1, 0]


def edges() -> Float[np.ndarray, "2"]:
    """Return the times at which the transition of the stop's force begins and ends.

    The force is smooth between them but not across: steps that end there keep the
    gradient as accurate as the motion.
    """
    first, inertia = boom()

    def rate(t, y):
        del t
        depth, speed = y  # beyond the stop
        s = depth / SOFT_WIDTH
        push = (3 * s**2 - 2 * s**3) * (STIFFNESS * depth + DAMPING * speed)
        weight = first * GRAVITY * np.cos(LOWER - depth)
        return speed, (weight - push) / inertia

    after = scipy.integrate.solve_ivp(
        rate,
        (0.0, 2 * SOFT_WIDTH / -TOUCH_RATE),
        (0.0, -TOUCH_RATE),
        method="DOP853",
        events=lambda t, y: y[0] - SOFT_WIDTH,
        rtol=1e-13,
        atol=1e-16,
    )
    return TOUCH + np.array([0.0, after.t_events[0][0]])


def impact_gradient(study: Study) -> tuple[GradientCheck, djdyn.System]:
    """Check the gradient of the depth of the impact by the stop and the masses."""
    system = study.customise(build(width=SOFT_WIDTH))
    free = ["stop.stiffness", "stop.damping", *(f"{name}.mass" for name in NAMES[1:])]
    check = djdyn.check_gradient(Impact(edges()), system, free, tight=1e-13)
    return check, system


def run_gradient(study: Study, check: GradientCheck, system: djdyn.System) -> None:
    """Report the gradient through the impact."""
    study.metric(
        "boom_crane.gradient_error",
        check.difference_error,
        at_most=1e-6,
        note="gradient of the angle 20 ms after the contact, beside differences",
    )
    percent = [
        float(djdyn.get_parameters(system, path)) * slope * 1e4
        for path, slope in zip(check.paths, check.reverse, strict=True)
    ]
    columns = (check.reverse, check.forward, check.differences, check.tight, percent)
    study.report.table(
        f"Gradient of the angle 20 ms after the contact, {check.value:.7g} rad",
        ("parameter", "reverse [rad/unit]", "forward", "differences", "finer tolerance",
         "change by 1 % [µrad]"),
        zip(check.paths, *columns, strict=True),
    )  # fmt: skip
    study.console.print(f"  {check.verdict()}")
