"""A number beside the number it should be."""

import math
from typing import NamedTuple


class Check(NamedTuple):
    """One row of a comparison: what was found, what was expected, how close is close.

    Without a `reference` the value is only reported; without a `tolerance` the
    difference is shown but not judged. What is not a number never passes.
    """

    quantity: str
    unit: str
    value: float
    reference: float | None = None
    tolerance: float | None = None
    note: str = ""

    @property
    def difference(self) -> float | None:
        """`value - reference`."""
        return None if self.reference is None else self.value - self.reference

    @property
    def passed(self) -> bool | None:
        """Whether the difference is inside the tolerance; None if nothing is judged."""
        if self.difference is None or self.tolerance is None:
            return False if math.isnan(self.value) else None
        return bool(abs(self.difference) <= self.tolerance)  # False with NaN


def check(row: "Check | tuple | list") -> Check:
    """A `Check` from a row of plain values, which may stop early."""
    if not 3 <= len(row) <= 6:
        raise ValueError(
            f"a comparison row is (quantity, unit, value, reference, tolerance, note), "
            f"the last three optional, not {row!r}"
        )
    quantity, unit, *numbers = row[:5]
    try:
        numbers = [None if number is None else float(number) for number in numbers]
    except (TypeError, ValueError):
        raise ValueError(
            f"comparison row {quantity!r} holds what is no number"
        ) from None
    value, reference, tolerance = (*numbers, None, None)[:3]
    if value is None:
        raise ValueError(f"comparison row {quantity!r} has no value")
    if reference is None and tolerance is not None:
        raise ValueError(
            f"comparison row {quantity!r} has a tolerance but no reference"
        )
    if tolerance is not None and tolerance < 0:
        raise ValueError(f"comparison row {quantity!r} has a negative tolerance")
    note = row[5] if len(row) == 6 else ""
    return Check(str(quantity), str(unit), value, reference, tolerance, str(note or ""))
