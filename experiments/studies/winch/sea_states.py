"""Sea states and cost that the winch is tuned for."""

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
    SearchOptions,
    TuningResult,
)
from djdyn import FreeParameter, Positive
from djdyn.marine.waves import jonswap
from djdyn.multibody.time_functions import HarmonicSum, Moves
from djdyn.parts import ExternalWrench
from djdyn.system.instant import Instant

from ...harness.study import Study
from ...harness.tuning_report import sampled_loop
from .loop import GAIN
from .model import EA, LENGTH, WAVE_COMPONENTS, build, heave, moved


SPAN, SAVES = 10.0, 2001  # s; saves at 200 Hz resolve noise up to 50 Hz
PERIOD = 2.5e-3  # s
SIMULATION = sampled_loop(PERIOD)
NOISE = 2.0  # N, a thousandth of the load
SLAM, MAX_SLAM = ([5.0, 5.1], [5.1, 5.2]), 250.0  # s, N: ramp up and down
# Start: a PI controller by Skogestad's rule (SIMC, J. Process Control, 2003), for the
# line as an integrator of EA/LENGTH and the sum of all lags; and a strong drive.
LAG = 1 / GAIN + 1.5 * PERIOD  # s
KP = LENGTH / EA / (2 * LAG)
START = {
    "pid.kp": KP,
    "pid.ki": KP / (8 * LAG),
    "pid.kd": 1e-5,  # nearly zero
    "pid.limit": 3.0,
    "winch.acceleration": 3.0,
    "winch.deceleration": 3.0,
}
# m/s, m/s2: rounded limits keep the cost smooth.
LIMIT_WIDTHS = {"pid.width": 0.02, "winch.width": 0.05}
FREE = [FreeParameter(path, Positive()) for path in START]
DECK = "deck.joint.motion.height"


def rig() -> djdyn.System:
    """Return the winch on a deck, with noise and wave slams on the payload."""
    system, zero = build(elements=2, noise=NOISE), np.zeros(6)
    slam = ExternalWrench("load", Moves(zero, np.zeros((2, 6)), *SLAM))
    parts = {**system.parts, "push": slam}
    return djdyn.with_parameters(
        djdyn.System(system.mechanism, parts), {**START, **LIMIT_WIDTHS}
    )


def error(now: Instant) -> Array:
    """Return the error of the tension, N."""
    return now.signals["line.head_tension"] - now.signals["order.value"]


def strain(now: Instant) -> Array:
    """Return the excess of the drive's demand over 0.7 of its limits.

    The reserve is for worse seas: at its limits the loop oscillates.
    """
    asked = jnp.stack([now.signals[k] for k in ("pid.asked", "winch.asked")])
    return jnp.maximum(asked - 0.7, 0.0)


COST = {  # scales are the largest acceptable values
    "tension": MeanSquare(error, 20.0),  # N, a hundredth of the load
    "tension rate": MeanSquareRate(error, 100.0),  # N/s; penalises oscillation
    "rate": MeanSquare(ParameterValue("pid.limit"), 3.0),  # m/s
    "acceleration": MeanSquare(ParameterValue("winch.acceleration"), 3.0),  # m/s2
    "deceleration": MeanSquare(ParameterValue("winch.deceleration"), 3.0),
    "strain": MeanSquare(strain, 0.01),
}


def seas(first: int, count: int) -> HarmonicSum:
    """Return irregular seas of 0.5 to 1.5 m and 7 to 12 s, with seeds from `first`."""
    seeds = jnp.arange(first, first + count)
    turn = lambda k: ((seeds * k) % 16).astype(float) / 15  # from 0 to 1, mixed
    height, period = 0.5 + turn(7), 7.0 + 5 * turn(5)
    one = lambda height, period, seed: jonswap(
        height, period, seed=seed, components=WAVE_COMPONENTS
    )
    return jax.vmap(one)(height, period, seeds)


def conditions(
    system: djdyn.System,
    ready: djdyn.State,
    first: int,
    count: int,
    hardest: bool = False,
) -> Scenarios:
    """Return decks on seas, with line and payload moving along at the start.

    Each has its own slam, of the largest force if `hardest`, and its own noise.
    """
    batch = seas(first, count)
    y0 = jax.vmap(lambda sea: moved(ready, *heave(sea)))(batch)
    parts = ("amplitude", "frequency", "phase")
    lanes = {f"{DECK}.{k}": getattr(batch, k) for k in parts}
    turns, push = jax.random.split(jax.random.key(first))
    phases = (count, *djdyn.get_parameters(system, "noise.phase").shape)
    lanes["noise.phase"] = 2 * np.pi * jax.random.uniform(turns, phases)
    share = jax.random.uniform(push, (count,), minval=-1.0)
    sizes = MAX_SLAM * (jnp.sign(share) if hardest else share)
    lanes["push.wrench.points"] = jnp.zeros((count, 2, 6)).at[:, 0, 5].set(sizes)
    return Scenarios(lanes, y0)


Seas = tuple[Scenarios, Scenarios]  # training and held-out seas


def tune(system: djdyn.System, some: Seas, steps: int, save: Path) -> TuningResult:
    """Tune gains and drive limits on the training seas."""
    return controllers.tune(
        system, SPAN, free=FREE, cost=COST, scenarios=some[0], hold_out=some[1],
        search=SearchOptions(method="nl2sol", max_steps=steps), saves=SAVES, save=save,
        **SIMULATION,
    )  # fmt: skip


def limits(study: Study, name: str, found: TuningResult, run: djdyn.Trajectory) -> None:
    """Report the largest shares of its limits that the drive uses."""
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
            at_most=1.0 + 1e-6,
            note="largest value over the limit of the drive, on held-out seas",
        )


def figures(study: Study, title: str, runs: dict[str, djdyn.Trajectory]) -> None:
    """Plot tension and payout rate on the first sea."""
    first = {k: r.lane(0) for k, r in runs.items()}
    time = ("time", "s", next(iter(first.values())).t[::4])
    for what, unit, signal in (
        ("tension", "N", "line.head_tension"),
        ("payout rate", "m/s", "winch.rate"),
    ):
        lines = {k: np.asarray(r.signal(signal))[::4] for k, r in first.items()}
        study.report.plot(f"{title}: {what}", time, (what, unit), lines)
