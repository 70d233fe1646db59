"""The state of a system, shaped like its own derivative."""

import equinox as eqx
from jaxtyping import Array, Float, PyTree


class State(eqx.Module):
    """What is integrated: coordinates, speeds, and the states of the parts."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*_ nv"]
    parts: dict[str, PyTree]
