"""Large static deflections by chains of flexible bodies, each welded to the one before.

A body is right for small deflections in its own frame. A chain of n bodies has n
frames, so what is left out falls with the square of n.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.multibody.flexible import (
    Beam,
    FlexibleBody,
    Piece,
    Section,
    reduced_mechanism,
)


SPATIAL = {"xy": 0, "xz": 0, "torsion": 0, "axial": 0}  # static modes of the end alone
PLANAR = {"xy": 0, "axial": 0}
NEWTON = 30  # steps at most
LITTLE = {"xla_backend_optimization_level": 0}  # compiling costs most here

# Princeton beam: Obrezkov, Bozorgmehri, Finni and Matikainen, Approximation of
# pre-twisted Achilles sub-tendons with continuum-based beam elements (2022), give the
# data and these deflections (mm) of the tip by beam elements of a commercial code.
ANGLES = (0, 15, 30, 45, 60, 75, 90)  # degrees
PRINCETON = {  # N: across the strong plane, across the weak one
    8.896: (
        (10.714, 10.613, 10.112, 8.837, 6.605, 3.539, 0.0),
        (0.0, 42.082, 79.395, 108.988, 129.888, 142.194, 146.246),
    ),
    13.345: (
        (16.064, 16.458, 16.659, 15.186, 11.578, 6.249, 0.0),
        (0.0, 64.358, 117.736, 156.467, 181.862, 196.097, 200.678),
    ),
}
THICK_LOAD, THICK_TIP = 6.25e7, (0.15097103, 0.71056837)  # N; m: Nachbagauer (2011)


def princeton_beam(bodies: int) -> djdyn.Mechanism:
    """Return the beam of 0.508 m, 12.3777 mm high along y and 3.2024 mm wide."""
    h, b, E = 12.3777e-3, 3.2024e-3, 71.7e9
    I_y, I_z = h * b**3 / 12, b * h**3 / 12
    section = Section(h * b, I_y, I_z, 0.198 * (I_y + I_z), 5 / 6, 5 / 6)
    beam = Beam(
        (Piece(0.508 / bodies, section, elements=1),), E, E / 2.62, 2700.0, "timoshenko"
    )
    return chain(beam, bodies, SPATIAL)


def thick_cantilever(bodies: int) -> djdyn.Mechanism:
    """Return the beam of 2 m, 0.5 m high and 0.1 m wide."""
    w, h, E, nu = 0.1, 0.5, 2.07e11, 0.3
    share = 10 * (1 + nu) / (12 + 11 * nu)
    I_y, I_z = h * w**3 / 12, w * h**3 / 12
    section = Section(w * h, I_y, I_z, I_y, share, share)
    G = E / (2 * (1 + nu))
    beam = Beam((Piece(2.0 / bodies, section, elements=1),), E, G, 7850.0, "timoshenko")
    return chain(beam, bodies, PLANAR)


def chain(beam: Beam, bodies: int, modes: dict[str, int]) -> djdyn.Mechanism:
    """Return equal beams in a row, the first clamped."""
    first = FlexibleBody("b0", "world", djdyn.Fixed(), beam, modes)
    first = eqx.tree_at(
        lambda b: b.reduced, first, first.shape(), is_leaf=lambda x: x is None
    )
    links: list[FlexibleBody] = []
    for i in range(bodies):
        parent = f"b{i - 1}.tip" if i else "world"
        link = FlexibleBody(f"b{i}", parent, djdyn.Fixed(), beam, modes)
        links.append(
            eqx.tree_at(
                lambda b: b.reduced, link, first.reduced, is_leaf=lambda x: x is None
            )
        )
    return reduced_mechanism(djdyn.Mechanism(tuple(links), gravity_W=(0.0, 0.0, 0.0)))


def bent(
    mechanism: djdyn.Mechanism, forces: Sequence[np.ndarray], steps: int = 5
) -> Float[np.ndarray, "loads 3"]:
    """Return where the tip comes to rest under each dead load, by Newton's method with
    the load in steps.
    """
    tip, rows = len(mechanism.bodies), len(mechanism.bodies) + 1
    still = jnp.zeros(mechanism.nv)

    def missing(q: Array, f: Array) -> Array:
        F = jnp.zeros((rows, 6)).at[tip, 3:].set(f)
        return djdyn.inverse_dynamics(mechanism, q, still, still, F)

    quick = lambda f: jax.jit(f, compiler_options=LITTLE)
    newton = quick(lambda q, f: (missing(q, f), jax.jacfwd(missing)(q, f)))
    place = quick(lambda q: djdyn.frame_pose(mechanism, q, mechanism.bodies[-1].name))
    found = []
    for force in forces:
        q = mechanism.q0()
        for k in range(1, steps + 1):
            for _ in range(NEWTON):
                r, K = newton(q, jnp.asarray(force * k / steps))
                step = jnp.linalg.solve(K, r)
                q = q - step
                if float(jnp.max(jnp.abs(step))) < 1e-12 * (
                    1e-9 + float(jnp.max(jnp.abs(q)))
                ):
                    break
        found.append(np.asarray(place(q).p))
    return np.stack(found)


def princeton_errors(bodies: int) -> tuple[float, list[tuple]]:
    """Return the largest error of the tip, over its deflection, and a row a case."""
    mechanism, rows, worst = princeton_beam(bodies), [], 0.0
    loads = [(F, i) for F in PRINCETON for i in range(len(ANGLES))]
    forces = []
    for F, i in loads:
        a = np.deg2rad(ANGLES[i])
        forces.append(F * np.array([0.0, -np.cos(a), np.sin(a)]))
    tips = 1e3 * bent(mechanism, forces)
    for (F, i), tip in zip(loads, tips, strict=True):
        y, z = (column[i] for column in PRINCETON[F])
        off = np.hypot(-tip[1] - y, tip[2] - z) / np.hypot(y, z)
        worst = max(worst, float(off))
        rows.append((F, ANGLES[i], y, -tip[1], z, tip[2], 100 * off))
    return worst, rows
