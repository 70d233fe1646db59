"""Units of measured columns, turned into SI units."""

import functools
from typing import TYPE_CHECKING

import numpy as np


if TYPE_CHECKING:
    import pint


@functools.cache
def _registry() -> "pint.UnitRegistry":
    """Return the table of all units; imported when the first one is named."""
    import pint

    return pint.UnitRegistry(cache_folder=None, autoconvert_offset_to_baseunit=True)


def _parse(unit: str) -> "pint.Unit":
    import pint

    plain = unit.strip().replace("^", "**").replace("·", " ").replace("²", "**2")
    try:
        return _registry().Unit("" if plain in ("", "1", "-") else plain)
    except (pint.PintError, ValueError, TypeError, AttributeError, SyntaxError):
        raise ValueError(f"unknown unit {unit!r}") from None
    except Exception as error:  # its parser raises what Python's tokenizer raises
        raise ValueError(f"unknown unit {unit!r}: {type(error).__name__}") from None


def to_si(values: np.ndarray, unit: str, like: str = "") -> np.ndarray:
    """Return values in SI units, angles in radians.

    **Arguments:**

    - `unit`: their unit, such as `"mm"`, `"deg/s"`, `"kN m"`, `"bar"` or `"%"`.
    - `like`: a unit of what they measure, where that is known. Another kind of quantity
      is refused.
    """
    import pint

    kind = _parse(unit)
    if like and not kind.is_compatible_with(_parse(like)):
        raise ValueError(f"{unit!r} is no unit of what is measured in {like}")
    try:
        with np.errstate(all="ignore"):
            return np.asarray(
                _registry().Quantity(values, kind).to_base_units().magnitude, float
            )
    except pint.PintError as error:
        raise ValueError(f"{unit!r} cannot be converted: {error}") from None
