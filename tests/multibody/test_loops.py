"""Closed loops beside maximal coordinates, worked numbers and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.multibody.closing import close
from djdyn.multibody.dynamics import accelerations, forward
from djdyn.multibody.kinematics import forward_kinematics
from djdyn.multibody.loop_rows import loop_reaction, loop_rows
from tests.multibody.loops import four_bar, random_loops
from tests.multibody.maximal import maximal_accelerations


Z0 = jnp.array([1.0471975512, -0.4712364173, -2.1531605647])
KINDS = (
    djdyn.Fixed(),
    djdyn.Revolute((1.0, 2.0, -1.0)),
    djdyn.Prismatic((0.0, 1.0, 1.0)),
    djdyn.Cylindrical((1.0, 0.0, 0.3)),
    djdyn.Universal(),
    djdyn.Spherical(),
    djdyn.Planar(),
    djdyn.Cartesian(),
    djdyn.PointOnLine((0.2, 1.0, 0.0)),
    djdyn.PointOnPlane((0.0, 0.6, 0.8)),
    djdyn.Distance(1.3),
)
WAYS = (
    djdyn.Projection(),
    djdyn.Multipliers(),
    djdyn.Penalty(),
    djdyn.AugmentedLagrangian(),
    djdyn.Elimination(("crank",)),
)


def compare(seed: int) -> None:
    """A random tree with random loops beside maximal coordinates."""
    mechanism, q, v = random_loops(seed, KINDS)
    world = forward_kinematics(mechanism, q, v)
    rows = loop_rows(world)
    assert np.abs(rows.gap).max() < 1e-12
    tau = jnp.zeros(mechanism.nv)
    v_dot, rows, sizes = close(world, forward(world, tau))
    A, wrenches = maximal_accelerations(mechanism, q, v)
    np.testing.assert_allclose(accelerations(world, v_dot)[1:], A, atol=1e-8, rtol=1e-8)
    J = np.asarray(rows.jacobian)
    if np.linalg.matrix_rank(J, 1e-6) == len(J):  # else reactions are not determined
        for name, F in wrenches.items():
            mine = loop_reaction(world, rows, sizes, name)
            np.testing.assert_allclose(mine, F, atol=1e-7 * max(1, np.abs(F).max()))


@pytest.mark.parametrize("seed", range(6))
def test_random_loops_beside_maximal_coordinates(seed):
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 50))
def test_more_random_loops_beside_maximal_coordinates(seed):
    compare(seed)


@pytest.mark.parametrize("way", WAYS, ids=lambda w: type(w).__name__)
def test_four_bar_accelerations(way):
    """Digest V8: rods of 1, 3 and 2.5 m on a base of 3 m, crank at 60 degrees."""
    mechanism = four_bar(way)
    v_dot = djdyn.forward_dynamics(mechanism, Z0, jnp.zeros(3), jnp.zeros(3))
    # Z0's ten digits; the error of the penalty is 17.3 over its stiffness.
    near = 3e-6 if isinstance(way, djdyn.Penalty) else 2e-8
    stated = [-4.2188011247, 5.0513567807, -1.7498771904]
    np.testing.assert_allclose(v_dot, stated, atol=near)


def test_joint_and_loop_give_the_same_reaction():
    """The pin that closes the four-bar, and the same pin as the tree's joint."""
    mechanism, q = four_bar(djdyn.Projection()), None
    system = djdyn.System(mechanism)
    y = system.initial_state(q={"crank": Z0[0]})
    now = system.at(0.0, y)
    crank = np.asarray(now.reaction("crank"))  # carried by the ground at the crank
    pin = np.asarray(now.reaction("pin"))
    R = np.asarray(now.world.pose("end").R)
    weight = 9.81 * sum(float(b.mass) for b in mechanism.bodies)
    crank_W = np.asarray(now.world.X_WB.R[1]) @ crank[3:]
    A = np.asarray(now.A_WB)[1:, 3:]
    w = np.asarray(now.world.V_WB)[1:, :3]
    inertia = np.zeros(3)
    for i, body in enumerate(mechanism.bodies):
        c = np.asarray(now.world.X_WB.R[i + 1] @ body.p_BC)
        alpha = np.asarray(now.A_WB)[i + 1, :3]
        a = A[i] + np.cross(alpha, c) + np.cross(w[i], np.cross(w[i], c))
        inertia += float(body.mass) * a
    total = crank_W + R @ pin[3:] - np.array([0, 0, weight])
    np.testing.assert_allclose(total, inertia, atol=1e-9)
    del q


