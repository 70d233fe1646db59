"""Tables of a scenario file: checked values, and errors that name file and key."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..files import one_line
from ..multibody.spatial import Pose, pose_rpy, quat_to_rotation
from ..typing import converter_of
from .scenario_kinds import CONTACTS, INNER, TOUCHING
from .scenario_limits import check_field, shown


POSE = ("position", "roll_pitch_yaw", "quaternion")  # keys of a place
SHARED = ("fluid", "ground")  # of the environment, by all parts that take them


class ScenarioError(ValueError):
    """What is wrong in a scenario file, and where."""


class TablePlace:
    """A spot in a file, for messages."""

    def __init__(self, file: str, *keys: str):
        self.file, self.keys = file, keys

    def __truediv__(self, key: str) -> "TablePlace":
        return TablePlace(self.file, *self.keys, key)

    def error(self, reason: Any) -> ScenarioError:
        """Return an error that gives the file, the key and the reason."""
        where = f"{'.'.join(self.keys)}: " if self.keys else ""
        return ScenarioError(f"{one_line(self.file)}: {one_line(f'{where}{reason}')}")

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Turn whatever is raised inside into an error that says where it was."""
        try:
            yield
        except ScenarioError:
            raise
        except MemoryError as error:
            raise self.error("it asks for more memory than there is") from error
        except RecursionError as error:
            raise self.error("it is nested too deeply") from error
        except (ValueError, TypeError, OSError) as error:
            notes = getattr(error, "__notes__", ())
            raise self.error(" ".join([*notes, str(error)])) from error
        except Exception as error:
            raise self.error(f"{type(error).__name__}: {error}") from error

    def keys_of(self, table: Any, known: Iterable[str], required: Iterable[str] = ()):
        """Checks the keys of a table, and returns it."""
        if not isinstance(table, Mapping):
            raise self.error("expected a table")
        known = tuple(known)
        for key in table:
            if key not in known:
                near = [k for k in known if set(k) >= set(key) or k[:3] == key[:3]]
                hint = ", ".join(near or known)
                raise (self / key).error(f"unknown key; did you mean {hint}?")
        for key in required:
            if key not in table:
                raise self.error(f"key {key!r} is missing")
        return table

    def rows_of(self, rows: Any) -> list[Mapping[str, Any]]:
        """Checks that there is a list of tables, and returns it."""
        if not isinstance(rows, list) or not all(isinstance(x, Mapping) for x in rows):
            raise self.error(f"expected tables, each under [[{self.keys[-1]}]]")
        return rows

    def numbers(self, value: Any, *shapes: tuple[int, ...]) -> np.ndarray:
        """Finite numbers of one of these shapes."""
        try:
            if np.asarray(value).dtype.kind not in "iuf":  # not text, true or a date
                raise ValueError
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise self.error(f"expected numbers, got {shown(value)}") from None
        if shapes and array.shape not in shapes:
            said = " or ".join("x".join(map(str, s)) or "one" for s in shapes)
            raise self.error(f"expected {said} numbers, got {shown(value)}")
        if not np.isfinite(array).all():
            raise self.error(f"numbers must be finite, got {shown(value)}")
        return array

    def build(self, kind: Any, table: Mapping[str, Any]) -> Any:
        """An instance of a module, or the result of a function, from a table."""
        fields = inspect.signature(kind).parameters
        nothing = inspect.Parameter.empty
        required = [name for name, f in fields.items() if f.default is nothing]
        self.keys_of(table, fields, required)
        declared = getattr(kind, "__dataclass_fields__", {})
        numbers = {name for name, f in declared.items() if converter_of(f)}
        inner, values = TOUCHING if kind in CONTACTS else INNER, {}
        for key, value in table.items():
            if isinstance(value, Mapping) and key in ("parts", "solids", "against"):
                items = value.items()
                value = {k: (self / key / k).choose(inner, x) for k, x in items}
            elif isinstance(value, Mapping) and key == "ratios":
                items = value.items()
                value = {k: (self / key / k).numbers(x, ()) for k, x in items}
            elif isinstance(value, Mapping):
                value = (self / key).choose(inner, value)
            elif isinstance(value, list) and any(isinstance(x, Mapping) for x in value):
                # An empty table stands for none.
                one = lambda x, key=key: (self / key).choose(inner, x) if x else None
                value = tuple(map(one, value))
            elif key in numbers:
                value = (self / key).numbers(value)
            if key not in numbers:
                with (self / key).guard():
                    check_field(kind, key, value)
            values[key] = value
        with self.guard():
            return kind(**values)

    def choose(self, kinds: Mapping[str, Callable], table: Any) -> Any:
        """An instance of the kind that the table's `type` names."""
        if not isinstance(table, Mapping) or "type" not in table:
            raise self.error("expected a table with a key 'type'")
        name, rest = table["type"], {k: v for k, v in table.items() if k != "type"}
        if not isinstance(name, str) or name not in kinds:
            raise (self / "type").error(
                f"unknown type {shown(name)}; there are {', '.join(kinds)}"
            )
        return self.build(kinds[name], rest)

    def pose(self, table: Mapping[str, Any]) -> Pose:
        """From `position` and `roll_pitch_yaw` or `quaternion`."""
        get = lambda key, n: (self / key).numbers(table.get(key, (0.0,) * n), (n,))
        if "quaternion" in table and "roll_pitch_yaw" in table:
            raise self.error("give quaternion or roll_pitch_yaw, not both")
        if "quaternion" in table:
            R = quat_to_rotation(jnp.asarray(get("quaternion", 4)))
            return Pose(R, get("position", 3))
        return pose_rpy(get("position", 3), get("roll_pitch_yaw", 3))
