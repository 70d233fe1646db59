"""The winch's loop as it would be built: samples, a late command and noise."""

import dataclasses
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import Late, Noisy, Scenarios, Tuned, Winch, WinchPID, WinchState
from djdyn._types import Scalar
from djdyn.kinematics import World
from djdyn.part import AbstractPart, Response, Signals

from .study import Study
from .winch_seas import SPAN, error, figures, strain


# At its start the loop crosses over at about 200 rad/s, for the drive's gain of 50/s,
# with 30 degrees in hand. A sample and a command one sample late take 1.5 periods: 17
# degrees at 1 ms, all there is at 2 ms.
PERIOD, SLOW = 1e-3, 5e-3  # s
NOISE, BANDWIDTH = 2.0, 50.0  # N, a thousandth of the set tension; Hz
TONES = 40
Gains = dict[str, Array]


class Drive(AbstractPart):
    """A winch that goes on between samples: hardware, which reads what is held.

    As a controller it would step with the others and know its command at once.
    """

    winch: Winch

    def initial_state(self) -> WinchState:
        return self.winch.initial_state()

    def __call__(
        self, t: Scalar, state: WinchState, world: World, signals: Signals
    ) -> Response:
        return self.winch(t, state, world, signals)

    def energy(self, state: WinchState, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: WinchState, world: World, signals: Signals
    ) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())

    def power_in(
        self, t: Scalar, state: WinchState, world: World, signals: Signals
    ) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())


def hardened(system: djdyn.System, period: float = PERIOD) -> djdyn.System:
    """With noise on what is measured, and the command of the sample before.

    Noise on what is wanted makes the same error.
    """
    pid, winch = (cast(Any, system.parts[k]) for k in ("pid", "winch"))
    assert isinstance(pid, WinchPID) and isinstance(winch, Winch)
    some = np.random.default_rng(0).uniform(0.0, 2 * np.pi, (2, TONES))
    tones, phase = BANDWIDTH * some[0], some[1][:, None]
    parts = {
        **system.parts,
        "pid": dataclasses.replace(pid, wanted="noise.value"),
        "winch": Drive(dataclasses.replace(winch, target="late.value")),
        "noise": Noisy(pid.wanted, None, NOISE, tones, phase),
        "late": Late(winch.target, 1, period / 50),
    }
    return djdyn.System(system.mechanism, parts, system.inputs)


def begun(some: Scenarios) -> Scenarios:
    """The same scenarios for what was hardened; no command is on its way."""
    y = some.initial_state
    assert y is not None
    new = {"noise": {}, "late": {"x": jnp.zeros((len(some), 1))}}
    return Scenarios(some.parameters, djdyn.State(y.q, y.v, {**y.parts, **new}))


def how(period: float = PERIOD) -> dict[str, Any]:
    """A step a sample, and no longer than without samples."""
    return {"solver": "rk4", "dt": min(period, 2.5e-3), "control_period": period}


def simulate(
    system: djdyn.System, gains: Gains, some: Scenarios, period: float = PERIOD
) -> djdyn.Trajectory:
    hard, some = hardened(djdyn.put(system, gains), period), begun(some)
    return djdyn.rollout(
        hard, SPAN, some.initial_state, parameters=some.parameters, **how(period)
    )


def rms(run: djdyn.Trajectory) -> float:
    return float(np.sqrt(np.mean(np.asarray(run.map(error)) ** 2)))


def run(study: Study, found: Tuned, others: Scenarios) -> None:
    """Gains of the continuous loop in this one."""
    study.report.text(
        f"The same with samples every {PERIOD * 1e3:g} ms, a command that is a sample "
        f"late, and noise of {NOISE:g} N up to {BANDWIDTH:g} Hz in the tension. These "
        "gains were tuned without: they hold the tension, but ask the drive for more "
        "than it has. To be built, a winch is to be tuned in this loop."
    )
    both = {"start": found.before, "tuned": found.gains}
    place = found.objective.system
    runs = {k: simulate(place, gains, others) for k, gains in both.items()}
    study.metric(
        "winch.tuned.hardened_rms_ratio",
        rms(runs["tuned"]) / rms(runs["start"]),
        0.0,
        1.0,
        note="held out, to the start's in the same loop: samples, delay and noise",
    )
    study.metric(
        "winch.tuned.survived",
        np.mean(runs["tuned"].ok),
        1.0,
        0.0,
        note="of seas held out, with samples, delay and noise",
    )
    for name, run in runs.items():
        study.metric(
            f"winch.{name}.hardened_strain",
            np.mean(np.asarray(run.map(strain))),
            note="what the drive is asked for there beyond four fifths of its limits, "
            "as the cost counts it; above one it rings between them",
        )
    figures(study, "With samples, delay and noise", runs)
    if not study.quick:
        slow = [rms(simulate(place, g, others, SLOW)) for g in both.values()]
        study.metric(
            "winch.tuned.slow_rms_ratio",
            slow[1] / slow[0],
            note=f"the same with samples every {SLOW * 1e3:g} ms, for which these "
            "gains are too high: the loop rings",
        )