def test_gaps_decay_as_critically_damped():
    """Digest V9: an initial gap closes as (1 + 10 t) exp(-10 t)."""
    system = djdyn.System(four_bar(djdyn.AugmentedLagrangian(stiffness=1e9)))
    q = Z0.at[1].add(0.002)
    y = djdyn.State(q, jnp.zeros(3), {})
    field = lambda q, v: djdyn.forward_dynamics(system.mechanism, q, v, jnp.zeros(3))

    @jax.jit
    def run(y):
        h = 5e-4

        def rate(z):
            return jnp.concatenate([z[3:], field(z[:3], z[3:])])

        def step(z, _):
            k1 = rate(z)
            k2 = rate(z + h / 2 * k1)
            k3 = rate(z + h / 2 * k2)
            k4 = rate(z + h * k3)
            z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return z, z[:3]

        _, qs = jax.lax.scan(step, jnp.concatenate([y.q, y.v]), None, 2000)
        gap = lambda q: loop_rows(forward_kinematics(system.mechanism, q)).gap
        return gap(y.q), jax.vmap(gap)(qs)

    first, gaps = run(y)
    # The rows are in the frame of the ground: x, z are their first and third.
    np.testing.assert_allclose(
        np.abs(first[jnp.array([0, 2])]), [0.00172705, 0.00500173], atol=2e-8
    )
    for n, ratio in ((200, 0.735759), (1000, 0.040428), (2000, 4.994e-4)):
        found = np.linalg.norm(gaps[n - 1]) / np.linalg.norm(first)
        assert found == pytest.approx(ratio, rel=2e-4)


def test_gears_add_the_inertia_of_what_they_drive():
    """A pinion that turns a wheel three times as slowly feels a ninth of it."""
    spin = lambda name, I: djdyn.Body(
        name, "world", djdyn.Revolute(), 1.0, I_BC=jnp.eye(3) * I
    )
    gears = djdyn.LinearCoupling("mesh", {"pinion": 1.0, "wheel": 3.0})
    bodies = (spin("pinion", 0.2), spin("wheel", 1.8))
    mechanism = djdyn.Mechanism(bodies, loops=(gears,))
    v_dot = djdyn.forward_dynamics(
        mechanism, jnp.zeros(2), jnp.zeros(2), jnp.array([1.0, 0.0])
    )
    np.testing.assert_allclose(v_dot, [1 / 0.4, -1 / 1.2], rtol=1e-9)
    system = djdyn.System(mechanism)
    moment = system.at(0.0, system.initial_state()).reaction("mesh")
    assert abs(float(moment[0])) < 1e-12  # at rest nothing is carried


def test_a_joint_follows_a_polynomial():
    """MJCF's polynomial coupling, differentiated by hand."""
    law = djdyn.PolynomialCoupling("cam", "b", "a", (0.1, 0.5, -0.3, 0.2))
    slide = lambda name: djdyn.Body(name, "world", djdyn.Prismatic(), 1.0)
    mechanism = djdyn.Mechanism((slide("a"), slide("b")), (), (0, 0, 0), (law,))
    system = djdyn.System(mechanism)
    y = system.initial_state(q={"a": 0.7}, v={"a": 2.0})
    x, s = 0.7, 0.5 - 0.6 * 0.7 + 0.6 * 0.49
    np.testing.assert_allclose(
        y.q, [x, 0.1 + 0.5 * x - 0.3 * x**2 + 0.2 * x**3], rtol=1e-12
    )
    np.testing.assert_allclose(y.v, [2.0, 2 * s], rtol=1e-12)
    # a + s b = 0 from the loop's force, with b'' = s a'' + (d2 f) v^2.
    bend = (-0.6 + 1.2 * x) * 4
    a = -s * bend / (1 + s * s)
    v_dot = djdyn.forward_dynamics(mechanism, y.q, y.v, jnp.zeros(2))
    np.testing.assert_allclose(v_dot, [a, s * a + bend], rtol=1e-9)


def test_a_moving_rod_does_work_that_the_ledger_books():
    """A mass hung on a rod that is drawn in: the rod's end is a winch."""
    ball = djdyn.Body("ball", "world", djdyn.Cartesian(), 2.0)
    rod = djdyn.Distance(2.0, extension=djdyn.Harmonic(0.2, 3.0))
    pivot = djdyn.Frame("pivot", "world")
    mechanism = djdyn.Mechanism(
        (ball,), (pivot,), loops=(djdyn.Loop("rod", "pivot", "ball", rod),)
    )
    system = djdyn.System(mechanism)
    y = system.initial_state(q=[0.5, 0.0, -1.9], v=[0.0, 0.8, 0.0])
    run = djdyn.simulate(system, 1.0, y, ledger=True, rtol=1e-9, atol=1e-9, saveat=11)
    assert np.abs(djdyn.energy_balance(system, run)).max() < 1e-6
    length = np.linalg.norm(run.q("ball"), axis=1)
    np.testing.assert_allclose(length, 2 + 0.2 * np.sin(3 * run.t), atol=1e-12)
    assert np.ptp(run.energy()) > 1.0  # it did work


