r"""Gradients of forward dynamics for every joint type, by both modes and differences.

One tree holds a joint of each type. Its weighted accelerations are differentiated by
every number there is: state, joint forces, time, and all parameters of all bodies.
"""

import functools

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.multibody import dynamics
from djdyn.multibody.joints import Prescribed
from djdyn.multibody.kinematics import forward_kinematics
from djdyn.multibody.mechanism import Body, Mechanism
from djdyn.multibody.spatial import Pose, rotation_rpy

from ..gradients import quick_jit, random_direction
from .trees import (
    Cylindrical,
    Fixed,
    Free,
    Planar,
    Prismatic,
    Revolute,
    RollPitchYaw,
    Spherical,
    Topology,
    Universal,
    random_inertia,
    random_joint,
    random_pose,
    random_q,
    random_tree,
    stack,
)


KINDS = (
    Prescribed,
    Revolute,
    Prismatic,
    Cylindrical,
    Universal,
    Fixed,
    RollPitchYaw,
    Spherical,
    Planar,
    Free,
)
PARENTS = ("world", "b0", "b1", "b1", "b2", "b2", "b3", "b5", "b0", "b8")


class Sway(eqx.Module):
    """A deck that rolls and heaves in harmony."""

    amplitude: jax.Array

    def __call__(self, t):
        x = self.amplitude * jnp.sin(t + jnp.arange(6.0))
        return Pose(rotation_rpy(x[0], x[1], x[2]), x[3:])


def everything() -> Mechanism:
    rng = np.random.default_rng(0)
    bodies = []
    for i, (kind, parent) in enumerate(zip(KINDS, PARENTS, strict=True)):
        if kind is Prescribed:
            joint = Prescribed(Sway(jnp.asarray(rng.uniform(0.2, 0.5, 6))))
        else:
            joint = random_joint(rng, kind)
        root = rng.normal(size=(6, 6))
        inertia = random_inertia(rng)
        pose = random_pose(rng)
        rotor = rng.uniform(0.1, 1.0, joint.nv)
        added = 0.1 * root @ root.T
        bodies.append(
            Body(f"b{i}", parent, joint, *inertia, pose, A_B=added, armature=rotor)
        )
    return Mechanism(tuple(bodies))


def loss(theta, weights, method="projection"):
    mechanism, q, v, tau, t = symmetric(theta)
    world = forward_kinematics(mechanism, q, v, t)
    return weights @ dynamics.forward(world, tau, method=method)


def symmetric(theta):
    """With the symmetric parts of all inertias, since no others make sense."""
    inertias = lambda b: (b.I_BC,) if b.A_B is None else (b.I_BC, b.A_B)
    where = lambda theta: [x for b in theta[0].bodies for x in inertias(b)]
    return eqx.tree_at(where, theta, [(x + x.T) / 2 for x in where(theta)])


@functools.cache
def gradients():
    """Reverse, forward and differences at a moving state and at rest, undisplaced.

    At rest every quaternion is the identity and every speed and force is zero.
    """
    mechanism, rng = everything(), np.random.default_rng(1)
    q = jnp.asarray(random_q(rng, mechanism))
    v, tau = jnp.asarray(rng.normal(size=(2, mechanism.nv)))
    weights = jnp.asarray(rng.normal(size=mechanism.nv))
    zero = jnp.zeros(mechanism.nv)
    moving = (mechanism, q, v, tau, jnp.asarray(0.3))
    still = (mechanism, mechanism.q0(), zero, zero, jnp.asarray(0.0))
    flat, unflatten = jax.flatten_util.ravel_pytree(moving)
    points, basis = stack([moving, still]), jax.vmap(unflatten)(jnp.eye(flat.size))
    f = jax.jit(lambda theta: loss(theta, weights))  # traced once for all three
    along = lambda theta, e: jax.jvp(f, (theta,), (e,))[1]
    along_each = quick_jit(jax.vmap(jax.vmap(along, (None, 0)), (0, None)))
    reverse = quick_jit(jax.vmap(jax.grad(f)))(points)
    moved = lambda h: jax.tree.map(lambda x, e: x[:, None] + h * e[None], points, basis)
    f_each, h = quick_jit(jax.vmap(jax.vmap(f))), 2e-5
    difference = (f_each(moved(h)) - f_each(moved(-h))) / (2 * h)
    back = jax.vmap(unflatten)
    found = (reverse, back(along_each(points, basis)), back(difference))
    row = lambda i: [jax.tree.map(lambda x: x[i], gradient) for gradient in found]
    return mechanism, (row(0), row(1))


