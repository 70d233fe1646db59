"""MuJoCo: the same blocks, tuned on the same tosses by Nelder–Mead."""

import importlib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...benchmarks.engines.mujoco import threaded
from ...harness.tosses import Errors, Tosses
from .model import ARM, HALF, HINGE, MASS, POSE, score


SUBSTEPS = 4  # in a frame, steps of 1.7 ms
# sliding friction; contact's stiffness, 1/s^2, and damping, 1/s;
# hinge's viscous friction, N m s, and Coulomb friction, N m
START = (0.2, 4e4, 400.0, 1e-3, 1e-3)
MODEL = """
<mujoco>
  <option timestep="{dt}" cone="elliptic" impratio="10"/>
  <default><geom size="{half}" mass="{mass}" contype="1" conaffinity="2"/></default>
  <worldbody>
    <geom type="plane" size="10 10 1" contype="2" conaffinity="1"/>
    <body>
      <freejoint/>
      <geom type="box"/>
      <body pos="{hinge}">
        <joint type="hinge" axis="0 1 0" damping="1e-4" frictionloss="1e-3"/>
        <geom type="box" pos="{arm}"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def model(dt: float) -> Any:
    """Return MuJoCo's model of the blocks over the ground."""
    mujoco: Any = importlib.import_module("mujoco")
    words = lambda numbers: " ".join(map(str, numbers))
    text = MODEL.format(
        dt=dt, mass=MASS, half=words(HALF), hinge=words(HINGE), arm=words(ARM)
    )
    return mujoco.MjModel.from_xml_string(text)


def rollout(
    dt: float, start: np.ndarray, frames: int
) -> Callable[..., Float[np.ndarray, "n k 15"]]:
    """Return simulated states as a function of what `START` lists."""
    blocks = model(dt)
    order = [
        *range(8),
        11,
        12,
        13,
        8,
        9,
        10,
        14,
    ]  # velocity before spin; its own inverse
    call = threaded(blocks, start[:, order], (frames - 1) * SUBSTEPS)

    def states(
        mu: float, stiffness: float, damping: float, viscous: float, coulomb: float
    ) -> Float[np.ndarray, "n k 15"]:
        blocks.geom_friction[:, 0] = mu
        blocks.geom_solref[:] = -stiffness, -damping
        blocks.dof_damping[6], blocks.dof_frictionloss[6] = viscous, coulomb
        later = call()[:, SUBSTEPS - 1 :: SUBSTEPS, order]
        return np.concatenate([start[:, None], later], 1)

    return states


def error_function(tosses: Tosses) -> Errors:
    """Return the errors as a function of the logarithms of what `START` lists."""
    start = np.array(tosses.start)
    start[:, 13] -= 9.81 * tosses.dt / 2  # a backward difference is half a frame old
    simulate = rollout(tosses.dt / SUBSTEPS, start, tosses.poses.shape[1])

    def errors(x: np.ndarray) -> tuple[np.ndarray, ...]:
        q = simulate(*np.exp(x))[..., :POSE]
        return tuple(map(np.asarray, score(jnp.asarray(q), tosses)))

    return errors
