"""Types of arrays by the field's names, and converters of parameters in SI units."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float


Scalar = Float[Array, ""]
Vec3 = Float[Array, "3"]
Mat3 = Float[Array, "3 3"]
Quat = Float[Array, "4"]
Vec6 = Float[Array, "6"]
Mat6 = Float[Array, "6 6"]
Number = float | int
Numbers = ArrayLike | Sequence[Any]  # whatever becomes an array


def known(*values: Any) -> bool:
    """Whether these are numbers, not stand-ins in a trace: only then can we look."""
    return not any(isinstance(value, Tracer) for value in values)


@dataclasses.dataclass(frozen=True)
class si:
    """Converter of a field that holds a parameter: an array of floats, in `unit`.

    A Python float in a module would be static to `jit` and invisible to `grad`.
    `at_least` and `above` bound the values that may be given.
    """

    unit: str
    at_least: float | None = None
    above: float | None = None

    def __call__(self, x: Numbers) -> Float[Array, "..."]:
        return jnp.asarray(x, dtype=float)

    def check(self, what: str, value: np.ndarray) -> None:
        """Raises where a value is not a number or outside the bounds."""
        unit, low = f" {self.unit}" if self.unit else "", np.min(value, initial=np.inf)
        if np.isnan(value).any():
            raise ValueError(f"{what} must be a number, got nan")
        if self.at_least is not None and low < self.at_least:
            raise ValueError(
                f"{what} must be at least {self.at_least:g}{unit}, got {low:g}"
            )
        if self.above is not None and low <= self.above:
            raise ValueError(f"{what} must be above {self.above:g}{unit}, got {low:g}")


@dataclasses.dataclass(frozen=True)
class optional:
    """Converter of a parameter that may be absent: None stays None."""

    present: si

    def __call__(self, x: Numbers | None) -> Float[Array, "..."] | None:
        return None if x is None else self.present(x)


def converter_of(field: dataclasses.Field) -> si | None:
    """The `si` of a field that holds a parameter."""
    converter = field.metadata.get("converter")
    converter = converter.present if isinstance(converter, optional) else converter
    return converter if isinstance(converter, si) else None


def check_values(module: Any) -> None:
    """Raises where a parameter is not a number or outside its field's bounds."""
    for field in dataclasses.fields(module):
        converter, value = converter_of(field), getattr(module, field.name)
        if converter is not None and value is not None and known(value):
            what = f"{type(module).__name__}.{field.name}"
            converter.check(what, np.asarray(value))
