"""Is this gradient right, and if not, what is to blame?"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..system.parameters import FreeParameter, pack, unpack
from ..system.system import System
from ..typing import Number, Scalar
from .options import OptionKeywords, SimulationOptions, resolve_options
from .simulate import simulate
from .trajectory import Trajectory


class Simulate(Protocol):
    """What a loss calls to simulate: it takes the arguments of `simulate`."""

    def __call__(self, system: System, t1: Number, /, *args, **how) -> Trajectory: ...


Loss = Callable[[System, Simulate], Scalar]


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """Four answers to one question, and a verdict.

    `blame` is empty where they agree, else `"adjoint"` (reverse and forward mode
    differ, also at a tight tolerance), `"kink"` (the loss has no derivative here, or
    jumps nearby), `"integrator"` (the gradient of the discretised motion is not that of
    the motion), or `"not finite"`.
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
        """Whether all four gradients agree."""
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
    free: Sequence[str | FreeParameter],
    *,
    tolerance: float = 1e-6,
    step: float = 1e-3,
    tight: float = 1e-11,
) -> GradientCheck:
    """Return a gradient four ways: reverse, forward, differences, fine tolerance.

    **Arguments:**

    - `loss`: `loss(system, simulate)`, a number. It must call the `simulate` it is
      given, which is `djdyn.simulate` with some arguments replaced.
    - `free`: paths of the parameters.
    - `step`: of the central differences, relative to each parameter's size.
    - `tight`: relative and absolute tolerance of the reference gradient.

    !!! example

        ```python
        loss = lambda system, simulate: simulate(system, 1.0).q("arm")[-1, 0] ** 2
        print(djdyn.check_gradient(loss, system, ["bearing.viscous"]))
        ```
    """
    theta0 = pack(system, free)
    flat, unravel = jax.flatten_util.ravel_pytree(theta0)
    size = jnp.where(jnp.abs(flat) > 0, jnp.abs(flat), 1.0)
    fixed = False  # whether the loss takes fixed steps, known after the first trace

    def value(x: Array, fine: Array, adjoint: str, adaptive: bool) -> Scalar:
        def run(*args: Any, **how: Any) -> Trajectory:
            nonlocal fixed
            options = _split_options(how)
            fixed = fixed or options.dt is not None
            changed = _checking(options, adjoint, adaptive, fine, tight)
            return simulate(*args, options=changed, **how)

        return loss(unpack(system, free, unravel(flat + x * size)), run)

    @eqx.filter_jit
    def tangent(x: Array, d: Array, fine: Array, adaptive: bool) -> tuple[Array, Array]:
        """Value and slope along `d`; one compilation serves both tolerances."""
        function = lambda x: value(x, fine, "forward", adaptive)
        return jax.jvp(function, (x,), (d,))

    zero, basis = jnp.zeros_like(flat), jnp.eye(len(flat), dtype=flat.dtype)
    no, yes = jnp.array(False), jnp.array(True)
    value_zero, _ = tangent(zero, basis[0], no, False)
    slope = lambda fine, adaptive: jnp.stack(
        [tangent(zero, d, fine, adaptive)[1] for d in basis]
    )
    forward = slope(no, False)
    gradient = eqx.filter_jit(jax.grad(lambda x, f: value(x, f, "reverse", False)))
    reverse = gradient(zero, no)
    exact = slope(yes, fixed)
    coarse = lambda x: tangent(x, basis[0], no, False)[0]
    differences, unrest = _differences(coarse, zero, step)

    # Differences of the fine solve agree with its own gradient.
    fine = lambda x: tangent(x, basis[0], yes, fixed)[0]
    settles = lambda: _distance(exact, _differences(fine, zero, step)[0]) <= tolerance
    # With fixed steps nothing but the adjoint can differ.
    limit = lambda: 0.0 if fixed else max(tolerance, adjoint / 10)
    modes_agree = lambda: _distance(gradient(zero, yes), exact) < limit()

    finite = jnp.isfinite(jnp.concatenate([reverse, forward, exact, value_zero[None]]))
    adjoint, difference, integrator = (
        _distance(reverse, g) for g in (forward, differences, exact)
    )
    errors = (adjoint, difference, integrator)
    blame = _blame(
        bool(jnp.all(finite)), errors, unrest, tolerance, settles, modes_agree
    )
    plain = lambda g: np.asarray(g / size)
    return GradientCheck(
        _entries(theta0), float(value_zero), plain(reverse), plain(forward),
        plain(differences), plain(exact), *errors, tolerance, blame,
    )  # fmt: skip


def _split_options(how: dict[str, Any]) -> SimulationOptions:
    """Take the options out of the arguments of `simulate`."""
    names = OptionKeywords.__annotations__
    changes = {k: how.pop(k) for k in list(how) if k in names}
    return resolve_options(how.pop("options", None), **changes)


