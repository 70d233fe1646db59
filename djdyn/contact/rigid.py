"""Rigid contact: its force follows from a constraint on the gap."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody import mass_matrix
from ..multibody.constraints import AbstractConstraint
from ..multibody.kinematics import World
from ..multibody.spatial import Pose, skew
from ..parts.base import AbstractIdealPart, AbstractPassivePart, Response, Signals
from ..parts.loads import Load
from ..smooth import magnitude, norm
from ..typing import Scalar, optional, si
from .detection import find_contacts
from .shapes import AbstractShape, AbstractSolid
from .surface_law import slip


class GapConstraint(AbstractConstraint):
    r"""The constraint that a gap has zero stabilised acceleration.

    The residual is $J\dot v + a_0$, with `slope` $J$ and `rest` $a_0$.
    """

    load: Load
    drag: Load | None
    slack: Scalar
    slope: Float[Array, " nv"]
    rest: Scalar
    one_sided: bool = eqx.field(static=True)

    def residual(
        self,
        world: World,
        v_dot: Float[Array, " nv"],
        F_WB: Float[Array, "bodies 6"],
        size: Scalar,
    ) -> Scalar:
        del world, F_WB, size
        return self.slope @ v_dot + self.rest


class RigidContact(AbstractPassivePart, AbstractIdealPart):
    r"""Rigid contact of a solid on the frame `on` with a shape on `against`.

    At each point of contact the normal force $\lambda$ is what gives the gap $g$ the
    acceleration

    $$\ddot g + 2\omega\dot g + \omega^2 g = 0 ,$$

    so that errors of $g$ die out with the rate $\omega$. One-sided (the default) it
    only pushes: a body lifts off where the force would pull, and lands without a
    bounce, braked over the last $2|\dot g|/\omega$ of its way. The system's energy
    ledger counts the loss by landing and by friction. Friction is Coulomb's,
    $\mu\lambda$ against sliding, regularised below the speed `width`.

    The shapes' gap must have second derivatives: points, balls and corners on planes,
    terrain and bowls.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"gap": "m", "normal_force": "N"}
    on: str = eqx.field(static=True)
    shape: AbstractSolid
    against: str = eqx.field(static=True)
    surface: AbstractShape
    mu: Scalar | None = eqx.field(
        converter=optional(si("1", at_least=0.0)), default=None
    )
    rate: Scalar = eqx.field(converter=si("1/s", above=0.0), default=200.0)
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    slack: Scalar = eqx.field(converter=si("N", above=0.0), default=1e-3)
    one_sided: bool = eqx.field(static=True, default=True)

    def initial_state(self) -> dict:
        return {}

    def gaps(self, world: World) -> tuple[Array, Array, Array]:
        """Return the gaps, their rates, and their accelerations at zero `v_dot`."""
        frames = self.on, self.against

        def gap(tau: Scalar) -> Array:
            A, B = (_extrapolated_pose(world, frame, tau) for frame in frames)
            return -find_contacts(self.shape, A, self.surface, B).depth

        def moving(tau: Scalar) -> tuple[Array, Array]:
            return jax.jvp(gap, (tau,), (jnp.ones_like(tau),))

        now = jnp.zeros_like(world.t)
        (g, g_dot), (_, g_ddot) = jax.jvp(moving, (now,), (jnp.ones_like(now),))
        return g, g_dot, g_ddot

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        poses = world.pose(self.on), world.pose(self.against)
        points = find_contacts(self.shape, poses[0], self.surface, poses[1])
        velocity, _ = slip(world, self.on, self.against, points)
        g, g_dot, g_ddot = self.gaps(world)
        rest = g_ddot + 2 * self.rate * g_dot + self.rate**2 * g
        on, against = (world.mechanism.frame(k).body for k in (self.on, self.against))
        found = []
        for p, n, v, r in zip(points.p, points.n, velocity, rest, strict=True):
            zero = jnp.zeros_like(n)
            normal, drag = Load(on, against, p, n, zero), None
            if self.mu is not None:
                slide = v - (n @ v) * n
                grip = -self.mu * slide / magnitude(norm(slide), self.width)
                drag = Load(on, against, p, grip, zero)
            slope = mass_matrix.project_wrenches(world, normal.wrenches(world))
            how = {"slack": self.slack, "one_sided": self.one_sided}
            found.append(
                GapConstraint(load=normal, drag=drag, slope=slope, rest=r, **how)
            )
        outputs = {"gap": jnp.min(g)}
        return Response(state, (), outputs, constraints=tuple(found))


def _extrapolated_pose(world: World, frame: str, tau: Scalar) -> Pose:
    """Return a frame's pose after `tau`, to second order, at constant speeds `v`."""
    F = world.mechanism.frame(frame)
    b = world.mechanism.index(F.body)
    V, A, R = world.V_WB[b], world.A_bias_WB[b], world.X_WB.R[b]
    W = skew(V[:3])
    R = R + tau * W @ R + tau**2 / 2 * (skew(A[:3]) + W @ W) @ R
    p = world.X_WB.p[b] + tau * V[3:] + tau**2 / 2 * A[3:]
    return Pose(R, p) @ F.X_BF
