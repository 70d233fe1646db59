"""Comparison of the equations of motion with Lagrange's.

The planar joint is that of Knutson 2007, section 2.3; the spatial one is compared at
random states.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.multibody.spatial import rotation_x, rotation_y, rotation_z
from djdyn.parts import SpringDamper

from ...harness import tables
from ...harness.study import Study
from .model import CONSTANTS, POSES, SPRINGS, G, build, rod


RA, RB = CONSTANTS["RA"], CONSTANTS["RB"]
# Chosen for the synthetic reference; those of the source are not stated.
MASS, INERTIA, CENTRE, PIN = 0.1755, 1.43e-3, 0.1539, 0.25
STIFFNESS, FREE, POSTS = 20.0, 0.063, ((-0.22, -0.30), (-0.22, 0.30))


def planar() -> djdyn.System:
    """Return a disc in a circular cut-out, with two springs; x is down."""
    joint = djdyn.PlanarPointContact(djdyn.HollowCircle(RA), RB)
    I_BC = INERTIA * np.diag([0.5, 0.5, 1.0])
    body = djdyn.Body("disc", "world", joint, MASS, (CENTRE, 0.0, 0.0), I_BC)
    frames = [djdyn.Frame("pin", "disc", djdyn.translation((PIN, 0.0, 0.0)))]
    parts = {}
    for name, post in zip("EF", POSTS, strict=True):
        p = djdyn.translation((*post, 0.0))
        frames.append(djdyn.Frame(f"post_{name}", "world", p))
        ends = f"post_{name}", "pin"
        parts[f"spring_{name}"] = SpringDamper(*ends, STIFFNESS, rest_length=FREE)
    mechanism = djdyn.Mechanism((body,), tuple(frames), gravity_W=(G, 0.0, 0.0))
    return djdyn.System(mechanism, parts)


def lagrange_planar(x: Any, u: Any) -> np.ndarray:
    """Return accelerations by Lagrange's equations with explicit mass matrix."""
    a, b, (x1, x2), (u1, u2) = RA - RB, CENTRE, x, u
    e = lambda angle: np.array([np.cos(angle), np.sin(angle)])
    t = lambda angle: np.array([-np.sin(angle), np.cos(angle)])
    off = MASS * (b**2 + a * b * np.cos(x2)) + INERTIA
    end = MASS * b**2 + INERTIA
    M = np.array([[MASS * a**2 + 2 * MASS * a * b * np.cos(x2) + end, off], [off, end]])
    h = MASS * a * b * np.sin(x2) * np.array([-(2 * u1 * u2 + u2**2), u1**2])
    along = lambda far: np.stack([a * t(x1) + far * t(x1 + x2), far * t(x1 + x2)])
    Q = along(b) @ [MASS * G, 0.0]
    for post in POSTS:
        P = a * e(x1) + PIN * e(x1 + x2) - post
        length = np.linalg.norm(P)
        Q = Q - STIFFNESS * (length - FREE) / length * along(PIN) @ P
    return np.linalg.solve(M, Q - h)


