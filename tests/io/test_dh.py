"""Denavit-Hartenberg tables, those of published cranes among them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.io import DHLink, dh_initial_q, from_dh
from djdyn.multibody.dynamics import bias_force, forward_dynamics, mass_matrix
from djdyn.multibody.kinematics import forward_kinematics, frame_pose
from djdyn.multibody.spatial import pose_rpy

from ..gradients import assert_gradient, quick_jit
from ..machines import table


CRANE_949 = "4.4.9-4.4.12_palfinger"
CRANE_454 = "4.5.4_all_sim_objects"


def crane_table(case: str) -> list[dict]:
    """A case of Roy, Steinke and Nicoll, *Ship Mechanical Systems API*, 2014."""
    links = [r for r in table("ship_link_properties.csv") if r["case"] == case]
    rows = [r for r in table("ship_dh_parameters.csv") if r["case"] == case]
    return [
        {
            "name": f"link{row['link']}",
            "type": row["joint_type"],
            "alpha": np.deg2rad(float(row["alpha_deg"])),
            "a": float(row["a_m"]),
            "d": float(row["d_m"]),
            "theta": np.deg2rad(float(row["theta_deg"])),
            "mass": float(link["mass_kg"]),
            "com": [float(link[f"cg_{axis}_m"]) for axis in "xyz"],
            "inertia": [float(link[f"I{axis * 2}_kgm2"]) for axis in "xyz"],
        }
        for row, link in zip(rows, links, strict=True)
    ]


def centre(world, name: str) -> np.ndarray:
    body = world.mechanism.bodies[world.mechanism.index(name) - 1]
    return world.pose(name).act(body.p_BC)


@pytest.mark.validation
@pytest.mark.parametrize(
    "case, base, second, elbow, last_centre, tip",
    [
        (
            CRANE_949,
            (-1.35, 0, -1.4),
            (-2, 0, 0),
            (-1, 0, 0),
            (-0.5, 0, 0),
            (0, 0, 0),
        ),
        (
            CRANE_454,
            (0, 0, 0),
            (-0.65, 0, 1.4),
            (0.0571, 0, 2.1071),
            (3.2391, 0, 5.2891),
            (3.5926, 0, 5.6426),
        ),
    ],
)
def test_telescopic_crane_reaches_where_it_should(
    case, base, second, elbow, last_centre, tip
):
    """The payload hangs half a metre beyond the last centre of mass."""
    rows = crane_table(case)
    crane = from_dh(rows, base=pose_rpy(base))
    world = quick_jit(forward_kinematics)(crane, dh_initial_q(rows))
    np.testing.assert_allclose(world.pose("link2").p, second, atol=1e-4)
    np.testing.assert_allclose(world.pose("link3").p, elbow, atol=1e-4)
    np.testing.assert_allclose(centre(world, "link7"), last_centre, atol=1e-4)
    reach = world.pose("link7").act(jnp.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(reach, tip, atol=1e-4)


@pytest.mark.validation
def test_initial_coordinates_are_the_tables_joint_variables():
    q = dh_initial_q(crane_table(CRANE_454))
    expected = [0.0, np.pi / 4, np.pi / 2, 1.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(q, expected)


@pytest.mark.validation
def test_crane_lowered_onto_its_joint_stop():
    """Moment of mass about joint 2 and inertia about it, all other joints rigid."""
    rows = crane_table(CRANE_949)
    crane, q = from_dh(rows, base=pose_rpy((-1.35, 0, -1.4))), dh_initial_q(rows)
    g, M = quick_jit(
        lambda q: (bias_force(crane, q, jnp.zeros(7)), mass_matrix(crane, q))
    )(q)
    np.testing.assert_allclose(g[1], 9.81 * 2026.025, rtol=1e-6)
    np.testing.assert_allclose(M[1, 1], 2855.05, rtol=2e-6)


def matrix(alpha, a, d, theta) -> np.ndarray:
    """Paul's matrix as printed."""
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array(
        [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    )


def random_rows(rng, n=4) -> list[dict]:
    kinds = ["revolute", "prismatic"]
    return [
        {
            "name": f"n{i}",
            "type": kinds[i % 2],
            **dict(zip(("alpha", "a", "d", "theta"), rng.normal(size=4), strict=True)),
            "mass": 1.0,
            "com": rng.normal(size=3),
            "inertia": (1.0, 1.0, 1.0),
        }
        for i in range(n)
    ]


def test_ends_are_products_of_pauls_matrices():
    rng = np.random.default_rng(0)
    rows, q = random_rows(rng), rng.normal(size=4)
    world = quick_jit(forward_kinematics)(from_dh(rows), jnp.asarray(q))
    X = np.eye(4)
    for row, value in zip(rows, q, strict=True):
        moved = "theta" if row["type"] == "revolute" else "d"
        X = X @ matrix(
            **{k: {**row, moved: value}[k] for k in ("alpha", "a", "d", "theta")}
        )
        end = world.pose(f"{row['name']}.end")
        np.testing.assert_allclose(end.p, X[:3, 3], atol=1e-14)
        np.testing.assert_allclose(end.R, X[:3, :3], atol=1e-14)


def test_craigs_table_is_pauls_shifted_by_a_row():
    """Paul's alpha and a of one row are Craig's of the next."""
    rng = np.random.default_rng(1)
    paul, q = random_rows(rng), jnp.asarray(rng.normal(size=4))
    paul[-1] |= {"alpha": 0.0, "a": 0.0}
    before = [{"alpha": 0.0, "a": 0.0}, *paul[:-1]]
    craig = [
        {**row, "alpha": last["alpha"], "a": last["a"]}
        for row, last in zip(paul, before, strict=True)
    ]
    standard = quick_jit(forward_kinematics)(from_dh(paul), q).pose("n3.end")
    modified = quick_jit(forward_kinematics)(
        from_dh(craig, convention="craig"), q
    ).pose("n3.end")
    np.testing.assert_allclose(modified.p, standard.p, atol=1e-14)
    np.testing.assert_allclose(modified.R, standard.R, atol=1e-14)


@pytest.mark.validation
def test_published_double_pendulum_swings_as_point_masses_do():
    """Spheres 10 and 7 m out, nearly hanging, against the planar equations."""
    rows = crane_table("4.4.3_double_pendulum")
    pendulum = from_dh(rows, base=pose_rpy((0, 0, 0), (np.pi / 2, 0, 0)))
    q, v = np.asarray(dh_initial_q(rows)), np.array([0.3, -0.2])
    v_dot = quick_jit(forward_dynamics)(
        pendulum, jnp.asarray(q), jnp.asarray(v), jnp.zeros(2)
    )
    m, I, l1, l2, g = 10.0, 0.018171, 10.0, 7.0, 9.81
    c2, s2, c1, c12 = np.cos(q[1]), np.sin(q[1]), np.cos(q[0]), np.cos(q[0] + q[1])
    m12 = m * (l2**2 + l1 * l2 * c2) + I
    M = [
        [m * (2 * l1**2 + l2**2 + 2 * l1 * l2 * c2) + 2 * I, m12],
        [m12, m * l2**2 + I],
    ]
    h = m * l1 * l2 * s2
    rhs = [
        h * (2 * v[0] * v[1] + v[1] ** 2) - m * g * (2 * l1 * c1 + l2 * c12),
        -h * v[0] ** 2 - m * g * l2 * c12,
    ]
    np.testing.assert_allclose(v_dot, np.linalg.solve(M, rhs), rtol=1e-11)


def test_parameters_of_the_table_have_gradients():
    rng = np.random.default_rng(2)
    rows, q = random_rows(rng), jnp.asarray(rng.normal(size=4))
    free = ("alpha", "a", "d", "theta")
    theta = [{key: jnp.asarray(row[key]) for key in free} for row in rows]

    def reach(theta):
        built = [{**row, **values} for row, values in zip(rows, theta, strict=True)]
        return jnp.sum(frame_pose(from_dh(built), q, "n3.end").p * jnp.arange(1.0, 4.0))

    assert_gradient(reach, theta)
    gradient = jax.jit(jax.grad(reach))(theta)
    assert gradient[0]["theta"] == 0  # the joint variable is `q`, not the table's


@pytest.mark.parametrize(
    "rows, sentence",
    [
        ([], "the table has no rows"),
        ([{"type": "revolute"}], "row 1 has no name"),
        ([{"name": "x", "aplha": 0.1}], "row 1 has unknown aplha"),
        ([{"name": "x", "type": "ball"}], "'x': type must be revolute or prismatic"),
        ([DHLink("x")], "'x': the last of a chain needs mass"),
        ([DHLink("x", mass=1.0), DHLink("x", mass=1.0)], "two bodies are called 'x'"),
    ],
)
def test_bad_tables_are_refused(rows, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_dh(rows)


def test_unknown_convention_is_refused():
    with pytest.raises(ValueError, match="unknown convention 'khalil'; there are paul"):
        from_dh([DHLink("x", mass=1.0)], convention="khalil")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"name": "a", "mass": 1.0, "theta": float("nan")},
            "link 'a': theta must be f",
        ),
        (
            {"name": "a", "mass": 1.0, "com": [0.0, float("inf"), 0.0]},
            "com must be fin",
        ),
        ({"name": "a", "mass": "heavy"}, "link 'a': mass must be finite numbers"),
    ],
)
def test_rows_that_are_no_links_are_named(row, said):
    with pytest.raises(ValueError, match=said):
        dh_initial_q([row])
