"""A sheave that line runs over, with the friction of a capstan."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..parts.base import AbstractPart, Response, Signals
from ..smooth import norm, sign
from ..typing import Scalar, si


class Sheave(AbstractPart):
    r"""Takes line from the cable `source` and gives it to `target`, at the speed $u$.

    Both have their heads where the sheave is, with payouts `-sheave.rate` and
    `sheave.rate`. With tensions $T_1$ and $T_2$ and the angle $\theta$ by which the
    line is turned,

    $$m\dot u = T_2 - T_1 - (T_1 + T_2)\tanh\bigl(\tfrac12\mu\theta\,
    \tanh(u/w)\bigr),$$

    which slides steadily at $T_2/T_1 = e^{\mu\theta}$, the other way at its inverse,
    and creeps below the speed `width` in between. `inertia` is that of the sheave, over
    its radius squared, and of the line on it. The wheel has no size of its own: its
    frame, where both heads are pinned, carries both tensions.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "rate": "m/s",
        "angle": "rad",
        "drag": "N",
    }
    source: str = eqx.field(static=True)
    target: str = eqx.field(static=True)
    friction: Scalar = eqx.field(converter=si("1", at_least=0.0))
    inertia: Scalar = eqx.field(converter=si("kg", above=0.0))
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)

    def initial_state(self) -> dict:
        return {"rate": jnp.zeros(())}

    def _forces(self, state: dict, signals: Signals) -> tuple[Scalar, Scalar, Scalar]:
        """What drives the line, what resists, and the angle."""
        T1, T2 = (signals[f"{k}.head_tension"] for k in (self.source, self.target))
        a, b = (signals[f"{k}.head_slope"] for k in (self.source, self.target))
        angle = jnp.arctan2(norm(cross(a, b)), -(a @ b))
        grip = self.friction * angle / 2 * sign(state["rate"], self.width)
        return T2 - T1, (T1 + T2) * jnp.tanh(grip), angle

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t, world
        drive, drag, angle = self._forces(state, signals)
        rate = {"rate": (drive - drag) / self.inertia}
        return Response(rate, outputs={"angle": angle, "drag": drag})

    def energy(self, state: dict, world: World) -> Scalar:
        del world
        return self.inertia * state["rate"] ** 2 / 2

    def power_loss(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        del t, world
        return self._forces(state, signals)[1] * state["rate"]

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """What the tensions do: the winch powers of the two cables, taken back."""
        del t, world
        return self._forces(state, signals)[0] * state["rate"]
