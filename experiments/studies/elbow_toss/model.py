"""Two hinged blocks that fall on the ground, and their unknown parameters.

The blocks lie side by side, and one turns against the other about y. Blocks at rest
confirm this, the place of the hinge and its sense: with them the third lowest of all
corners is 0.5 mm above the lowest in the median of 261 tosses and 1.6 mm in the 95th of
100, as three points carry a body at rest; with the opposite sense or side it is up to
35 mm. Speeds are backward differences: body-fixed for the spin, in the recorded frame
for the velocity.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.contact import Contact, Coulomb, HalfSpace, HuntCrossley, Polyhedron
from djdyn.multibody.spatial import quat_to_rotation, rotation_y, translation
from djdyn.parts import JointFriction

from ...harness.tosses import Record, Tosses, degrees, distances, read_record


LENGTH, SIDE = 0.1, 0.05  # m, of a block
MASS = 0.37  # kg, of a block
INERTIA = MASS / 12 * np.array([2 * SIDE**2, LENGTH**2 + SIDE**2, LENGTH**2 + SIDE**2])
HINGE = (-0.035, 0.060, 0.0)  # m, on block 1
ARM = (0.035, 0.0, 0.0)  # m, from the hinge to the centre of block 2
COLUMNS = (4, 5, 6, 0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14)  # of the file
POSE, VELOCITY = 8, slice(11, 14)  # of a state; before it the body-fixed spin
SUBSTEPS = 10  # in a frame
HALF = np.array([LENGTH, SIDE, SIDE]) / 2
CORNERS = HALF * (np.array(list(np.ndindex(2, 2, 2))) * 2.0 - 1.0)


def read(path: Any) -> Record:
    """Read tosses: position, quaternion, hinge angle, and their speeds."""
    return read_record(path, COLUMNS)


class Unknowns(eqx.Module):
    """Unknown parameters, as differences from a first guess.

    Positive parameters are differences of logarithms, the others are in the given unit.
    """

    stiffness: Float[Array, ""]
    dissipation: Float[Array, ""]
    mu: Float[Array, ""]
    viscous: Float[Array, ""]  # of the hinge
    coulomb: Float[Array, ""]
    inertia: Float[Array, "2 3"]  # second moments of mass along x, y and z
    centre: Float[Array, "2 3"]  # cm, mass centres from the middles of the blocks
    hinge: Float[Array, " 3"]  # cm
    ground: Float[Array, ""]  # cm, its height
    lag: Float[Array, ""]  # frames, age of a velocity beside its position, less 1/2

    @staticmethod
    def zeros() -> "Unknowns":
        z = jnp.zeros(())
        pair = jnp.zeros((2, 3))
        return Unknowns(z, z, z, z, z, pair, pair, jnp.zeros(3), z, z)


def build() -> djdyn.System:
    """Return both blocks over the ground."""
    inertia = np.diag(INERTIA)
    blocks = (
        djdyn.Body("block1", "world", djdyn.Free(), MASS, I_BC=inertia),
        djdyn.Body(
            "block2",
            "block1",
            djdyn.Revolute((0, 1, 0)),
            MASS,
            ARM,
            inertia,
            translation(HINGE),
            joint_name="hinge",
        ),
    )
    frames = (
        djdyn.Frame("ground", "world", translation((0.0, 0.0, 0.0))),
        djdyn.Frame("middle2", "block2", translation(ARM)),
    )
    law = HuntCrossley(3e4, 2.0, exponent=1.0, width=1e-4)
    touch = lambda where: Contact(
        where, Polyhedron(CORNERS), "ground", HalfSpace(), law, Coulomb(0.2, width=0.02)
    )
    parts = {
        "floor1": touch("block1"),
        "floor2": touch("middle2"),
        "friction": JointFriction("hinge", 1e-3, 1e-3, 0.5),
    }
    return djdyn.System(djdyn.Mechanism(blocks, frames), parts)


def physical(system: djdyn.System, x: Unknowns) -> dict[str, Array]:
    """Return the parameters of the system by path."""
    now = lambda path: djdyn.get_parameters(system, path)
    times = lambda path, log: now(path) * jnp.exp(log)
    found = {
        "block2.X_PJ.p": now("block2.X_PJ.p") + 0.01 * x.hinge,
        "ground.X_BF.p": now("ground.X_BF.p")
        + 0.01 * x.ground * jnp.array([0.0, 0.0, 1.0]),
        "friction.viscous": times("friction.viscous", x.viscous),
        "friction.coulomb": times("friction.coulomb", x.coulomb),
    }
    for i in (0, 1):
        block, floor = f"block{i + 1}", f"floor{i + 1}"
        moments = jnp.trace(now(f"{block}.I_BC")) / 2 * jnp.eye(3) - now(
            f"{block}.I_BC"
        )
        moments = jnp.diag(jnp.diag(moments) * jnp.exp(x.inertia[i]))
        found |= {
            f"{block}.p_BC": now(f"{block}.p_BC") + 0.01 * x.centre[i],
            f"{block}.I_BC": jnp.trace(moments) * jnp.eye(3) - moments,
            f"{floor}.normal.stiffness": times(
                f"{floor}.normal.stiffness", x.stiffness
            ),
            f"{floor}.normal.dissipation": times(
                f"{floor}.normal.dissipation", x.dissipation
            ),
            f"{floor}.friction.mu": times(f"{floor}.friction.mu", x.mu),
        }  # fmt: skip
    return found


def predict(
    system: djdyn.System, x: Unknowns, start: Float[Array, "n 15"], frames: int, dt: Any
) -> Float[Array, "n frames 8"]:
    """Return poses of many pairs of blocks from their first frames on."""
    here = djdyn.with_parameters(system, physical(system, x))
    q, w, v, rate = start[:, :8], start[:, 8:11], start[:, 11:14], start[:, 14:]
    fall = djdyn.get_parameters(here, "gravity_W")
    v = v + (0.5 + x.lag) * dt * fall[None]
    y0 = djdyn.State(q, jnp.concatenate([w, v, rate], 1), here.initial_state().parts)
    t = np.arange(frames) * dt
    run = djdyn.rollout(here, t[-1], y0, saveat=t, solver="rk4", dt=dt / SUBSTEPS)
    return run.y.q


def corners(q: Float[Array, " 8"]) -> Float[Array, "16 3"]:
    """Return the corners of both blocks in a pose."""
    R = quat_to_rotation(q[3:7])
    second = (CORNERS + np.array(ARM)) @ rotation_y(q[7]).T + np.array([HINGE])
    return q[None, :3] + jnp.concatenate([jnp.asarray(CORNERS), second]) @ R.T


def miss(
    q: Float[Array, "n k 8"], tosses: Tosses
) -> tuple[Float[Array, "n k"], Float[Array, "n k"], Float[Array, "n k"]]:
    """Return squares of the distance (m) and of sines of half the angles."""
    turn = jnp.sin((q[..., 7] - tosses.poses[..., 7]) / 2) ** 2
    return *distances(q, tosses.poses), turn


def score(q: Float[Array, "n k 8"], tosses: Tosses) -> tuple[Float[Array, " n"], ...]:
    """Return mean errors of tosses: position (% of a length), rotation, hinge (deg)."""
    away, *sines = miss(q, tosses)
    mean = lambda e: jnp.mean(e, 1, where=tosses.there)
    return mean(jnp.sqrt(away)) / LENGTH * 100, *(mean(degrees(s)) for s in sines)


@eqx.filter_jit
def errors(
    system: djdyn.System, x: Unknowns, tosses: Tosses
) -> tuple[Float[Array, " n"], ...]:
    """Return the errors of predicted tosses."""
    q = predict(system, x, tosses.start, tosses.poses.shape[1], tosses.dt)
    return score(q, tosses)
