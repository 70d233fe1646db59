r"""Water and air around the machine, and what they do to a body.

Added mass is `Body.A_B`: the fluid's kinetic energy $\tfrac12 V^\top A V$ is the
body's, with the body's twist $V$ over ground. In still water that is Kirchhoff's
theory, Munk's moment $v\times A v$ included. In a current it is an approximation: the
body should be seen from the water, so the moment lacks the current's share (none for an
$A$ alike in all directions), and a current that changes along the body's way pushes
with no inertia of its own.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..parts.base import AbstractPart, Response, Signals
from ..parts.loads import Load
from ..smooth import norm, ramp, step, step_area
from ..typing import Scalar, Vec3, check_values, known, optional, si
from .current_grid import CurrentGrid
from .flow import AbstractFlow
from .wave_field import LinearWaves


class Fluid(AbstractFlow):
    r"""Water with a horizontal current, under air where `surface` gives a height.

    `currents` are velocities at `heights`, straight lines between them and constant
    beyond; one of each is a uniform current. Within `corner` of a height the profile is
    rounded. A `grid` adds a current that changes with place and time.

    A density is the mean around a sphere of diameter `extent` (by default
    `surface_width`), which crosses the surface smoothly:

    $$\rho = \rho_a + (\rho_w - \rho_a)\,s^2(3 - 2s),$$

    with $s$ the share of its height that is under water. `waves` move the water and its
    surface, whose mean height is `surface`.
    """

    water_density: Scalar = eqx.field(
        converter=si("kg/m^3", at_least=0.0), default=1025.0
    )
    heights: Float[Array, " k"] = eqx.field(converter=si("m"), default=(0.0,))
    currents: Float[Array, "k 3"] = eqx.field(
        converter=si("m/s"), default=((0.0, 0.0, 0.0),)
    )
    surface: Scalar | None = eqx.field(converter=optional(si("m")), default=None)
    air_density: Scalar = eqx.field(converter=si("kg/m^3", at_least=0.0), default=1.2)
    surface_width: Scalar = eqx.field(converter=si("m", above=0.0), default=0.01)
    corner: Scalar = eqx.field(converter=si("m", above=0.0), default=0.1)
    grid: CurrentGrid | None = None
    waves: LinearWaves | None = None

    def __check_init__(self):
        check_values(self)
        if self.waves is not None and self.surface is None:
            raise ValueError("water with waves needs the height of its surface")
        if self.heights.ndim != 1 or self.currents.shape != (len(self.heights), 3):
            raise ValueError(
                "a current's profile needs one velocity of three components a height, "
                f"got heights {self.heights.shape} and currents {self.currents.shape}"
            )
        if known(self.heights) and np.any(np.diff(self.heights) <= 0):
            raise ValueError("the heights of a current's profile must increase")

    @property
    def reference_density(self) -> Scalar:
        """Density of the water."""
        return self.water_density

    def velocity(self, p_W: Vec3, t: Scalar) -> Vec3:
        """The velocity of current and waves at a point."""
        u = self._profile(p_W)
        if self.grid is not None:
            u = u + self.grid.velocity(p_W, t)
        if self.waves is not None:
            u = u + self.waves.velocity(self._over_mean(p_W), t)
        return u

    def acceleration(self, p_W: Vec3, t: Scalar) -> Vec3:
        """The acceleration of the water in waves at a point; currents have none."""
        if self.waves is None:
            return jnp.zeros_like(p_W)
        return self.waves.acceleration(self._over_mean(p_W), t)

    def _over_mean(self, p_W: Vec3) -> Vec3:
        assert self.surface is not None
        return jnp.concatenate([p_W[:2], p_W[2:] - self.surface])

    def _profile(self, p_W: Vec3) -> Vec3:
        z, u = self.heights, self.currents
        if len(z) == 1:
            return u[0]
        flat = jnp.zeros_like(u[:1])
        slopes = (u[1:] - u[:-1]) / (z[1:] - z[:-1])[:, None]
        bends = jnp.concatenate([slopes, flat]) - jnp.concatenate([flat, slopes])
        return u[0] + ramp(p_W[2] - z, self.corner) @ bends

    def elevation(self, p_W: Vec3, t: Scalar) -> Scalar:
        """The height of the waves above or below a point, over the mean surface."""
        if self.waves is None:
            return jnp.zeros((), p_W.dtype)
        return self.waves.elevation(p_W, t)

    def _depth(self, p_W: Vec3, elevation: Scalar | None) -> Scalar:
        assert self.surface is not None
        depth = self.surface - p_W[2]
        return depth if elevation is None else depth + elevation

    def density(
        self,
        p_W: Vec3,
        extent: Scalar | None = None,
        elevation: Scalar | None = None,
    ) -> Scalar:
        """Mean density around a sphere of this diameter, under waves of a height."""
        if self.surface is None:
            return self.water_density
        d = self.surface_width if extent is None else extent
        wet = step(self._depth(p_W, elevation) + d / 2, d)
        return self.air_density + (self.water_density - self.air_density) * wet

    def around(self, p_W: Vec3, extent: Scalar | None, t: Scalar) -> Scalar:
        return self.density(p_W, extent, self.elevation(p_W, t))

    def column(
        self,
        p_W: Vec3,
        extent: Scalar | None = None,
        elevation: Scalar | None = None,
    ) -> Scalar:
        """The integral of the density over the height, up to a point, kg/m^2."""
        if self.surface is None:
            return self.water_density * p_W[2]
        d = self.surface_width if extent is None else extent
        wet = step_area(self._depth(p_W, elevation) + d / 2, d)
        heavier = self.water_density - self.air_density
        return self.air_density * p_W[2] - heavier * wet

    def raised(
        self, p_W: Vec3, v_W: Vec3, t: Scalar, extent: Scalar | None = None
    ) -> Scalar:
        """Minus the rate of `column` that waves cause where a point passes them."""
        if self.waves is None or self.surface is None:
            return jnp.zeros((), p_W.dtype)
        eta, rate = jax.jvp(self.waves.elevation, (p_W, t), (v_W, jnp.ones_like(t)))
        return (self.density(p_W, extent, eta) - self.air_density) * rate


class Buoyancy(AbstractPart):
    r"""$\rho\,V g$ upwards at the origin of `frame`, the centre of the volume.

    With a `fluid` that has a surface, the volume crosses it as a sphere of diameter
    `extent` would; other shapes feel no righting moment there. Waves raise and lower
    the surface and draw power from outside; see `WaveForce` for their acceleration.
    Output: `lift`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"lift": "N"}
    frame: str = eqx.field(static=True)
    volume: Scalar = eqx.field(converter=si("m^3", at_least=0.0))
    fluid: Fluid = eqx.field(default_factory=Fluid)
    extent: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        p_W = world.pose(self.frame).p
        displaced = self.fluid.around(p_W, self.extent, t) * self.volume
        up = jnp.asarray([0.0, 0.0, 1.0], p_W.dtype)
        lift = -displaced * world.gravity_W[2]
        body, none = world.mechanism.frame(self.frame).body, jnp.zeros_like(p_W)
        return Response(
            state, (Load(body, "world", p_W, lift * up, none),), {"lift": lift}
        )

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        p_W = world.pose(self.frame).p
        eta = self.fluid.elevation(p_W, world.t)
        column = self.fluid.column(p_W, self.extent, eta)
        return self.volume * world.gravity_W[2] * column

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """The work of waves that raise the surface."""
        del state, signals
        raised = self.fluid.raised(*world.point(self.frame), t, self.extent)
        return -self.volume * world.gravity_W[2] * raised


