"""Options of `tune`: how gains are searched for, and which margins loops must keep."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from djdyn import State, System


# "mean", "worst", or the fraction of the best scenarios that is left out of the mean.
Risk = str | float

# The state of a system to linearise about, or the time, s, at which a run passes it.
OperatingPoint = Callable[[System], State] | float


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """Options of the search of `tune` for the gains of least cost.

    **Arguments:**

    - `method`: `"bfgs"`, which keeps the bounds of `Box`; `"adam"`; for costs that are
      sums of squares also `"nl2sol"`, `"lm"` (Levenberg-Marquardt) and `"dogleg"`; or a
      solver of Optimistix.
    - `max_steps`, `tolerance`: of the method; the tolerance is relative and absolute.
    - `num_starts`: how many starting points are searched from, in one batch. The first
      is the system as given; `spread` is the standard deviation of the others about it,
      in units of each gain's scale, drawn with `seed`.
    - `outer_iterations`: with one, exceeded constraints are penalised. With more, the
      multipliers of an augmented Lagrangian are updated after each.
    - `penalty`: the first weight of exceeded constraints.
    - `risk`: what is minimised over scenarios: their `"mean"`, the `"worst"`, or a
      number such as 0.9 for the mean of the worst tenth.
    - `diverged`: scenarios that do not reach their end are penalised (`"penalise"`) or
      left out (`"exclude"`).
    """

    method: Any = "bfgs"
    max_steps: int = 50
    tolerance: float = 1e-6
    num_starts: int = 1
    spread: float = 1.0
    seed: int = 0
    outer_iterations: int = 1
    penalty: float = 10.0
    risk: Risk = "mean"
    diverged: str = "penalise"

    def __post_init__(self):
        fraction = isinstance(self.risk, float) and 0 < self.risk < 1
        if self.risk not in ("mean", "worst") and not fraction:
            raise ValueError(
                f"risk is mean, worst or a number from 0 to 1, not {self.risk!r}"
            )
        if self.diverged not in ("penalise", "exclude"):
            raise ValueError(f"diverged is penalise or exclude, not {self.diverged!r}")
        if self.num_starts < 1 or self.outer_iterations < 1:
            raise ValueError("a search needs at least one start and outer iteration")


@dataclasses.dataclass(frozen=True)
class RobustnessMargins:
    """Operating point at which `tune` checks stability, and margins to keep there.

    **Arguments:**

    - `operating_point`: the state about which the system is linearised, as a function
      of the system; or a time, s, for the state that each run has then.
    - `loop`: the signal, or signals, at which the loop is opened; see `margins`.
    - `delay`: additional delay of every loop, s.
    - `modulus`: the smallest distance from minus one that the open loops may have. With
      it, tuning is constrained to keep that distance and to keep all poles stable:
      about the operating points of the system before tuning, or about the states of the
      runs, which derivatives take as constant. Without it, margins are only reported.
    """

    operating_point: OperatingPoint
    loop: str | Sequence[str] | None = None
    delay: float = 0.0
    modulus: float | None = None

    def __post_init__(self):
        if self.modulus is None:
            return
        if self.loop is None or not 0 < self.modulus < 1:
            raise ValueError(
                "a modulus margin needs a loop and a modulus from 0 to 1, not "
                f"{self.modulus!r} at {self.loop!r}"
            )

    @property
    def time(self) -> float:
        """Time of the operating point, s."""
        return 0.0 if callable(self.operating_point) else float(self.operating_point)

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals where loops are opened, in alphabetical order."""
        if self.loop is None:
            return ()
        return (self.loop,) if isinstance(self.loop, str) else tuple(sorted(self.loop))

    def check_time(self, t1: float) -> None:
        """Raise unless runs from 0 to `t1`, s, pass the operating point."""
        if not 0 <= self.time <= t1:
            raise ValueError(
                f"runs from 0 to {t1:g} s have no state at {self.operating_point!r} s"
            )
