"""Rigid contact: what holds, slides, lifts off and lands, beside closed forms."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.contact import (
    Bowl,
    Contact,
    Cuboid,
    HalfSpace,
    KelvinVoigt,
    RigidContact,
    Sphere,
)
from djdyn.multibody.spatial import quat_from_rotation
from djdyn.parts import PointContactFriction

from ..gradients import assert_gradient


G, M, R, BOWL = 9.81, 2.0, 0.1, 0.5
MU, V0, DROP = 0.2, 1.0, 0.05
BALL = 0.4 * M * R**2 * np.eye(3)


def over(part, joint=None, gravity=(0.0, 0.0, -G), **more) -> djdyn.System:
    body = djdyn.Body("b", "world", joint or djdyn.Free(), M, I_BC=BALL, **more)
    mechanism = djdyn.Mechanism((body,), gravity_W=gravity)
    return djdyn.System(mechanism, {"touch": part} if part else {})


def ball(**how) -> djdyn.System:
    return over(RigidContact("b", Sphere(R), "world", HalfSpace(), **how))


def start(system, z=R, v=(0, 0, 0), w=(0, 0, 0), x=0.0) -> djdyn.State:
    return system.initial_state(q={"b": [x, 0, z, 1, 0, 0, 0]}, v={"b": [*w, *v]})


@eqx.filter_jit
def now(system, y):
    found = system.at(0.0, y)
    reaction = found.reaction("b")
    return found.v_dot, found.signals, found.A_WB, found.constraint_loss(), reaction


@pytest.fixture(scope="module")
def tracks() -> djdyn.Trajectory:
    """Balls on a plane: one slides, one falls on it."""
    system = ball(mu=MU, rate=1000.0)
    lanes = [start(system, v=(V0, 0, 0)), start(system, R + DROP)]
    y0 = jax.tree.map(lambda *x: jnp.stack(x), *lanes)
    how = {"solver": "rk4", "dt": 1e-4, "ledger": True, "saveat": 401}
    return djdyn.rollout(system, 0.4, y0, backend="kernel", **how)


def test_a_ball_at_rest_is_carried():
    system = ball(mu=MU)
    v_dot, signals, *_ = now(system, start(system))
    np.testing.assert_allclose(signals["touch.normal_force"], M * G, rtol=1e-12)
    np.testing.assert_allclose(v_dot, 0.0, atol=1e-12)
    v_dot, *_ = now(system, start(system, v=(1, 0, 0)))
    np.testing.assert_allclose(v_dot[3], -MU * G, rtol=1e-6)


def test_a_ball_that_slides_ends_rolling(tracks):
    """The ball keeps 5/7 of its speed and loses 2/7 of its energy."""
    run = tracks.lane(0)
    np.testing.assert_allclose(run.y.v[-1, 3], 5 / 7 * V0, rtol=1e-4)
    np.testing.assert_allclose(run.y.v[-1, 1] * R, 5 / 7 * V0, rtol=1e-4)
    np.testing.assert_allclose(run.work[-1, 1], M * V0**2 / 7, rtol=1e-4)
    np.testing.assert_allclose(run.y.q[:, 2], R, atol=1e-9)


def test_a_ball_falls_freely_and_lands_without_a_bounce(tracks):
    run = tracks.lane(1)
    z, t = np.asarray(run.y.q[:, 2] - R), np.asarray(run.t)
    falls = t < 0.9 * np.sqrt(2 * DROP / G)
    np.testing.assert_allclose(z[falls], DROP - G * t[falls] ** 2 / 2, atol=1e-9)
    assert z.min() > -1e-6
    np.testing.assert_allclose(z[-1], 0.0, atol=1e-6)
    np.testing.assert_allclose(run.work[-1, 1], M * G * DROP, rtol=1e-5)


def test_energy_balances(tracks):
    gap = djdyn.energy_balance(tracks.system, tracks)
    np.testing.assert_allclose(gap, 0.0, atol=1e-5)
    assert np.all(np.diff(tracks.work[..., 1]) > -1e-8)


def test_a_ball_leaves_the_bowl_where_a_loop_is_too_slow():
    r"""A ball with $v_0^2 = 3.5\,g\ell$ at the bottom leaves at $\cos\theta = -1/2$."""
    bowl = RigidContact("b", Sphere(R), "world", Bowl(BOWL), slack=1e-5)
    system, far = over(bowl), BOWL - R
    y0 = start(system, -far, v=(np.sqrt(3.5 * G * far), 0, 0))
    y0 = eqx.tree_at(lambda y: y.q, y0, y0.q[None])
    how = {"solver": "rk4", "dt": 1e-4, "saveat": 601}
    run = djdyn.rollout(system, 0.6, y0, backend="kernel", **how).lane(0)
    normal_force, gap = run.signal("touch.normal_force"), run.signal("touch.gap")
    leaves = int(np.argmax(np.asarray(normal_force) < 1e-4))
    np.testing.assert_allclose(run.y.q[leaves, 2] / far, 0.5, atol=2e-3)
    assert np.all(np.abs(gap[:leaves]) < 1e-6)
    assert gap[-1] > 0.01


def test_a_box_stands_on_more_corners_than_can_be_told():
    box = RigidContact("b", Cuboid([0.2, 0.2, 0.2]), "world", HalfSpace(), mu=0.5)
    system = over(box)
    v_dot, signals, *_ = now(system, start(system, 0.1))
    np.testing.assert_allclose(signals["touch.normal_force"], M * G, rtol=1e-6)
    np.testing.assert_allclose(v_dot, 0.0, atol=1e-5)


def in_bowl(mu: float) -> tuple[djdyn.System, djdyn.System]:
    """A body on a ball in a bowl: held by its joint, and by a constraint."""
    joint = djdyn.PointContact(djdyn.HollowSphere(BOWL), R)
    rigid = RigidContact("b", Sphere(R), "world", Bowl(BOWL), mu=mu, one_sided=False)
    down = (G, 0.0, 0.0)
    heavy = {"p_BC": (0.02, 0.05, -0.03)}
    grip = PointContactFriction("b", mu=mu)
    return over(grip, joint, down, **heavy), over(rigid, None, down, **heavy)


def same_state(held: djdyn.System, free: djdyn.System, y: djdyn.State) -> djdyn.State:
    world = djdyn.forward_kinematics(held.mechanism, y.q, y.v)
    X, V = world.pose("b"), world.twist("b")
    q = jnp.concatenate([X.p, quat_from_rotation(X.R)])
    return free.initial_state(q=q, v=jnp.concatenate([X.R.T @ V[:3], V[3:]]))


STATE: Any = {"q": [0.3, -0.4, 0.2, 0.1, 0.5], "v": [0.5, 0.3, -2.0, 1.0, 0.4]}


def places(system, y, **how) -> np.ndarray:
    y0 = eqx.tree_at(lambda y: y.q, y, y.q[None])
    run = djdyn.rollout(system, 0.5, y0, solver="rk4", dt=2e-4, saveat=51, **how)
    if "ledger" in how:
        np.testing.assert_allclose(djdyn.energy_balance(system, run), 0.0, atol=1e-6)
        assert run.work is not None
        assert np.all(np.diff(run.work[..., 1]) >= 0)
    return np.asarray(run.pose("b").p[0])


@pytest.mark.slow
def test_a_constraint_moves_a_body_as_the_joint_does():
    held, free = in_bowl(MU)
    y = held.initial_state(**STATE)
    z = same_state(held, free, y)
    (_, a, A, lost, _), (_, b, B, gone, _) = now(held, y), now(free, z)
    press = "touch.normal_force"
    np.testing.assert_allclose(a[press], b[press], rtol=1e-9)
    np.testing.assert_allclose(A, B, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(lost, gone, rtol=1e-9)
    first, second = (places(*s, ledger=True) for s in ((held, y), (free, z)))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_two_condyles_in_two_bowls_swing_as_a_double_pendulum():
    """Its first link is massless, from the bowls' line to that of the balls."""
    arm, down, turn, lean, half = BOWL - R, 0.3, 0.4, -0.5, 0.25
    sides = {"left": half, "right": -half}
    frame = lambda on, name, y: djdyn.Frame(
        f"{on}_{name}", on, djdyn.translation((0, y, 0))
    )
    frames = [frame(on, *side) for on in ("b", "world") for side in sides.items()]
    inertia = {"p_BC": (0, 0, -down), "I_BC": np.diag([0.05, 0.04, 0.03])}
    body = djdyn.Body("b", "world", djdyn.Free(), M, **inertia)
    both = {
        name: RigidContact(
            f"b_{name}", Sphere(R), f"world_{name}", Bowl(BOWL), one_sided=False
        )
        for name in sides
    }
    knee = djdyn.System(djdyn.Mechanism((body,), tuple(frames)), both)
    hinge = djdyn.Revolute((0, 1, 0))
    hung = djdyn.translation((0, 0, -arm))
    links = (
        djdyn.Body("link", "world", hinge, 0.0, I_BC=np.zeros((3, 3))),
        djdyn.Body("b", "link", hinge, M, X_PJ=hung, **inertia),
    )
    known = djdyn.System(djdyn.Mechanism(links), {})
    place = [-arm * np.sin(turn), 0, -arm * np.cos(turn)]
    tilt = turn + lean
    q = [*place, np.cos(tilt / 2), 0, np.sin(tilt / 2), 0]
    saves = np.linspace(0.0, 0.4, 5)
    how = {"saveat": saves, "rtol": 1e-8, "atol": 1e-10}
    run = djdyn.simulate(knee, 0.4, knee.initial_state(q={"b": q}), **how)
    y0 = known.initial_state(q={"link": turn, "b": lean})
    swing = djdyn.simulate(known, 0.4, y0, **how)
    np.testing.assert_allclose(
        run.pose("b").p, swing.pose("b").p, atol=1e-6 * arm, rtol=0
    )
    assert np.ptp(np.asarray(swing.q("link"))) > 0.2
    share = [np.asarray(run.signal(f"{name}.normal_force")) for name in sides]
    np.testing.assert_allclose(*share, rtol=1e-6)


