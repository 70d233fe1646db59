"""Model of a cube that falls on the ground, and its unknown parameters."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.contact import Contact, Coulomb, HalfSpace, HuntCrossley, Polyhedron
from djdyn.multibody.spatial import translation

from ...harness.tosses import Tosses, degrees, distances, read_record


HALF = 0.0524  # m, half the cube's width
MASS, INERTIA = 0.37, 0.00081  # kg, kg m2
SUBSTEPS = 8  # in a frame
CORNERS = HALF * np.array(list(np.ndindex(2, 2, 2))) * 2.0 - HALF


class Unknowns(eqx.Module):
    """Unknown parameters, as differences from a first guess.

    Positive parameters are differences of logarithms, the others are in the given unit.
    """

    stiffness: Float[Array, ""]
    dissipation: Float[Array, ""]
    mu: Float[Array, ""]
    centre: Float[Array, " 3"]  # cm, the mass centre from the middle of the cube
    inertia: Float[Array, " 3"]
    ground: Float[Array, ""]  # cm, its height
    gravity: Float[Array, ""]
    lag: Float[Array, ""]  # frames, age of a velocity beside its position, less 1/2
    corners: Float[Array, "8 3"]  # cm

    @staticmethod
    def zeros() -> "Unknowns":
        z = jnp.zeros(())
        return Unknowns(z, z, z, jnp.zeros(3), jnp.zeros(3), z, z, z, jnp.zeros((8, 3)))


def read(path: Any) -> Tosses:
    """Read tosses: pose, velocity (a backward difference), and body-fixed spin."""
    record = read_record(path, range(13))
    return Tosses.of(record.states, record.dt)


def build() -> djdyn.System:
    """Return a free cube over the ground."""
    cube = djdyn.Body("cube", "world", djdyn.Free(), MASS, I_BC=INERTIA * np.eye(3))
    ground = djdyn.Frame("ground", "world", translation((0.0, 0.0, 0.0)))
    law = HuntCrossley(3000.0, 4.0, exponent=1.0, width=1e-4)
    touch = Contact(
        "cube",
        Polyhedron(CORNERS),
        "ground",
        HalfSpace(),
        law,
        Coulomb(mu=0.18, width=0.02),
    )
    return djdyn.System(djdyn.Mechanism((cube,), (ground,)), {"floor": touch})


def physical(system: djdyn.System, x: Unknowns) -> dict[str, Array]:
    """Return the parameters of the system by path."""
    now = lambda path: djdyn.get_parameters(system, path)
    times = lambda path, log: now(path) * jnp.exp(log)
    grown = jnp.exp(x.inertia)
    up = jnp.array([0.0, 0.0, 0.01])
    return {
        "floor.normal.stiffness": times("floor.normal.stiffness", x.stiffness),
        "floor.normal.dissipation": times("floor.normal.dissipation", x.dissipation),
        "floor.friction.mu": times("floor.friction.mu", x.mu),
        "cube.p_BC": now("cube.p_BC") + 0.01 * x.centre,
        "cube.I_BC": now("cube.I_BC") * grown[:, None] ** 0.5 * grown[None] ** 0.5,
        "ground.X_BF.p": now("ground.X_BF.p") + x.ground * up,
        "gravity_W": times("gravity_W", x.gravity),
        "floor.shape.vertices": now("floor.shape.vertices") + 0.01 * x.corners,
    }


def predict(
    system: djdyn.System, x: Unknowns, start: Float[Array, "n 13"], frames: int, dt: Any
) -> Float[Array, "n frames 7"]:
    """Return positions and quaternions of many cubes from their first frames on."""
    here = djdyn.with_parameters(system, physical(system, x))
    p_q, v, w = start[:, :7], start[:, 7:10], start[:, 10:]
    fall = djdyn.get_parameters(here, "gravity_W")
    v = v + (0.5 + x.lag) * dt * fall[None]
    y0 = djdyn.State(p_q, jnp.concatenate([w, v], 1), here.initial_state().parts)
    t = np.arange(frames) * dt
    run = djdyn.rollout(here, t[-1], y0, saveat=t, solver="rk4", dt=dt / SUBSTEPS)
    return run.y.q


def score(
    q: Float[Array, "n k 7"], tosses: Tosses
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return mean position (% of the width) and rotation (deg) errors of tosses."""
    away, sine = distances(q, tosses.poses)
    mean = lambda e: jnp.mean(e, 1, where=tosses.there)
    return mean(jnp.sqrt(away)) / (2 * HALF) * 100, mean(degrees(sine))


@eqx.filter_jit
def errors(
    system: djdyn.System, x: Unknowns, tosses: Tosses
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return the errors of predicted tosses."""
    q = predict(system, x, tosses.start, tosses.poses.shape[1], tosses.dt)
    return score(q, tosses)
