"""Accelerations of robots from files against MuJoCo's and Pinocchio's, as a table.

`python -m tests.fuzz.robots FOLDER [--match TEXT]` reads every URDF and MJCF file below
a folder with one call each, and compares accelerations at a random moving state under
random commands. Springs, dampers, actuators with their limits, tendons, gravity
compensation and drag act in both; MuJoCo's contacts, limits and equalities are switched
off, and are not read here. Friction loss is a constraint in MuJoCo: its accelerations
are compared apart, without actuators, where all of it slides. Pinocchio's `aba` is
given the forces of damping and friction, which it does not apply itself.
"""

import argparse
import os
import warnings
from pathlib import Path


os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0",
)

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import djdyn
from djdyn.io.mjcf_actuators import command_names, command_row
from djdyn.io.mjcf_draft import speed_order
from djdyn.io.mjcf_system import read_model, system_from_mujoco
from djdyn.multibody.spatial import quat_to_rotation


OFF = ("CONTACT", "LIMIT", "EQUALITY")
APART = ("contact", "limit", "equality", "sensor")


def accelerations(system, q, v, inputs) -> np.ndarray:
    y = system.initial_state(jnp.asarray(q), jnp.asarray(v))
    inputs = {name: jnp.asarray(value) for name, value in inputs.items()}
    return np.asarray(system.at(0.0, y, inputs).v_dot)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest, relative to the largest acceleration."""
    return float(np.abs(found - expected).max(initial=0) / np.abs(expected).max())


def as_mujoco(path: Path) -> dict[str, float]:
    """Differences from MuJoCo without and with friction loss."""
    model = mujoco.MjModel.from_xml_path(str(path))
    for flag in OFF:
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, "mjDSBL_" + flag))
    rng, data, order = (
        np.random.default_rng(0),
        mujoco.MjData(model),
        speed_order(model),
    )
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.5)
    v = rng.choice([-1.0, 1.0], model.nv) * rng.uniform(1.0, 3.0, model.nv)
    data.qvel[order] = v
    commands = command_names(read_model(model, APART))
    inputs = {}
    for i, name in commands.items():
        low, high = model.actuator_ctrlrange[i]
        limited = bool(model.actuator_ctrllimited[i])
        row = command_row(model, i)
        data.ctrl[row] = rng.uniform(low, high) if limited else rng.normal()
        inputs[name] = data.ctrl[row]
    q, found = data.qpos.copy(), {"nv": model.nv, "nu": len(commands)}
    dry = int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
    model.opt.disableflags |= dry
    mujoco.mj_forward(model, data)
    smooth = system_from_mujoco(model, ignore=APART)
    result = accelerations(smooth, q, v, inputs)
    found["smooth"] = difference(result, data.qacc[order])
    if model.dof_frictionloss.any():
        model.opt.disableflags &= ~dry
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        mujoco.mj_forward(model, data)
        wanted = -model.dof_frictionloss * np.sign(data.qvel)
        slides = np.allclose(data.qfrc_constraint, wanted, rtol=1e-12)
        if slides:
            system = system_from_mujoco(model, ignore=APART)
            result = accelerations(system, q, v, {})
            found["friction"] = difference(result, data.qacc[order])
    return found


def as_pinocchio(path: Path) -> dict[str, float]:
    """Differences from Pinocchio with a fixed and with a floating base."""
    found = {}
    for base, joint in (("fixed", None), ("floating", pin.JointModelFreeFlyer())):
        model = pin.buildModelFromUrdf(str(path), *([] if joint is None else [joint]))
        model = _held(model, djdyn.system_from_urdf(path, ignore=("equality",)))
        system = djdyn.system_from_urdf(
            path, ignore=("limit", "equality"), floating_base=joint is not None
        )
        found |= {"nv": model.nv, "nu": len(system.inputs)}
        if model.nv:
            found[base] = _against(model, system)
    return found


def _held(model, system):
    """Pinocchio's model with the joints fixed that move no mass."""
    m = system.mechanism
    moving = {n for n in m.joint_names if m.v_slice(n).stop > m.v_slice(n).start}
    idle = [
        i
        for i, name in enumerate(model.names)
        if i > 0 and name not in moving | {"root_joint"}
    ]
    return pin.buildReducedModel(model, idle, pin.neutral(model)) if idle else model


