"""Contact: shapes, contact detection, and the forces between surfaces.

Read in this order: `shapes`; `contact_points`, `convex` and `detection` (where two
shapes touch); `normal`, `friction` and `surface_law` (the forces there); then the parts
`contact`, `group` (with `rounded_hull`), `elastic_foundation` (with `overlap`) and
`rigid`.
"""

from .contact import Contact as Contact
from .contact_points import ContactPoints as ContactPoints
from .convex import witness as witness
from .detection import find_contacts as find_contacts
from .elastic_foundation import (
    ElasticFoundation as ElasticFoundation,
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
from .group import ContactGroup as ContactGroup
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
from .rounded_hull import RoundedHull as RoundedHull, rounded_hulls as rounded_hulls
from .shapes import (
    AbstractShape as AbstractShape,
    AbstractSolid as AbstractSolid,
    Bowl as Bowl,
    Capsule as Capsule,
    Cuboid as Cuboid,
    Cylinder as Cylinder,
    HalfSpace as HalfSpace,
    HeightField as HeightField,
    Polyhedron as Polyhedron,
    Sphere as Sphere,
)
from .surface_law import ContactForces as ContactForces, SurfaceLaw as SurfaceLaw
