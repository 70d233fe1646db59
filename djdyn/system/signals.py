"""Evaluation of parts in the order in which they read each other."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..multibody.kinematics import World
from ..parts.base import AbstractPart, Response
from ..typing import Scalar
from .state import State


class SignalError(ValueError):
    """A signal that nobody sends, or that waits for itself."""


class SignalBoard:
    """Signals, found on demand: a part is evaluated when its output is first read.

    So evaluation follows the connections, whatever the order of the parts. A part's
    state can be read without evaluating it, which is how a loop is broken by a lag.
    """

    def __init__(
        self,
        parts: Mapping[str, AbstractPart],
        world: World,
        y: State,
        inputs: Mapping[str, Any],
        sampled: Mapping[str, dict[str, Array]],
    ):
        self.parts, self.world, self.y = parts, world, y
        self.inputs, self.sampled = inputs, sampled
        self.responses: dict[str, Response] = {}
        self.waiting: list[str] = []

    def respond(self, name: str) -> Response:
        """Evaluate a part once, after the parts whose outputs it reads."""
        if name in self.sampled:
            still = jax.tree.map(jnp.zeros_like, self.y.parts[name])
            return Response(still, outputs=self.sampled[name])
        if name in self.waiting:
            loop = " -> ".join([*self.waiting[self.waiting.index(name) :], name])
            raise SignalError(f"signals form a cycle: {loop}")
        if name not in self.responses:
            part, state = self.parts[name], self.y.parts[name]
            self.waiting.append(name)
            try:
                response = part(self.world.t, state, self.world, self)
            except SignalError:
                raise
            except ValueError as error:
                raise ValueError(f"part {name!r}: {error}") from error
            self.waiting.pop()
            self.responses[name] = response
        return self.responses[name]

    def __getitem__(self, signal: str) -> Array:
        owner, _, what = signal.rpartition(".")  # names of joints may have dots
        if owner not in self.world.mechanism.joint_names:
            owner, _, what = signal.partition(".")
        if signal in self.inputs:
            return self.inputs[signal]
        if owner in self.world.mechanism.joint_names and what in ("q", "v"):
            value = self.world.joint(owner)["qv".index(what)]
            return value[0] if value.shape == (1,) else value
        if owner in self.parts:
            state = self.y.parts[owner]
            fields = state if isinstance(state, dict) else vars(state)
            if what in fields:
                return fields[what]
            outputs = self.respond(owner).outputs
            if what in outputs:
                return outputs[what]
            offers = [f"{owner}.{k}" for k in (*fields, *outputs)]
        else:
            offers = [*self.inputs, *(f"{p}.…" for p in self.parts)]
            offers += [f"{j}.q" for j in self.world.mechanism.joint_names]
        reader = f"part {self.waiting[-1]!r} reads" if self.waiting else "there is no"
        known = f"; there are {', '.join(offers)}" if offers else ""
        raise SignalError(f"{reader} unknown signal {signal!r}{known}")

    def everything(self) -> dict[str, Array]:
        """Return all signals; evaluates all parts."""
        found = dict(self.inputs)
        for joint in self.world.mechanism.joint_names:
            if self.world.joint(joint)[1].size:
                found[f"{joint}.q"], found[f"{joint}.v"] = (
                    self[f"{joint}.q"],
                    self[f"{joint}.v"],
                )
        for name, state in self.y.parts.items():
            fields = state if isinstance(state, dict) else vars(state)
            for key, value in {**self.respond(name).outputs, **fields}.items():
                found[f"{name}.{key}"] = value
        return found


def input_values(inputs: Mapping[str, Any], t: Scalar) -> dict[str, Any]:
    """Inputs at a time: functions are called, the rest are constants."""
    return {k: x(t) if callable(x) else jnp.asarray(x) for k, x in inputs.items()}
