"""Arrays as a user gives them, or one sentence that names what is wrong with them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike


# To beartype, `ArrayLike` holds complex numbers, but neither floats nor integers.
Numbers = ArrayLike | Sequence[Any] | float | int


def numbers(
    value: Numbers, what: str, name: str, *shapes: tuple[int | None, ...]
) -> Float[np.ndarray, "..."]:
    """`value` as floats in one of the `shapes`, where None is any length."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} of {name!r} is not an array of numbers") from None
    if any(_fits(array.shape, shape) for shape in shapes):
        return array
    spelled = [
        "[" + ", ".join("n" if n is None else str(n) for n in shape) + "]"
        for shape in shapes
    ]
    raise ValueError(
        f"{what} of {name!r} must have shape {' or '.join(spelled)}, "
        f"not {list(array.shape)}"
    )


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        n in (None, m) for n, m in zip(wanted, shape, strict=True)
    )


def positive(value: Numbers, what: str, name: str) -> float:
    """`value` as a length."""
    size = float(numbers(value, what, name, ()))
    if not 0 < size < np.inf:
        raise ValueError(f"{what} of {name!r} must be positive, not {size:g}")
    return size


def positive_or_none(value: Numbers | None, what: str, name: str) -> float | None:
    """`value` as a length, if there is one."""
    return None if value is None else positive(value, what, name)


def increasing(t: Numbers, name: str) -> Float[np.ndarray, " T"]:
    """`t` as times."""
    times = numbers(t, "times", name, (None,))
    if not len(times) or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise ValueError(f"times of {name!r} must be finite and strictly increasing")
    return times


def together(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with as many key frames as the longer; one may stand still."""
    frames = max(len(a), len(b))
    return (
        np.broadcast_to(a, (frames, *a.shape[1:])),
        np.broadcast_to(b, (frames, *b.shape[1:])),
    )
