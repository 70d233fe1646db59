"""Shapes that touch, and the forces between them."""

from .contact import Contact as Contact
from .contact_points import Touch as Touch
from .convex import witness as witness
from .detection import touches as touches
from .elastic_foundation import (
    Bed as Bed,
    VolumeContact as VolumeContact,
    shared as shared,
)
from .friction import (
    AbstractSurfaceFriction as AbstractSurfaceFriction,
    Coulomb as Coulomb,
    Karnopp as Karnopp,
    LuGre as LuGre,
    Stribeck as Stribeck,
)
from .group import Pile as Pile
from .normal import (
    AbstractNormalLaw as AbstractNormalLaw,
    HuntCrossley as HuntCrossley,
    KelvinVoigt as KelvinVoigt,
    dissipation as dissipation,
    hertz_stiffness as hertz_stiffness,
    restitution as restitution,
)
from .overlap import Overlap as Overlap, overlap as overlap
from .rigid import RigidContact as RigidContact
from .shapes import (
    AbstractShape as AbstractShape,
    AbstractSolid as AbstractSolid,
    Bowl as Bowl,
    Box as Box,
    Capsule as Capsule,
    Cylinder as Cylinder,
    HalfSpace as HalfSpace,
    HeightField as HeightField,
    Polyhedron as Polyhedron,
    Sphere as Sphere,
)
