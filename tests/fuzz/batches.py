"""Batches of which some lanes are bad: the others keep every bit, and gradients too.

    python -m tests.fuzz.batches --lanes 10000

One lane in a hundred starts from NaN or infinity, diverges, or runs out of steps. The
other lanes are compared bit by bit with those of a batch where sound lanes stand in
place of the bad ones, and so are the gradients of each; time and memory are compared
too. A gradient through adaptive steps may differ by rounding.
"""

import argparse
import resource
import sys
import time
import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.parts import JointFriction, JointSpring


SHARE = 100  # one lane in so many is bad
WAYS: dict[str, dict[str, Any]] = {
    "kernel, rk4": {"solver": "rk4", "dt": 0.02, "backend": "kernel"},
    "XLA, rk4": {"solver": "rk4", "dt": 0.02, "backend": "xla"},
    "tsit5, adaptive": {"rtol": 1e-6, "atol": 1e-6, "max_steps": 512},
    "rodas4, adaptive": {"solver": "rodas4", "rtol": 1e-4, "atol": 1e-4}
    | {"max_steps": 512},
    "kvaerno5, adaptive": {"solver": "kvaerno5", "rtol": 1e-6, "atol": 1e-6}
    | {"max_steps": 2048},
}


class Batch(NamedTuple):
    """What tells lanes apart."""

    q: np.ndarray
    v: np.ndarray
    stiffness: np.ndarray


def machine() -> djdyn.System:
    """Return a double pendulum with a spring and friction."""
    inertia = 0.1 * np.eye(3)
    hinge = djdyn.Revolute((0, 1, 0))
    tip = djdyn.translation((0, 0, -1.0))
    bodies = (
        djdyn.Body("upper", "world", hinge, 1.0, (0, 0, -0.5), inertia),
        djdyn.Body("lower", "upper", hinge, 1.0, (0, 0, -0.5), inertia, tip),
    )
    parts = {
        "spring": JointSpring("lower", 20.0),
        "bearing": JointFriction("upper", viscous=0.2, coulomb=0.3, width=0.05),
    }
    return djdyn.System(djdyn.Mechanism(bodies), parts)


def batches(lanes: int, seed: int) -> tuple[Batch, Batch, np.ndarray]:
    """Return a sound batch, the same with bad lanes, and which lanes are bad."""
    rng = np.random.default_rng(seed)
    q, v = rng.uniform(-2, 2, (lanes, 2)), rng.normal(size=(lanes, 2))
    sound = Batch(q, v, rng.uniform(10.0, 30.0, lanes))
    bad = np.zeros(lanes, bool)
    bad[rng.choice(lanes, max(4, lanes // SHARE), replace=False)] = True
    worse = Batch(*(x.copy() for x in sound))
    for i, lane in enumerate(np.flatnonzero(bad)):
        match i % 4:
            case 0:
                worse.q[lane, 0] = np.nan
            case 1:
                worse.v[lane, 1] = np.inf
            case 2:
                worse.stiffness[lane] = (
                    1e9  # unstable with long steps, endless with short
                )
            case 3:
                worse.v[lane] = 1e200
    return sound, worse, bad


@eqx.filter_jit
def run(system: djdyn.System, batch: Batch, how: dict[str, Any]) -> Any:
    """Return end states, success, and the gradient of the sum of squares by lane."""

    def loss(batch: Batch) -> tuple:
        y = system.initial_state()
        y = djdyn.State(batch.q, batch.v, y.parts)
        lanes = {"spring.stiffness": batch.stiffness}
        runs = djdyn.rollout(system, 1.0, y, parameters=lanes, saveat=[1.0], **how)
        squares = jnp.sum(runs.y.q[:, -1] ** 2, axis=1)
        return jnp.sum(jnp.where(runs.ok, squares, 0.0)), (runs.y, runs.ok)

    (_, found), slope = jax.value_and_grad(loss, has_aux=True)(batch)
    return *found, slope


def differing(a: Any, b: Any, keep: np.ndarray) -> int:
    """Return how many of the lanes to keep differ in any bit."""
    unequal = np.zeros(len(keep), bool)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        off = (x != y) & ~(np.isnan(x) & np.isnan(y))
        unequal |= np.any(off.reshape(len(keep), -1), axis=1)
    return int(np.sum(unequal & keep))


def largest_difference(a: Any, b: Any, keep: np.ndarray) -> float:
    """Return how far apart the lanes to keep are, relative to the largest of each."""
    flat = lambda x: np.concatenate(
        [np.asarray(x).reshape(len(keep), -1)[keep] for x in jax.tree.leaves(x)], axis=1
    )
    a, b = flat(a), flat(b)
    return float(np.max(np.abs(a - b).max(1) / np.abs(a).max(1)))


def attack(way: str, lanes: int, seed: int) -> dict[str, float]:
    """Compare a sound batch and one with bad lanes."""
    how = WAYS[way]
    sound, worse, bad = batches(lanes, seed)
    as_arrays = lambda batch: Batch(*map(jnp.asarray, batch))
    system, took, found = machine(), [], []
    for batch in (sound, sound, worse):  # the first compiles
        start = time.perf_counter()
        found.append(jax.block_until_ready(run(system, as_arrays(batch), how)))
        took.append(time.perf_counter() - start)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if batch is sound:
            before = memory
    (y, _, slope), (y_bad, ok, slope_bad) = found[1:]
    slopes = jax.tree.leaves(slope_bad)
    return {
        "lanes that differ": differing(y, y_bad, ~bad),
        "bad lanes called good": int(np.sum(np.asarray(ok) & bad)),
        "good lanes called bad": int(np.sum(~np.asarray(ok) & ~bad)),
        "gradients not finite": int(sum(np.sum(~np.isfinite(x)) for x in slopes)),
        "gradient difference": largest_difference(slope, slope_bad, ~bad),
        "value difference": largest_difference(y, y_bad, ~bad),
        "time ratio": took[2] / took[1],
        "memory ratio": memory / before,
    }


COUNTS = 4  # the first entries are counts that must be zero


def main(argv: list[str] | None = None) -> int:
    """Run the batches that the arguments ask for; return 1 if a lane is touched."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", choices=tuple(WAYS), action="append")
    args = parser.parse_args(argv)
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    wrong = 0.0
    for way in args.way or WAYS:
        found = attack(way, args.lanes, args.seed)
        print(
            f"{way:<18}",
            ", ".join(f"{k} {x:.4g}" for k, x in found.items()),
            flush=True,
        )
        wrong += sum([*found.values()][:COUNTS])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
