"""MuJoCo: the same cube, tuned on the same tosses by Nelder–Mead."""

import importlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...benchmarks.engines.mujoco import threaded
from ...harness.tosses import Errors, Tosses
from .model import HALF, INERTIA, MASS, score


SUBSTEPS = 4  # in a frame, steps of 1.7 ms
START = (0.18, 4e4, 400.0)  # friction; stiffness, 1/s^2; damping, 1/s
MODEL = """
<mujoco>
  <option timestep="{dt}"/>
  <worldbody>
    <geom type="plane" size="10 10 1"/>
    <body>
      <freejoint/>
      <inertial pos="0 0 0" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>
      <geom type="box" size="{half} {half} {half}" friction="0.18 0.005 0.0001"/>
    </body>
  </worldbody>
</mujoco>
"""


def model(dt: float) -> Any:
    """Return MuJoCo's model of the cube over the ground."""
    mujoco: Any = importlib.import_module("mujoco")
    text = MODEL.format(dt=dt, mass=MASS, inertia=INERTIA, half=HALF)
    return mujoco.MjModel.from_xml_string(text)


def error_function(tosses: Tosses) -> Errors:
    """Return the errors as a function of log friction, stiffness and damping."""
    cube, start = model(tosses.dt / SUBSTEPS), np.array(tosses.start)
    cube.opt.cone, cube.opt.impratio = (
        1,
        10.0,
    )  # elliptic friction cones: pyramids double the errors
    start[:, 9] -= 9.81 * tosses.dt / 2  # a backward difference is half a frame old
    frames = tosses.poses.shape[1]
    call = threaded(cube, start, (frames - 1) * SUBSTEPS)

    def errors(x: np.ndarray) -> tuple[np.ndarray, ...]:
        mu, stiffness, damping = np.exp(x)
        cube.geom_friction[:, 0] = mu
        cube.geom_solref[:] = -stiffness, -damping
        later = call()[:, SUBSTEPS - 1 :: SUBSTEPS, :7]
        q = np.concatenate([start[:, None, :7], later], 1)
        return tuple(map(np.asarray, score(jnp.asarray(q), tosses)))

    return errors
