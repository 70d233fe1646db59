"""The Titan 4's gains and bandwidths tuned by gradient, on many conditions."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

import djdyn

from .study import Study
from .titan4_conditions import MOVES, conditions, held_up, machine
from .titan4_sticks import sticks


SPAN = 3.0  # s
STEPS: dict[str, Any] = {"solver": "rk4", "dt": 5e-3}
FREE = ("control.kp", "control.ki", "path.frequency", "control.kd", "control.k3")
PRICE = 0.02  # rad, for the effort of all of `AREA`
DAMPED, K3 = 0.1, 5.0  # of critical, 1/s: units of what Kd and K3 are changed by


def start(system: djdyn.System) -> tuple[Array, Array]:
    """The source's gains, and units for those that may be zero; see `gains`."""
    B = jnp.diagonal(djdyn.mass_matrix(system.mechanism, jnp.zeros(6)))
    given = jnp.stack([djdyn.get(system, path) * jnp.ones(6) for path in FREE])
    units = jnp.stack([DAMPED * jnp.sqrt(given[0] * B), K3 * jnp.ones(6)])
    return given, units


def gains(theta: Array, given: Array, units: Array) -> dict[str, Array]:
    """Rows of `theta` are logarithms over the start, then steps from it in units."""
    scaled = given[:3] * jnp.exp(theta[:3])
    added = given[3:] + units * theta[3:]
    return dict(zip(FREE, jnp.concatenate([scaled, added]), strict=True))


@eqx.filter_jit
def _cost(
    theta: Array, given: tuple, system: djdyn.System, y0: djdyn.State, lanes: dict
) -> tuple[Array, tuple[Array, Array]]:
    here = djdyn.put(system, gains(theta, *given))
    end = djdyn.rollout(
        here, SPAN, y0, parameters=lanes, saveat=[SPAN],
        inputs={"sticks": sticks(MOVES)}, **STEPS,
    ).y.parts["meter"]  # fmt: skip
    rms = lambda x: jnp.mean(jnp.sqrt(x[:, -1] / SPAN))
    miss, effort = rms(end["miss"]), rms(end["effort"])
    return miss + PRICE * effort, (miss, effort)


_slope = eqx.filter_jit(jax.value_and_grad(_cost, has_aux=True))


class Problem:
    """Mean over conditions of the rms distance from the targets, and of the effort."""

    def __init__(self, system: djdyn.System, lanes: dict[str, Array]):
        self.given = start(system), system, held_up(system, lanes), lanes

    def __call__(self, theta: Array) -> tuple[float, float, float]:
        """The cost, and the two that it is made of."""
        cost, parts = _cost(theta, *self.given)
        return float(cost), float(parts[0]), float(parts[1])

    def slope(self, theta: Array) -> tuple[Array, Array]:
        (value, _), gradient = _slope(theta, *self.given)
        return value, gradient

    def show(self, theta: Array) -> djdyn.Trajectory:
        """The first condition, with the source's gains and with these."""
        given, system, y0, lanes = self.given
        twice = lambda x: jnp.stack([x[0], x[0]])
        both = jnp.stack([jnp.zeros_like(theta), theta])
        free = jax.vmap(gains, (0, None, None))(both, *given)
        lanes = jax.tree.map(twice, lanes) | free
        return djdyn.rollout(
            system, SPAN, jax.tree.map(twice, y0), parameters=lanes,
            saveat=np.linspace(0.0, SPAN, 121), inputs={"sticks": sticks(MOVES)},
            **STEPS,
        )  # fmt: skip


def by_gradient(study: Study, cost: Problem, steps: int) -> tuple[Array, list[float]]:
    """Adam within bounds; the best that it saw, and the cost step by step."""
    theta = best = jnp.zeros((len(FREE), 6))
    given, units = cost.given[0]
    floor = jnp.concatenate([jnp.full((3, 6), -3.0), -given[3:] / units])
    adam = optax.adam(optax.cosine_decay_schedule(0.1, steps, 0.1), b1=0.8, b2=0.95)
    state, seen, least = adam.init(theta), [], np.inf
    task = study.progress.add_task("tuning", total=steps)
    for _ in range(steps):
        value, gradient = cost.slope(theta)
        seen.append(float(value))
        study.progress.advance(task)
        if seen[-1] < least:
            best, least = theta, seen[-1]
        if not np.all(np.isfinite(gradient)):  # beyond what the loop survives
            theta, state = (theta + best) / 2, adam.init(theta)
            continue
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            update, state = adam.update(gradient, state)
        theta = jnp.clip(jnp.asarray(optax.apply_updates(theta, update)), floor, 3.0)
    study.progress.remove_task(task)
    return best, seen


def run(study: Study) -> None:
    """Tunes on some conditions, and judges on others."""
    count, steps = 16, 50
    system = study.customise(machine())
    cost, judge = (Problem(system, conditions(seed, count)) for seed in (0, 1000))
    best, seen = by_gradient(study, cost, steps)
    before, after = judge(jnp.zeros_like(best)), judge(best)
    study.metric(
        "titan4.tuned.cost_ratio",
        after[0] / before[0],
        0.0,
        0.5,
        note=f"to the source's gains, on {count} conditions not tuned on",
    )
    for k, name in ((1, "distance"), (2, "effort")):
        study.metric(f"titan4.tuned.{name}_ratio", after[k] / before[k], note="thereof")
    given = cost.given[0]
    rows = []
    for name, theta in (("source", 0 * best), ("tuned", best)):
        for path, values in gains(theta, *given).items():
            rows.append((name, path, *np.asarray(values)))
    study.report.table(
        f"Gains tuned on {count} conditions in {steps} steps",
        ("gains", "parameter", *(f"joint {i}" for i in range(1, 7))),
        rows,
    )
    study.report.table(
        f"Judged on {count} other conditions",
        ("gains", "cost, rad", "distance from targets, rad", "effort"),
        [("source", *before), ("tuned", *after)],
    )
    study.report.plot(
        "Tuning: cost step by step",
        ("step", "", np.arange(steps, dtype=float)),
        ("cost", "rad"),
        {"conditions tuned on": np.array(seen)},
    )
    shown, time = judge.show(best), ("time", "s", np.linspace(0.0, SPAN, 121))
    q, target = np.asarray(shown.y.q), np.asarray(shown.y.parts["guide"]["target"])
    for i in (1, 3, 4):
        study.report.plot(
            f"Joint {i + 1} before and after, on a condition not tuned on",
            time,
            ("angle", "rad"),
            {"source": q[0, :, i], "tuned": q[1, :, i]},
            {"target": target[0, :, i]},
        )
