"""The Titan 4 at single states: geometry, dynamics, guidance, eigenvalues."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import Backstepping, Joystick, ReferenceModel
from controllers.model_based import coriolis
from djdyn.multibody import dynamics
from djdyn.parts import JointFriction

from ...harness import tables
from ...harness.study import Study
from . import model as titan


POSES = {"zero": np.zeros(6), "test": np.array([0.3, 0.5, -0.7, 0.4, -0.2, 0.9])}
RATES = np.array([0.1, -0.2, 0.3, -0.4, 0.5, -0.6])
SWING = {  # s: coordinates, J; without friction at 0.25 s, then with friction
    (0, 0): ((0.189683, 0.590164, -0.686667, 1.004059, 0.665152, 0.257203), 639.083249),
    (1, 0): ((0.195317, 0.620128, -0.557880, 0.400746, 0.568560, 0.091714), 623.095084),
    (1, 1): ((0.203459, -1.769359, -0.266742, 0.044735, -0.018300, 0.09296), -41.48017),
}


@eqx.filter_jit
def at_pose(arm: djdyn.Mechanism, q: Array, v: Array) -> dict[str, Array]:
    """What the table of fixtures holds."""
    world = djdyn.forward_kinematics(arm, q, v)
    kinetic = lambda q: v @ djdyn.mass_matrix(arm, q) @ v / 2
    return {
        "joint": world.X_WB.p[1:].ravel(),
        "tool": world.pose("tool").p,
        "B_": dynamics.projected_inertia(world)[jnp.triu_indices(6)],
        "g_": djdyn.inverse_dynamics(arm, q, 0 * v, 0 * v),
        "coriolis_": coriolis(arm, q, v, v, jnp.zeros(())),
        "half_w_dB_w_": jax.grad(kinetic)(q),
    }


def run_poses(study: Study) -> None:
    """V5 to V7."""
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
    for case, name, keys, unit in (
        ("V5", "kinematics", ("joint", "tool"), "m"),
        ("V6", "mass_matrix", ("B_",), "kg m^2"),
        ("V6", "gravity", ("g_",), "N m"),
        ("V7", "coriolis", ("coriolis_", "half_w_dB_w_"), "N m"),
    ):
        study.metric(
            f"titan4.{name}.max_error",
            max(errors[k] for k in keys),
            0.0,
            1e-7,
            unit=unit,
            note=f"{case}, at two poses",
        )


def run_swing(study: Study) -> None:
    """V8: the arm falls without and with friction."""
    viscous = titan.column("friction_Nms_per_rad")
    parts = {f"friction{i + 1}": JointFriction(titan.JOINTS[i], 0.0) for i in range(6)}
    system = djdyn.System(titan.mechanism(), parts)
    lanes = {f"friction{i + 1}.viscous": [0.0, viscous[i]] for i in range(6)}
    y0 = system.initial_state(q=[0.2, 0.8, -0.5, 0.3, 0.4, 0.1])
    run = djdyn.rollout(system, 1.0, y0, parameters=lanes, saveat=[0.25, 1.0])
    q, energy = np.asarray(run.y.q), np.asarray(run.energy())
    gaps = [np.abs(q[at] - known).max() for at, (known, _) in SWING.items()]
    study.metric(
        "titan4.swing.max_error", max(gaps), 0.0, 1e-6, unit="rad", note="V8, to print"
    )
    gaps = [abs(energy[at] - known) for at, (_, known) in SWING.items()]
    study.metric("titan4.swing.energy_error", max(gaps), 0.0, 1e-5, unit="J", note="V8")


class _Targets(eqx.Module):
    """A step and a ramp of 0.3 rad/s."""

    def __call__(self, t: Array) -> Array:
        return jnp.stack([jnp.ones_like(t), 0.3 * t])


def run_guidance(study: Study) -> None:
    """V16 and V17: the reference model, and a stick held to the end of its range."""
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
            0.0,
            1e-6,
            unit="rad",
            note="V16, against the closed form",
        )
    target = np.asarray(run.y.parts["guide"]["target"])[:, 0]
    study.metric("titan4.guidance.stop", target[-1], 1.3, 1e-6, unit="rad", note="V17")
    reached = t[np.argmax(target > 1.3 - 1e-3)]
    study.metric(
        "titan4.guidance.reached", reached, 4.333, 0.011, unit="s", note="V17, to 1e-3"
    )
    study.report.plot(
        "Reference model (V16) and stick held at full (V17)",
        ("time", "s", t),
        ("angle", "rad"),
        {"step": found[:, 0], "ramp": found[:, 1], "joint 2's target": target},
        {"step": (t[::15], step[::15]), "ramp": (t[::15], ramp[::15])},
    )


@eqx.filter_jit
def loop_matrix(control: Backstepping, damping: Array) -> Array:
    """Error dynamics at rest, for pressures that follow at once."""
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
    """V18: of the controller itself, against the matrix polynomial of its law."""
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
            note="V18, largest real part: unstable if friction is cancelled exactly",
        )
    study.metric(
        "titan4.eigenvalue_error", worst, 0.0, 1e-6, unit="1/s", note="V18, of all 36"
    )
