"""MuJoCo: the same blocks, tuned on the same tosses by Nelder–Mead."""

import importlib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...benchmarks.engines.mujoco import threaded
from ..cube_toss.records import Tosses
from .model import ARM, HALF, HINGE, MASS, score


SUBSTEPS = 4  # in a frame, steps of 1.7 ms
# sliding friction; contact's stiffness, 1/s^2, and damping, 1/s;
# hinge's viscous friction, N m s, and Coulomb friction, N m
START = (0.2, 4e4, 400.0, 1e-4, 1e-3)
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


def error_function(tosses: Tosses) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """Return the errors as a function of the logarithms of what `START` lists."""
    blocks, now = model(tosses.dt / SUBSTEPS), np.array(tosses.start)
    # MuJoCo's order: pose, velocity, angular velocity, hinge rate
    start = np.concatenate([now[:, :8], now[:, 11:14], now[:, 8:11], now[:, 14:]], 1)
    start[:, 10] -= 9.81 * tosses.dt / 2  # a backward difference is half a frame old
    call = threaded(blocks, start, (tosses.poses.shape[1] - 1) * SUBSTEPS)

    def errors(x: np.ndarray) -> tuple[np.ndarray, ...]:
        mu, stiffness, damping, viscous, coulomb = np.exp(x)
        blocks.geom_friction[:, 0] = mu
        blocks.geom_solref[:] = -stiffness, -damping
        blocks.dof_damping[6], blocks.dof_frictionloss[6] = viscous, coulomb
        later = call()[:, SUBSTEPS - 1 :: SUBSTEPS, :8]
        q = np.concatenate([start[:, None, :8], later], 1)
        return tuple(map(np.asarray, score(jnp.asarray(q), tosses)))

    return errors
