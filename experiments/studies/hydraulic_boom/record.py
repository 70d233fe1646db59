"""Synthetic record of a lifted boom, and fits to it."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn import FreeParameter, Positive
from estimation import FitResult, Problem, Trial, fit

from .lift import SPAN, adaptive


FREE = {  # by path: name, unit, true value, start over true value
    "oil.oil.bulk_modulus": ("bulk_modulus", "Pa", 1.4e9, 0.7),
    "oil.valve.gain": ("discharge", "1", 0.6, 1.3),
    "oil.leak.conductance": ("leakage", "m3/(s Pa)", 2e-12, 3.0),
    "oil.lift.friction.viscous": ("viscous", "N s/m", 2e3, 0.4),
    "oil.lift.friction.coulomb": ("coulomb", "N", 300.0, 2.5),
}
POSITIVE = [FreeParameter(path, Positive()) for path in FREE]
NOISE = {"piston": 0.2, "rod": 0.2, "stroke": 1e-4}  # bar, bar, m; rms
PERIOD, STEPS_PER_SAMPLE = 2.5e-3, 4  # s, 1
TIMES = np.linspace(0.0, SPAN, round(SPAN / (PERIOD * STEPS_PER_SAMPLE)) + 1)  # s


def measured(run: djdyn.Trajectory) -> Float[Array, "samples 3"]:
    """Return both pressures (bar) and the stroke (m)."""
    oil, q = run.y.parts["oil"], run.y.q[:, 0]
    reach = jnp.sqrt(1 + 1.09 - 2 * (0.3 * jnp.cos(q) - jnp.sin(q)))
    return jnp.stack([oil["A.bar"], oil["B.bar"], reach - 0.95], 1)


def predicted(
    system: djdyn.System, times: np.ndarray, adjoint: str
) -> Float[Array, "samples 3"]:
    """Predict the record with the fixed steps of the fit."""
    del times
    how: dict[str, Any] = {"solver": "rodas4", "dt": PERIOD, "adjoint": adjoint}
    return measured(djdyn.simulate(system, SPAN, control_period=PERIOD, **how))[
        ::STEPS_PER_SAMPLE
    ]


def record(system: djdyn.System) -> Float[np.ndarray, "samples 3"]:
    """Return a record without noise, simulated with adaptive steps."""
    run = adaptive(system, saveat=len(TIMES), rtol=1e-9, atol=1e-9)
    return np.asarray(measured(run))


def problem(system: djdyn.System, values: np.ndarray) -> Problem:
    """Return the fit problem of a record."""
    trial = Trial(
        TIMES, values, predicted, sigma=[*NOISE.values()], labels=(*NOISE,), name="lift"
    )  # fmt: skip
    return Problem(system, trial, POSITIVE)


def identify(system: djdyn.System, values: np.ndarray) -> FitResult:
    """Fit a record from wrong parameters."""
    off = {path: x[3] * djdyn.get_parameters(system, path) for path, x in FREE.items()}
    given = problem(djdyn.with_parameters(system, off), values)
    return fit(given.model, given.trials, POSITIVE, hold_out=0.0)
