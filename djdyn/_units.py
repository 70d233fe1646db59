"""Units live on the field they belong to, where reports and scenarios can read them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


@dataclasses.dataclass(frozen=True)
class si:
    """Converter of a field that holds a parameter: an array of floats, in `unit`.

    A Python float in a module would be static to `jit` and invisible to `grad`.
    """

    unit: str

    def __call__(self, x: ArrayLike | Sequence[Any]) -> Float[Array, "..."]:
        return jnp.asarray(x, dtype=float)


def unit_of(field: dataclasses.Field) -> str:
    """The unit of a field made with `si`, or an empty string."""
    converter = field.metadata.get("converter")
    return converter.unit if isinstance(converter, si) else ""
