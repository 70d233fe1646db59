"""What sits on a line between its ends."""

from typing import Any

import equinox as eqx

from ..parts.external import as_time_function
from ..typing import Scalar, check_values, si


class PointMass(eqx.Module):
    """A mass on the line, `position` from its tail before any is paid out there."""

    position: Scalar = eqx.field(converter=si("m", at_least=0.0))
    mass: Scalar = eqx.field(converter=si("kg", at_least=0.0))
    volume: Scalar = eqx.field(converter=si("m^3", at_least=0.0), default=0.0)

    def __check_init__(self):
        check_values(self)


class PointForce(eqx.Module):
    """A force on the line, a function of time, at a `position` as of a mass."""

    position: Scalar = eqx.field(converter=si("m", at_least=0.0))
    force: Any = eqx.field(converter=as_time_function)

    def __check_init__(self):
        check_values(self)
