"""Linear analysis of systems about a state.

Read `linearise` (state-space models, linear-quadratic regulators), then `margins`
(stability margins of a loop opened at a signal).
"""

from .linearise import Linear as Linear, linearise as linearise, lqr as lqr
from .margins import (
    STABILITY_TOLERANCE as STABILITY_TOLERANCE,
    Margins as Margins,
    margins as margins,
)
