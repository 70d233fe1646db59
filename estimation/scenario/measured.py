"""A machine as its sensors and recorders see it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.simulation.options import resolve_options
from djdyn.system.instant import Instant
from djdyn.system.manifold import dimension, retract
from djdyn.system.state import State
from djdyn.typing import Scalar, si

from .columns import Channel, MeasuredColumn, Sensor


class SensorModel(eqx.Module):
    """Offset, delay and gain of a measured column: gain times quantity plus offset."""

    offset: Scalar = eqx.field(converter=si(""))
    delay: Scalar = eqx.field(converter=si("s"))
    gain: Scalar = eqx.field(converter=si("1"))

    @staticmethod
    def of(sensor: Sensor) -> "SensorModel":
        """Return the first values of a sensor."""
        return SensorModel(sensor.offset, sensor.delay, sensor.gain)


class MeasuredMachine(eqx.Module):
    """A machine, its sensors by channel, and those of its measured inputs."""

    system: djdyn.System
    channel: dict[str, SensorModel]
    input: dict[str, SensorModel]


class RecordStart(eqx.Module):
    """What belongs to one record: when rows were taken, inputs, and where it starts.

    `turn` and `speed` are added to the guess `q`, `v`, an entry a speed: unknowns that
    begin at zero.
    """

    times: Float[Array, " n"] = eqx.field(converter=si("s"))
    inputs: dict[str, tuple[Array, Array]]
    q: Float[Array, " nq"] = eqx.field(converter=si(""))
    v: Float[Array, " nv"] = eqx.field(converter=si(""))
    turn: Float[Array, " nv"] = eqx.field(converter=si("rad, m"))
    speed: Float[Array, " nv"] = eqx.field(converter=si("rad/s, m/s"))


class RecordedInput(eqx.Module):
    """A measured input as a function of time, as the machine got it.

    Straight lines between rows, or the last row's value where it is held.
    """

    times: Float[Array, " n"]
    values: Float[Array, "n k"]
    sensor: SensorModel
    shape: tuple[int, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)

    def __call__(self, t: Scalar) -> Array:
        at = t - self.sensor.delay
        if self.hold:
            row = jnp.searchsorted(self.times, at, "right") - 1
            x = self.values[jnp.clip(row, 0, len(self.times) - 1)]
        else:
            columns = [jnp.interp(at, self.times, x) for x in self.values.T]
            x = jnp.stack(columns)
        return (self.sensor.gain * x + self.sensor.offset).reshape(self.shape)


class Query(eqx.Module):
    """The quantities of all channels at an instant."""

    channels: tuple[Channel, ...] = eqx.field(static=True)

    def __call__(self, now: Instant) -> Float[Array, " c"]:
        return jnp.stack([self.one(now, c) for c in self.channels])

    def one(self, now: Instant, channel: Channel) -> Scalar:
        """Return the quantity of a channel."""
        if channel.frame:
            return now.world.pose(channel.frame).p[channel.entry or 0]
        if channel.signal not in now.signals:
            there = ", ".join(now.signals)
            raise ValueError(
                f"channel {channel.name!r}: unknown signal {channel.signal!r}; there "
                f"are {there}"
            )
        value = jnp.ravel(now.signals[channel.signal])
        if channel.entry is None and value.size != 1:
            raise ValueError(
                f"channel {channel.name!r}: {channel.signal!r} has {value.size} "
                f"entries, name one: {channel.signal}[0]"
            )
        if (channel.entry or 0) >= value.size:
            raise ValueError(
                f"channel {channel.name!r}: {channel.signal!r} has {value.size} entries"
            )
        return value[channel.entry or 0]


class Prediction(eqx.Module):
    """Predicts the rows of a record: simulates on a grid, and reads it at their times.

    Between the instants of the grid a cubic through four of them is read, which has a
    slope for delays.
    """

    query: Query
    inputs: tuple[MeasuredColumn, ...] = eqx.field(static=True)
    fixed: dict[str, Any]
    parts: dict[str, Any] | None
    t0: float = eqx.field(static=True)
    step: float = eqx.field(static=True)
    count: int = eqx.field(static=True)
    options: djdyn.SimulationOptions

    def __call__(
        self,
        model: MeasuredMachine,
        times: np.ndarray,
        start: RecordStart,
        adjoint: str = "forward",
    ) -> Float[Array, "n c"]:
        del times
        series = self.grid(model, start, adjoint)
        columns = []
        for i, channel in enumerate(self.query.channels):
            sensor = model.channel[channel.name]
            at = (start.times - sensor.delay) / self.step
            x = interpolate(series[:, i], at)
            columns.append(sensor.gain * x + sensor.offset)
        return jnp.stack(columns, -1)

    def grid(
        self, model: MeasuredMachine, start: RecordStart, adjoint: str = "forward"
    ) -> Float[Array, "k c"]:
        """Return the quantities of all channels on the grid."""
        return self.simulate(model, start, adjoint).map(self.query)

    def simulate(
        self, model: MeasuredMachine, start: RecordStart, adjoint: str = "forward"
    ) -> djdyn.Trajectory:
        """Return the trajectory that a record is compared with."""
        given = dict(self.fixed)
        for one in self.inputs:
            t, x = start.inputs[one.name]
            shape = jnp.shape(model.system.inputs[one.name])
            sensor = model.input[one.name]
            given[one.name] = RecordedInput(self.t0 + t, x, sensor, shape, one.hold)
        options = resolve_options(self.options, adjoint=adjoint)
        sampled = options.control_period is not None
        saves = self.t0 + self.step * np.arange(self.count)
        return djdyn.simulate(
            model.system, saves[-1], initial_state(model.system, start, self.parts),
            t0=self.t0, saveat=None if sampled else saves, inputs=given,
            options=options,
        )  # fmt: skip


def initial_state(
    system: djdyn.System, start: RecordStart, parts: dict[str, Any] | None
) -> State:
    """Return the state in which a record begins."""
    guess = system.initial_state(start.q, start.v, parts)
    rest = dimension(system) - 2 * len(start.turn)
    turned = retract(
        system, guess, jnp.concatenate([start.turn, start.speed, jnp.zeros(rest)])
    )
    return system.initial_state(turned.q, turned.v, parts)


def interpolate(x: Float[Array, " k"], at: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return values between evenly spaced ones, by the cubic through four of them."""
    left = jnp.clip(jnp.floor(jax.lax.stop_gradient(at)), 1.0, len(x) - 3.0)
    i, s = left.astype(int), at - left
    a, b, c, d = x[i - 1], x[i], x[i + 1], x[i + 2]
    found = (
        -s * (s - 1) * (s - 2) / 6 * a
        + (s + 1) * (s - 1) * (s - 2) / 2 * b
        - (s + 1) * s * (s - 2) / 2 * c
        + (s + 1) * s * (s - 1) / 6 * d
    )
    return jnp.where(jnp.isnan(found), jnp.inf, found)  # a solve that failed
