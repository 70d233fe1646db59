"""Conditions that a controller is to cope with, drawn from stated distributions."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jaxtyping import Array

from djdyn import State, System, get_parameters, with_parameters


class Scenarios(eqx.Module):
    """Numbers of the system by path and initial states, each with a leading axis.

    An initial state without that axis serves all; without a state the system's own.
    """

    parameters: dict[str, Array] = eqx.field(default_factory=dict)
    initial_state: State | None = None

    def __check_init__(self):
        sizes = {path: len(x) for path, x in self.parameters.items()}
        if self.initial_state is not None and self.initial_state.v.ndim > 1:
            sizes["the initial state"] = len(self.initial_state.v)
        if len({*sizes.values()}) > 1:
            raise ValueError(f"scenarios need one number of them, got {sizes}")
        if 0 in sizes.values():
            raise ValueError("the set of scenarios is empty")

    def __len__(self) -> int:
        arrays = [*self.parameters.values()]
        if self.initial_state is not None and self.initial_state.v.ndim > 1:
            arrays.append(self.initial_state.v)
        return len(arrays[0]) if arrays else 1

    def repeated(self, count: int) -> "Scenarios":
        """All of them, so many times."""
        again = lambda x: jnp.concatenate([x] * count)
        y = self.initial_state
        each = y is not None and y.v.ndim > 1
        return Scenarios(
            {path: again(x) for path, x in self.parameters.items()},
            jax.tree.map(again, y) if each else y,
        )

    def put(self, system: System, k: int) -> System:
        """The system in one of the scenarios."""
        return with_parameters(
            system, {path: x[k] for path, x in self.parameters.items()}
        )


def sample(
    system: System,
    count: int,
    parameters: Mapping[str, Any] | None = None,
    *,
    q: Mapping[str, Any] | None = None,
    v: Mapping[str, Any] | None = None,
    start: Callable[[System], State] | None = None,
    seed: int = 0,
) -> Scenarios:
    """Draws scenarios, evenly spread in every one of their dimensions.

    By a Latin hypercube. Distributions are those of `scipy.stats`, such as
    `uniform(800, 400)`; every entry of an array is drawn for itself.

    **Arguments:**

    - `parameters`: distributions by path.
    - `q`, `v`: distributions of coordinates and speeds at the start, by joint.
    - `start`: in place of `q` and `v`, the initial state of a system, such as its rest;
      it is called for every scenario.
    """
    if start and (q or v):
        raise ValueError(
            "initial states come from start or from q and v, not from both"
        )
    if count < 1:
        raise ValueError(f"the set of scenarios is empty: {count} were asked for")
    m, parameters = system.mechanism, dict(parameters or {})
    shapes = [np.shape(get_parameters(system, path)) for path in parameters]
    shapes += [np.shape(m.q0()[m.q_slice(joint)]) for joint in q or {}]
    shapes += [np.zeros(m.nv)[m.v_slice(joint)].shape for joint in v or {}]
    laws = [*parameters.values(), *(q or {}).values(), *(v or {}).values()]
    sizes = [int(np.prod(shape)) for shape in shapes]
    unit = np.zeros((count, 0))
    if sizes:
        unit = scipy.stats.qmc.LatinHypercube(sum(sizes), rng=seed).random(count)
    drawn, at = [], 0
    for law, shape, size in zip(laws, shapes, sizes, strict=True):
        value = law.ppf(unit[:, at : at + size]).reshape(count, *shape)
        drawn.append(jnp.asarray(value, float))
        at += size
    lanes = dict(zip(parameters, drawn, strict=False))
    operating_point = drawn[len(lanes) :]
    given_q = dict(zip(q or {}, operating_point, strict=False))
    given_v = dict(zip(v or {}, operating_point[len(given_q) :], strict=True))

    def one(lanes: dict, given_q: dict, given_v: dict, _: Array) -> State:
        here = with_parameters(system, lanes)
        return start(here) if start else here.initial_state(given_q, given_v)

    states = jax.jit(jax.vmap(one))(lanes, given_q, given_v, jnp.arange(count))
    return Scenarios(lanes, states)
