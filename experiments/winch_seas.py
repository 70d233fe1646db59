"""What the winch is tuned for: seas, and the cost of a drive and of its errors."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import controllers
import djdyn
from controllers import Mean, Number, RootMeanSquare, Scenarios, Tuned
from djdyn import FreeParameter, Positive
from djdyn.sea import jonswap
from djdyn.system import Instant
from djdyn.timefunctions import HarmonicSum

from .study import Study
from .winch_gear import COMPONENTS, heave, moved


START = {  # a tenth of the print's gains, and a drive of plenty
    "pid.kp": 0.01,
    "pid.ki": 1e-4,
    "pid.kd": 1e-3,
    "pid.limit": 3.0,
    "winch.acceleration": 3.0,
    "winch.deceleration": 3.0,
}
FREE = [FreeParameter(path, Positive()) for path in START]
SPAN, SAVES = 10.0, 401  # s
STEPS: dict[str, Any] = {"solver": "rk4", "dt": 2.5e-3}
DECK = "deck.joint.motion.height"


def error(now: Instant) -> Array:
    """Of the tension, N."""
    return now.signals["line.head_tension"] - now.signals["order.value"]


def strain(now: Instant) -> Array:
    """How far the drive is asked for more than four fifths of its limits.

    Squared where it is small, and no more than linear where it is not.
    """
    asked = jnp.stack([now.signals[k] for k in ("pid.asked", "winch.asked")])
    return jnp.sum(jnp.sqrt(1 + 25 * jnp.maximum(asked - 0.8, 0.0) ** 2) - 1)


COST = {  # in units of 100 N
    "tension": RootMeanSquare(error, 100.0),
    "rate": Mean(Number("pid.limit"), 50.0),  # 2 N for 1 m/s
    "acceleration": Mean(Number("winch.acceleration"), 100.0),  # 1 N for 1 m/s2
    "deceleration": Mean(Number("winch.deceleration"), 100.0),
    "strain": Mean(strain),
}


def seas(first: int, count: int) -> HarmonicSum:
    """Irregular seas of 0.5 to 1.5 m and 7 to 12 s, by seeds from `first` on."""
    seeds = jnp.arange(first, first + count)
    turn = lambda k: ((seeds * k) % 16).astype(float) / 15  # from 0 to 1, mixed
    height, period = 0.5 + turn(7), 7.0 + 5 * turn(5)
    one = lambda height, period, seed: jonswap(
        height, period, seed=seed, components=COMPONENTS
    )
    return jax.vmap(one)(height, period, seeds)


def conditions(ready: djdyn.State, first: int, count: int) -> Scenarios:
    """Decks on seas, all that hangs below carried along at the start."""
    batch = seas(first, count)
    y0 = jax.vmap(lambda sea: moved(ready, *heave(sea)))(batch)
    parts = ("amplitude", "frequency", "phase")
    return Scenarios({f"{DECK}.{k}": getattr(batch, k) for k in parts}, y0)


Seas = tuple[Scenarios, Scenarios]  # to tune on, and held out


def tune(system: djdyn.System, some: Seas, steps: int, how: dict[str, Any]) -> Tuned:
    return controllers.tune(
        system, SPAN, free=FREE, cost=COST, scenarios=some[0], held_out=some[1],
        max_steps=steps, saves=SAVES, **how,
    )  # fmt: skip


def limits(study: Study, name: str, found: Tuned, run: djdyn.Trajectory) -> None:
    """The largest shares of its limits that the drive used."""
    gains = {k: float(x) for k, x in found.gains.items()}
    rate, a = (np.asarray(run.signal(f"winch.{k}")) for k in ("rate", "acceleration"))
    up, down = gains["winch.acceleration"], gains["winch.deceleration"]
    for what, share in (
        ("rate", np.max(np.abs(rate)) / gains["pid.limit"]),
        ("acceleration", max(np.max(a) / up, np.max(-a) / down)),
    ):
        study.metric(
            f"{name}.largest_{what}_share",
            share,
            0.0,
            1.0 + 1e-6,
            note="of its limit, on seas held out; round corners lie within",
        )


def figures(study: Study, title: str, runs: dict[str, djdyn.Trajectory]) -> None:
    """The first sea."""
    first = {k: r.lane(0) for k, r in runs.items()}
    time = ("time", "s", next(iter(first.values())).t)
    for what, unit, signal in (
        ("tension", "N", "line.head_tension"),
        ("payout rate", "m/s", "winch.rate"),
    ):
        lines = {k: np.asarray(r.signal(signal)) for k, r in first.items()}
        study.report.plot(f"{title}: {what}", time, (what, unit), lines)
