"""Gradients through impacts with default settings, as a table.

    python -m tests.fuzz.impacts [--law NAME ...] [--spin 0 10] [--cubes 24]

A thrown ball with friction, for four laws of the normal force: derivatives of where it
is after 1.1 s to the height, stiffness, damping and friction coefficient, in both
modes, beside differences of runs at a tolerance of 1e-11. Then tossed cubes: the
derivative of the distance to the initial speed, at the default tolerance beside 1e-11.
"""

import argparse
import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from djdyn.contact import Coulomb, HuntCrossley, KelvinVoigt, dissipation
from experiments.studies.contact import toss
from tests.simulation.test_impact_gradients import LAWS, MU, ball_slopes


LIMIT = 0.01
WHERE, WHAT = ("x", "z"), ("height", "stiffness", "damping", "friction")
CUBE_LAWS = {
    "kelvin-voigt": KelvinVoigt(3e4, 60.0, 1e-3),
    "hunt-crossley 1": HuntCrossley(3e4, dissipation(0.6, 1.0), 1.0, width=1e-3),
    "hunt-crossley 1.5": HuntCrossley(3e5, dissipation(0.6, 1.0), 1.5, width=1e-3),
    "hertz": HuntCrossley(1e6, 0.05, 1.5, width=1e-3),
}


def thrown(law: str, spin: float) -> float:
    """Print a row for each derivative of a thrown ball; return the largest error."""
    differences, forward, reverse = ball_slopes(law, spin, Coulomb(MU))
    worst = 0.0
    for i, where in enumerate(WHERE):
        for j, what in enumerate(WHAT):
            true = float(differences[i, j])
            row = f"{law:<18} {spin:>4.0f} rad/s  d{where}/d{what:<10} {true:>12.5g}"
            if abs(true) < 1e-4:  # metres for a change by its whole size
                print(row, "   left out")
                continue
            errors = [float(g[i, j]) / true - 1 for g in (forward, reverse)]
            worst = max(worst, *map(abs, errors))
            print(row, *(f"{e:>12.2e}" for e in errors), flush=True)
    return worst


def tossed(law: str, count: int) -> tuple[int, float]:
    """Return how many tossed cubes have right gradients, and the largest error."""
    system, lanes = toss.cube(), toss.starts(count)
    system = eqx.tree_at(lambda s: s.parts["floor"].normal, system, CUBE_LAWS[law])
    within = lambda x: {"rtol": jnp.asarray(x), "atol": jnp.asarray(x)}
    most = {"max_steps": 1 << 17}
    true = np.asarray(toss.slopes(system, lanes, {**most, **within(1e-11)})[1])
    found = np.asarray(toss.slopes(system, lanes, {**most, **within(1e-8)})[1])
    errors = np.abs(found / true - 1)
    return int(np.sum(errors < LIMIT)), float(errors.max())


def main(argv: list[str] | None = None) -> int:
    """Print the tables; return 1 if an error is above a hundredth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--law", choices=tuple(LAWS), nargs="*", default=tuple(LAWS))
    parser.add_argument("--spin", type=float, nargs="*", default=(0.0, 10.0))
    parser.add_argument("--cubes", type=int, default=24)
    args = parser.parse_args(argv)
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    worst = 0.0
    print(
        "derivatives by what changes by its whole size: true, errors forward, reverse"
    )
    for law in args.law:
        for spin in args.spin:
            worst = max(worst, thrown(law, spin))
    for law in args.law if args.cubes else ():
        right, largest = tossed(law, args.cubes)
        worst = max(worst, largest)
        print(f"cubes, {law:<18} {right} of {args.cubes}, {largest:.2e}", flush=True)
    print(f"largest error {worst:.2e}")
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
