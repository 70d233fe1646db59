"""Types and shapes are checked while tests run."""

import jax.numpy as jnp
import pytest

from djdyn.kernels.ir.slots import assign
from djdyn.multibody.spatial import mirror, quat_to_rotation


@pytest.mark.parametrize(
    "call",
    [
        lambda: quat_to_rotation(jnp.zeros(3)),
        lambda: quat_to_rotation(jnp.zeros(4, int)),
        lambda: mirror(jnp.zeros((2, 3))),  # one name for two lengths
        lambda: assign(3, set()),  # pyright: ignore
    ],
)
def test_a_wrong_argument_is_refused(call):
    with pytest.raises(Exception, match="violates type hint"):
        call()
