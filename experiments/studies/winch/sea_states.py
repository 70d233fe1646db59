"""What the winch is tuned for: seas, and the cost of a drive and of its errors."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import controllers
import djdyn
from controllers import (
    MeanSquare,
    MeanSquareRate,
    ParameterValue,
    Scenarios,
    TuningResult,
)
from djdyn import FreeParameter, Positive
from djdyn.marine.waves import jonswap
from djdyn.multibody.time_functions import HarmonicSum, Moves
from djdyn.parts import ExternalWrench
from djdyn.system.system import Instant

from ...harness.study import Study
from ...harness.tuning_report import as_built
from .loop import GAIN
from .model import COMPONENTS, EA, LENGTH, build, heave, moved


SPAN, SAVES = 10.0, 2001  # s; noise ends at 50 Hz, and is looked at at 200 Hz
PERIOD = 2.5e-3  # s: a sample and a half is a fifth of the drive's lag
HOW = as_built(PERIOD)
NOISE = 2.0  # N, a thousandth of the load
SLAM, HARDEST = ([5.0, 5.1], [5.1, 5.2]), 250.0  # s, N: up, and down again
# To begin with, a PI controller by Skogestad's rule (SIMC, J. Process Control, 2003):
# a line is an integrator of EA/LENGTH, and all lags add up. Then a drive of plenty.
LAG = 1 / GAIN + 1.5 * PERIOD  # s
KP = LENGTH / EA / (2 * LAG)
START = {
    "pid.kp": KP,
    "pid.ki": KP / (8 * LAG),
    "pid.kd": 1e-5,  # next to nothing
    "pid.limit": 3.0,
    "winch.acceleration": 3.0,
    "winch.deceleration": 3.0,
}
# m/s, m/s2: sharp corners give a search a rough cost where limits are met.
ROUND = {"pid.width": 0.02, "winch.width": 0.05}
FREE = [FreeParameter(path, Positive()) for path in START]
DECK = "deck.joint.motion.height"


def rig() -> djdyn.System:
    """The winch on a deck, with noise, and a payload that a wave can slam."""
    system, zero = build(elements=2, noise=NOISE), np.zeros(6)
    slam = ExternalWrench("load", Moves(zero, np.zeros((2, 6)), *SLAM))
    parts = {**system.parts, "push": slam}
    return djdyn.with_parameters(
        djdyn.System(system.mechanism, parts), {**START, **ROUND}
    )


def error(now: Instant) -> Array:
    """Of the tension, N."""
    return now.signals["line.head_tension"] - now.signals["order.value"]


def strain(now: Instant) -> Array:
    """How far the drive is asked for more than seven tenths of its limits.

    What is left is for seas that are worse: at its limits the loop rings.
    """
    asked = jnp.stack([now.signals[k] for k in ("pid.asked", "winch.asked")])
    return jnp.maximum(asked - 0.7, 0.0)


COST = {  # over the largest that one would accept
    "tension": MeanSquare(error, 20.0),  # N, a hundredth of the load
    "tension rate": MeanSquareRate(
        error, 100.0
    ),  # N/s; or a loop that rings costs little
    "rate": MeanSquare(ParameterValue("pid.limit"), 3.0),  # m/s
    "acceleration": MeanSquare(ParameterValue("winch.acceleration"), 3.0),  # m/s2
    "deceleration": MeanSquare(ParameterValue("winch.deceleration"), 3.0),
    "strain": MeanSquare(strain, 0.01),  # rms; a tenth for a hundredth of the time
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


def conditions(
    system: djdyn.System,
    ready: djdyn.State,
    first: int,
    count: int,
    hardest: bool = False,
) -> Scenarios:
    """Decks on seas, all that hangs below carried along at the start.

    In each a slam of its own, as hard as can be if so asked, and noise.
    """
    batch = seas(first, count)
    y0 = jax.vmap(lambda sea: moved(ready, *heave(sea)))(batch)
    parts = ("amplitude", "frequency", "phase")
    lanes = {f"{DECK}.{k}": getattr(batch, k) for k in parts}
    turns, push = jax.random.split(jax.random.key(first))
    phases = (count, *djdyn.get_parameters(system, "noise.phase").shape)
    lanes["noise.phase"] = 2 * np.pi * jax.random.uniform(turns, phases)
    share = jax.random.uniform(push, (count,), minval=-1.0)
    sizes = HARDEST * (jnp.sign(share) if hardest else share)
    lanes["push.wrench.points"] = jnp.zeros((count, 2, 6)).at[:, 0, 5].set(sizes)
    return Scenarios(lanes, y0)


Seas = tuple[Scenarios, Scenarios]  # to tune on, and held out


def tune(system: djdyn.System, some: Seas, steps: int, save: Path) -> TuningResult:
    return controllers.tune(
        system, SPAN, free=FREE, cost=COST, scenarios=some[0], held_out=some[1],
        method="nl2sol", max_steps=steps, saves=SAVES, save=save, **HOW,
    )  # fmt: skip


def limits(study: Study, name: str, found: TuningResult, run: djdyn.Trajectory) -> None:
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
    time = ("time", "s", next(iter(first.values())).t[::4])
    for what, unit, signal in (
        ("tension", "N", "line.head_tension"),
        ("payout rate", "m/s", "winch.rate"),
    ):
        lines = {k: np.asarray(r.signal(signal))[::4] for k, r in first.items()}
        study.report.plot(f"{title}: {what}", time, (what, unit), lines)
