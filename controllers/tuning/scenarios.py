"""Scenarios: conditions to tune and validate on, drawn from distributions."""

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
    """Parameters of a system by path, and initial states, with an axis of scenarios.

    An initial state without that axis is used in all scenarios. Without one, the
    initial state of the system is.
    """

    parameters: dict[str, Array] = eqx.field(default_factory=dict)
    initial_state: State | None = None

    def __check_init__(self):
        sizes = {path: len(x) for path, x in self.parameters.items()}
        if self.initial_state is not None and self.initial_state.v.ndim > 1:
            sizes["the initial state"] = len(self.initial_state.v)
        if len({*sizes.values()}) > 1:
            raise ValueError(f"all must have the same number of scenarios, got {sizes}")
        if 0 in sizes.values():
            raise ValueError("the set of scenarios is empty")

    def __len__(self) -> int:
        arrays = [*self.parameters.values()]
        if self.initial_state is not None and self.initial_state.v.ndim > 1:
            arrays.append(self.initial_state.v)
        return len(arrays[0]) if arrays else 1

    def repeated(self, count: int) -> "Scenarios":
        """Return all scenarios, repeated `count` times."""
        again = lambda x: jnp.concatenate([x] * count)
        y = self.initial_state
        each = y is not None and y.v.ndim > 1
        return Scenarios(
            {path: again(x) for path, x in self.parameters.items()},
            jax.tree.map(again, y) if each else y,
        )

    def with_initial_states(self, system: System) -> "Scenarios":
        """Return the same scenarios, each with an initial state of its own."""
        y = system.initial_state() if self.initial_state is None else self.initial_state
        if self.parameters or y.v.ndim > 1:
            return self
        return Scenarios({}, jax.tree.map(lambda x: jnp.asarray(x)[None], y))

    def put(self, system: System, k: int) -> System:
        """Return the system with the parameters of scenario `k`."""
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
    """Draw `count` scenarios from a Latin hypercube.

    Distributions are those of `scipy.stats`, such as `uniform(800, 400)`. The entries
    of an array are drawn independently.

    **Arguments:**

    - `parameters`: distributions by path.
    - `q`, `v`: distributions of initial coordinates and speeds, by joint.
    - `start`: in place of `q` and `v`, a function from the system of a scenario to its
      initial state, such as its equilibrium.

    **Returns:** parameters and initial states of all scenarios.
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
    initial = drawn[len(lanes) :]
    given_q = dict(zip(q or {}, initial, strict=False))
    given_v = dict(zip(v or {}, initial[len(given_q) :], strict=True))

    def one(lanes: dict, given_q: dict, given_v: dict, _: Array) -> State:
        here = with_parameters(system, lanes)
        return start(here) if start else here.initial_state(given_q, given_v)

    states = jax.jit(jax.vmap(one))(lanes, given_q, given_v, jnp.arange(count))
    return Scenarios(lanes, states)
