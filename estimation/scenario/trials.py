"""Trials from records: how each is predicted, and what is unknown in it."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.io.scenario import Scenario
from djdyn.system.parameters import FreeParameter

from ..identification.trial import Trial
from .columns import Sensor
from .measured import MeasuredMachine, Prediction, Query, RecordStart, SensorModel
from .records import Record
from .specification import Specification


MAX_GRID = 200_000  # instants of a simulation
START_ROWS = 12  # from which place and speed of a measured joint are guessed
LEAST_STEPS, STEPS_PER_INSTANT = 16_384, 64  # of a simulation, at the most


def make_prediction(
    scenario: Scenario, spec: Specification, records: Sequence[Record]
) -> Prediction:
    """Return what predicts all records, on a grid as fine as their rows."""
    how = {k: x for k, x in scenario.simulation.items() if k not in ("t1", "saveat")}
    t0, dt, sampled = how.pop("t0", 0.0), how.get("dt"), how.get("control_period")
    period = min(float(np.median(np.diff(r.t))) for r in records)
    if sampled is not None:
        period = sampled
    elif dt is not None:
        period = dt * max(1, round(period / dt))
    span = max(float(r.t[-1]) for r in records)
    count = max(int(np.ceil(span / period - 1e-6)) + 1, 5)
    if count > MAX_GRID:
        raise ValueError(
            f"a record of {span:.4g} s with rows every {1e3 * period:.3g} ms needs "
            f"{count} instants, and {MAX_GRID} are possible: give a rate or a segment"
        )
    if sampled is None:
        how.setdefault("max_steps", max(LEAST_STEPS, STEPS_PER_INSTANT * count))
    driven = {one.name for one in spec.inputs}
    return Prediction(
        Query(spec.channels),
        spec.inputs,
        {k: f for k, f in scenario.inputs.items() if k not in driven},
        scenario.start_states,
        float(t0),
        float(period),
        count,
        djdyn.SimulationOptions(**how),
    )


def measured_machine(scenario: Scenario, spec: Specification) -> MeasuredMachine:
    """Return the machine with its sensors, as they are before the fit."""
    return MeasuredMachine(
        scenario.system,
        {c.name: SensorModel.of(c.sensor) for c in spec.channels},
        {c.name: SensorModel.of(c.sensor) for c in spec.inputs},
    )


def make_trials(
    scenario: Scenario,
    spec: Specification,
    records: Sequence[Record],
    predict: Prediction,
) -> list[Trial]:
    """Return the trials of records, with equal numbers of rows: one batch."""
    rows = max(len(r.t) for r in records)
    inputs = max((len(t) for r in records for t, _ in r.inputs.values()), default=0)
    return [_trial(scenario, spec, r, predict, rows, inputs) for r in records]


def _trial(
    scenario: Scenario,
    spec: Specification,
    record: Record,
    predict: Prediction,
    rows: int,
    input_rows: int,
) -> Trial:
    """Return the trial of a record; rows behind its end are not measured."""
    m, nothing = scenario.system.mechanism, np.zeros(scenario.system.mechanism.nv)
    q, v = start_guess(scenario, spec, record)
    inputs = {k: _padded(t, x, input_rows) for k, (t, x) in record.inputs.items()}
    t, values = _padded(record.t, record.values, rows)
    there = np.isfinite(values) & (np.arange(rows) < len(record.t))[:, None]
    for i, channel in enumerate(spec.channels):
        if "delay" in channel.sensor.free:  # of what was before, nothing is known
            there[:, i] &= t >= spec.max_delay
        if not there[:, i].any():
            raise ValueError(f"{record.file.name}: {channel.name!r} was never measured")
    entries = [i for joint in spec.start for i in range(m.nv)[m.v_slice(joint)]]
    unknown = [f"start.{what}[{i}]" for i in entries for what in ("turn", "speed")]
    for kind, some in (("channel", spec.channels), ("input", spec.inputs)):
        unknown += [f"{kind}.{one.name}.{k}" for one in some for k in one.sensor.each]
    trial = Trial(
        np.arange(rows),
        _bridged(values),
        predict,
        sigma=record.sigma,
        start=RecordStart(
            jnp.asarray(t),
            {k: (jnp.asarray(t), jnp.asarray(x)) for k, (t, x) in inputs.items()},
            q, v, nothing, nothing,
        ),
        free=[FreeParameter(path) for path in unknown],
        labels=[c.name for c in spec.channels],
        name=record.file.name,
    )  # fmt: skip
    return eqx.tree_at(lambda t: t.present, trial, jnp.asarray(there))


def _padded(t: np.ndarray, x: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that go on with the last value until there are so many."""
    more = rows - len(t)
    times = np.concatenate([t, t[-1] + np.arange(1, more + 1) * (t[-1] - t[-2])])
    return times, np.concatenate([x, np.repeat(x[-1:], more, 0)])


def _bridged(values: np.ndarray) -> np.ndarray:
    """Return values without gaps; what fills them does not count."""
    rows, columns = np.arange(len(values)), []
    for x in values.T:
        known = np.isfinite(x)
        columns.append(np.interp(rows, rows[known], x[known]) if known.any() else x)
    return np.stack(columns, -1)


def start_guess(
    scenario: Scenario, spec: Specification, record: Record
) -> tuple[Array, Array]:
    """Return a guess of place and speed at the first row.

    What the record's entry gives comes first, then the first rows of joints that are
    measured themselves, then what the scenario starts with.
    """
    m, y0 = scenario.system.mechanism, scenario.initial_state
    q, v = np.array(y0.q), np.array(y0.v)
    for i, channel in enumerate(spec.channels):
        joint, _, what = channel.signal.rpartition(".")
        if joint not in spec.start or what not in ("q", "v"):
            continue
        where, speeds = m.q_slice(joint), m.v_slice(joint)
        if len(q[where]) != len(v[speeds]):  # a quaternion is not its speeds' integral
            continue
        entry = channel.entry or 0
        x = _sensed(record.values[:, i], channel.sensor)
        late = record.t >= channel.sensor.delay  # the first row's quantity comes then
        place, speed = _first(record.t[late] - channel.sensor.delay, x[late])
        if what == "q":
            q[where.start + entry], v[speeds.start + entry] = place, speed
        else:
            v[speeds.start + entry] = place
    for name, given, x, at in (
        ("q", record.file.q, q, m.q_slice),
        ("v", record.file.v, v, m.v_slice),
    ):
        for joint, value in given.items():
            if joint not in m.joint_names or np.size(value) != x[at(joint)].size:
                raise ValueError(
                    f"{record.file.name}: {name} of {joint!r} does not fit a joint of "
                    "the machine"
                )
            x[at(joint)] = value
    return jnp.asarray(q), jnp.asarray(v)


def _sensed(x: np.ndarray, sensor: Sensor) -> np.ndarray:
    """Return the quantity behind a column, with the sensor's first values."""
    return (x - sensor.offset) / sensor.gain


def _first(t: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """Return value and slope at the first row, by a parabola through the next ones."""
    known = np.flatnonzero(np.isfinite(x))[:START_ROWS]
    if len(known) < 4:
        return (float(x[known[0]]) if len(known) else 0.0), 0.0
    slope, value = np.polyfit(t[known], x[known], 2)[1:]
    return float(value), float(slope)