def test_a_disc_that_rolls_down_a_plane():
    """Acceleration 2/3 g sin(slope), and no slip."""
    slope, r = 0.3, 0.4
    ground = djdyn.Frame("ground", "world", djdyn.pose_rpy((0, 0, 0), (0, slope, 0)))
    I = jnp.diag(jnp.array([r * r / 4, r * r / 2, r * r / 4]))
    wheel = djdyn.Body("wheel", "world", djdyn.Free(), 1.0, I_BC=I)
    roll = djdyn.Loop("roll", "ground", "wheel", djdyn.RollingDisc(r))
    mechanism = djdyn.Mechanism((wheel,), (ground,), loops=(roll,))
    X = ground.X_BF
    q = jnp.concatenate(
        [
            X.act(jnp.array([0, 0, r])),
            jnp.array([np.cos(slope / 2), 0, np.sin(slope / 2), 0]),
        ]
    )
    v = jnp.concatenate([jnp.array([0, 2.0, 0]), X.R @ jnp.array([2.0 * r, 0, 0])])
    assert djdyn.degrees_of_freedom(mechanism, q).degrees == 3
    v_dot = djdyn.forward_dynamics(mechanism, q, v, jnp.zeros(6))
    down = X.R.T @ v_dot[3:]
    np.testing.assert_allclose(down, [2 / 3 * 9.81 * np.sin(slope), 0, 0], atol=1e-8)


def test_freedoms_are_counted():
    """A planar four-bar of hinges: five rows, of which three say the same."""
    found = djdyn.degrees_of_freedom(four_bar(djdyn.Projection()))
    assert found == (3, 5, 2) and found.degrees == 1
    assert "1 degrees of freedom" in str(four_bar(djdyn.Projection()))


def test_assembly_has_the_derivative_of_the_implicit_function():
    mechanism = four_bar(djdyn.Projection())

    def angle(crank):
        q = Z0.at[0].set(crank)
        return djdyn.assemble(mechanism, q, hold=("crank",))[2]

    forward, reverse = jax.jacfwd(angle)(Z0[0]), jax.grad(angle)(Z0[0])
    h = 1e-5
    slope = (angle(Z0[0] + h) - angle(Z0[0] - h)) / (2 * h)
    np.testing.assert_allclose([forward, reverse], slope, rtol=1e-7)


def test_equilibrium_of_a_loop():
    """A hanging four-bar rests where its mass centre is lowest."""
    system = djdyn.System(four_bar(djdyn.Projection()))
    q = djdyn.assemble(system.mechanism, jnp.array([-1.2, 0.5, 1.8]))
    rest = djdyn.equilibrium(system, system.initial_state(q=q))
    energy = lambda a: system.energy(
        0.0,
        system.initial_state(
            q=djdyn.assemble(system.mechanism, rest.q.at[0].set(a), hold=("crank",))
        ),
    )
    a, h = rest.q[0], 1e-3
    low, mid, high = energy(a - h), energy(a), energy(a + h)
    assert mid < low and mid < high
    assert abs(float(high - low)) / (2 * h) < 1e-6 * 60
    gap = loop_rows(forward_kinematics(system.mechanism, rest.q)).gap
    assert np.abs(gap).max() < 1e-9


@pytest.mark.parametrize(
    "build, said",
    [
        (
            lambda p: djdyn.Loop("l", "end", "rocker", djdyn.Fixed()),
            "two frames of body 'rocker'",
        ),
        (
            lambda p: djdyn.Loop("l", "end", "nowhere", djdyn.Fixed()),
            "unknown frame 'nowhere'",
        ),
        (
            lambda p: djdyn.Loop("crank", "end", "pivot", djdyn.Fixed()),
            "has the name of",
        ),
        (
            lambda p: djdyn.LinearCoupling("l", {"crank": 1, "knee": 2}),
            "unknown joint 'knee'",
        ),
        (lambda p: djdyn.LinearCoupling("l", {}), "names no joint"),
        (lambda p: djdyn.Loop("l", "end", "pivot", djdyn.Free()), "closes nothing"),
    ],
)
def test_bad_loops_are_refused_in_a_sentence(build, said):
    mechanism = four_bar(djdyn.Projection())
    with pytest.raises(ValueError, match=said):
        djdyn.Mechanism(mechanism.bodies, mechanism.frames, loops=(build(mechanism),))


def test_impossible_closure_names_the_loop_and_its_gap():
    mechanism = four_bar(djdyn.Projection(), ground=9.0)
    with pytest.raises(
        djdyn.AssemblyError, match="loop 'pin' does not close: a gap of"
    ):
        djdyn.assemble(mechanism, Z0)
    system = djdyn.System(four_bar(djdyn.Projection()))
    with pytest.raises(ValueError, match="'pin' does not stay closed with crank, coup"):
        system.initial_state(q=Z0, v={"crank": 1.0, "coupler": 0.0})
    with pytest.raises(ValueError, match="open loops: loop 'pin' does not close"):
        djdyn.simulate(system, 0.1, djdyn.State(Z0 + 0.1, jnp.zeros(3), {}))
