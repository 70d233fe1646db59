"""Forces of water and air by velocity and acceleration, on bodies and along links."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..parts.base import AbstractPart, Response, Signals
from ..parts.loads import Load
from ..smooth import norm
from ..typing import Mat6, Scalar, Vec3, Vec6, optional, si
from .flow import AbstractFlow
from .water import Fluid


class BodyDamping(AbstractPart):
    r"""Linear and quadratic damping of a body, axis by axis, in the axes of `frame`.

    With $\nu = [\omega; u]$ the angular velocity and the velocity through the water at
    the frame's origin,

    $$F_j = -\sum_k D_{jk}\nu_k - D'_j\,|\nu_j|\,\nu_j .$$

    Coefficients are those of the water they were measured in; with a `fluid` that has a
    surface, they are multiplied by the share that is under water of a sphere of
    diameter `extent`. Radiation of waves by the body is left out. Outputs: `force` and
    `torque`.

    **Arguments:**

    - `linear`: $D$, torques first, six numbers or 6x6.
    - `quadratic`: $D'$, torques first.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"force": "N", "torque": "N m"}
    frame: str = eqx.field(static=True)
    linear: Float[Array, "6"] | Mat6 = eqx.field(
        converter=si("N m s/rad, N s/m"), default=(0.0,) * 6
    )
    quadratic: Vec6 = eqx.field(
        converter=si("N m s^2/rad^2, N s^2/m^2", at_least=0.0), default=(0.0,) * 6
    )
    fluid: Fluid = eqx.field(default_factory=Fluid)
    extent: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )

    def initial_state(self) -> dict:
        return {}

    def _forces(self, t: Scalar, world: World) -> tuple[Load, Vec3, Vec3]:
        """The load, the water's velocity, and the velocity through the water."""
        X, V = world.pose(self.frame), world.twist(self.frame)
        current = self.fluid.velocity(X.p, t)
        through = V[3:] - current
        nu = jnp.concatenate([V[:3] @ X.R, through @ X.R])
        D = self.linear if self.linear.ndim == 2 else jnp.diag(self.linear)
        F = -D @ nu - self.quadratic * jnp.abs(nu) * nu
        if self.fluid.surface is not None:
            density = self.fluid.around(X.p, self.extent, t)
            F = F * (density / self.fluid.water_density)
        body = world.mechanism.frame(self.frame).body
        return Load(body, "world", X.p, X.R @ F[3:], X.R @ F[:3]), current, through

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        load, _, _ = self._forces(t, world)
        return Response(state, (load,), {"force": load.f_W, "torque": load.tau_W})

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del state, signals
        load, _, through = self._forces(t, world)
        return -load.f_W @ through - load.tau_W @ world.twist(self.frame)[:3]

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """The work of current and waves."""
        del state, signals
        load, current, _ = self._forces(t, world)
        return load.f_W @ current


