"""Checks that columns are what they are said to be: units, signs, exchanged columns.

The first guess of a model is enough for that: columns in another unit, or exchanged,
are predicted far worse than they are once they are put right.
"""

import dataclasses
from collections.abc import Iterator
from itertools import combinations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn.io.scenario import Scenario
from djdyn.system.units import signal_unit

from ..identification.trial import Trial
from .columns import Channel
from .measured import MeasuredMachine, Prediction
from .records import Record
from .specification import Specification
from .trials import make_trials


FACTORS = {  # of a column that is in another unit than it is said to be
    "rad": {"deg": np.pi / 180}, "rad/s": {"deg/s": np.pi / 180, "rpm": np.pi / 30},
    "m": {"mm": 1e-3, "cm": 1e-2}, "m/s": {"mm/s": 1e-3},
    "Pa": {"bar": 1e5, "MPa": 1e6}, "bar": {"Pa": 1e-5, "MPa": 10.0},
    "N": {"kN": 1e3}, "N m": {"kN m": 1e3},
}  # fmt: skip
SOUND = 0.1  # share of the variance that the first guess misses if all is well
MOSTLY_MISSED = 0.5  # share above which another reading of a column explains nothing
CLEARLY_WORSE = 5.0  # how much worse a column is as it was declared


@eqx.filter_jit
def _misfits(machine: MeasuredMachine, trial: Trial) -> Float[Array, " c"]:
    """Return the mean square error of every channel, over its variance."""
    x = trial.predict(machine, np.zeros(0), trial.start, "forward")
    there = trial.present
    count = jnp.maximum(jnp.sum(there.astype(float), 0), 1.0)
    mean = jnp.sum(jnp.where(there, trial.values, 0.0), 0) / count
    spread = jnp.sum(jnp.where(there, (trial.values - mean[None]) ** 2, 0.0), 0)
    off = jnp.sum(jnp.where(there, (x - trial.values) ** 2, 0.0), 0)
    return jnp.where(jnp.isfinite(off), off, jnp.inf) / jnp.where(
        spread > 0, spread, 1.0
    )


def doubts(
    scenario: Scenario,
    spec: Specification,
    record: Record,
    machine: MeasuredMachine,
    predict: Prediction,
) -> list[str]:
    """Return what a record's columns seem to be instead, a sentence each."""
    as_said = _judge(scenario, spec, record, machine, predict)
    if as_said < SOUND:
        return []
    said = []
    for sentence, other in _alternatives(scenario, spec, record):
        found = _judge(scenario, spec, other, machine, predict)
        if found < MOSTLY_MISSED and found * CLEARLY_WORSE < as_said:
            said.append(sentence)
    return said


def _judge(
    scenario: Scenario,
    spec: Specification,
    record: Record,
    machine: MeasuredMachine,
    predict: Prediction,
) -> float:
    """Return the mean misfit of all channels of a record."""
    try:
        trial = make_trials(scenario, spec, [record], predict)[0]
    except ValueError:  # such as a channel that never changes
        return np.inf
    return float(jnp.mean(_misfits(machine, trial)))


def _alternatives(
    scenario: Scenario, spec: Specification, record: Record
) -> Iterator[tuple[str, Record]]:
    """Return the record with columns in other units, turned round, or exchanged."""
    units = [_unit(scenario, c) for c in spec.channels]
    file = record.file.path.name
    for i, (channel, unit) in enumerate(zip(spec.channels, units, strict=True)):
        for other, factor in FACTORS.get(unit, {}).items():
            for there, size in (("", factor), ("not ", 1 / factor)):
                values = record.values.copy()
                values[:, i] *= size
                what = f"column {channel.column!r} seems to be {there}in {other}"
                yield f"{file}: {what}", dataclasses.replace(record, values=values)
        values = record.values.copy()
        values[:, i] *= -1
        yield (
            f"{file}: column {channel.column!r} seems to have the other sign",
            dataclasses.replace(record, values=values),
        )
    for i, j in combinations(range(len(units)), 2):
        if units[i] == units[j]:
            values = record.values.copy()
            values[:, [i, j]] = values[:, [j, i]]
            pair = f"{spec.channels[i].column!r} and {spec.channels[j].column!r}"
            yield (
                f"{file}: columns {pair} seem to be exchanged",
                dataclasses.replace(record, values=values),
            )


def _unit(scenario: Scenario, channel: Channel) -> str:
    return "m" if channel.frame else signal_unit(scenario.system, channel.signal)
