"""A noisy record of a lifted boom, and fits to it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

import djdyn

from .hydraulic_boom_lift import SPAN, adaptive
from .hydraulic_boom_rigs import GAIN


AREA = GAIN / (0.6 * np.sqrt(2 / 870.0))  # m2, of an open edge
FREE = {  # unit, true value, start over it
    "bulk_modulus": ("Pa", 1.4e9, 0.7),
    "discharge": ("1", 0.6, 1.3),
    "leakage": ("m3/(s Pa)", 2e-12, 3.0),
    "viscous": ("N s/m", 2e3, 0.4),
    "coulomb": ("N", 300.0, 2.5),
}
TRUE = np.array([x[1] for x in FREE.values()])
START = TRUE * [x[2] for x in FREE.values()]
NOISE = {"piston": 0.2, "rod": 0.2, "stroke": 1e-4}  # bar, bar, m; one deviation
PERIOD, EVERY = 2.5e-3, 4  # s, of the steps; samples are taken at each fourth
SEED = 20160101


def measured(run: djdyn.Trajectory) -> Float[Array, "samples 3"]:
    """Both pressures (bar) and the stroke (m)."""
    oil, q = run.y.parts["oil"], run.y.q[:, 0]
    reach = jnp.sqrt(1 + 1.09 - 2 * (0.3 * jnp.cos(q) - jnp.sin(q)))
    return jnp.stack([oil["A.bar"], oil["B.bar"], reach - 0.95], 1)


def put(system: djdyn.System, values: Float[Array, "5"]) -> djdyn.System:
    B, Cd, leak, viscous, coulomb = values
    return djdyn.put(
        system,
        {
            "oil.oil.bulk_modulus": B,
            "oil.valve.gain": Cd * AREA * np.sqrt(2 / 870.0),
            "oil.leak.conductance": leak,
            "oil.lift.friction.viscous": viscous,
            "oil.lift.friction.coulomb": coulomb,
        },
    )


class Record(eqx.Module):
    """What was measured, and on which machine."""

    system: djdyn.System
    values: Float[Array, "samples 3"]

    def residuals(self, theta: Float[Array, "5"]) -> Float[Array, " n"]:
        """Over the noise; `theta` are logarithms over the true values."""
        system = put(self.system, jnp.asarray(TRUE) * jnp.exp(theta))
        how: dict[str, Any] = {"solver": "rodas4", "dt": PERIOD, "adjoint": "forward"}
        run = djdyn.simulate(system, SPAN, control_period=PERIOD, **how)
        noise = jnp.array([*NOISE.values()])[None]
        return jnp.ravel((measured(run)[::EVERY] - self.values) / noise)

    def noisy(self, seed: int) -> "Record":
        rng, noise = np.random.default_rng(seed), np.array([*NOISE.values()])
        grains = noise * rng.standard_normal(self.values.shape)
        return Record(self.system, self.values + grains)


def synthesised(system: djdyn.System) -> Record:
    """A record without noise, by adaptive steps, not those of the fit."""
    run = adaptive(put(system, jnp.asarray(TRUE)), saveat=501, rtol=1e-9, atol=1e-9)
    return Record(system, measured(run))


@eqx.filter_jit
def linear(theta: Array, record: Record) -> tuple[Array, Array]:
    """Residuals and their Jacobian, forward: five directions at once."""
    twice = lambda theta: (record.residuals(theta),) * 2
    J, r = jax.jacfwd(twice, has_aux=True)(theta)
    return r, J


@eqx.filter_jit
def fit(record: Record, theta: Array) -> optx.Solution:
    """Levenberg and Marquardt's least squares."""
    return optx.least_squares(
        lambda theta, record: record.residuals(theta),
        optx.LevenbergMarquardt(rtol=1e-7, atol=1e-7),
        theta,
        record,
        {"jac": "fwd"},
        max_steps=64,
        throw=False,
    )


@eqx.filter_jit
def refit(record: Record, values: Float[Array, "runs samples 3"]) -> tuple:
    """Gauss-Newton from the true values, for many records at once; and deviations."""

    def one(values: Array) -> tuple[Array, Array]:
        own, theta = Record(record.system, values), jnp.zeros(len(FREE))

        def turn(theta: Array, _: None) -> tuple[Array, Array]:
            r, J = linear(theta, own)
            return theta - jnp.linalg.solve(J.T @ J, J.T @ r), deviations(J)

        theta, all_deviations = jax.lax.scan(turn, theta, length=3)
        return theta, all_deviations[-1]

    return jax.vmap(one)(values)


def deviations(J: Float[Array, "n k"]) -> Float[Array, " k"]:
    """Standard errors, from the covariance of Gauss and Newton."""
    return jnp.sqrt(jnp.diag(jnp.linalg.inv(J.T @ J)))
