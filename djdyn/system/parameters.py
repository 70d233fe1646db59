"""Every number of a model by its dotted path, and transforms that keep its domain.

The path of a number says where it stands: `boom.mass`, `winch.controller.kp`,
`gravity_W`. Bodies, frames and parts go by their names; the containers they stand in
(`mechanism`, `bodies`, `frames`, `parts`, `inputs`) are left out. `pid.kp[1]` is one
entry of an array.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ..multibody.mechanism import Mechanism
from ..typing import Numbers, converter_of, known, si
from .instant import AbstractSystem
from .transforms import AbstractTransform, PhysicalInertia, Unbounded


WHOLE = (AbstractSystem, Mechanism)  # their structure was checked when it was built
CONTAINERS = {"mechanism", "bodies", "frames", "parts", "inputs"}


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A number of a model: path, value, what its field says, and the steps to it."""

    path: str
    value: Array
    field: si
    steps: tuple[tuple[str, Any], ...]


def _children(node: Any) -> Iterator[tuple[str, tuple[str, Any], Any, si]]:
    """Name, step, value and converter of what stands directly below a node."""
    if isinstance(node, eqx.Module):
        for field in dataclasses.fields(node):
            if not field.metadata.get("static", False):
                says = converter_of(field) or si("")
                shown = "" if field.name in CONTAINERS else field.name
                yield shown, ("attr", field.name), getattr(node, field.name), says
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield str(key), ("item", key), value, si("")
    elif isinstance(node, tuple | list):
        for i, value in enumerate(node):
            yield getattr(value, "name", str(i)), ("item", i), value, si("")


def _leaves(
    node: Any, names: tuple = (), steps: tuple = (), says: si | None = None
) -> Iterator[Leaf]:
    if eqx.is_array(node):
        if jnp.issubdtype(node.dtype, jnp.floating):
            yield Leaf(".".join(names), node, says or si(""), steps)
        return
    for name, step, child, child_says in _children(node):
        shown = (*names, name) if name else names
        yield from _leaves(child, shown, (*steps, step), child_says)


def _statics(node: Any, names: tuple = ()) -> Iterator[str]:
    """Paths of what is fixed when a model is built: names, modes, sizes."""
    if isinstance(node, eqx.Module):
        for field in dataclasses.fields(node):
            if field.metadata.get("static", False):
                yield ".".join((*names, field.name))
    if not eqx.is_array(node):
        for name, _, child, _ in _children(node):
            yield from _statics(child, (*names, name) if name else names)


def _short(value: np.ndarray) -> str:
    """A number or vector as it is, a larger array by its shape and what is in it."""
    text = lambda x: " ".join(np.array2string(x, precision=6, threshold=8).split())
    if value.ndim < 2:
        return text(value)
    shape = "x".join(map(str, value.shape))
    if not value.any():
        return f"{shape} of zeros"
    if value.ndim == 2 and np.array_equal(value, np.diag(np.diagonal(value))):
        return f"{shape} diagonal {text(np.diagonal(value))}"
    return f"{shape} from {value.min():.6g} to {value.max():.6g}"


class ParameterTable(dict[str, Array]):
    """Values by path; prints as a table."""

    units: dict[str, str]

    def __str__(self) -> str:
        rows = [("path", "value", "unit")]
        for path, value in self.items():
            rows.append((path, _short(np.asarray(value)), self.units[path]))
        wide = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c}" for a, b, c in rows)


def parameters(model: PyTree) -> ParameterTable:
    """Return all numbers of a model by path; prints as a table with units."""
    table = ParameterTable()
    leaves = list(_leaves(model))
    for leaf in leaves:
        if leaf.path in table:
            raise ValueError(f"two numbers of the model have the path {leaf.path!r}")
        table[leaf.path] = leaf.value
    table.units = {leaf.path: leaf.field.unit for leaf in leaves}
    return table


def _find(model: PyTree, path: str) -> tuple[Leaf, tuple[int, ...]]:
    """The leaf that a path leads to, and the entry of its array that is meant."""
    leaves = list(_leaves(model))
    found, entry = [leaf for leaf in leaves if leaf.path == path], ()
    match = re.fullmatch(r"(.+?)((?:\[-?\d+\])+)", path)
    if not found and match:
        found = [leaf for leaf in leaves if leaf.path == match.group(1)]
        entry = tuple(int(i) for i in re.findall(r"-?\d+", match.group(2)))
    if len(found) > 1:
        raise ValueError(f"two numbers of the model have the path {path!r}")
    if not found and path in _statics(model):
        raise ValueError(f"{path!r} is no number: it is fixed when the model is built")
    if not found:
        tail = path.rsplit(".", 1)[-1]
        near = [x.path for x in leaves if x.path.endswith(tail) or path in x.path]
        hint = f"; did you mean {', '.join(near[:6])}?" if near else ""
        raise ValueError(f"the model has no parameter {path!r}{hint}")
    shape = found[0].value.shape
    inside = [-n <= i < n for i, n in zip(entry, shape, strict=False)]
    if len(entry) > len(shape) or not all(inside):
        raise ValueError(f"{path!r} is outside an array of shape {shape}")
    return found[0], entry


