"""The uncontrolled bicycle: wheels that roll are loops, and its speeds of stability.

Parameters and answers of Meijaard, Papadopoulos, Ruina and Schwab, *Linearized dynamics
equations for the balance and steer of a bicycle*, 2007. Axes as there: x forward, z
down.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import brentq

import djdyn
from djdyn import Body, Frame, Loop, Mechanism, Revolute, translation
from djdyn.multibody.assembly import close_start


WHEELBASE, TRAIL, TILT = 1.02, 0.08, np.pi / 10  # m, m, rad
REAR, FRONT = 0.3, 0.35  # radii, m
WEAVE, CAPSIZE = 4.29238253634111, 6.02426201538837  # m/s
STEER_AXIS = (np.sin(TILT), 0.0, np.cos(TILT))


def bicycle() -> Mechanism:
    """Rider and frame, fork and two wheels on a plane: nine speeds, six equations.

    The frame's position is given by joints of one coordinate each.
    """
    turn = lambda name, parent, axis, at, m, c, I: Body(
        name, parent, Revolute(axis), m, c, np.array(I), translation(at)
    )
    flat = lambda xx, yy, zz, xz=0.0: [[xx, 0, xz], [0, yy, 0], [xz, 0, zz]]
    hub, crown = (0, 0, -REAR), (WHEELBASE + TRAIL, 0, 0)
    front = (WHEELBASE - crown[0], 0, -FRONT)
    bars = (0.9 - crown[0], 0, -0.7)
    bodies = (
        Body("track", "world", djdyn.Planar(), 0.0),
        Body("height", "track", djdyn.Prismatic((0, 0, 1)), 0.0),
        Body("lean", "height", Revolute((1, 0, 0)), 0.0),
        turn(
            "frame",
            "lean",
            (0, 1, 0),
            (0, 0, 0),
            85.0,
            (0.3, 0, -0.9),
            flat(9.2, 11, 2.8, 2.4),
        ),
        turn(
            "rear", "frame", (0, 1, 0), hub, 2.0, (0, 0, 0), flat(0.0603, 0.12, 0.0603)
        ),
        turn(
            "fork",
            "frame",
            STEER_AXIS,
            crown,
            4.0,
            bars,
            flat(0.05892, 0.06, 0.00708, -0.00756),
        ),
        turn(
            "front",
            "fork",
            (0, 1, 0),
            front,
            3.0,
            (0, 0, 0),
            flat(0.1405, 0.28, 0.1405),
        ),
    )
    ground = Frame("ground", "world", djdyn.pose_rpy((0, 0, 0), (np.pi, 0, 0)))
    loops = tuple(
        Loop(f"{name}_contact", "ground", name, djdyn.RollingDisc(radius))
        for name, radius in (("rear", REAR), ("front", FRONT))
    )
    return Mechanism(bodies, (ground,), (0, 0, 9.81), loops)


def rolling(
    mechanism: Mechanism, speed: Array | float, angles: Array, rates: Array
) -> tuple[Array, Array]:
    """Coordinates and speeds with given lean and steer, while the rear wheel turns."""
    place = {name: mechanism.v_slice(name).start for name in ("lean", "fork", "rear")}
    q = jnp.zeros(mechanism.nq).at[place["lean"]].set(angles[0])
    q = q.at[place["fork"]].set(angles[1])
    v = jnp.zeros(mechanism.nv).at[place["lean"]].set(rates[0])
    v = v.at[place["fork"]].set(rates[1]).at[place["rear"]].set(-speed / REAR)
    v = v.at[0].set(speed)
    return close_start(mechanism, q, v, ("track", "lean", "fork"), tuple(place))


@jax.jit
def linear_model(speed: Array) -> Float[Array, "4 4"]:
    """Matrix of lean, steer and their rates about straight, upright running."""
    mechanism = bicycle()
    lean, fork = (mechanism.v_slice(name).start for name in ("lean", "fork"))

    def rate(x: Array) -> Array:
        q, v = rolling(mechanism, speed, x[:2], x[2:])
        v_dot = djdyn.forward_dynamics(mechanism, q, v, jnp.zeros(mechanism.nv))
        return jnp.concatenate([x[2:], jnp.stack([v_dot[lean], v_dot[fork]])])

    return jax.jacfwd(rate)(jnp.zeros(4))


def stability_speeds() -> tuple[float, float]:
    r"""Weave and capsize speed: where Hurwitz's determinant and the constant vanish.

    The model is quadratic in the speed, so three of them give it exactly.
    """
    speeds = np.array([1.0, 4.0, 7.0])
    models = np.stack([linear_model(jnp.asarray(v)) for v in speeds])
    fits = np.linalg.solve(np.vander(speeds, 3), models.reshape(3, 16))
    model = lambda v: (np.array([v * v, v, 1.0]) @ fits).reshape(4, 4)

    def hurwitz(v: float) -> float:
        _, a, b, c, d = np.poly(model(v))
        return a * b * c - c * c - a * a * d

    weave = _root(hurwitz, 3.5, 5.5)
    capsize = _root(lambda v: np.linalg.det(model(v)), 5.5, 7.0)
    return weave, capsize


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    root: Any = brentq(f, low, high, xtol=1e-13)
    return float(root)
