"""MuJoCo: threaded rollout, and derivatives by finite differences of each step."""

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..problems import Problem


NAME, PACKAGE = "MuJoCo", "mujoco"
FREE = "initial state, torques, by finite differences"
LIMITS = "machines of hinges, and gradients of one rollout at a time"


def ends(problem: Problem, batch: int, steps: int):
    """Return the final coordinates by the threaded rollout."""
    if problem.text is None:
        return None
    mujoco: Any = importlib.import_module("mujoco")
    model = mujoco.MjModel.from_xml_string(problem.text)
    start = np.concatenate(problem.starts(batch), 1)
    control = np.tile(problem.torques, (batch, steps, 1))
    call = threaded(model, start, steps, control)
    return lambda: call()[:, -1, : model.nq]


def threaded(
    model: Any, start: np.ndarray, steps: int, control: np.ndarray | None = None
) -> Callable[[], np.ndarray]:
    """Return a rollout of many lanes on all cores, with the states of all steps."""
    mujoco: Any = importlib.import_module("mujoco")
    rollout: Any = importlib.import_module("mujoco.rollout")
    batch = len(start)
    threads = (os.cpu_count() or 1) if batch > 1 else 0
    datas = [mujoco.MjData(model) for _ in range(max(1, threads))]
    begin = np.concatenate([np.zeros((batch, 1)), start], 1)  # time first
    # Allocated once instead of at each call.
    state = np.empty((batch, steps, begin.shape[1]))
    pool, models = rollout.Rollout(nthread=threads), [model] * batch

    def call() -> np.ndarray:
        how = {"skip_checks": True, "nstep": steps, "state": state}
        pool.rollout(models, datas, begin, control, **how)
        return state[..., 1:]

    return call


def gradients(problem: Problem, batch: int, steps: int):
    """Return a reverse sweep over the Jacobians of the steps; one lane only."""
    if problem.text is None or batch > 1:
        return None
    mujoco: Any = importlib.import_module("mujoco")
    model = mujoco.MjModel.from_xml_string(problem.text)
    data, n = mujoco.MjData(model), model.nv
    (q,), (v,) = problem.starts(1)
    A, B = np.zeros((steps, 2 * n, 2 * n)), np.zeros((steps, 2 * n, model.nu))

    def call() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mujoco.mj_resetData(model, data)
        data.qpos, data.qvel, data.ctrl = q, v, problem.torques
        for k in range(steps):
            mujoco.mjd_transitionFD(model, data, 1e-6, True, A[k], B[k], None, None)
            mujoco.mj_step(model, data)
        back, torque = np.concatenate([2 * data.qpos, np.zeros(n)]), np.zeros(model.nu)
        for k in reversed(range(steps)):
            torque, back = torque + back @ B[k], back @ A[k]
        return back[None, :n], back[None, n:], torque

    return call
