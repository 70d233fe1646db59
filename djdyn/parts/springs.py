"""Springs and dampers between two frames."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..multibody.kinematics import World
from ..multibody.mechanism import WORLD
from ..smooth import even_power, norm, odd_power
from ..typing import Number, Scalar, Vec3, optional, si
from .base import AbstractPassivePart, Response, Signals
from .loads import Inertia, Load


def check_exponent(exponent: Number) -> None:
    """Raise unless a spring of this exponent has a finite stiffness at rest."""
    if not 1 <= exponent < np.inf:
        raise ValueError(f"a spring's exponent must be at least 1, got {exponent}")


class SpringDamper(AbstractPassivePart):
    r"""Spring and damper along the line from frame `tail` T to frame `head` H.

    With $\ell$ the distance, $x = \ell - \ell_0$ and $e$ the unit vector from T to H,
    the head feels

    $$f = -\bigl(k\,\operatorname{sign}(x)\,|x|^n + c\,\dot\ell\bigr)\,e,$$

    $n \ge 1$. At zero length there is no direction: only a spring of no rest length
    pulls smoothly through it. `rest_length` is the length of no force, by
    extrapolation: of a spring wound with tension it is less than its own.

    Of a spring's `mass` a third moves with the head, as if its tail stood still.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"tension": "N", "stretch": "m"}
    tail: str = eqx.field(static=True)
    head: str = eqx.field(static=True)
    stiffness: Scalar = eqx.field(converter=si("N/m^n", at_least=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    rest_length: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    exponent: Number = eqx.field(static=True, default=1)
    mass: Scalar | None = eqx.field(
        converter=optional(si("kg", at_least=0.0)), default=None
    )

    def __check_init__(self):
        check_exponent(self.exponent)

    def initial_state(self) -> dict:
        return {}

    def stretch(self, world: World) -> tuple[Vec3, Scalar, Scalar]:
        """`e_W`, elongation and its rate."""
        p_WT, v_WT = world.point(self.tail)
        p_WH, v_WH = world.point(self.head)
        length = norm(p_WH - p_WT)
        e_W = (p_WH - p_WT) / jnp.where(length > 0, length, 1.0)
        return e_W, length - self.rest_length, (v_WH - v_WT) @ e_W

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        e_W, x, rate = self.stretch(world)
        tension = self.stiffness * odd_power(x, self.exponent) + self.damping * rate
        p_WH, p_WT = world.point(self.head)[0], world.point(self.tail)[0]
        stretched = p_WH - p_WT - self.rest_length * e_W  # x e, smooth at zero length
        f_W = -self.stiffness * even_power(x, self.exponent - 1) * stretched
        f_W = f_W - self.damping * rate * e_W
        on, against = (world.mechanism.frame(f).body for f in (self.head, self.tail))
        still, outputs = jnp.zeros_like(e_W), {"tension": tension, "stretch": x}
        load = Load(on, against, p_WH, f_W, still)
        if self.mass is None:
            return Response(state, (load,), outputs)
        lump = self.mass / 3
        weight = Load(on, WORLD, p_WH, lump * world.gravity_W, still)
        inertia = Inertia(on, p_WH, lump * jnp.eye(3, dtype=p_WH.dtype))
        return Response(state, (load, weight), outputs, (inertia,))

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        n = self.exponent + 1
        elastic = self.stiffness * even_power(self.stretch(world)[1], n) / n
        if self.mass is None:
            return elastic
        p_WH, v_WH = world.point(self.head)
        return elastic + self.mass / 3 * (v_WH @ v_WH / 2 - world.gravity_W @ p_WH)

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        return self.damping * self.stretch(world)[2] ** 2
