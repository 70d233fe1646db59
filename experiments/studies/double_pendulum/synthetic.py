"""Synthetic trials of a double pendulum, by equations of motion written out for SciPy.

Lagrange's equations in absolute angles, with friction and rotors on relative ones: no
code of the library, so that a fit to these trials tests it.
"""

from typing import Any

import numpy as np
import scipy.integrate
from jaxtyping import Float

from .records import Record, record


LENGTH, GRAVITY, WIDTH = 0.2, 9.81, 0.1
TRUE = {
    "inertia_1": 0.050, "inertia_2": 0.044, "moment_1": 0.200, "moment_2": 0.150,
    "rotor_2": 0.0020,
}  # fmt: skip
VISCOUS, COULOMB = np.array([0.01, 0.006]), np.array([0.20, 0.15])
QUANTUM = 3.8e-4  # rad, of the encoders
NOISE = 0.02  # N m
DRIVES = (  # amplitude and angular frequency by joint
    ((0.4, 10.0), (0.8, 10.0)), ((0.6, 5.0), (0.4, 10.0)), ((0.6, 10.0), (0.6, 5.0)),
    ((0.0, 1.0), (0.4, 5.0)), ((0.8, 3.0), (0.0, 1.0)), ((0.9, 4.0), (0.7, 7.0)),
)  # fmt: skip


def rate(
    t: float, y: Float[np.ndarray, "4"], drive: tuple[tuple[float, float], ...]
) -> Float[np.ndarray, "4"]:
    """Return the rates of both relative angles and of their speeds."""
    q1, q2, v1, v2 = y
    A, B, H = TRUE["inertia_1"], TRUE["inertia_2"], TRUE["moment_2"] * LENGTH
    M11, M12 = A + B + 2 * H * np.cos(q2), B + H * np.cos(q2)
    M = np.array([[M11, M12], [M12, B + TRUE["rotor_2"]]])
    spin = H * np.sin(q2)
    weight = GRAVITY * TRUE["moment_2"] * np.sin(q1 + q2)
    load = np.array(
        [
            -spin * v2 * (2 * v1 + v2)
            + GRAVITY * TRUE["moment_1"] * np.sin(q1) + weight,
            spin * v1**2 + weight,
        ]
    )  # fmt: skip
    v = y[2:]
    friction = VISCOUS * v + COULOMB * np.tanh(v / WIDTH)
    return np.concatenate([v, np.linalg.solve(M, torque(t, drive) - load - friction)])


def torque(t: Any, drive: tuple[tuple[float, float], ...]) -> Float[np.ndarray, "2"]:
    """Return the torques at a time, or a row each at several."""
    return np.stack([a * np.sin(w * np.asarray(t)) for a, w in drive], -1)


def trials(count: int, span: float = 5.0) -> list[Record]:
    """Return trials from rest, with quantised angles and noisy torques."""
    rng, found = np.random.default_rng(0), []
    t = np.arange(0.0, span, 0.002)
    for i, drive in enumerate(DRIVES[:count]):
        run = scipy.integrate.solve_ivp(
            rate, (0.0, span), np.zeros(4), "LSODA", t, args=(drive,),
            rtol=1e-8, atol=1e-10,
        )  # fmt: skip
        q = QUANTUM * np.round(run.y[:2].T / QUANTUM)
        exact = torque(t, drive)
        noisy = exact + NOISE * rng.normal(size=exact.shape)
        found.append(record(f"synthetic {i + 1}", t, q, noisy, exact))
    return found
