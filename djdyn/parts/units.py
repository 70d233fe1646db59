"""Units of the signals that a part sends: its outputs and states."""

import enum
from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable


class JointUnit(enum.Enum):
    """A unit that follows from the part's `joint` or `joints`, such as N m or N."""

    COORDINATE = enum.auto()
    SPEED = enum.auto()
    FORCE = enum.auto()


class SameUnit(NamedTuple):
    """The unit of another signal, whose name is in this field of the part."""

    field: str


Unit = str | JointUnit | SameUnit


@runtime_checkable
class DeclaresUnits(Protocol):
    """A part that says the units of its outputs and states, by name.

    Signals that it leaves out have no unit, and so have all signals of a part that does
    not declare `signal_units`, which is usually a class variable.
    """

    @property
    def signal_units(self) -> Mapping[str, Unit]:
        """Units by the name of the output or state."""
        ...