def _against(model, system) -> float:
    mechanism, rng = system.mechanism, np.random.default_rng(0)
    q = np.array(mechanism.q0())
    v = rng.choice([-1.0, 1.0], mechanism.nv) * rng.uniform(0.5, 2.0, mechanism.nv)
    q_p, v_p, tau_p = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    inputs, back = {}, np.zeros(mechanism.nv)
    for name in mechanism.joint_names:
        rows, at = mechanism.v_slice(name), mechanism.q_slice(name)
        if rows.stop == rows.start:
            continue
        joint = model.joints[model.getJointId(name)]
        theirs = slice(joint.idx_v, joint.idx_v + joint.nv)
        if joint.nv == 6:
            quaternion = rng.normal(size=4)
            q[at] = [*rng.normal(size=3), *quaternion / np.linalg.norm(quaternion)]
            R = np.asarray(quat_to_rotation(jnp.asarray(q[at][3:])))
            q_p[joint.idx_q : joint.idx_q + 7] = [*q[at][:3], *q[at][4:], q[at][3]]
            v_p[theirs] = [*(R.T @ v[rows][3:]), *v[rows][:3]]
            continue
        q[at] = rng.uniform(-1.0, 1.0)
        turn = [np.cos(q[at][0]), np.sin(q[at][0])]
        q_p[joint.idx_q : joint.idx_q + joint.nq] = turn if joint.nq == 2 else q[at]
        v_p[theirs] = v[rows]
        command = f"{name.replace('.', '_')}:effort"
        motor = system.parts[command.replace(":effort", ":actuator")]
        most = 5.0 if motor.force_range is None else float(motor.force_range[1])
        inputs[command] = 0.9 * most * rng.uniform(-1.0, 1.0)
        friction = system.parts.get(command.replace(":effort", ":friction"))
        lost = 0.0 if friction is None else np.asarray(friction.force(v[rows]))
        tau_p[theirs] = inputs[command] + lost
    a = pin.aba(model, model.createData(), q_p, v_p, tau_p)
    for name in mechanism.joint_names:
        rows, at = mechanism.v_slice(name), mechanism.q_slice(name)
        if rows.stop > rows.start:
            joint = model.joints[model.getJointId(name)]
            x = a[joint.idx_v : joint.idx_v + joint.nv]
            if joint.nv == 6:  # from the body's axes, in which its velocity turns
                R = np.asarray(quat_to_rotation(jnp.asarray(q[at][3:])))
                w, u = v[rows][:3], R.T @ v[rows][3:]
                x = [*x[3:], *(R @ (x[:3] + np.cross(w, u)))]
            back[rows] = x
    return difference(accelerations(system, q, v, inputs), back)


def files(folder: Path, match: str) -> list[Path]:
    """Robots alone: no scenes, no pieces of other files and no single parts."""
    found = [p for p in sorted(folder.rglob("*")) if p.suffix in (".xml", ".urdf")]
    whole = [p for p in found if "scene" not in p.name and "assets" not in p.parts]
    whole = [p for p in whole if match in str(p)]
    return [p for p in whole if p.suffix == ".urdf" or "<worldbody" in p.read_text()]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files are")
    parser.add_argument("--match", default="", help="only paths with this in them")
    args = parser.parse_args(argv)
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    for path in files(args.folder, args.match):
        name = path.relative_to(args.folder)
        compare = as_pinocchio if path.suffix == ".urdf" else as_mujoco
        try:
            found = compare(path)
            shown = "  ".join(f"{k} {x:.3g}" for k, x in found.items())
        except Exception as error:  # a row of the table, not the end of it
            shown = " ".join(f"{type(error).__name__}: {error}".split())[:150]
        print(f"{name!s:<60} {shown}", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main()