class WaveForce(AbstractPart):
    r"""Force of accelerating water on a body that is small against the waves.

    At the origin of `frame`, the centre of its volume, and with $\dot u$ the water's
    acceleration there,

    $$f = \rho V\dot u + A\,\dot u ,$$

    the Froude-Krylov force and that of the added mass $A$ (3x3 or one number an axis,
    in the frame's axes). With the body's own added mass `A_B` on its acceleration,
    added mass acts in relative acceleration. Both shrink as a sphere of diameter
    `extent` leaves the water. Output: `force`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"force": "N"}
    frame: str = eqx.field(static=True)
    volume: Scalar = eqx.field(converter=si("m^3", at_least=0.0))
    added_mass: Float[Array, "3"] | Float[Array, "3 3"] = eqx.field(
        converter=si("kg"), default=(0.0, 0.0, 0.0)
    )
    fluid: Fluid = eqx.field(default_factory=Fluid)
    extent: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )

    def initial_state(self) -> dict:
        return {}

    def _force(self, t: Scalar, world: World) -> tuple[Load, Vec3]:
        """The load, and the velocity of the frame."""
        X, (_, v_W) = world.pose(self.frame), world.point(self.frame)
        density = self.fluid.around(X.p, self.extent, t)
        A = self.added_mass
        A = A if A.ndim == 2 else jnp.diag(A)
        a = self.fluid.acceleration(X.p, t) @ X.R
        f = density * self.volume * a + density / self.fluid.water_density * (A @ a)
        body = world.mechanism.frame(self.frame).body
        return Load(body, "world", X.p, X.R @ f, jnp.zeros_like(f)), v_W

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        load, _ = self._force(t, world)
        return Response(state, (load,), {"force": load.f_W})

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """The work of the waves."""
        del state, signals
        load, v_W = self._force(t, world)
        return load.f_W @ v_W


class StripDrag(AbstractPart):
    r"""Drag on a slender link, strip by strip along the x axis of `frame`.

    The link starts at the frame's origin. A strip of length $\ell$ and width $b$ whose
    centre goes through the water at $u$ feels

    $$f = -d\,u - \tfrac12\rho C_d\,b\,\ell\,|u_n|\,u_n ,$$

    with $u_n$ the velocity across the link. Ends are left out (McLain and Rock,
    *Development and experimental validation of an underwater manipulator hydrodynamic
    model*, 1998). With `axes` each of the two axes across has its own drag,
    $|u_j| u_j$, as in Rokseth's thesis (NTNU, 2014). The `fluid` may be a `Wind`.
    Outputs: `force` and `torque` about the origin of `frame`.

    **Arguments:**

    - `skin`: $d$, of each strip.
    - `drag`, `width`: $C_d$ and $b$, one number or one for each strip.
    - `strips`: into which the link is cut.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"force": "N", "torque": "N m"}
    frame: str = eqx.field(static=True)
    length: Scalar = eqx.field(converter=si("m", above=0.0))
    width: Float[Array, "*#n"] = eqx.field(converter=si("m", at_least=0.0))
    drag: Float[Array, "*#n"] = eqx.field(converter=si("1", at_least=0.0), default=1.0)
    skin: Float[Array, "*#n"] = eqx.field(
        converter=si("N s/m", at_least=0.0), default=0.0
    )
    strips: int = eqx.field(static=True, default=3)
    axes: bool = eqx.field(static=True, default=False)
    fluid: AbstractFlow = eqx.field(default_factory=Fluid)

    def __check_init__(self):
        if self.strips < 1:
            raise ValueError(f"a link has at least one strip, not {self.strips}")
        for what in ("width", "drag", "skin"):
            shape = getattr(self, what).shape
            if shape not in ((), (self.strips,)):
                raise ValueError(
                    f"{what} is one number or one for each of {self.strips} strips, "
                    f"not of shape {shape}"
                )

    def initial_state(self) -> dict:
        return {}

    def _forces(self, t: Scalar, world: World) -> tuple[Array, Array, Array, Array]:
        """Centres of strips, their forces, and velocities of water and of strips."""
        X, V = world.pose(self.frame), world.twist(self.frame)
        x = (np.arange(self.strips) + 0.5) / self.strips
        arms = (jnp.asarray(x, X.p.dtype) * self.length)[:, None] * X.R[:, 0][None]
        p, v = X.p[None] + arms, V[3:][None] + cross(V[:3][None], arms)
        fluid, length = self.fluid, self.length / self.strips
        current = jax.vmap(lambda p: fluid.velocity(p, t))(p)
        density = jax.vmap(lambda p: fluid.around(p, length, t))(p)
        u = (v - current) @ X.R
        across = u * jnp.asarray([0.0, 1.0, 1.0], u.dtype)[None]
        speed = jnp.abs(across) if self.axes else norm(across)[:, None]
        size = density / 2 * self.drag * self.width * length
        share = self.skin * density / fluid.reference_density
        f = -share[:, None] * u - size[:, None] * speed * across
        return p, f @ X.R.T, current, v

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        p, f, _, _ = self._forces(t, world)
        origin, body = world.pose(self.frame).p, world.mechanism.frame(self.frame).body
        force, torque = jnp.sum(f, 0), jnp.sum(cross(p - origin[None], f), 0)
        load = Load(body, "world", origin, force, torque)
        return Response(state, (load,), {"force": force, "torque": torque})

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del state, signals
        _, f, current, v = self._forces(t, world)
        return -jnp.sum(f * (v - current))

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """The work of current and waves."""
        del state, signals
        _, f, current, _ = self._forces(t, world)
        return jnp.sum(f * current)