def of_joint(mechanism: Mechanism, theta, kind) -> dict[str, np.ndarray]:
    """Parts of a gradient that belong to one joint and its body."""
    i = KINDS.index(kind)
    name, (by_mechanism, by_q, by_v, by_tau, by_t) = f"b{i}", theta
    body = by_mechanism.bodies[i]
    parts = {
        "mass": body.mass,
        "p_BC": body.p_BC,
        "I_BC": body.I_BC,
        "A_B": body.A_B,
        "armature": body.armature,
        "X_PJ.R": body.X_PJ.R,
        "X_PJ.p": body.X_PJ.p,
        "q": by_q[mechanism.q_slice(name)],
        "v": by_v[mechanism.v_slice(name)],
        "tau": by_tau[mechanism.v_slice(name)],
        "t": by_t,
    }
    for number, leaf in enumerate(jax.tree.leaves(body.joint)):
        parts[f"joint {number}"] = leaf
    return {key: np.asarray(x) for key, x in parts.items() if x.size}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["moving", "at rest, undisplaced"])
def test_forward_dynamics_gradients(kind, state):
    mechanism, found = gradients()
    reverse, forward, difference = (
        of_joint(mechanism, theta, kind) for theta in found[state != "moving"]
    )
    for key, expected in difference.items():
        assert np.isfinite(reverse[key]).all(), key
        size = np.abs(expected).max() + 1e-3  # some vanish at rest
        np.testing.assert_allclose(
            reverse[key], expected, rtol=0, atol=1e-6 * size, err_msg=key
        )
        np.testing.assert_allclose(
            forward[key], reverse[key], rtol=0, atol=1e-10 * size, err_msg=key
        )


@pytest.mark.parametrize("kind", KINDS[1:])
def test_accelerations_depend_on_each_joint(kind):
    mechanism, (moving, _) = gradients()
    parts = of_joint(mechanism, moving[0], kind)
    for key in ("mass", "I_BC", "armature", "q", "v", "tau"):
        assert key not in parts or np.abs(parts[key]).max() > 1e-3, key


def test_recursion_has_the_gradients_of_projection():
    """Reverse mode through the recursion equals forward mode through the projection."""
    rng = np.random.default_rng(2)
    topology = Topology((0, 1, 1), (Universal, Free, Spherical))
    mechanism = random_tree(rng, topology, geared=True)
    q = jnp.asarray(random_q(rng, mechanism))
    v, tau, weights = jnp.asarray(rng.normal(size=(3, mechanism.nv)))
    theta = (mechanism, q, v, tau, jnp.asarray(0.0))
    direction = random_direction(theta)

    @quick_jit
    def both(theta):
        by = lambda method: lambda theta: loss(theta, weights, method)
        along = jax.jvp(by("projection"), (theta,), (direction,))[1]
        return (
            along,
            jax.jvp(by("recursion"), (theta,), (direction,))[1],
            jax.grad(by("recursion"))(theta),
        )

    expected, forward, gradient = both(theta)
    products = jax.tree.map(jnp.vdot, gradient, direction)
    np.testing.assert_allclose(forward, expected, rtol=1e-10)
    np.testing.assert_allclose(sum(jax.tree.leaves(products)), expected, rtol=1e-10)
