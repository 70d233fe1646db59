"""References: functions of time that controllers follow."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.parts.external import as_time_function
from djdyn.typing import Scalar


class Reference(AbstractSignalPart):
    """A reference from a function of time; outputs `value` and its exact `rate`."""

    path: Callable[[Scalar], Float[Array, "*n"]] = eqx.field(converter=as_time_function)

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del world, signals
        value, rate = jax.jvp(self.path, (t,), (jnp.ones_like(t),))
        return Response(state, outputs={"value": value, "rate": rate})
