r"""Contacts of a MuJoCo model as groups of contact pairs, with friction.

MuJoCo's filters decide which pairs of geoms may touch. All pairs with the same
friction and `solref` share a law: a spring and damper with MuJoCo's time constant $T$
and damping ratio $\zeta$ on the median $m$ of the pairs' effective masses,

$$K = \frac{m}{(T\zeta)^2},\qquad D = \frac{2m}{T} .$$
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from ..contact.friction import Coulomb
from ..contact.group import ContactGroup
from ..contact.normal import KelvinVoigt
from ..contact.rounded_hull import hull_sizes, rounded_hulls
from ..contact.shapes import (
    AbstractShape,
    AbstractSolid,
    Capsule,
    Cuboid,
    Cylinder,
    HalfSpace,
    Polyhedron,
    Sphere,
)
from .mjcf_draft import SystemDraft
from .mjcf_frames import geom_frame
from .mjcf_joints import has, stop_constants
from .unsupported import disabled, geom_name, import_mujoco, touching_pairs


HULL_CORNERS = 24  # the most that a mesh's convex hull keeps
NEAREST = 16  # pairs of solids that the narrow phase looks at
DAMPING_DEPTH = 1e-4  # m, over which a contact's damper comes in


class Surface(NamedTuple):
    """What two geoms' contact is like: pairs that share it share a law."""

    friction: float
    spinning: float
    rolling: float
    solref: tuple[float, float]


def read_contacts(draft: SystemDraft) -> None:
    """Adds the contacts that the file asks for."""
    model = draft.model
    if disabled(model, "CONSTRAINT", "CONTACT") or not draft.wants("contact"):
        return
    pairs = touching_pairs(model)
    used = sorted({g for pair in pairs for g in pair})
    shapes = {g: geom_shape(model, g) for g in used}
    odd = [g for g, shape in shapes.items() if shape is None]
    odd += [g for g in used if has(model, "geom_surfacevel", g)]
    for g in odd:
        draft.refuse("contact", f"{geom_name(model, g)} (of this kind)")
    if odd:
        return
    surfaces: dict[Surface, list[tuple[int, int]]] = {}
    for i, j in pairs:
        surfaces.setdefault(pair_surface(model, i, j), []).append((i, j))
    for surface, members in surfaces.items():
        _add_groups(draft, surface, members, shapes)


def _add_groups(
    draft: SystemDraft,
    surface: Surface,
    pairs: list[tuple[int, int]],
    shapes: dict[int, Any],
) -> None:
    """Pairs of solids in one group, and a group for each kind of solid on planes."""
    model = draft.model
    is_plane = {g: isinstance(shapes[g], HalfSpace) for pair in pairs for g in pair}
    frames = {g: geom_frame(draft, g) for g in is_plane}
    weight = model.body_invweight0[model.geom_bodyid, 0]
    mass = float(np.median([1 / (weight[i] + weight[j]) for i, j in pairs]))
    stiffness, damping = stop_constants(model, np.array(surface.solref), mass)
    law = {
        "normal": KelvinVoigt(stiffness, damping, DAMPING_DEPTH),
        "friction": Coulomb(surface.friction) if surface.friction else None,
        "rolling": surface.rolling,
        "spinning": surface.spinning,
    }
    among = [p for p in pairs if not any(is_plane[g] for g in p)]
    if among:
        solids = {frames[g]: shapes[g] for pair in among for g in pair}
        allowed = frozenset((frames[i], frames[j]) for i, j in among)
        alike = len({(type(x), hull_sizes(x)) for x in solids.values()}) == 1
        if not alike or any(isinstance(x, Polyhedron) for x in solids.values()):
            solids = rounded_hulls(solids)
        most = min(len(among), NEAREST)
        group = ContactGroup(solids, most=most, allowed=allowed, **law)
        draft.add_part("contact", group)
    on_plane = [(j, i) if is_plane[i] else (i, j) for i, j in pairs]
    on_plane = [(i, j) for i, j in on_plane if is_plane[j]]
    kinds: dict[Any, list[tuple[int, int]]] = {}
    for i, j in on_plane:
        kind = type(shapes[i]).__name__, hull_sizes(shapes[i])
        kinds.setdefault(kind, []).append((i, j))
    for (kind, _), members in kinds.items():
        solids = {frames[i]: shapes[i] for i, _ in members}
        if kind == "Polyhedron":
            solids = rounded_hulls(solids)
        planes = {frames[j]: shapes[j] for _, j in members}
        allowed = frozenset((frames[i], frames[j]) for i, j in members)
        group = ContactGroup(
            solids, most=len(members), against=planes, allowed=allowed, **law
        )
        draft.add_part("ground_contact", group)