def test_friction_is_mu_times_what_the_joint_carries():
    held, _ = in_bowl(MU)
    y = held.initial_state(**STATE)
    v_dot, signals, _, _, reaction = now(held, y)
    N = signals["touch.normal_force"]
    np.testing.assert_allclose(jnp.linalg.norm(reaction[3:]), abs(N))
    fixed = PointContactFriction("b", coulomb=MU * N)
    same, *_ = now(djdyn.System(held.mechanism, {"touch": fixed}), y)
    np.testing.assert_allclose(v_dot, same, rtol=1e-6)


def test_a_stiff_bowl_moves_a_ball_as_a_rigid_one_does():
    """Within a few times its depth under load."""
    held, free = in_bowl(0.0)
    y = held.initial_state(q=[0.5, -0.2, 0.2, 0.1, 0.5])
    z = same_state(held, free, y)
    press, stiff = float(now(held, y)[1]["touch.normal_force"]), 1e6
    out = z.q[:3] / jnp.linalg.norm(z.q[:3])
    z = eqx.tree_at(lambda z: z.q, z, z.q.at[:3].add(press / stiff * out))
    soft = Contact("b", Sphere(R), "world", Bowl(BOWL), KelvinVoigt(stiff, 500.0))
    soft = djdyn.System(free.mechanism, {"touch": soft})
    first, second = places(held, y), places(soft, z)
    assert np.ptp(first, 0).max() > 0.1
    np.testing.assert_allclose(first, second, atol=5 * M * G / stiff)


