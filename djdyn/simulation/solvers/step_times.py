"""Step-size controllers whose times compare alike in both sweeps of a gradient.

Reverse mode recomputes steps from checkpoints, in a program that may round `t0 + k h`
differently from the forward sweep (a fused multiply-add is enough). diffrax saves a
time in the first step that ends at or after it. Where a step ends within rounding of a
save time, the two sweeps may then save in different steps, and the cotangent of that
save is lost or counted twice. Both controllers here exclude it: steps end at tabulated
times, or exactly at a save time that they would miss by rounding alone.
"""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...typing import Scalar


class TabulatedSteps(dfx.AbstractStepSizeController):
    """Steps that end at the given times, the first of which is the start."""

    times: Float[Array, " n"]

    def wrap(self, direction: Any) -> "TabulatedSteps":
        del direction  # time runs forward
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        del terms, t0, t1, y0, dt0, args, func, error_order
        return self.times[1], jnp.array(2)

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ):
        del t0, y0, y1_candidate, args, y_error, error_order
        t2, count = self.times[controller_state], controller_state + 1
        return True, t1, t2, False, count, dfx.RESULTS.successful


class ExactSaves(dfx.AbstractAdaptiveStepSizeController):
    """Adaptive steps that end exactly at a save time within rounding of their end."""

    controller: dfx.PIDController
    saves: Float[Array, " n"]
    rounding: Scalar = eqx.field(converter=jnp.asarray)  # s

    @property
    def rtol(self):
        """Relative tolerance of the controller."""
        return self.controller.rtol

    @property
    def atol(self):
        """Absolute tolerance of the controller."""
        return self.controller.atol

    @property
    def norm(self):  # pyright: ignore
        """Norm of the error that the controller bounds."""
        return self.controller.norm

    def wrap(self, direction: Any) -> "ExactSaves":
        wrapped: Any = self.controller.wrap(direction)
        return ExactSaves(wrapped, self.saves, self.rounding)  # pyright: ignore

    def _snap(self, t: Any) -> Array:
        t = jnp.asarray(t)
        save = self.saves[jnp.argmin(jnp.abs(self.saves - t))].astype(t.dtype)
        return jnp.where(jnp.abs(save - t) <= self.rounding, save, t)

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        how = (terms, t0, t1, y0, dt0, args, func, error_order)
        t1, state = self.controller.init(*how)
        return self._snap(t1), state

    def adapt_step_size(
        self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
    ):
        how = (t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state)
        keep, t1, t2, jump, state, result = self.controller.adapt_step_size(*how)
        snapped = self._snap(t2)
        t2 = jnp.where(snapped > t1, snapped, t2)  # never an empty step
        return keep, t1, t2, jump, state, result
