"""Titan 4 at single states: kinematics, dynamics, guidance and eigenvalues."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import Backstepping, Joystick, ReferenceModel
from controllers.model_based import coriolis
from djdyn.multibody import mass_matrix
from djdyn.parts import JointFriction

from ...harness import tables
from ...harness.study import Study
from . import model as titan


POSES = {"zero": np.zeros(6), "test": np.array([0.3, 0.5, -0.7, 0.4, -0.2, 0.9])}
RATES = np.array([0.1, -0.2, 0.3, -0.4, 0.5, -0.6])
PASSIVE_SWING = {  # (lane, save): coordinates (rad), energy (J)
    (0, 0): ((0.189683, 0.590164, -0.686667, 1.004059, 0.665152, 0.257203), 639.083249),
    (1, 0): ((0.195317, 0.620128, -0.557880, 0.400746, 0.568560, 0.091714), 623.095084),
    (1, 1): ((0.203459, -1.769359, -0.266742, 0.044735, -0.018300, 0.09296), -41.48017),
}


@eqx.filter_jit
def at_pose(arm: djdyn.Mechanism, q: Array, v: Array) -> dict[str, Array]:
    """Return the quantities in the table of references."""
    world = djdyn.forward_kinematics(arm, q, v)
    kinetic = lambda q: v @ djdyn.mass_matrix(arm, q) @ v / 2
    return {
        "joint": world.X_WB.p[1:].ravel(),
        "tool": world.pose("tool").p,
        "B_": mass_matrix.projected_inertia(world)[jnp.triu_indices(6)],
        "g_": djdyn.inverse_dynamics(arm, q, 0 * v, 0 * v),
        "coriolis_": coriolis(arm, q, v, v, jnp.zeros(())),
        "half_w_dB_w_": jax.grad(kinetic)(q),
    }


def run_poses(study: Study) -> None:
    """Compare kinematics, mass matrix, gravity and Coriolis terms at two poses."""
    arm, rows = (
        titan.mechanism(),
        tables.read("titan4/ref_dynamics_fixtures.csv"),
    )
    errors: dict[str, float] = {}
    for pose, q in POSES.items():
        found = at_pose(arm, jnp.asarray(q), jnp.asarray(RATES))
        for what, values in found.items():
            known = [
                float(row["value"])
                for row in rows
                if row["config"] == pose and row["quantity"].startswith(what)
            ]
            error = np.abs(np.asarray(values) - np.array(known)).max()
            errors[what] = max(errors.get(what, 0.0), error)
    for name, keys, unit in (
        ("kinematics", ("joint", "tool"), "m"),
        ("mass_matrix", ("B_",), "kg m^2"),
        ("gravity", ("g_",), "N m"),
        ("coriolis", ("coriolis_", "half_w_dB_w_"), "N m"),
    ):
        study.metric(
            f"titan4.{name}.max_error",
            max(errors[k] for k in keys),
            at_most=1e-7,
            unit=unit,
            note="largest error at two poses, beside an independent calculation",
        )


def run_swing(study: Study) -> None:
    """Compare the passive swing of the arm, without and with friction."""
    viscous = titan.column("friction_Nms_per_rad")
    parts = {f"friction{i + 1}": JointFriction(titan.JOINTS[i], 0.0) for i in range(6)}
    system = djdyn.System(titan.mechanism(), parts)
    lanes = {f"friction{i + 1}.viscous": [0.0, viscous[i]] for i in range(6)}
    y0 = system.initial_state(q=[0.2, 0.8, -0.5, 0.3, 0.4, 0.1])
    run = djdyn.rollout(system, 1.0, y0, parameters=lanes, saveat=[0.25, 1.0])
    q, energy = np.asarray(run.y.q), np.asarray(run.energy())
    note = "passive swing: largest error, beside an independent simulation"
    gaps = [np.abs(q[at] - known).max() for at, (known, _) in PASSIVE_SWING.items()]
    name = "titan4.swing.max_error"
    study.metric(name, max(gaps), at_most=1e-6, unit="rad", note=note)
    gaps = [abs(energy[at] - known) for at, (_, known) in PASSIVE_SWING.items()]
    name = "titan4.swing.energy_error"
    study.metric(name, max(gaps), at_most=1e-5, unit="J", note=note)


class _Targets(eqx.Module):
    """Targets of a step and a ramp of 0.3 rad/s."""

    def __call__(self, t: Array) -> Array:
        return jnp.stack([jnp.ones_like(t), 0.3 * t])


def run_guidance(study: Study) -> None:
    """Compare the reference model, and a stick held until the joint limit."""
    path = ReferenceModel("order", [0.0, 0.0])
    guide = Joystick("stick", [0.3], [0.0], -0.45, 1.36, 0.06)
    body = djdyn.Body("idle", "world", djdyn.Prismatic(), 1.0)
    system = djdyn.System(
        djdyn.Mechanism((body,), gravity_W=(0.0, 0.0, 0.0)),
        {"path": path, "guide": guide},
        {"order": [0.0, 0.0], "stick": [1.0]},
    )
    t = np.linspace(0.0, 6.0, 601)
    run = djdyn.simulate(system, 6.0, saveat=t, inputs={"order": _Targets()})
    found = np.asarray(run.y.parts["path"]["path"])
    step = 1 - np.exp(-10 * t) * (1 + 10 * t + 50 * t**2)
    lag = 0.3 * (0.3 - np.exp(-10 * t) * (0.3 + 2 * t + 5 * t**2))
    ramp = 0.3 * t - lag
    for name, gap in (("step", found[:, 0] - step), ("ramp", found[:, 1] - ramp)):
        study.metric(
            f"titan4.reference_model.{name}_error",
            np.abs(gap).max(),
            at_most=1e-6,
            unit="rad",
            note="largest error of the reference model, beside the closed form",
        )
    target = np.asarray(run.y.parts["guide"]["target"])[:, 0]
    note = "target of joint 2, with the stick held"
    study.metric("titan4.guidance.stop", target[-1], 1.3, 1e-6, unit="rad", note=note)
    reached = t[np.argmax(target > 1.3 - 1e-3)]
    note = "time at which this target is within 1e-3 rad of its limit"
    name = "titan4.guidance.reached"
    study.metric(name, reached, 4.333, 0.011, unit="s", note=note)
    study.report.plot(
        "Reference model, and guidance with the stick held (Rokseth 2014)",
        ("time", "s", t),
        ("angle", "rad"),
        {"step": found[:, 0], "ramp": found[:, 1], "target of joint 2": target},
        {"step": (t[::15], step[::15]), "ramp": (t[::15], ramp[::15])},
    )


@eqx.filter_jit
def loop_matrix(control: Backstepping, damping: Array) -> Array:
    """Return the matrix of the error dynamics at rest, for ideal pressure control."""
    arm, zero = titan.mechanism(), jnp.zeros(6)
    names = ("value", "rate", "acceleration", "jerk")
    given: dict[str, Any] = {f"path.{name}": zero for name in names}
    given |= {name: jnp.zeros(()) for pair in control.pressures for name in pair}

    def rates(x: Array) -> Array:
        q, v, integral = jnp.split(x, 3)
        now = control.errors(
            {"integral": integral}, djdyn.forward_kinematics(arm, q, v), given
        )
        tau = now.E * now.alpha1 - damping * v
        return jnp.concatenate([v, djdyn.forward_dynamics(arm, q, v, tau), q])

    return jax.jacfwd(rates)(jnp.zeros(18))


def run_eigenvalues(study: Study) -> None:
    """Compare closed-loop eigenvalues with the matrix polynomial of the control law."""
    control = titan.controller()
    B = np.asarray(djdyn.mass_matrix(titan.mechanism(), jnp.zeros(6)))
    I, O, worst = np.eye(6), np.zeros((6, 6)), 0.0
    viscous = titan.column("friction_Nms_per_rad")
    for name, D, known in (
        ("cancelled", 0 * viscous, 0.796),
        ("left", viscous, -0.4016),
    ):
        found = np.linalg.eigvals(np.asarray(loop_matrix(control, jnp.asarray(D))))
        lower = [-np.linalg.solve(B, np.diag(x)) for x in (control.kp, D, control.ki)]
        law = np.linalg.eigvals(np.block([[O, I, O], lower, [I, O, O]]))
        gaps = np.abs(found[:, None] - law[None])
        worst = max(worst, gaps.min(0).max(), gaps.min(1).max())
        study.metric(
            f"titan4.eigenvalues.friction_{name}",
            found.real.max(),
            known,
            1e-3 if name == "cancelled" else 1e-4,
            unit="1/s",
            note="largest real part; cancelling friction exactly is unstable",
        )
    no_integral = eqx.tree_at(lambda c: c.ki, control, jnp.zeros(6))
    found = np.linalg.eigvals(np.asarray(loop_matrix(no_integral, jnp.zeros(6))))
    study.metric(
        "titan4.eigenvalues.no_integral",
        np.abs(found.real).max(),
        at_most=1e-9,
        unit="1/s",
        note="largest real part without integral and friction: undamped vibrations",
    )
    note = "largest error of all 36 eigenvalues"
    study.metric("titan4.eigenvalue_error", worst, at_most=1e-6, unit="1/s", note=note)
