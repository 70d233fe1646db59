"""A line as a chain of springs, for implicit steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..multibody.kinematics import World
from ..smooth import norm
from ..typing import Scalar, Vec3
from .ends import AbstractEnd
from .implicit_chain import Chain
from .snapshot import CableSnapshot


# Splines are stiffer than chords to the shortest waves; bending resists those of a few
# elements as a tension of so many EI / h^2 would.
STIFFER, BENDING = 1.5, 12.0


def spring_chain(
    line: CableSnapshot, ends: tuple[AbstractEnd, AbstractEnd], h: Scalar
) -> Chain:
    """Elements as springs and dampers along and across their chords.

    Those that are slack now, or will be within `h`, have no stiffness along.
    """
    rope, mesh, rows = line.cable.rope, line.cable.spline, line.r
    chord = rows[1:] - rows[:-1]
    size = norm(chord)[:, None]
    along = chord / jnp.where(size > 0, size, 1.0)
    shares = jnp.asarray(mesh.h, rows.dtype)
    lengths = line.length * shares
    strain = line.measures.strain
    tight = rope.tightness(jnp.maximum(strain, strain + h * line.rate.strain))
    tight = jnp.maximum(tight[1:], tight[:-1])
    pull = jnp.maximum((line.tension[1:] + line.tension[:-1]) / 2, 0.0)
    lost = rope.damping(mesh, line.cable.length) * tight
    bent = BENDING / lengths**2
    P = along[:, :, None] * along[:, None, :]
    Q = jnp.eye(3, dtype=P.dtype)[None] - P
    over = lambda x: (STIFFER * x / lengths)[:, None, None]
    ground, area = line.cable.ground, line.shares * line.length * rope.diameter
    none = jnp.zeros_like(line.mass)
    bed = (none, none)
    if ground is not None:
        bed = jax.vmap(ground.slopes)(rows, line.w, area)
    return Chain(
        line.mass,
        over(rope.EA * tight) * P + over(pull + rope.EI * bent) * Q,
        over(lost) * P + over(rope.bending_damping * bent) * Q,
        along * shares[:, None],
        {n: (p.body, p.p, _motion(ends[n])) for n, p in line.held()},
        line.cable.free,
        bed,
    )


def _motion(end: AbstractEnd) -> Callable[[Scalar, World], tuple[Vec3, Vec3]]:
    """Point and velocity of an end that is held."""

    def motion(t: Scalar, world: World) -> tuple[Vec3, Vec3]:
        place = end.place(t, world)
        assert place is not None
        return place.p, place.v

    return motion