def _checking(
    options: SimulationOptions, adjoint: str, adaptive: bool, fine: Array, tight: float
) -> SimulationOptions:
    """Return the options of one of the runs that are compared."""
    changed = {"adjoint": adjoint, "max_steps": 8 * options.integrator.max_steps}
    if options.dt is not None and adaptive:
        changed |= {"solver": "dopri8", "dt": None}
    for key in ("rtol", "atol"):
        changed[key] = jnp.where(fine, tight, getattr(options, key))
    return dataclasses.replace(options, **changed)


def _blame(
    finite: bool,
    errors: tuple[float, float, float],
    unrest: float,
    tolerance: float,
    settles: Callable[[], bool],
    modes_agree: Callable[[], bool],
) -> str:
    """Return what is to blame for a wrong gradient, or nothing."""
    adjoint_error, difference_error, integrator_error = errors
    if not finite:
        return "not finite"
    if adjoint_error > tolerance:
        # Rounding changes steps, and steps that resolve too little the gradient.
        return "integrator" if modes_agree() else "adjoint"
    if difference_error > max(tolerance, 4 * unrest):
        # Adaptive steps change with the parameters: does the fine solve settle?
        return "integrator" if settles() else "kink"
    if unrest > max(10 * tolerance, 1e-4):
        return "kink"
    return "integrator" if integrator_error > tolerance else ""


class Slope(NamedTuple):
    """The value of a loss, its gradient by path, and the noise of the latter."""

    value: Scalar
    gradient: dict[str, Array]
    error: dict[str, Array]


def gradient(
    loss: Loss,
    system: System,
    free: Sequence[str | FreeParameter],
    *,
    spread: float = 0.0,
    samples: int = 64,
    seed: int = 0,
) -> Slope:
    r"""Return the gradient of a loss, or of its mean over normal parameters.

    With a spread $\sigma$ it is that of $E\,L(\theta + \sigma w)$, $w$ normal: the
    least-squares slope of $L(\theta \pm \sigma w)$ over pairs, which asks for no
    derivative of $L$ and is exact where $L$ is quadratic. Its error is one standard
    deviation. Use it where the loss is rough on the scale of the steps you will take:
    many impacts, stiff contact under coarse steps, jumps.

    **Arguments:**

    - `loss`: `loss(system, simulate)`, as for `check_gradient`. Up to ten free
      numbers are differentiated in forward mode, more in reverse.
    - `spread`: relative to each parameter's size, or absolute for one that is zero;
      about the step that an optimiser will take. Without it the gradient is exact.
    - `samples`: pairs of runs, all at once; more than there are free numbers.
    """
    theta = pack(system, free)
    x, unravel = jax.flatten_util.ravel_pytree(theta)
    few = len(x) <= 10
    run = partial(simulate, adjoint="forward" if few else "reverse")
    value = lambda x: loss(unpack(system, free, unravel(x)), run)
    if spread == 0:
        twice = lambda x: (value(x),) * 2
        slope, found = (jax.jacfwd if few else jax.jacrev)(twice, has_aux=True)(x)
        return Slope(found, unravel(slope), unravel(jnp.zeros_like(x)))
    if not spread > 0:
        raise ValueError(f"the spread must not be negative, got {spread}")
    if samples <= len(x):
        raise ValueError(f"{len(x)} free numbers need more than {samples} samples")
    by = spread * jnp.where(x == 0, 1.0, jnp.abs(x))
    w = jax.random.normal(jax.random.key(seed), (samples, len(x)), x.dtype)
    at = jax.vmap(lambda w: value(x + by * w))
    up, down = at(w), at(-w)
    rise, inverse = (up - down) / 2, jnp.linalg.inv(w.T @ w)
    slope = inverse @ (w.T @ rise)
    left = rise - w @ slope
    noise = jnp.sqrt(left @ left / (samples - len(x)) * jnp.diagonal(inverse))
    return Slope(jnp.mean((up + down) / 2), unravel(slope / by), unravel(noise / by))


def _entries(theta: dict[str, Array]) -> tuple[str, ...]:
    """A name for every number, in the order of a flattened dictionary."""
    names = []
    for path, x in sorted(theta.items()):
        names += [path] if x.ndim == 0 else [f"{path}[{i}]" for i in range(x.size)]
    return tuple(names)


def _distance(a: Array, b: Array) -> float:
    """Largest gap between two gradients, relative to the second's largest entry."""
    largest = max(float(jnp.max(jnp.abs(b))), np.finfo(float).tiny)
    return float(jnp.max(jnp.abs(a - b))) / largest


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
    return best, _distance(coarse, fine)
