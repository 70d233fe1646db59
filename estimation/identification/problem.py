"""A model, its unknowns and the trials that speak of them: one vector of residuals."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from djdyn.optimize.multistart import AbstractProblem, Flat, entries
from djdyn.system.parameters import Box, FreeParameter, Unbounded, pack, unpack
from djdyn.typing import Scalar

from .losses import Squares
from .priors import AbstractPrior, Normal, as_priors
from .trial import Trial


FEW = 16  # unknowns up to which a gradient is taken forward


def _of_start(f: FreeParameter) -> bool:
    return f.path.split(".")[0].split("[")[0] == "start"


class Problem(AbstractProblem):
    """What `fit` solves: unknown numbers shared by all trials, and those of each.

    `loss` maps residuals to residuals whose squares count (see `losses`), or to one
    number.
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
                raise ValueError(f"{f.path!r}: estimates are Bounded, not Between")
        names = [t.name for t in self.trials]
        if len({*names}) != len(names):
            raise ValueError(f"trials need names of their own, got {', '.join(names)}")
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
        """Unconstrained numbers by path: the shared ones, and those of each trial."""
        return ravel_pytree(self._packed())[1](x)

    def _listed(self) -> list[tuple[str, FreeParameter, Array]]:
        """Name, transform and unconstrained value, in the order of `x`."""
        shared, own = self._packed()
        at = {f.path: f for f in self.free}
        found = [(path, at[path], shared[path]) for path in sorted(shared)]
        for trial, mine in zip(self.trials, own, strict=True):
            at = {f.path: f for f in trial.free}
            found += [(f"{trial.name}/{p}", at[p], mine[p]) for p in sorted(mine)]
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """One for every entry of `x`."""
        return entries({name: x for name, _, x in self._listed()})

    @property
    def scale(self) -> Flat:
        """How much each unknown may well change: its prior's deviation or its size."""
        found = []
        for name, f, x in self._listed():
            size, prior = jnp.ones(x.shape), self._prior(name)
            if isinstance(f.transform, Unbounded):
                largest = jnp.max(jnp.abs(x))
                size = size * jnp.where(largest > 0, largest, 1.0)
                if isinstance(prior, Normal):
                    size = prior.deviation * jnp.ones(x.shape)
            found.append(size.ravel())
        return jnp.concatenate(found)

    def _prior(self, name: str) -> AbstractPrior | None:
        return self.priors.get(name, self.priors.get(name.split("/", 1)[-1]))

    def values(self, x: Flat) -> dict[str, Array]:
        """Parameters by path, those of a trial as `trial/path`."""
        shared, own = self.split(x)
        theta = {**shared}
        for trial, mine in zip(self.trials, own, strict=True):
            theta |= {f"{trial.name}/{path}": v for path, v in mine.items()}
        found = {}
        for name, f, _ in self._listed():
            inside = f.transform.constrain(theta[name])
            if isinstance(inside, dict):
                found |= {f"{name}.{leaf}": v for leaf, v in inside.items()}
            else:
                found[name] = inside
        return found

    def flat_values(self, x: Flat) -> Float[Array, " m"]:
        """All parameters, one after the other."""
        return jnp.concatenate([v.ravel() for v in self.values(x).values()])

    def placed(self, x: Flat) -> tuple[PyTree, list[tuple[PyTree, PyTree]]]:
        """The model with shared unknowns put in; model and start of each trial."""
        shared, own = self.split(x)
        model = unpack(self.model, self.free, shared) if self.free else self.model
        both = [
            _place(model, t, mine) for t, mine in zip(self.trials, own, strict=True)
        ]
        return model, both

    # Residuals ------------------------------------------------------------------------

    def data_residuals(self, x: Flat, adjoint: str = "forward") -> tuple[Array, Array]:
        """Of all trials, and what else ought to be zero; alike trials run as lanes."""
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
        """Of data by the loss, then what else ought to be zero, then of priors."""
        r, extra = self.data_residuals(x, adjoint)
        return jnp.concatenate([self.weighed(r), extra, self.prior_residuals(x)])

    def weighed(self, r: Float[Array, " n"]) -> Float[Array, " n"]:
        """Residuals by the loss, if it gives residuals."""
        r = self.loss(r)
        if r.ndim == 0:
            raise ValueError("least squares need a loss that gives residuals")
        return r

    def prior_residuals(self, x: Flat) -> Float[Array, " p"]:
        found = [jnp.zeros(0)]
        for name, value in self.values(x).items():
            prior = self._prior(name)
            if prior is not None:
                found.append(prior(value).ravel())
        return jnp.concatenate(found)

    def cost(self, x: Flat, adjoint: str = "reverse") -> Scalar:
        """Half the sum of squares, or the loss's number with squares of the rest."""
        r, extra = self.data_residuals(x, adjoint)
        r = self.loss(r)
        rest = jnp.concatenate([extra, self.prior_residuals(x)])
        return (r if r.ndim == 0 else r @ r / 2) + rest @ rest / 2

    def linearise_residuals(self, x: Flat) -> tuple[Array, Float[Array, "n k"]]:
        """Residuals and their Jacobian, forward unless there are more unknowns."""
        n = sum(t.values.size for t in self.trials)
        adjoint, jacobian = ("forward", jax.jacfwd) if x.size <= n else (
            "reverse", jax.jacrev)  # fmt: skip
        twice = lambda x: (self.residuals(x, adjoint),) * 2
        J, r = jacobian(twice, has_aux=True)(x)
        return r, J

    def bounds(self) -> tuple[Flat, Flat]:
        """None: transforms keep estimates in their domains."""
        everywhere = jnp.full_like(self.x, jnp.inf)
        return -everywhere, everywhere

    def penalties(self) -> None:
        """None: priors are known as well as all else."""

    def slope(self, x: Flat) -> tuple[Scalar, Flat]:
        """Cost and its gradient, forward for few unknowns."""
        if x.size > FEW:
            return jax.value_and_grad(self.cost)(x, "reverse")
        twice = lambda x: (self.cost(x, "forward"),) * 2
        g, f = jax.jacfwd(twice, has_aux=True)(x)
        return f, g


def _place(model: PyTree, trial: Trial, mine: dict[str, Array]) -> tuple:
    """Model and start of a trial with its own unknowns put in."""
    ours = [f for f in trial.free if _of_start(f)]
    theirs = [f for f in trial.free if not _of_start(f)]
    model = unpack(model, theirs, mine) if theirs else model
    begin = {"start": trial.start}
    return model, (unpack(begin, ours, mine) if ours else begin)["start"]


def _kind(trial: Trial) -> Any:
    """Equal for trials that one compiled function serves."""
    arrays, static = eqx.partition((trial.predict, trial.start), eqx.is_array)
    shapes = tuple(x.shape for x in jax.tree.leaves(eqx.filter(trial, eqx.is_array)))
    rest = jax.tree.structure(arrays), tuple(jax.tree.leaves(static))
    return trial.times, trial.labels, jax.tree.structure(trial.free), shapes, rest


@eqx.filter_jit
def linearise_residuals(problem: Problem, x: Flat) -> tuple[Array, Float[Array, "n k"]]:
    """Residuals and their Jacobian, compiled."""
    return problem.linearise_residuals(x)


@eqx.filter_jit
def shown(problem: Problem, x: Flat) -> tuple[dict[str, Array], Float[Array, "m k"]]:
    """Parameters by path, and how all of them change with the unknowns."""
    return problem.values(x), jax.jacfwd(problem.flat_values)(x)
