"""Hulls that float: hydrostatic restoring, and motion by response amplitudes."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import Pose, cross, rotation_rpy
from ..parts.base import AbstractPart, Response, Signals
from ..parts.loads import Load
from ..typing import Scalar, Vec3, known, si
from .water import Fluid
from .wave_field import LinearWaves


class Hydrostatics(AbstractPart):
    r"""Buoyancy of a hull and restoring by its waterplane, at the origin of `frame`.

    The frame lies in the waterplane at rest, with z upwards in the hull. With $\zeta$
    its height over the surface and $s$ the surface's upward direction in its axes, less
    the slope of the waves, the hull has the energy

    $$E = -\rho g\nabla\,\zeta + \tfrac12\rho g\bigl(A\,\zeta^2
      + I_x s_y^2 + I_y s_x^2\bigr)
      + \rho g A\,\zeta\,(x_f s_x + y_f s_y) - \rho g\nabla\,(c \cdot s) ,$$

    and feels its gradient, so it is linear in heave, conservative at any angle, and
    exact to first order. $A$, $I_x$, $I_y$ and $(x_f, y_f)$ are area, second moments
    about x and y and centre of the waterplane, $\nabla$ is the displaced volume at rest
    and $c$ its centre. Waves long against the hull carry it; they raise and tilt the
    surface and draw power from outside. Diffraction and radiation are left out.
    Output: `lift`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"lift": "N", "height": "m"}
    frame: str = eqx.field(static=True)
    volume: Scalar = eqx.field(converter=si("m^3", above=0.0))
    centre: Vec3 = eqx.field(converter=si("m"))
    area: Scalar = eqx.field(converter=si("m^2", at_least=0.0))
    second_moments: Float[Array, "2"] = eqx.field(converter=si("m^4", at_least=0.0))
    centre_of_floatation: Float[Array, "2"] = eqx.field(
        converter=si("m"), default=(0.0, 0.0)
    )
    fluid: Fluid = eqx.field(default_factory=lambda: Fluid(surface=0.0))

    def __check_init__(self):
        if self.fluid.surface is None:
            raise ValueError("a floating hull needs water with a surface")

    def initial_state(self) -> dict:
        return {}

    def _stored(self, height: Scalar, s: Vec3, gravity: Scalar) -> Scalar:
        """The energy at a height over the surface, tilted."""
        Ix, Iy = self.second_moments[0], self.second_moments[1]
        tilt = (Ix * s[1] ** 2 + Iy * s[0] ** 2) / 2
        shift = self.area * height * (self.centre_of_floatation @ s[:2])
        lifted = self.volume * (height + self.centre @ s)
        held = self.area * height**2 / 2 + tilt + shift - lifted
        return self.fluid.water_density * gravity * held

    def _place(
        self, p_W: Vec3, R: Float[Array, "3 3"], t: Scalar
    ) -> tuple[Scalar, Vec3]:
        """Height over the surface, and its upward direction in the hull's axes."""
        surface = self.fluid.surface
        assert surface is not None
        up, eta = jnp.asarray([0.0, 0.0, 1.0], p_W.dtype), jnp.zeros((), p_W.dtype)
        if self.fluid.waves is not None:
            eta = self.fluid.waves.elevation(p_W, t)
            slope = self.fluid.waves.slope(p_W, t)
            up = up - jnp.concatenate([slope, jnp.zeros_like(slope[:1])])
        return p_W[2] - surface - eta, up @ R

    def _gradient(self, t: Scalar, world: World) -> tuple[Scalar, Vec3, Pose]:
        """Slopes of the energy by height and by direction."""
        X = world.pose(self.frame)
        height, s = self._place(X.p, X.R, t)
        gravity = -world.gravity_W[2]
        slopes = jax.grad(self._stored, argnums=(0, 1))(height, s, gravity)
        return *slopes, X

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        by_height, by_s, X = self._gradient(t, world)
        height, s = self._place(X.p, X.R, t)
        f_W = jnp.asarray([0.0, 0.0, -1.0], X.p.dtype) * by_height
        body = world.mechanism.frame(self.frame).body
        load = Load(body, "world", X.p, f_W, X.R @ cross(s, by_s))
        return Response(state, (load,), {"lift": -by_height, "height": height})

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        X = world.pose(self.frame)
        return self._stored(*self._place(X.p, X.R, world.t), -world.gravity_W[2])

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """The work of waves that raise and tilt the surface."""
        del state, signals
        if self.fluid.waves is None:
            return jnp.zeros((), world.q.dtype)
        by_height, by_s, X = self._gradient(t, world)
        v_W = world.twist(self.frame)[3:]
        passing = lambda p, t: self._place(p, X.R, t)
        rates = jax.jvp(passing, (X.p, t), (v_W, jnp.ones_like(t)))[1]
        return by_height * (rates[0] - v_W[2]) + by_s @ rates[1]


class ResponseMotion(eqx.Module):
    r"""Motion of a hull in waves by response amplitude operators, for `Prescribed`.

    The six motions are surge, sway, heave (m/m), roll, pitch and yaw (rad/m) about a
    mean place. A component $a\cos(\omega t - k\,d\cdot x + \varphi)$ of the waves moves
    the hull by $a\,|H(\omega)|\cos(\omega t - k\,d\cdot x_0 + \varphi + \arg H)$, with
    $x_0$ the mean place. Operators are given at `frequencies`, for the one heading of
    the waves that they are for, and are linear in between and constant beyond.

    **Arguments:**

    - `amplitudes`, `phases`: $|H|$ and $\arg H$, a row a frequency.
    - `mean`: place and angles without waves.
    """

    waves: LinearWaves
    frequencies: Float[Array, " n"] = eqx.field(converter=si("rad/s"))
    amplitudes: Float[Array, "n 6"] = eqx.field(converter=si("m/m, rad/m"))
    phases: Float[Array, "n 6"] = eqx.field(converter=si("rad"))
    mean: Float[Array, "6"] = eqx.field(converter=si("m, rad"), default=(0.0,) * 6)

    def __check_init__(self):
        n = len(self.frequencies)
        if self.amplitudes.shape != (n, 6) or self.phases.shape != (n, 6):
            raise ValueError(
                f"{n} frequencies need {n} rows of six amplitudes and phases, got "
                f"{self.amplitudes.shape} and {self.phases.shape}"
            )
        if known(self.frequencies) and np.any(np.diff(self.frequencies) <= 0):
            raise ValueError("the frequencies of response amplitudes must increase")

    def __call__(self, t: Scalar) -> Pose:
        sea = self.waves
        at = lambda table: jnp.stack(
            [jnp.interp(sea.frequency, self.frequencies, x) for x in table.T]
        )
        ahead = jnp.stack([jnp.cos(sea.direction), jnp.sin(sea.direction)], 1)
        place = sea.wave_number * (ahead @ self.mean[:2])
        angle = (sea.frequency * t + sea.phase - place)[None] + at(self.phases)
        x: Array = self.mean + (at(self.amplitudes) * jnp.cos(angle)) @ sea.amplitude
        return Pose(rotation_rpy(x[3], x[4], x[5]), x[:3])
