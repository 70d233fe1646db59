"""MuJoCo: its threaded rollout; derivatives by finite differences of each step."""

import importlib
import os
from typing import Any

import numpy as np

from ..problems import Problem


NAME, PACKAGE = "MuJoCo", "mujoco"
FREE = "initial state, torques, by finite differences"
LIMITS = "machines of hinges, and gradients of one rollout at a time"


def ends(problem: Problem, batch: int, steps: int):
    if problem.text is None:
        return None
    mujoco: Any = importlib.import_module("mujoco")
    rollout: Any = importlib.import_module("mujoco.rollout")
    model = mujoco.MjModel.from_xml_string(problem.text)
    threads = (os.cpu_count() or 1) if batch > 1 else 0
    datas = [mujoco.MjData(model) for _ in range(max(1, threads))]
    q, v = problem.starts(batch)
    start = np.concatenate([np.zeros((batch, 1)), q, v], 1)  # time first
    control = np.tile(problem.torques, (batch, steps, 1))
    # All that it would otherwise allocate, copy or check at each call.
    state = np.empty((batch, steps, start.shape[1]))
    pool, models = rollout.Rollout(nthread=threads), [model] * batch

    def call() -> np.ndarray:
        pool.rollout(
            models,
            datas,
            start,
            control,
            skip_checks=True,
            nstep=steps,
            state=state,
        )
        return state[:, -1, 1 : 1 + model.nq]

    return call


def gradients(problem: Problem, batch: int, steps: int):
    """The chain of the steps' Jacobians, backwards; one lane only."""
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
