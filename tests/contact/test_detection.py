"""Contact detection beside hulls of differences, qhull and MuJoCo."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

from djdyn.contact import (
    Capsule,
    Cuboid,
    Cylinder,
    HalfSpace,
    HeightField,
    Polyhedron,
    Sphere,
    find_contacts,
    overlap,
    shared,
    witness,
)
from djdyn.contact.convex import Solid, axes, margins
from djdyn.multibody.spatial import Pose, rotation_y, rotation_z


mujoco = pytest.importorskip("mujoco")
RNG = np.random.default_rng(0)
N = 250


def hull(k: int) -> Polyhedron:
    x = RNG.normal(size=(k, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    return Polyhedron(x * RNG.uniform(0.5, 1.0, 3))


def poses(n: int, spread: float) -> Pose:
    R = Rotation.random(n, RNG).as_matrix()
    return Pose(R, spread * RNG.normal(size=(n, 3)))


def from_triangle(T: np.ndarray) -> float:
    """Distance of the origin."""
    best = np.linalg.norm(T, axis=1).min()
    for k in (2, 3):
        for sub in itertools.combinations(range(3), k):
            base, E = T[sub[0]], np.array([T[i] - T[sub[0]] for i in sub[1:]])
            x = np.linalg.lstsq(E.T, -base, rcond=None)[0]
            if np.all(x >= 0) and x.sum() <= 1:
                best = min(best, np.linalg.norm(base + x @ E))
    return best


def signed_distance(a: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray | None]:
    """Return the distance by the hull of all differences; and the normal of overlap."""
    D = (a[:, None] - b[None]).reshape(-1, 3)
    found = ConvexHull(D)
    top = found.equations[:, 3].argmax()
    if found.equations[top, 3] < 0:
        return found.equations[top, 3], found.equations[top, :3]
    return min(from_triangle(D[s]) for s in found.simplices), None


@pytest.mark.slow
def test_depth_of_a_thousand_pairs():
    """Depth, normal and distance of hulls; a half of the pairs overlap."""
    overlapping = 0
    box = Cuboid([1, 0.8, 0.6])
    pairs = ((9, hull(12)), (12, hull(6)), (8, box), (None, box))
    for k, B in pairs:
        A = Cuboid([0.9, 0.7, 1.1]) if k is None else hull(k)
        X, Y = poses(N, 0.45), poses(N, 0.45)
        near = jax.jit(jax.vmap(lambda X, Y, A=A, B=B: witness(A, X, B, Y)))(X, Y)
        for i in range(N):
            a = np.asarray(A.core() @ X.R[i].T + X.p[None, i])
            b = np.asarray(B.core() @ Y.R[i].T + Y.p[None, i])
            far, n = signed_distance(a, b)
            assert np.isclose(-near.depth[i, 0], far, atol=1e-9)
            if n is not None:
                overlapping += 1
                # moving the first along the normal by the depth frees it
                out = near.n[i, 0] * near.depth[i, 0]
                assert abs(signed_distance(a + np.asarray(out), b)[0]) < 1e-9
    assert 300 < overlapping < 800


def test_boxes_are_separated_by_an_edge():
    """Real-time-multibody V17: only the product of two edges separates at 3.0."""
    cube, expected = Cuboid([2.0, 2.0, 2.0]), {2.8: -0.028427, 3.0: 0.171573}
    for T, margin in expected.items():
        a = Solid.of(cube, Pose(rotation_z(jnp.array(np.pi / 4)), jnp.zeros(3)))
        b = Solid.of(
            cube, Pose(rotation_y(jnp.array(np.pi / 4)), jnp.array([T, 0.0, 0.0]))
        )
        gaps = -np.asarray(margins(a, b, axes(a, b)))
        assert np.isclose(gaps.max(), margin, atol=1e-6)
        assert (gaps[:12].max() > 0) == (T > 3.5)  # the faces alone see nothing
    flat = lambda x, y, angle, p: Solid.of(
        Cuboid([x, y, 2.0]), Pose(rotation_z(jnp.asarray(angle)), jnp.asarray(p))
    )
    a = flat(4.0, 2.0, 0.0, np.zeros(3))
    for p, margin in (((3.0, 1.5, 0.0), 0.116025), ((3.2, 1.0, 0.0), 0.083975)):
        b = flat(2.0, 1.0, np.pi / 6, np.array(p))
        assert np.isclose(-np.min(margins(a, b, axes(a, b))), margin, atol=1e-6)


SHAPES = {
    "sphere": (Sphere(0.4), mujoco.mjtGeom.mjGEOM_SPHERE, [0.4, 0, 0]),
    "capsule": (Capsule(0.2, 0.9), mujoco.mjtGeom.mjGEOM_CAPSULE, [0.2, 0.45, 0]),
    "box": (Cuboid([0.6, 0.8, 1.0]), mujoco.mjtGeom.mjGEOM_BOX, [0.3, 0.4, 0.5]),
}


PAIRS = [("sphere", "box"), ("capsule", "capsule")]
PAIRS += [("capsule", "box"), ("sphere", "capsule")]


@pytest.mark.parametrize("first, second", PAIRS)
def test_distances_are_those_of_mujoco(first, second):
    spec = mujoco.MjSpec()
    for name in (first, second):
        body = spec.worldbody.add_body()
        body.add_freejoint()
        body.add_geom(type=SHAPES[name][1], size=SHAPES[name][2])
    model = spec.compile()
    data = mujoco.MjData(model)
    A, B = SHAPES[first][0], SHAPES[second][0]
    X, Y = poses(100, 0.6), poses(100, 0.6)
    found = jax.jit(jax.vmap(lambda X, Y: witness(A, X, B, Y)))(X, Y)
    compared = 0
    for i in range(100):
        for k, Z in enumerate((X, Y)):
            q = Rotation.from_matrix(np.asarray(Z.R[i])).as_quat(scalar_first=True)
            data.qpos[7 * k : 7 * k + 7] = [*Z.p[i], *q]
        mujoco.mj_kinematics(model, data)
        far = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
        if far > 1e-3:  # its depths of rounded shapes are those of other methods
            compared += 1
            assert np.isclose(-found.depth[i, 0], far, atol=1e-6)
    assert compared > 30


def planes_of(A: Cuboid | Polyhedron, R: np.ndarray, p: np.ndarray):
    n, d = (np.asarray(x) for x in A.planes())
    return n @ R.T, d + n @ R.T @ p


def volume_by_qhull(n: np.ndarray, d: np.ndarray) -> tuple[float, np.ndarray]:
    rim = np.c_[n, np.ones(len(n))]
    inside = linprog([0, 0, 0, -1], rim, d, bounds=[(None, None)] * 4).x
    if inside[3] <= 1e-9:
        return 0.0, np.zeros(3)
    corners = HalfspaceIntersection(np.c_[n, -d], inside[:3]).intersections
    found = ConvexHull(corners)
    middle = corners.mean(0)
    a, b, c = (corners[k] - middle for k in found.simplices.T)
    parts = np.abs(np.sum(a * np.cross(b, c), 1)) / 6
    return parts.sum(), middle + parts @ (a + b + c) / 4 / parts.sum()


def test_shared_volumes():
    """A thousand pairs: boxes aligned, flush, turned, and hulls."""
    both = jax.jit(lambda n, d, p: overlap(n, d, 6, p))
    A, some = hull(9), 0
    for i in range(500):
        size = RNG.uniform(0.4, 2.0, (2, 3))
        R = Rotation.random(2, RNG).as_matrix()
        p = 0.5 * RNG.normal(size=(2, 3))
        R = np.stack([np.eye(3)] * 2) if i % 4 == 0 else R
        if i % 8 == 0:  # flush
            size[1], p[1] = size[0], p[0] + [0.3, 0, 0]
        first = Cuboid(size[0])
        n, d = (
            np.concatenate(x)
            for x in zip(
                planes_of(first, R[0], p[0]),
                planes_of(Cuboid(size[1]), R[1], p[1]),
                strict=True,
            )
        )
        volume, centroid = volume_by_qhull(n, d)
        found = both(n, d, p.mean(0))
        assert np.isclose(found.volume, volume, atol=1e-12)
        if volume > 1e-6:
            some += 1
            assert np.allclose(found.centroid, centroid, atol=1e-8)
    assert some > 300
    n, d = planes_of(A, np.eye(3), np.zeros(3))
    whole = overlap(jnp.asarray(n), jnp.asarray(d), len(n), jnp.full(3, 0.1))
    assert np.isclose(whole.volume, A.volume(), rtol=1e-12)
    assert np.allclose(whole.centroid, A.centre(), atol=1e-12)


def test_gradients_of_depth_normal_and_volume():
    """Face, edge and corner, apart and overlapping: against differences, both modes."""
    A, B = hull(9), Cuboid([1.0, 0.8, 0.6])
    weights = jnp.array([0.3, -0.5, 0.8])

    def value(x, w):
        X = Pose(jnp.eye(3) + jnp.cross(jnp.eye(3), -x[None, 3:]), x[:3])
        Y = Pose(jnp.eye(3), w)
        near = witness(A, X, B, Y)
        volume = shared(A, X, B, Y)
        return near.depth[0] + weights @ near.n[0] + volume.volume

    P = jnp.asarray(0.5 * RNG.normal(size=(40, 3)))
    x0, h = jnp.zeros(6), 1e-6
    reverse = jax.jit(jax.vmap(jax.grad(value), (None, 0)))(x0, P)
    forward = jax.jit(jax.vmap(jax.jacfwd(value), (None, 0)))(x0, P)
    assert jnp.all(jnp.isfinite(reverse))
    assert jnp.allclose(reverse, forward, rtol=1e-9, atol=1e-9)
    many = jax.jit(jax.vmap(value, (None, 0)))
    good = 0
    for k in range(6):
        e = h * jnp.eye(6)[k]
        slope = (many(x0 + e, P) - many(x0 - e, P)) / (2 * h)
        good += int(jnp.sum(jnp.isclose(slope, reverse[:, k], rtol=1e-4, atol=1e-4)))
    assert good == 6 * len(P)


def test_planes_and_terrain():
    """Corners, ends and rims over a plane; a level height field is a plane."""
    X = Pose(rotation_y(jnp.array(0.3)), jnp.array([0.2, 0.1, 0.5]))
    Y = Pose(rotation_y(jnp.array(-0.2)), jnp.array([0.0, 0.0, 0.05]))
    level = HeightField(jnp.zeros((5, 4)), 1.0)
    for shape in (
        Sphere(0.4),
        Capsule(0.2, 0.9),
        Cylinder(0.3, 1.0),
        Cuboid([1, 1, 1]),
    ):
        a = find_contacts(shape, X, HalfSpace(), Y)
        b = find_contacts(shape, X, level, Y)
        for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            assert jnp.allclose(one, other, atol=1e-12)
    # The lowest point of a cylinder's rim, by brute force.
    angle = np.linspace(0, 2 * np.pi, 20001)
    ring = np.stack([0.3 * np.cos(angle), 0.3 * np.sin(angle), 0 * angle], 1)
    up = np.array([0, 0, 0.5])
    rims = np.concatenate([ring - up, ring + up])
    over = (rims @ np.asarray(X.R).T + np.asarray(X.p - Y.p)) @ np.asarray(Y.R[:, 2])
    found = find_contacts(Cylinder(0.3, 1.0), X, HalfSpace(), Y)
    assert np.isclose(-over.min(), found.depth.max(), atol=1e-8)
    slope = HeightField(0.2 * jnp.arange(5.0)[:, None] * jnp.ones((1, 4)), 1.0)
    on_slope = find_contacts(Sphere(0.4), X, slope, Pose(jnp.eye(3), jnp.zeros(3)))
    n = np.array([-0.2, 0, 1]) / np.hypot(0.2, 1)
    assert np.allclose(on_slope.n[0], n)
    assert np.isclose(
        on_slope.depth[0], 0.4 - (np.asarray(X.p) - np.array([0.2, 0, 0.44])) @ n
    )


def test_inertia_of_shapes():
    """Beside trimesh-free MuJoCo: masses and inertias of the same geoms."""
    for name in SHAPES:
        spec = mujoco.MjSpec()
        spec.worldbody.add_body().add_geom(
            type=SHAPES[name][1], size=SHAPES[name][2], density=700.0
        )
        model = spec.compile()
        found = SHAPES[name][0].inertia(700.0)
        assert np.isclose(found["mass"], model.body_mass[1])
        inertia = np.sort(np.diag(found["I_BC"]))
        assert np.allclose(inertia, np.sort(model.body_inertia[1]))
    size = np.array([0.6, 0.8, 1.0])
    moved = Polyhedron(np.asarray(Cuboid(size).core()) + np.array([1.0, 2.0, 3.0]))
    for key, value in Cuboid(size).inertia(700.0).items():
        shift = np.array([1.0, 2.0, 3.0]) if key == "p_BC" else 0.0
        assert np.allclose(moved.inertia(700.0)[key], value + shift)


BAD = {
    "span no volume": lambda: Polyhedron([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]),
    "vertex 4 lies inside": lambda: Polyhedron(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.1, 0.1, 0.1]]
    ),
    "shape \\(k, 3\\)": lambda: Polyhedron([0.0, 1.0]),
    "size must be above 0 m": lambda: Cuboid([1.0, 0.0, 1.0]),
    "radius must be above 0 m": lambda: Sphere(-1.0),
}


@pytest.mark.parametrize("said", BAD)
def test_bad_shapes(said):
    with pytest.raises(ValueError, match=said):
        BAD[said]()


def test_polyhedra_from_meshes(tmp_path):
    """Convex ones are read; a dent is an error."""
    import trimesh

    mesh = trimesh.creation.icosphere(1, 0.5)
    mesh.export(tmp_path / "ball.stl")
    ball = Polyhedron.from_file(tmp_path / "ball.stl")
    assert np.isclose(ball.volume(), mesh.volume)
    assert np.allclose(ball.inertia(1.0)["I_BC"], mesh.moment_inertia, atol=1e-9)
    mesh.vertices[0] *= 0.5
    mesh.export(tmp_path / "dent.stl")
    with pytest.raises(ValueError, match="is not convex"):
        Polyhedron.from_file(tmp_path / "dent.stl")
