"""Spinning top on a plane, with and without friction.

Roy, Steinke and Nicoll 2014, section 4.5.5, suggest this test.
"""

from typing import Any

import jax
import numpy as np

import djdyn
from djdyn.contact import Contact, Coulomb, HalfSpace, KelvinVoigt, Sphere
from djdyn.multibody.spatial import quat_to_rotation

from ...harness.study import Study
from .model import G, ledger


MASS, ARM, TIP = 0.1, 0.04, 0.01  # kg; m, mass centre to tip centre; m, tip radius
ACROSS, ALONG = 8e-5, 5e-5  # kg m^2
SPIN, LEAN = 200.0, 0.3  # rad/s, rad
STIFF = 1e5  # N/m


def top(friction: Any) -> djdyn.System:
    """Return a symmetric top whose tip is a small sphere."""
    inertia = np.diag([ACROSS, ACROSS, ALONG])
    body = djdyn.Body("b", "world", djdyn.Free(), MASS, I_BC=inertia)
    tip = djdyn.Frame("tip", "b", djdyn.translation((0.0, 0.0, -ARM)))
    law = KelvinVoigt(STIFF, 10.0, width=1e-7)
    part = Contact("tip", Sphere(TIP), "world", HalfSpace(), law, friction)
    return djdyn.System(djdyn.Mechanism((body,), (tip,)), {"touch": part})


def precession() -> float:
    """Return the slow rate of steady precession on a smooth plane, rad/s."""
    pull, wheel = MASS * G * ARM, ALONG * SPIN
    c = np.cos(LEAN)
    return (wheel - np.sqrt(wheel**2 - 4 * ACROSS * c * pull)) / (2 * ACROSS * c)


def spin(mu: np.ndarray, span: float) -> tuple[djdyn.Trajectory, np.ndarray]:
    """Simulate from steady precession for several friction coefficients.

    Return the trajectory and the rotation matrices.
    """
    system, half = top(Coulomb(0.2)), LEAN / 2
    z = ARM * np.cos(LEAN) + TIP - MASS * G / STIFF
    y = system.initial_state(
        q={"b": [0, 0, z, np.cos(half), 0, np.sin(half), 0]},
        v={"b": [-precession() * np.sin(LEAN), 0, SPIN, 0, 0, 0]},
    )
    run = djdyn.rollout(
        system,
        span,
        y,
        parameters={"touch.friction.mu": mu},
        saveat=np.linspace(0.0, span, 1501),
        solver="rk4",
        dt=1e-4,
        ledger=True,
    )
    return run, np.asarray(jax.vmap(jax.vmap(quat_to_rotation))(run.y.q[..., 3:]))


def run_top(study: Study) -> None:
    """Compare precession on a smooth plane and Jellett's constant on a rough one."""
    run, (smooth, rough) = spin(np.array([0.0, 0.2]), 3.0)
    turned = np.unwrap(np.arctan2(smooth[:, 1, 2], smooth[:, 0, 2]))
    study.metric(
        "contact.top.precession",
        turned[-1] / run.t[-1],
        precession(),
        1e-4,
        unit="rad/s",
        note="rate on a smooth plane; reference: steady precession",
    )
    momentum = np.asarray(run.y.v[1, :, :3]) * [ACROSS, ACROSS, ALONG]
    L = np.einsum("nij,nj->ni", rough, momentum)
    arm = ARM * rough[:, :, 2] + [0.0, 0.0, TIP - MASS * G / STIFF / 2]
    jellett = np.sum(L * arm, 1)
    study.metric(
        "contact.top.jellett_drift",
        np.max(np.abs(jellett / jellett[0] - 1)),
        at_most=1e-4,
        note="largest relative change of Jellett's constant on a rough plane",
    )
    ledger(study, "top", run, 1e-6)
    study.series("top", run)
    study.report.plot(
        "Spinning top: inclination",
        ("time", "s", run.t),
        ("inclination", "deg"),
        {
            "rough plane": np.rad2deg(np.arccos(rough[:, 2, 2])),
            "smooth plane": np.rad2deg(np.arccos(smooth[:, 2, 2])),
        },
        {"steady precession": np.full(len(run.t), np.rad2deg(LEAN))},
    )
