"""Bodies that bend: beams and finite-element models in the floating frame of reference.

Read in this order: `sections`, `beams` and `finite_elements` (models as mass and
stiffness matrices), `reduction` (few modes in place of many nodes), `shape_integrals`
(how inertia changes with the shape), `body` (a body of a mechanism), `motion` (its
kinematics and forces at an instant).
"""

from .beams import Beam as Beam, Piece as Piece
from .body import (
    FlexibleBody as FlexibleBody,
    reduced_mechanism as reduced_mechanism,
    shape_points as shape_points,
)
from .finite_elements import (
    FiniteElements as FiniteElements,
    read_finite_elements as read_finite_elements,
)
from .reduction import (
    ReductionReport as ReductionReport,
    craig_bampton as craig_bampton,
    guyan as guyan,
    krylov as krylov,
    reduction_report as reduction_report,
    vibration_modes as vibration_modes,
)
from .sections import (
    Hollow as Hollow,
    Rectangle as Rectangle,
    Section as Section,
    Tube as Tube,
)