def run_planar(study: Study) -> None:
    """Compare two runs of the disc over half a second; later they are chaotic."""
    rows = tables.read("optotrak/planar_reference.csv")
    known = tables.columns(rows, "case", "t_s", "x1_deg", "x2_deg", "energy_J")
    system, names = planar(), ("planar_case_1", "planar_case_2")
    y0 = system.initial_state()
    q = jnp.asarray(np.stack([POSES[name] for name in names]))
    y0 = eqx.tree_at(lambda y: y.q, y0, q)
    how: dict[str, Any] = {"solver": "rk4", "dt": 5e-5, "saveat": 51}
    run = djdyn.rollout(system, 0.5, y0, **how)
    angles, lines, marks, t = np.rad2deg(run.y.q), {}, {}, np.asarray(run.t)
    stem = "optotrak.planar"
    for i in range(len(names)):
        seen = known[known[:, 0] == i + 1][:51]
        note = "planar joint: largest error up to 0.3 s, beside the synthetic series"
        error = np.abs(angles[i, : len(seen)] - seen[:, 2:4]).max()
        study.metric(
            f"{stem}.case{i + 1}_error", error, at_most=1e-4, unit="deg", note=note
        )
        for k in (0, 1):
            label = f"case {i + 1}, x{k + 1}"
            lines[label], marks[label] = angles[i, :, k], (seen[:, 1], seen[:, 2 + k])
    rates = run.map(_v_dot)
    states = zip(np.asarray(run.y.q), np.asarray(run.y.v), strict=True)
    ways = [[lagrange_planar(*x) for x in zip(*case, strict=True)] for case in states]
    off = np.abs(rates - np.array(ways)).max() / np.abs(rates).max()
    note = "planar joint: accelerations beside Lagrange's equations, along both runs"
    study.metric(f"{stem}.lagrange_error", off, at_most=1e-9, note=note)
    drift = np.abs(run.energy() - known[[0, -1], 4][:, None]).max()
    note = "planar joint: largest energy error, beside the synthetic series"
    study.metric(f"{stem}.energy_error", drift, at_most=2e-9, unit="J", note=note)
    study.report.plot(
        "Planar joint (Knutson 2007, section 2.3): disc in a circular cut-out",
        ("time", "s", t),
        ("angle", "deg"),
        lines,
        marks,
    )


def _v_dot(now: Any) -> jax.Array:
    return now.v_dot


def lagrangian(q: jax.Array, u: jax.Array) -> jax.Array:
    """Return kinetic less potential energy, from rotation matrices alone."""
    body = {k: jnp.asarray(x) for k, x in rod().items()}
    (p_B, T), (p_dot, T_dot) = jax.jvp(_turns, (q,), (u,))
    W, c = T.T @ T_dot, body["p_BC"]
    w, v = jnp.stack([W[2, 1], W[0, 2], W[1, 0]]), p_dot + T_dot @ c
    total = body["mass"] * (v @ v / 2 + G * (p_B + T @ c)[0])
    table = lambda *names: jnp.asarray(tables.columns(SPRINGS, *names))
    D, L = (table(*(f"{k}_{i}_m" for i in "xyz")) for k in ("body", "ground"))
    K, rest = table("stiffness_N_per_m"), table("zero_force_length_m")
    stretch = jnp.linalg.norm(p_B[None] + D @ T.T - L, axis=1, keepdims=True) - rest
    return total + w @ body["I_BC"] @ w / 2 - jnp.sum(K * stretch**2) / 2


def _turns(q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the centre of the ball and the product of five rotations."""
    A2 = rotation_z(q[0]) @ rotation_y(q[1])
    T = A2 @ rotation_z(q[2]) @ rotation_y(q[3]) @ rotation_x(q[4])
    return (RA - RB) * A2[:, 0], T


@jax.jit
def lagrange(q: jax.Array, u: jax.Array) -> jax.Array:
    """Return accelerations by differentiating the Lagrangian."""
    M = jax.hessian(lagrangian, 1)(q, u)
    L_q = jax.grad(lagrangian)(q, u)
    _, carried = jax.jvp(lambda q: jax.grad(lagrangian, 1)(q, u), (q,), (u,))
    return jnp.linalg.solve(M, L_q - carried)


def run_lagrange(study: Study) -> None:
    """Compare accelerations with the differentiated Lagrangian at random states."""
    system, rng, worst = build(), np.random.default_rng(7), 0.0
    y = system.initial_state()
    for _ in range(20):
        q, u = jnp.asarray(rng.uniform(-1, 1, 5)), jnp.asarray(rng.normal(size=5) * 3)
        here = eqx.tree_at(lambda y: (y.q, y.v), y, (q, u))
        found, known = system.derivative(0.0, here).v, lagrange(q, u)
        worst = max(worst, float(jnp.abs(found - known).max() / jnp.abs(known).max()))
    note = "accelerations at 20 random states, beside the differentiated Lagrangian"
    study.metric("optotrak.lagrangian_error", worst, at_most=1e-9, note=note)
