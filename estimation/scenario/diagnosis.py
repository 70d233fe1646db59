"""What a model lacks: effects that would explain what a fit left unexplained."""

import dataclasses

import equinox as eqx
import numpy as np

import djdyn
from djdyn.parts import JointFriction, JointSpring
from djdyn.system.parameters import FreeParameter, parameters

from ..identification.problem import Problem, linearise_residuals
from ..identification.result import FitResult
from .measured import MeasuredMachine


MAX_CANDIDATES, MAX_NAMED = 40, 3
WORTH_NAMING = 0.3  # share of the misfit that a candidate explains
SLIDING_SPEED = 0.01  # rad/s or m/s, below which Coulomb friction is rounded


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An effect that is not in the fit, and the share of the misfit it explains."""

    what: str
    share: float


def missing_effects(found: FitResult) -> list[Candidate]:
    """Return effects that would explain much of the misfit, the best first.

    Each is judged by one Gauss-Newton step with it beside the unknowns of the fit
    (a score test): parameters that were held, and friction and springs of joints that
    have none.
    """
    machine, said = _with_friction(found.model)
    free = [f.path for f in found.problem.free]
    others = [
        path
        for path, value in parameters(machine).items()
        if path.startswith("system.") and value.ndim == 0 and path not in free
        and not any(path.startswith(f"{name}.") for name in free)
        and (path in said or float(value) != 0.0)
    ]  # fmt: skip
    others = [*said, *[path for path in others if path not in said]][:MAX_CANDIDATES]
    more = (*found.problem.free, *map(FreeParameter, others))
    wider = Problem(machine, _started(found), more, {}, found.problem.loss)
    r, J = (np.asarray(x) for x in linearise_residuals(wider, wider.x))
    n = sum(t.values.size for t in wider.trials)
    r, J, names = r[:n], J[:n], wider.names
    late = [names.index(path) for path in others]
    held = [i for i in range(J.shape[1]) if i not in late]
    left = _left(J[:, held], r)
    found_shares = []
    for path, i in zip(others, late, strict=True):
        column = J[:, i]
        if not (np.all(np.isfinite(column)) and np.any(column)):
            continue
        share = 1 - _left(np.column_stack([J[:, held], column]), r) / left
        found_shares.append(
            Candidate(said.get(path, path.removeprefix("system.")), share)
        )
    found_shares.sort(key=lambda c: -c.share)
    kept: list[Candidate] = []
    for c in found_shares:  # two names of one effect explain the same
        alike = any(abs(c.share - other.share) < 1e-3 for other in kept)
        if c.share > WORTH_NAMING and not alike:
            kept.append(c)
    return kept[:MAX_NAMED]


def _left(J: np.ndarray, r: np.ndarray) -> float:
    """Return the sum of squares that no combination of columns explains."""
    J = J / np.maximum(np.linalg.norm(J, axis=0), 1e-300)[None]
    step = np.linalg.lstsq(J, -r, rcond=1e-10)[0]
    return float(np.sum((r + J @ step) ** 2))


def _started(found: FitResult) -> list:
    """Return the trials with the starts that were found, still unknown."""
    return [
        eqx.tree_at(lambda t: t.start, trial, start)
        for trial, start in zip(found.problem.trials, found.trial_starts, strict=True)
    ]


def _with_friction(machine: MeasuredMachine) -> tuple[MeasuredMachine, dict[str, str]]:
    """Return the machine with friction and springs of no size at all its joints."""
    system, parts, said = machine.system, {}, {}
    m = system.mechanism
    for joint in m.joint_names:
        if m.q0()[m.v_slice(joint)].size != 1 or m.q0()[m.q_slice(joint)].size != 1:
            continue
        rub, spring = f"{joint}:missing_friction", f"{joint}:missing_spring"
        parts[rub] = JointFriction(joint, 0.0, 0.0, SLIDING_SPEED)
        parts[spring] = JointSpring(joint, 0.0)
        said[f"system.{rub}.viscous"] = f"viscous friction of joint {joint}"
        said[f"system.{rub}.coulomb"] = f"Coulomb friction of joint {joint}"
        said[f"system.{spring}.stiffness"] = f"a spring at joint {joint}"
    wider = djdyn.System(m, {**system.parts, **parts}, system.inputs)
    return eqx.tree_at(lambda x: x.system, machine, wider), said
