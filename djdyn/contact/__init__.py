"""Shapes that touch, and the forces between them."""

from .contact import Contact as Contact
from .convex import witness as witness
from .friction import (
    AbstractSurfaceFriction as AbstractSurfaceFriction,
    Coulomb as Coulomb,
    Karnopp as Karnopp,
    LuGre as LuGre,
    Stribeck as Stribeck,
)
from .normal import (
    AbstractNormalLaw as AbstractNormalLaw,
    HuntCrossley as HuntCrossley,
    KelvinVoigt as KelvinVoigt,
    dissipation as dissipation,
    hertz_stiffness as hertz_stiffness,
    restitution as restitution,
)
from .overlap import Overlap as Overlap, overlap as overlap
from .pairs import touches as touches
from .pile import Pile as Pile
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
from .touch import Touch as Touch
from .volume import Bed as Bed, VolumeContact as VolumeContact, shared as shared
