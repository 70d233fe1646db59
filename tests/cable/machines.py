"""Small machines with lines, and what is asked of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import djdyn


def ground(g: float = 9.81) -> djdyn.Mechanism:
    """Nothing that moves, and a frame `wall` in the origin."""
    block = djdyn.Body("block", "world", djdyn.Fixed(), 1.0)
    wall = djdyn.Frame("wall", "world")
    return djdyn.Mechanism((block,), (wall,), gravity_W=(0, 0, -g))


def payload(mass: float, inertia: float, depth: float, g: float = 9.81):
    """A free body `load` under the frame `wall` in the origin."""
    at, I_BC = djdyn.translation((0, 0, -depth)), inertia * np.eye(3)
    body = djdyn.Body("load", "world", djdyn.Free(), mass, I_BC=I_BC, X_PJ=at)
    wall = djdyn.Frame("wall", "world")
    return djdyn.Mechanism((body,), (wall,), gravity_W=(0, 0, -g))


@eqx.filter_jit
def _jacobian(system: djdyn.System, y: djdyn.State):
    flat, unravel = ravel_pytree(y)
    rate = lambda flat: ravel_pytree(system.derivative(0.0, unravel(flat)))[0]
    return jax.jacfwd(rate)(flat)


def periods(system: djdyn.System, y: djdyn.State) -> np.ndarray:
    """Of small motions, the longest first."""
    values = np.linalg.eigvals(np.asarray(_jacobian(system, y)))
    return np.sort(2 * np.pi / values.imag[values.imag > 1e-6])[::-1]


@eqx.filter_jit
def signals(system: djdyn.System, y: djdyn.State):
    return system.at(0.0, y).signals


def along_x(system: djdyn.System, length: float) -> djdyn.State:
    """With the line of that name straight along x, but for its held ends."""
    line = system.parts["line"]
    x = length * jnp.asarray(line.mesh)[line.free]  # pyright: ignore
    r = jnp.stack([x, 0 * x, 0 * x], 1)
    return eqx.tree_at(lambda y: y.parts["line"]["r"], system.initial_state(), r)
