"""Pinocchio from Python: a single rollout, with analytic derivatives."""

import importlib
from typing import Any

import numpy as np

from .. import descriptions
from ..problems import STEP, Problem
from .jaxed import order


NAME, PACKAGE = "Pinocchio", "pinocchio"
FREE = "initial state, torques"
LIMITS = "machines of hinges, one rollout at a time"


def _model(problem: Problem) -> tuple[Any, Any, list[np.ndarray], np.ndarray]:
    """Return library, model, start and torques in its order, and our order."""
    pin: Any = importlib.import_module("pinocchio")
    mechanism = problem.build().mechanism
    model = pin.buildModelFromXML(_bounded(descriptions.urdf(mechanism)))
    there, back = order(list(model.names)[1:], list(mechanism.joint_names))
    (q,), (v,) = problem.starts(1)
    return pin, model, [x[there] for x in (q, v, problem.torques)], back


def _bounded(text: str) -> str:
    """Return the URDF with limits: unlimited joints have (cos, sin) coordinates."""
    wide = '<limit lower="-1e9" upper="1e9" effort="1e9" velocity="1e9"/></joint>'
    return text.replace("continuous", "revolute").replace("</joint>", wide)


def ends(problem: Problem, batch: int, steps: int):
    """Return the final coordinates of a single rollout."""
    if problem.text is None or batch > 1:
        return None
    pin, model, (q0, v0, tau), back = _model(problem)
    data = model.createData()

    def call() -> np.ndarray:
        q, v = q0, v0
        for _ in range(steps):
            v = v + STEP * pin.aba(model, data, q, v, tau)
            q = q + STEP * v
        return q[None, back]

    return call


def gradients(problem: Problem, batch: int, steps: int):
    r"""Return a reverse sweep of $v_1 = v + h\,a(q, v, \tau)$, $q_1 = q + h\,v_1$."""
    if problem.text is None or batch > 1:
        return None
    pin, model, (q0, v0, tau), back = _model(problem)
    data = model.createData()

    def call() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q, v, slopes = q0, v0, []
        for _ in range(steps):
            found = pin.computeABADerivatives(model, data, q, v, tau)
            slopes.append([np.array(x) for x in found])
            v = v + STEP * data.ddq
            q = q + STEP * v
        to_q, to_v, to_tau = 2 * q, np.zeros_like(v), np.zeros_like(tau)
        for by_q, by_v, by_tau in reversed(slopes):
            to_v1 = to_v + STEP * to_q
            to_q = to_q + STEP * to_v1 @ by_q
            to_v = to_v1 + STEP * to_v1 @ by_v
            to_tau = to_tau + STEP * to_v1 @ by_tau
        return to_q[None, back], to_v[None, back], to_tau[back]

    return call
