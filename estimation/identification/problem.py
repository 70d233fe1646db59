"""Estimation problems: the residuals of trials as a function of the unknowns."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from djdyn.optimize.problem import AbstractProblem, Flat, entries
from djdyn.system.parameters import FreeParameter, pack, unpack
from djdyn.system.transforms import Box, Unbounded
from djdyn.typing import Scalar

from .losses import Squares
from .priors import AbstractPrior, Normal, as_priors
from .trial import Trial


MAX_FORWARD_UNKNOWNS = 16  # up to which gradients are taken in forward mode


def _of_start(f: FreeParameter) -> bool:
    """Return whether a free parameter belongs to the start of a trial."""
    return f.path.split(".")[0].split("[")[0] == "start"


class Problem(AbstractProblem):
    """The estimation problem of `fit`: unknowns of all trials, and of each trial alone.

    `loss` maps residuals to residuals whose squares are summed (see `losses`), or to
    one number.
    """

    model: PyTree
    trials: tuple[Trial, ...]
    free: tuple[FreeParameter, ...]
    priors: dict[str, AbstractPrior]
    loss: Callable[[Array], Array]

    def __init__(
        self,
        model: PyTree,
        trials: Trial | Sequence[Trial],
        free: Sequence[FreeParameter | str] = (),
        priors: dict[str, Any] | None = None,
        loss: Callable[[Array], Array] | None = None,
    ):
        self.model = model
        self.trials = (trials,) if isinstance(trials, Trial) else tuple(trials)
        self.free = tuple(FreeParameter(f) if isinstance(f, str) else f for f in free)
        self.priors, self.loss = as_priors(priors), loss or Squares()
        for f in (*self.free, *(f for t in self.trials for f in t.free)):
            if isinstance(f.transform, Box):
                raise ValueError(f"{f.path!r}: estimates take a Sigmoid, not a Box")
        names = [t.name for t in self.trials]
        if len({*names}) != len(names):
            raise ValueError(f"trials need different names, got {', '.join(names)}")
        shared, own = self._packed()
        if not shared and not any(own):
            raise ValueError("no free parameter is named")
        shapes = eqx.filter_eval_shape(lambda: self.values(self.x))
        known = {f.path for t in self.trials for f in t.free} | {*shapes}
        for path in self.priors:
            if path not in known:
                raise ValueError(f"a prior on {path!r}, which is not free")

    # Unknowns -------------------------------------------------------------------------

    def _packed(self) -> tuple[dict[str, Array], tuple[dict[str, Array], ...]]:
        """Return the unconstrained unknowns: shared ones, and those of each trial."""
        own = []
        for t in self.trials:
            mine = {}
            for f in t.free:
                mine |= pack({"start": t.start} if _of_start(f) else self.model, [f])
            own.append(mine)
        return (pack(self.model, self.free) if self.free else {}), tuple(own)

    @property
    def x(self) -> Flat:
        """The unknowns as the model and the trials have them."""
        return ravel_pytree(self._packed())[0]

    def split(self, x: Flat) -> tuple[dict[str, Array], tuple[dict[str, Array], ...]]:
        """Return the entries of `x` by path: shared ones, and those of each trial."""
        return ravel_pytree(self._packed())[1](x)

    def unknowns(self) -> list[tuple[str, FreeParameter, Array]]:
        """Return name, transform and unconstrained value, in the order of `x`."""
        shared, own = self._packed()
        at = {f.path: f for f in self.free}
        found = [(path, at[path], shared[path]) for path in sorted(shared)]
        for trial, mine in zip(self.trials, own, strict=True):
            at = {f.path: f for f in trial.free}
            found += [(f"{trial.name}/{p}", at[p], mine[p]) for p in sorted(mine)]
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all entries of `x`."""
        return entries({name: x for name, _, x in self.unknowns()})

    @property
    def scale(self) -> Flat:
        """Typical change of each unknown: its prior's deviation, or its size."""
        found = []
        for name, f, x in self.unknowns():
            size, prior = jnp.ones(x.shape), self._prior(name)
            if isinstance(f.transform, Unbounded):
                largest = jnp.max(jnp.abs(x))
                size = size * jnp.where(largest > 0, largest, 1.0)
                if isinstance(prior, Normal):
                    size = prior.deviation * jnp.ones(x.shape)
            found.append(size.ravel())
        return jnp.concatenate(found)

    def _prior(self, name: str) -> AbstractPrior | None:
        """Return the prior of an unknown, of one trial or of all."""
        return self.priors.get(name, self.priors.get(name.split("/", 1)[-1]))

    def values(self, x: Flat) -> dict[str, Array]:
        """Return parameters by path, those of a trial as `trial/path`.

        They are in the order of their names, which compiled functions give them, too.
        """
        shared, own = self.split(x)
        theta = {**shared}
        for trial, mine in zip(self.trials, own, strict=True):
            theta |= {f"{trial.name}/{path}": v for path, v in mine.items()}
        found = {}
        for name, f, _ in self.unknowns():
            inside = f.transform.constrain(theta[name])
            if isinstance(inside, dict):
                found |= {f"{name}.{leaf}": v for leaf, v in inside.items()}
            else:
                found[name] = inside
        return dict(sorted(found.items()))

    def flat_values(self, x: Flat) -> Float[Array, " m"]:
        """Return all parameters in one flat array."""
        return jnp.concatenate([v.ravel() for v in self.values(x).values()])

    def models_at(self, x: Flat) -> tuple[PyTree, list[tuple[PyTree, PyTree]]]:
        """Return the model with unknowns put in, and model and start of each trial."""
        shared, own = self.split(x)
        model = unpack(self.model, self.free, shared) if self.free else self.model
        both = [
            _place(model, t, mine) for t, mine in zip(self.trials, own, strict=True)
        ]
        return model, both

    # Residuals ------------------------------------------------------------------------

    def data_residuals(self, x: Flat, adjoint: str = "forward") -> tuple[Array, Array]:
        """Return the residuals of all trials, and of their additional equations.

        Trials of the same shape run in one batch.
        """
        shared, own = self.split(x)
        model = unpack(self.model, self.free, shared) if self.free else self.model

        def one(trial: Trial, mine: dict[str, Array]) -> tuple[Array, Array]:
            here, start = _place(model, trial, mine)
            return trial.residuals(here, start, adjoint)

        if len(self.trials) > 1 and len({_kind(t) for t in self.trials}) == 1:
            arrays = [jax.tree.leaves(eqx.filter(t, eqx.is_array)) for t in self.trials]
            first, static = eqx.partition(self.trials[0], eqx.is_array)
            tree = jax.tree.structure(first)
            lane = lambda leaves, mine: one(
                eqx.combine(jax.tree.unflatten(tree, leaves), static), mine
            )
            stack = lambda *xs: jnp.stack(xs)
            stacked = jax.tree.map(stack, *arrays), jax.tree.map(stack, *own)
            r, extra = jax.vmap(lane)(*stacked)
            return r.ravel(), extra.ravel()
        pairs = [one(t, mine) for t, mine in zip(self.trials, own, strict=True)]
        return jnp.concatenate([r for r, _ in pairs]), jnp.concatenate(
            [extra for _, extra in pairs]
        )

    def residuals(self, x: Flat, adjoint: str = "forward") -> Float[Array, " n"]:
        """Return residuals of the data by the loss, additional ones, and of priors."""
        r, extra = self.data_residuals(x, adjoint)
        return jnp.concatenate([self.apply_loss(r), extra, self.prior_residuals(x)])

    def apply_loss(self, r: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the loss of residuals as residuals; refuse a scalar loss."""
        r = self.loss(r)
        if r.ndim == 0:
            raise ValueError("least squares need a loss that gives residuals")
        return r

    def prior_residuals(self, x: Flat) -> Float[Array, " p"]:
        """Return the distances of parameters from their priors, in deviations."""
        found = [jnp.zeros(0)]
        for name, value in self.values(x).items():
            prior = self._prior(name)
            if prior is not None:
                found.append(prior(value).ravel())
        return jnp.concatenate(found)

    def cost(self, x: Flat, adjoint: str = "reverse") -> Scalar:
        """Return half the sum of squares; a scalar loss replaces that of the data."""
        r, extra = self.data_residuals(x, adjoint)
        r = self.loss(r)
        others = jnp.concatenate([extra, self.prior_residuals(x)])
        return (r if r.ndim == 0 else r @ r / 2) + others @ others / 2

    def linearise_residuals(self, x: Flat) -> tuple[Array, Float[Array, "n k"]]:
        """Return residuals and Jacobian, in reverse mode if unknowns outnumber data."""
        n = sum(t.values.size for t in self.trials)
        adjoint, jacobian = ("forward", jax.jacfwd) if x.size <= n else (
            "reverse", jax.jacrev)  # fmt: skip
        twice = lambda x: (self.residuals(x, adjoint),) * 2
        J, r = jacobian(twice, has_aux=True)(x)
        return r, J

    def bounds(self) -> tuple[Flat, Flat]:
        """Return infinite bounds: transforms keep estimates in their domains."""
        everywhere = jnp.full_like(self.x, jnp.inf)
        return -everywhere, everywhere

    def penalties(self) -> None:
        """Return None: an estimation problem has no penalties."""

    def slope(self, x: Flat) -> tuple[Scalar, Flat]:
        """Return the cost and its gradient, in forward mode for few unknowns."""
        if x.size > MAX_FORWARD_UNKNOWNS:
            return jax.value_and_grad(self.cost)(x, "reverse")
        twice = lambda x: (self.cost(x, "forward"),) * 2
        g, f = jax.jacfwd(twice, has_aux=True)(x)
        return f, g


def _place(model: PyTree, trial: Trial, mine: dict[str, Array]) -> tuple:
    """Return the model and the start of a trial with its own unknowns."""
    ours = [f for f in trial.free if _of_start(f)]
    theirs = [f for f in trial.free if not _of_start(f)]
    model = unpack(model, theirs, mine) if theirs else model
    begin = {"start": trial.start}
    return model, (unpack(begin, ours, mine) if ours else begin)["start"]


def _kind(trial: Trial) -> Any:
    """Return a key that is equal for trials that can run in one batch."""
    arrays, static = eqx.partition((trial.predict, trial.start), eqx.is_array)
    shapes = tuple(x.shape for x in jax.tree.leaves(eqx.filter(trial, eqx.is_array)))
    static_parts = jax.tree.structure(arrays), tuple(jax.tree.leaves(static))
    free = jax.tree.structure(trial.free)
    return trial.times, trial.labels, free, shapes, static_parts


@eqx.filter_jit
def linearise_residuals(problem: Problem, x: Flat) -> tuple[Array, Float[Array, "n k"]]:
    """Linearise the residuals of a problem, compiled.

    **Returns:** the residuals and their Jacobian.
    """
    return problem.linearise_residuals(x)


@eqx.filter_jit
def values_and_jacobian(
    problem: Problem, x: Flat
) -> tuple[dict[str, Array], Float[Array, "m k"]]:
    """Return parameters by path, and their Jacobian by the unknowns."""
    return problem.values(x), jax.jacfwd(problem.flat_values)(x)