class Drag(AbstractPart):
    r"""Quadratic drag on a body, at the origin of `frame` and in its axes.

    With $u$ the velocity through the fluid and $\omega$ the angular velocity,

    $$f_i = -\tfrac12\rho\,(C_d A)_i\,|u|\,u_i,\qquad
      \tau_i = -\tfrac12\rho\,C_i\,|\omega|\,\omega_i .$$

    Equal areas give a force along $u$. `extent` is that of `Buoyancy`. The `fluid` may
    be a `Wind`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"force": "N", "torque": "N m"}
    frame: str = eqx.field(static=True)
    area: Float[Array, "*#n"] = eqx.field(converter=si("m^2", at_least=0.0))
    spin: Float[Array, "*#n"] = eqx.field(
        converter=si("m^5", at_least=0.0), default=0.0
    )
    fluid: AbstractFlow = eqx.field(default_factory=Fluid)
    extent: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )

    def initial_state(self) -> dict:
        return {}

    def _forces(self, t: Scalar, world: World) -> tuple[Load, Vec3, Vec3]:
        """The load, the current, and the velocity through the fluid."""
        X_WF, V = world.pose(self.frame), world.twist(self.frame)
        current = self.fluid.velocity(X_WF.p, t)
        through = V[3:] - current
        half = self.fluid.around(X_WF.p, self.extent, t) / 2
        u, w = through @ X_WF.R, V[:3] @ X_WF.R
        f_W = X_WF.R @ (-half * self.area * norm(u) * u)
        tau_W = X_WF.R @ (-half * self.spin * norm(w) * w)
        body = world.mechanism.frame(self.frame).body
        return Load(body, "world", X_WF.p, f_W, tau_W), current, through

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
