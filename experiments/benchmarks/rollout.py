"""Seven-joint arm: compile time, steps a second alone and in a batch, gradient cost.

All engines step the same arm by semi-implicit Euler at 1 ms in double precision and
must agree on where it ends before they are timed. Figures are the best of several runs.
"""

import importlib
import os
import time
from collections.abc import Callable
from importlib import resources
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.parts import JointActuator

from ..study import Study


TITLE = "Rollouts of a seven-joint arm"
STAGES = 4

JOINTS = tuple(f"j{i}" for i in range(1, 8))
Q0 = (0.1, -0.5, 0.2, -1.8, 0.3, 1.2, 0.4)
V0 = (0.2, -0.1, 0.3, 0.1, -0.2, 0.3, 0.1)
TORQUES = (1.0, -20.0, 1.0, 10.0, 0.5, 1.0, 0.1)
STEP, STEPS, REPEATS = 1e-3, 200, 3


def model_text() -> str:
    return resources.files("experiments").joinpath("models", "arm7.xml").read_text()


def build() -> djdyn.System:
    """The arm with a constant torque on each joint."""
    motors = JointActuator(JOINTS, "torque")
    arm = djdyn.from_mjcf(model_text())
    return djdyn.System(arm, {"motors": motors}, {"torque": jnp.array(TORQUES)})


def _ends(system: djdyn.System, q0: jax.Array) -> jax.Array:
    """Final coordinates from a batch of starts."""
    v0 = jnp.broadcast_to(jnp.array(V0), q0.shape)
    trajectory = djdyn.rollout(
        system,
        STEP * STEPS,
        djdyn.State(q0, v0, {"motors": {}}),
        saveat=np.array([STEP * STEPS]),
        solver="semi_implicit",
        dt=STEP,
    )
    return trajectory.y.q[:, -1]


def _gradients(system: djdyn.System, q0: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of the sum of all final coordinates squared, to the torques and the starts."""

    def loss(free):
        torque, q0 = free
        return jnp.sum(_ends(djdyn.put(system, {"torque": torque}), q0) ** 2)

    return jax.grad(loss)((system.inputs["torque"], q0))


ends: Any = eqx.filter_jit(_ends)
gradients: Any = eqx.filter_jit(_gradients)


def seconds(call: Callable[[], object]) -> float:
    """The shortest of several runs."""
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(call())
        taken.append(time.perf_counter() - start)
    return min(taken)


def mujoco_ends(batch: int) -> Callable[[], np.ndarray] | None:
    """The same by MuJoCo's threaded rollout, if it is installed."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
        rollout: Any = importlib.import_module("mujoco.rollout")
    except ImportError:
        return None
    model = mujoco.MjModel.from_xml_string(model_text())
    threads = os.cpu_count() or 1
    datas = [mujoco.MjData(model) for _ in range(threads)]
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = Q0, V0
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data, start, full)
    control = np.tile(np.array(TORQUES), (batch, STEPS, 1))
    models, starts = [model] * batch, np.tile(start, (batch, 1))

    def call() -> np.ndarray:
        states, _ = rollout.rollout(models, datas, starts, control)
        return states[:, -1, 1:8]

    return call


def run(study: Study) -> None:
    system = study.customise(build())
    batches = (1, 64) if study.quick else (1, 64, 256, 1024)
    rates, peers = {}, {}
    with study.stage("compile"):
        start = jnp.tile(jnp.array(Q0), (1, 1))
        begin = time.perf_counter()
        ends.lower(system, start).compile()
        forward = time.perf_counter() - begin
        begin = time.perf_counter()
        gradients.lower(system, start).compile()
        study.metric("compile.arm7.seconds", forward, unit="s")
        taken = time.perf_counter() - begin
        study.metric("compile.arm7.gradient_seconds", taken, unit="s")
    with study.stage("rollouts"):
        for batch in batches:
            starts = jnp.tile(jnp.array(Q0), (batch, 1))
            call, peer = (
                (lambda starts=starts: ends(system, starts)),
                mujoco_ends(batch),
            )
            end = np.asarray(call())
            if peer:
                gap = np.abs(end - peer()).max()
                if gap > 1e-9:
                    raise ValueError(
                        f"engines differ by {gap:g} rad after {STEPS} steps"
                    )
                peers[batch] = batch * STEPS / seconds(peer)
            rates[batch] = batch * STEPS / seconds(call)
            name = "single" if batch == 1 else f"batch{batch}"
            study.metric(f"rollout.arm7.{name}.rate", rates[batch], unit="steps/s")
            if peer:
                ratio = rates[batch] / peers[batch]
                study.metric(f"rollout.arm7.{name}.vs_mujoco", ratio)
    with study.stage("gradients"):
        for batch in [b for b in batches if b in (1, 64, 256)]:
            starts = jnp.tile(jnp.array(Q0), (batch, 1))
            jax.block_until_ready(gradients(system, starts))
            taken = seconds(lambda starts=starts: gradients(system, starts))
            ratio = taken / (batch * STEPS / rates[batch])
            name = "single" if batch == 1 else f"batch{batch}"
            study.metric(f"gradient.arm7.{name}.ratio", ratio)
    with study.stage("report"):
        lines = {"djdyn": (list(rates), list(rates.values()))}
        if peers:
            lines["MuJoCo, threaded"] = (list(peers), list(peers.values()))
        else:
            study.report.text("MuJoCo is not installed: no ratio to it.")
        study.report.plot(
            "Throughput",
            ("batch size", "1", list(rates)),
            ("rate", "steps/s"),
            lines,
            log="xy",
        )
