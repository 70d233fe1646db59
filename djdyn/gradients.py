"""Is this gradient right, and if not, what is to blame?"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._types import Number, Scalar
from .parameters import Free, pack, unpack
from .simulate import simulate
from .system import System
from .trajectory import Trajectory


class Simulate(Protocol):
    def __call__(self, system: System, t1: Number, /, *args, **how) -> Trajectory: ...


Loss = Callable[[System, Simulate], Scalar]
TIGHT = {"solver": "dopri8", "dt": None, "rtol": 1e-11, "atol": 1e-11}


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """Four answers to one question, and a verdict.

    `blame` is empty where they agree, else `"adjoint"` (reverse and forward mode
    differ), `"kink"` (the loss has no derivative here, or jumps nearby),
    `"integrator"` (the gradient of the discretised motion is not that of the motion),
    or `"not finite"`.
    Errors are relative to the largest entry, each entry times its parameter's size.
    """

    paths: tuple[str, ...]
    value: float
    reverse: np.ndarray
    forward: np.ndarray
    differences: np.ndarray
    tight: np.ndarray
    adjoint_error: float
    difference_error: float
    integrator_error: float
    tolerance: float
    blame: str

    @property
    def ok(self) -> bool:
        return not self.blame

    def verdict(self) -> str:
        """One sentence."""
        match self.blame:
            case "":
                return (
                    f"the gradient is right: {self.difference_error:.1e} from"
                    f" differences, {self.integrator_error:.1e} from that at a much"
                    " tighter tolerance"
                )
            case "not finite":
                bad = [
                    p
                    for p, *g in zip(
                        self.paths, self.reverse, self.forward, self.tight, strict=True
                    )
                    if not np.all(np.isfinite(g))
                ]
                return f"the gradient is not finite for {', '.join(bad) or 'the loss'}"
            case "adjoint":
                return (
                    "the adjoint is to blame: reverse and forward mode differ by"
                    f" {self.adjoint_error:.1e}"
                )
            case "integrator":
                return (
                    "the integrator is to blame: the gradient is"
                    f" {self.integrator_error:.1%} off that at a much tighter"
                    " tolerance; take smaller steps or a method of higher order"
                )
        return (
            "a kink is to blame: differences do not settle as their step shrinks, and"
            f" stay {self.difference_error:.1e} from the gradient"
        )

    def __str__(self) -> str:
        wide = max(len(p) for p in self.paths)
        head = ("reverse", "forward", "differences", "tight tolerance")
        columns = (self.reverse, self.forward, self.differences, self.tight)
        lines = [f"{'':{wide}}" + "".join(f"{h:>18}" for h in head)]
        for i, path in enumerate(self.paths):
            lines.append(f"{path:{wide}}" + "".join(f"{c[i]:18.9g}" for c in columns))
        return "\n".join([*lines, self.verdict()])


def check_gradient(
    loss: Loss,
    system: System,
    free: Sequence[str | Free],
    *,
    tolerance: float = 1e-6,
    step: float = 1e-3,
    tight: dict[str, Any] | None = None,
) -> GradientCheck:
    """Compares a gradient in reverse and forward mode, by differences, and done finely.

    **Arguments:**

    - `loss`: `loss(system, simulate)`, a number. It must call the `simulate` it is
      given, which is `djdyn.simulate` with some arguments replaced.
    - `free`: paths of the parameters.
    - `step`: of the central differences, relative to each parameter's size.
    - `tight`: arguments of `simulate` for the reference gradient.
    """
    tight = TIGHT | (tight or {})
    theta0 = pack(system, free)
    flat, unravel = jax.flatten_util.ravel_pytree(theta0)
    size = jnp.where(jnp.abs(flat) > 0, jnp.abs(flat), 1.0)

    def with_settings(**settings: Any) -> Callable[[Array], Scalar]:
        run = lambda *args, **how: simulate(*args, **(how | settings))
        return lambda x: loss(unpack(system, free, unravel(flat + x * size)), run)

    zero = jnp.zeros_like(flat)
    value = eqx.filter_jit(with_settings())
    value_zero = value(zero)
    reverse = eqx.filter_jit(jax.grad(with_settings(adjoint="reverse")))(zero)
    forward = eqx.filter_jit(jax.jacfwd(with_settings(adjoint="forward")))(zero)
    fine = with_settings(adjoint="forward", **tight)
    exact = eqx.filter_jit(jax.jacfwd(fine))(zero)
    differences, unrest = _differences(value, zero, step)

    scale = lambda g: max(float(jnp.max(jnp.abs(g))), np.finfo(float).tiny)
    distance = lambda a, b: float(jnp.max(jnp.abs(a - b))) / scale(b)
    adjoint_error = distance(reverse, forward)
    difference_error = distance(reverse, differences)
    integrator_error = distance(reverse, exact)
    everything = jnp.concatenate([reverse, forward, exact, value_zero[None]])
    blame = ""
    if not jnp.all(jnp.isfinite(everything)):
        blame = "not finite"
    elif adjoint_error > tolerance:
        blame = "adjoint"
    elif difference_error > max(tolerance, 4 * unrest):
        # Adaptive steps change with the parameters: does the fine solve settle?
        finely, _ = _differences(eqx.filter_jit(with_settings(**tight)), zero, step)
        blame = "integrator" if distance(exact, finely) <= tolerance else "kink"
    elif unrest > max(10 * tolerance, 1e-4):
        blame = "kink"
    elif integrator_error > tolerance:
        blame = "integrator"
    paths = []
    for path, x in theta0.items():
        paths += [path] if x.ndim == 0 else [f"{path}[{i}]" for i in range(x.size)]
    plain = lambda g: np.asarray(g / size)
    return GradientCheck(
        tuple(paths),
        float(value_zero),
        plain(reverse),
        plain(forward),
        plain(differences),
        plain(exact),
        adjoint_error,
        difference_error,
        integrator_error,
        tolerance,
        blame,
    )


def _differences(value, zero: Array, step: float) -> tuple[Array, float]:
    """Central differences, extrapolated from two steps, and how far those differ."""
    found = []
    for h in (step, step / 2):
        slopes = []
        for i in range(len(zero)):
            up, down = value(zero.at[i].set(h)), value(zero.at[i].set(-h))
            slopes.append((up - down) / (2 * h))
        found.append(jnp.stack(slopes))
    coarse, fine = found
    best = (4 * fine - coarse) / 3
    apart = float(jnp.max(jnp.abs(coarse - fine)))
    return best, apart / max(float(jnp.max(jnp.abs(best))), np.finfo(float).tiny)
