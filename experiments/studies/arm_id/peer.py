"""MuJoCo: record of the arm, and least squares on finite differences."""

import contextlib
import copy
import importlib
import io
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


RATE = 1000  # 1/s
AMPLITUDE = np.array([2.0, 8.0, 2.0, 6.0, 1.0, 1.0, 0.3])  # N m
_rng = np.random.default_rng(0)
FREQUENCY = _rng.uniform(0.5, 3.0, 7)  # Hz
PHASE = _rng.uniform(0.0, 6.0, 7)  # rad
SENSOR = '<sensor><framepos objtype="site" objname="tip"/></sensor></mujoco>'


def torques(t: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the joint torques, N m, one row for each time."""
    return mean + AMPLITUDE * np.sin(2 * np.pi * FREQUENCY * t[:, None] + PHASE)


def _model(text: str, q0: np.ndarray, damping: float) -> tuple[Any, Any, np.ndarray]:
    """Return model, data and initial state."""
    mujoco: Any = importlib.import_module("mujoco")
    model = mujoco.MjModel.from_xml_string(text.replace("</mujoco>", SENSOR))
    model.dof_damping[:] = damping
    data = mujoco.MjData(model)
    data.qpos[:] = q0
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return model, data, state


def record(
    text: str, q0: np.ndarray, mean: np.ndarray, damping: float, finer: int
) -> np.ndarray:
    """Return tip positions over 1 s, by Runge–Kutta steps with midpoint torques."""
    mujoco: Any = importlib.import_module("mujoco")
    rollout: Any = importlib.import_module("mujoco.rollout")

    model, data, state = _model(text, q0, damping)
    model.opt.timestep = 1 / (RATE * finer)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    t = (np.arange(RATE * finer + 1) + 0.5) * model.opt.timestep
    # A sensor shows the start of its step: one step more shows the end.
    _, seen = rollout.rollout(model, data, state, torques(t, mean))
    return np.asarray(seen)[0, finer::finer]


class Timed(NamedTuple):
    """A value and the CPU time of its computation."""

    value: Any
    seconds: float


def timed(work: Callable[[], Any]) -> Timed:
    """Call a function and measure its CPU time."""
    start = time.process_time()
    value = work()
    return Timed(value, time.process_time() - start)


class Found(NamedTuple):
    """Parameters that MuJoCo's fit found, and its cost."""

    x: np.ndarray
    rollouts: int
    seconds: float


def identify(
    text: str,
    q0: np.ndarray,
    mean: np.ndarray,
    damping: float,
    masses: np.ndarray,
    dampings: np.ndarray | None,
) -> Found:
    """Fit masses, and dampings if given, to a record of MuJoCo's steps of 1 ms."""
    mujoco: Any = importlib.import_module("mujoco")
    rollout: Any = importlib.import_module("mujoco.rollout")
    model, data, state = _model(text, q0, damping)
    control = torques(np.arange(RATE + 1) / RATE, mean)
    rollouts = 0

    def tips(x: np.ndarray) -> np.ndarray:
        """Return tip positions, one column for each set of parameters."""
        nonlocal rollouts
        models = []
        for column in x.T:
            one = copy.copy(model)
            one.body_mass[1:] = column[:7]
            one.dof_damping[:] = column[7:] if dampings is not None else damping
            mujoco.mj_setConst(one, data)
            models.append(one)
        rollouts += len(models)
        start = np.tile(state, (len(models), 1))
        _, seen = rollout.rollout(models, data, start, control)
        return np.asarray(seen)[:, 1:].reshape(len(models), -1).T

    target = tips(np.append(model.body_mass[1:], model.dof_damping)[:, None])
    x0 = np.append(masses, [] if dampings is None else dampings)
    rollouts = 0
    x, seconds = timed(lambda: _least_squares(x0, lambda x: tips(x) - target))
    return Found(x.ravel(), rollouts, seconds)


def tool() -> str:
    """Return the name of the MuJoCo tool that is installed."""
    sysid: Any = importlib.import_module("mujoco.sysid")
    if hasattr(sysid, "optimize"):
        return "mujoco.sysid"
    return "mujoco.minimize, the solver of mujoco.sysid, which lacks its own extras"


def _least_squares(x0: np.ndarray, residual: Callable[[Any], Any]) -> np.ndarray:
    """Minimise with `mujoco.sysid` if it is complete, otherwise with its solver."""
    low, high = x0 / 10, x0 * 10
    sysid: Any = importlib.import_module("mujoco.sysid")
    if not hasattr(sysid, "optimize"):
        minimize: Any = importlib.import_module("mujoco.minimize")
        silent = minimize.Verbosity.SILENT
        return minimize.least_squares(x0, residual, [low, high], verbose=silent)[0]
    free = sysid.ParameterDict()
    free.add(sysid.Parameter("all", x0, low, high))
    with contextlib.redirect_stdout(io.StringIO()):  # it tells of every step
        found = sysid.optimize(free, lambda x, _: ([residual(x)], None, None))[1]
    return found.x