def geom_shape(model: Any, g: int) -> AbstractShape | None:
    """The shape of a geom in its own frame; None where there is no counterpart."""
    kinds, size = import_mujoco().mjtGeom, model.geom_size[g]
    kind = int(model.geom_type[g])
    if kind == int(kinds.mjGEOM_PLANE):
        return HalfSpace()
    if kind == int(kinds.mjGEOM_SPHERE):
        return Sphere(size[0])
    if kind == int(kinds.mjGEOM_CAPSULE):
        return Capsule(size[0], 2 * size[1])
    if kind == int(kinds.mjGEOM_CYLINDER):
        return Cylinder(size[0], 2 * size[1])
    if kind == int(kinds.mjGEOM_BOX):
        return Cuboid(2 * size)
    if kind == int(kinds.mjGEOM_MESH):
        return convex_hull(mesh_vertices(model, int(model.geom_dataid[g])))
    return None


def mesh_vertices(model: Any, m: int) -> np.ndarray:
    """The vertices of a mesh, in the axes of the geoms that show it."""
    first = int(model.mesh_vertadr[m])
    return model.mesh_vert[first : first + int(model.mesh_vertnum[m])].astype(float)


def convex_hull(vertices: np.ndarray, corners: int = HULL_CORNERS) -> AbstractSolid:
    """The convex hull of vertices, of at most so many corners.

    Of more, those that reach farthest in evenly spread directions stay, so the hull
    lies within the whole one.
    """
    found = vertices[ConvexHull(vertices).vertices]
    if len(found) > corners:
        k = np.arange(corners) + 0.5
        angle, z = np.pi * (1 + 5**0.5) * k, 1 - 2 * k / corners
        across = np.sqrt(1 - z**2)
        directions = np.stack([across * np.cos(angle), across * np.sin(angle), z])
        centred = found - found.mean(0)
        found = found[np.unique(np.argmax(centred @ directions, axis=0))]
        found = found[ConvexHull(found).vertices]
    return Polyhedron(found)


def pair_surface(model: Any, i: int, j: int) -> Surface:
    """How two geoms touch: by their own pair, or mixed as MuJoCo mixes them."""
    for k in range(model.npair):
        if {int(model.pair_geom1[k]), int(model.pair_geom2[k])} == {i, j}:
            mu = model.pair_friction[k]
            terms, dim = (mu[0], mu[2], mu[3]), int(model.pair_dim[k])
            return _surface(terms, dim, model.pair_solref[k])
    rank = model.geom_priority[i], model.geom_priority[j]
    if rank[0] != rank[1]:
        g = i if rank[0] > rank[1] else j
        terms, dim = tuple(model.geom_friction[g]), int(model.geom_condim[g])
        return _surface(terms, dim, model.geom_solref[g])
    terms = tuple(np.maximum(model.geom_friction[i], model.geom_friction[j]))
    dim = int(max(model.geom_condim[i], model.geom_condim[j]))
    a, b = model.geom_solref[i], model.geom_solref[j]
    weights = model.geom_solmix[i], model.geom_solmix[j]
    share = weights[0] / sum(weights) if sum(weights) > 0 else 0.5
    positive = a[0] > 0 and b[0] > 0
    mixed = share * a + (1 - share) * b if positive else np.minimum(a, b)
    return _surface(terms, dim, mixed)


def _surface(terms: Any, dim: int, solref: np.ndarray) -> Surface:
    slide, spin, roll = (float(x) for x in terms)
    ref = round(float(solref[0]), 9), round(float(solref[1]), 9)
    return Surface(slide * (dim > 1), spin * (dim > 3), roll * (dim > 4), ref)
