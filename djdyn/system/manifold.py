r"""States as points of a manifold: how far apart two are, and how to move one.

A tangent vector has, in this order, one entry per speed for the coordinates, one per
speed, and the states of the parts. Coordinates of a joint with as many speeds are moved
by addition; a quaternion by a rotation vector $\varphi$ in the body's axes,
$q\otimes\exp(\varphi/2)$, so its uncertainty has three numbers, not four, and no
singularity short of half a turn.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..multibody.joints import AbstractJoint, Free, Spherical
from ..multibody.spatial import quat_exp, quat_log, quat_multiply
from ..typing import Numbers, Quat, Vec3
from .state import State
from .system import System


Tangent = Float[Array, " k"]
Matrix = Float[Array, "k k"]


def dimension(system: System) -> int:
    """How many numbers a tangent vector has."""
    parts = jax.eval_shape(lambda s: s.initial_state().parts, system)
    return 2 * system.mechanism.nv + sum(x.size for x in jax.tree.leaves(parts))


def tangent(
    system: System,
    q: Numbers | Mapping[str, Numbers] = 0.0,
    v: Numbers | Mapping[str, Numbers] = 0.0,
    parts: Numbers | Mapping[str, Numbers] = 0.0,
) -> Tangent:
    """Return a tangent vector by name, to say how uncertain a state is.

    **Arguments:**

    - `q`, `v`: one number for all, or numbers by joint, one or as many as its speeds;
      those of `q` are in the unit of its speeds times a second.
    - `parts`: one number for the states of all parts, or numbers by part.
    """
    m = system.mechanism
    vector = jnp.zeros(dimension(system))
    states = jax.eval_shape(lambda s: s.initial_state().parts, system)
    places, start = {}, 2 * m.nv
    for name, state in states.items():
        size = sum(x.size for x in jax.tree.leaves(state))
        places[name], start = slice(start, start + size), start + size
    joints = {name: m.v_slice(name) for name in m.joint_names}
    late = {n: slice(s.start + m.nv, s.stop + m.nv) for n, s in joints.items()}
    for what, given, where in (
        ("joint", q, joints),
        ("joint", v, late),
        ("part", parts, places),
    ):
        named = given if isinstance(given, Mapping) else dict.fromkeys(where, given)
        for name, value in named.items():
            if name not in where:
                there = ", ".join(where)
                raise ValueError(f"unknown {what} {name!r}; there are {there}")
            vector = vector.at[where[name]].set(jnp.asarray(value, dtype=float))
    return vector


def retract(system: System, y: State, d: Tangent) -> State:
    """The state that the tangent vector `d` at `y` points to."""
    m, moved = system.mechanism, [jnp.zeros(0, y.q.dtype)]
    for body, name in zip(m.bodies, m.joint_names, strict=True):
        q, step = y.q[m.q_slice(name)], d[m.v_slice(name)]
        moved.append(_shifted(body.joint, name, q, step))
    own, shape = ravel_pytree((y.v, y.parts))
    return State(jnp.concatenate(moved), *shape(own + d[m.nv :]))


def difference(system: System, y0: State, y1: State) -> Tangent:
    """The tangent vector at `y0` that points to `y1`."""
    m, found = system.mechanism, [jnp.zeros(0, y0.q.dtype)]
    for body, name in zip(m.bodies, m.joint_names, strict=True):
        where = m.q_slice(name)
        found.append(_difference(body.joint, name, y0.q[where], y1.q[where]))
    own0, own1 = (ravel_pytree((y.v, y.parts))[0] for y in (y0, y1))
    return jnp.concatenate([*found, own1 - own0])


def retract_with_jacobian(system: System, y: State, d: Tangent) -> tuple[State, Matrix]:
    """The state `d` away, and what takes tangent vectors at `y` around `d` to it."""
    moved = retract(system, y, d)
    return moved, transport(system, y, d, moved)


def transport(system: System, y: State, d: Tangent, to: State) -> Matrix:
    """Takes small changes of `d` at `y` to tangent vectors at the state `to`."""
    change = lambda e: difference(system, to, retract(system, y, d + e))
    return jax.jacfwd(change)(jnp.zeros_like(d))


def _shifted(joint: AbstractJoint, name: str, q: Array, d: Array) -> Array:
    if isinstance(joint, Spherical):
        return _turned(q, d)
    if isinstance(joint, Free):
        return jnp.concatenate([q[:3] + d[3:], _turned(q[3:], d[:3])])
    _check(joint, name)
    return q + d


def _difference(joint: AbstractJoint, name: str, q0: Array, q1: Array) -> Array:
    if isinstance(joint, Spherical):
        return _turn(q0, q1)
    if isinstance(joint, Free):
        return jnp.concatenate([_turn(q0[3:], q1[3:]), q1[:3] - q0[:3]])
    _check(joint, name)
    return q1 - q0


def _check(joint: AbstractJoint, name: str) -> None:
    if joint.nq != joint.nv:
        raise ValueError(
            f"joint {name!r}: states of a {type(joint).__name__}, with {joint.nq} "
            f"coordinates and {joint.nv} speeds, cannot be estimated"
        )


def _turned(q: Quat, d: Vec3) -> Quat:
    return quat_multiply(q, quat_exp(d))


def _turn(q0: Quat, q1: Quat) -> Vec3:
    back = q0 * jnp.array([1.0, -1.0, -1.0, -1.0], q0.dtype)
    return quat_log(quat_multiply(back, q1))