@pytest.mark.slow
def test_gradients_at_rest_sliding_landing_and_apart_at_once():
    system = ball(mu=MU, rate=300.0)
    w, weights = (0.1, -0.2, 0.3), jnp.asarray(np.cos(np.arange(24.0))).reshape(4, 6)
    cases = (R, (0, 0, 0)), (R, (1, 0.5, 0)), (R + 1e-3, (0.3, 0, -1)), (1.0, (0, 0, 1))
    y = jax.tree.map(lambda *x: jnp.stack(x), *(start(system, *c, w) for c in cases))
    y = eqx.tree_at(lambda y: y.v, y, y.v.at[0].set(0.0))

    def loss(theta):
        here = djdyn.with_parameters(
            system, {"touch.mu": theta["mu"], "b.mass": theta["m"]}
        )
        at = eqx.tree_at(lambda y: (y.q, y.v), y, (theta["q"], theta["v"]))
        return jnp.sum(weights * jax.vmap(lambda y: here.at(0.0, y).v_dot)(at))

    theta = {"mu": jnp.array(MU), "m": jnp.array(M), "q": y.q, "v": y.v}
    assert_gradient(loss, theta, h=1e-7, rtol=1e-5)


def test_bad_input_is_said():
    with pytest.raises(ValueError, match="does not fit a surface"):
        djdyn.PointContact(djdyn.HollowSphere(0.5), 0.5)
    with pytest.raises(ValueError, match="joint 'b' is a Free, not a point contact"):
        over(PointContactFriction("b", 0.1))
