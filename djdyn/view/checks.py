"""Values beside the references and bounds they are judged by."""

import math
from typing import NamedTuple


class Check(NamedTuple):
    """A value, what it should be, and whether it is.

    The value is judged by each of these that is given: within `tolerance` of the
    `reference`, not above `at_most`, not below `at_least`. With none of them it is only
    reported; a `reference` alone is shown but not judged. NaN never passes.
    """

    quantity: str
    unit: str
    value: float
    reference: float | None = None
    tolerance: float | None = None
    note: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def difference(self) -> float | None:
        """`value - reference`."""
        return None if self.reference is None else self.value - self.reference

    @property
    def passed(self) -> bool | None:
        """Whether the value passes all it is judged by; None if it is not judged."""
        if math.isnan(self.value):
            return False
        verdicts = []
        if self.difference is not None and self.tolerance is not None:
            verdicts.append(abs(self.difference) <= self.tolerance)  # False with NaN
        if self.at_most is not None:
            verdicts.append(self.value <= self.at_most)
        if self.at_least is not None:
            verdicts.append(self.value >= self.at_least)
        return all(map(bool, verdicts)) if verdicts else None

    @property
    def allowed(self) -> str:
        """The tolerance and bounds as text: "± 0.1", "<= 1", ">= 0.5"."""
        limits = {"± ": self.tolerance, ">= ": self.at_least, "<= ": self.at_most}
        return ", ".join(f"{k}{x:.3g}" for k, x in limits.items() if x is not None)


def check(row: "Check | tuple | list") -> Check:
    """Return a `Check` from a row of plain values; trailing values may be left out."""
    if not 3 <= len(row) <= 8:
        raise ValueError(
            f"a comparison row is (quantity, unit, value, reference, tolerance, note, "
            f"at_most, at_least), the last five optional, not {row!r}"
        )
    quantity, unit, value, reference, tolerance, note, at_most, at_least = (
        *row,
        *(None,) * (8 - len(row)),
    )
    numbers = (value, reference, tolerance, at_most, at_least)
    try:
        numbers = [None if number is None else float(number) for number in numbers]
    except (TypeError, ValueError):
        raise ValueError(
            f"comparison row {quantity!r} holds what is no number"
        ) from None
    value, reference, tolerance, at_most, at_least = numbers
    if value is None:
        raise ValueError(f"comparison row {quantity!r} has no value")
    if reference is None and tolerance is not None:
        raise ValueError(
            f"comparison row {quantity!r} has a tolerance but no reference"
        )
    if tolerance is not None and tolerance < 0:
        raise ValueError(f"comparison row {quantity!r} has a negative tolerance")
    if at_most is not None and at_least is not None and at_most < at_least:
        raise ValueError(f"comparison row {quantity!r} has bounds no value can meet")
    return Check(
        str(quantity),
        str(unit),
        value,
        reference,
        tolerance,
        str(note or ""),
        at_most,
        at_least,
    )