def _select(model: Any, steps: tuple[tuple[str, Any], ...]) -> Any:
    for kind, key in steps:
        model = getattr(model, key) if kind == "attr" else model[key]
    return model


def get_parameters(model: PyTree, path: str) -> Array:
    """Return the value at a path, such as `"pid.kp"` or `"arm.p_BC[2]"`."""
    leaf, entry = _find(model, path)
    return leaf.value[entry] if entry else leaf.value


def parameter_field(model: PyTree, path: str) -> si:
    """Return what the field of a parameter says: its unit and bounds."""
    return _find(model, path)[0].field


def with_parameters(model: PyTree, values: Mapping[str, Numbers]) -> PyTree:
    """Return the model with the values at these paths replaced; all else is shared.

    Values outside the domain of their field, or of no possible body, are refused.

    !!! example

        ```python
        stiffer = djdyn.with_parameters(system, {"pid.kp": 80.0, "arm.mass": 2.0})
        ```
    """
    new: dict[tuple, Array] = {}
    for path, value in values.items():
        leaf, entry = _find(model, path)
        old = leaf.value[entry] if entry else leaf.value
        try:
            now = jnp.asarray(value, dtype=old.dtype)
        except (TypeError, ValueError):
            raise ValueError(f"{path!r} is a number, not {value!r}") from None
        if now.shape != old.shape:
            raise ValueError(
                f"{path!r} has shape {old.shape}, it cannot be set to {now.shape}"
            )
        if known(now):
            leaf.field.check(path, np.asarray(now))
        if entry:
            now = new.get(leaf.steps, leaf.value).at[entry].set(now)
        new[leaf.steps] = now
    if not new:
        return model
    where = lambda m: [_select(m, steps) for steps in new]
    changed = eqx.tree_at(where, model, list(new.values()))
    for steps in new:
        for i in range(len(steps)):
            owner = _select(changed, steps[:i])
            if isinstance(owner, eqx.Module) and not isinstance(owner, WHOLE):
                for kind in type(owner).__mro__:  # as when it was built
                    vars(kind).get("__check_init__", lambda owner: None)(owner)
    return changed


def check_lanes(model: PyTree, lanes: Mapping[str, Array]) -> None:
    """Raises unless values with a leading batch axis fit their paths and domains.

    A lane of numbers that are not finite is let through, unless there is no other.
    """
    for path, value in lanes.items():
        leaf, entry = _find(model, path)
        shape = (leaf.value[entry] if entry else leaf.value).shape
        if value.ndim != len(shape) + 1 or value.shape[1:] != shape:
            raise ValueError(
                f"{path!r} has shape {shape}; a batch of it has one axis more in front,"
                f" not shape {value.shape}"
            )
        if known(value) and value.is_fully_addressable:
            rows = np.asarray(value)
            finite = np.isfinite(rows).reshape(len(rows), -1).all(1)
            leaf.field.check(path, rows[finite] if finite.any() else rows)


# Domains ------------------------------------------------------------------------------


class FreeParameter(eqx.Module):
    """A number, or the inertia of a body, that may be changed, and its domain."""

    path: str = eqx.field(static=True)
    transform: AbstractTransform = eqx.field(default_factory=Unbounded)


def as_free(free: Sequence[FreeParameter | str]) -> tuple[FreeParameter, ...]:
    """Bare paths become unbounded ones."""
    if not free:
        raise ValueError("no free parameter is named")
    return tuple(FreeParameter(f) if isinstance(f, str) else f for f in free)


def pack(model: PyTree, free: Sequence[FreeParameter | str]) -> dict[str, Array]:
    """The free numbers of a model, unconstrained, by path."""
    theta = {}
    for f in as_free(free):
        if isinstance(f.transform, PhysicalInertia):
            leaves = ("mass", "p_BC", "I_BC")
            inside = {
                leaf: get_parameters(model, f"{f.path}.{leaf}") for leaf in leaves
            }
        else:
            inside = get_parameters(model, f.path)
        value = f.transform.unconstrain(inside)
        if known(value) and not np.all(np.isfinite(value)):
            raise ValueError(
                f"{f.path!r} = {inside} is not inside the domain of "
                f"{type(f.transform).__name__}"
            )
        theta[f.path] = value
    return theta


def unpack(
    model: PyTree, free: Sequence[FreeParameter | str], theta: Mapping[str, Array]
) -> PyTree:
    """The model with its free numbers replaced; all else is shared."""
    values = {}
    for f in as_free(free):
        inside = f.transform.constrain(theta[f.path])
        if isinstance(inside, dict):
            values |= {f"{f.path}.{leaf}": x for leaf, x in inside.items()}
        else:
            values[f.path] = inside
    return with_parameters(model, values)
