"""Array types by the names of the field, and whether a value is known yet."""

from collections.abc import Sequence
from typing import Any

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
