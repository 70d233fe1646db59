"""Rollouts of fixed steps: kernels against diffrax, and what they cannot do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import JointPID
from djdyn import Body, Mechanism, Revolute, State, System
from djdyn.parts import JointActuator, JointFriction, JointSpring


def build() -> System:
    """Two links with friction, the upper driven by an input."""
    axis, I_BC = (0.0, 1.0, 0.0), 0.1 * np.eye(3)
    hinge = djdyn.translation((0.0, 0.0, -1.0))
    upper = Body("upper", "world", Revolute(axis), 1.0, (0.1, 0.0, -0.5), I_BC)
    lower = Body("lower", "upper", Revolute(axis), 0.7, (0.0, 0.0, -0.4), I_BC, hinge)
    parts = {
        "motor": JointActuator(("upper",), "torque"),
        "friction": JointFriction("lower", viscous=0.1),
    }
    return System(Mechanism((upper, lower)), parts, {"torque": jnp.array([0.5])})


@pytest.fixture(scope="module")
def pendulum() -> System:
    return build()


@pytest.fixture(scope="module")
def starts(pendulum) -> State:
    q = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)))
    return State(q, 0.1 * q, pendulum.initial_state().parts)


@pytest.mark.parametrize("solver", ["semi_implicit", "rk4", "tsit5"])
@pytest.mark.parametrize(("dt", "saveat"), [(0.015, [0.0, 0.1]), (5e-3, [0.03, 0.095])])
def test_kernels_take_the_steps_of_diffrax(pendulum, starts, solver, dt, saveat):
    """Steps of 15 ms become seven of 14.3 ms to fit into 0.1 s."""
    how = {"solver": solver, "dt": dt, "saveat": saveat}
    batch = djdyn.rollout(pendulum, 0.1, starts, backend="kernel", **how)
    alone = djdyn.simulate(pendulum, 0.1, jax.tree.map(lambda x: x[1], starts), **how)
    assert jnp.allclose(batch.y.q[1], alone.y.q, rtol=1e-12)
    assert jnp.allclose(batch.y.v[1], alone.y.v, rtol=1e-12)
    assert batch.ok.all()


def test_times_within_a_step_are_left_to_diffrax(pendulum, starts):
    how = {"solver": "rk4", "dt": 0.02, "saveat": [0.05]}
    batch = djdyn.rollout(pendulum, 0.1, starts, **how)
    alone = djdyn.simulate(pendulum, 0.1, jax.tree.map(lambda x: x[0], starts), **how)
    assert jnp.allclose(batch.y.q[0], alone.y.q, rtol=1e-12)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"backend": "kernel"}, "kernels take fixed steps"),
        ({"backend": "kernel", "dt": 0.02, "saveat": [0.05]}, "multiples of 0.02 s"),
        ({"backend": "kernel", "dt": 0.02, "solver": "dopri8"}, "of semi_implicit"),
        ({"backend": "gpu"}, "backend is kernel or xla, not 'gpu'"),
        ({"checkpoints": "half"}, "checkpoints is all or sqrt, not 'half'"),
    ],
)
def test_what_kernels_cannot_do_is_said(pendulum, starts, how, said):
    with pytest.raises(ValueError, match=said):
        djdyn.rollout(pendulum, 0.1, starts, **how)


def test_both_memories_and_both_backends_have_one_gradient(pendulum, starts):
    """Of the saved states, to the start, all parameters and a batched one."""
    masses = jnp.array([0.5, 0.7, 0.9])

    def loss(free, backend, checkpoints):
        system, y0, masses = free
        trajectory = djdyn.rollout(
            system,
            0.3,
            y0,
            parameters={"lower.mass": masses},
            inputs={"torque": lambda t: jnp.array([1.0]) * jnp.sin(5 * t)},
            solver="rk4",
            dt=0.01,
            saveat=[0.1, 0.2, 0.3],
            backend=backend,
            checkpoints=checkpoints,
        )
        return jnp.sum(trajectory.y.q**2)

    free = (pendulum, starts, masses)
    found = [
        eqx.filter_jit(eqx.filter_grad(loss))(free, backend, checkpoints)
        for backend, checkpoints in (
            ("kernel", "all"),
            ("kernel", "sqrt"),
            ("xla", "all"),
        )
    ]
    for other in found[1:]:
        for a, b in zip(*map(jax.tree.leaves, (found[0], other)), strict=True):
            assert jnp.allclose(a, b, rtol=1e-11, atol=1e-12)
    along = lambda m: loss((pendulum, starts, m), "kernel", "all")
    _, forward = jax.jvp(along, (masses,), (jnp.ones(3),))
    assert jnp.allclose(forward, found[0][2].sum(), rtol=1e-11)
    h = 1e-5
    difference = (along(masses + h) - along(masses - h)) / (2 * h)
    assert jnp.allclose(forward, difference, rtol=1e-7)


@pytest.mark.parametrize("delay", [False, True])
def test_sampled_controllers_march_too(pendulum, starts, delay):
    pid = JointPID("upper", "target", kp=5.0, kd=1.0, ki=0.5)
    parts = {"pid": pid, "motor": JointActuator(("upper",), "pid.u")}
    system = System(pendulum.mechanism, parts, {"target": jnp.array([0.3])})
    how = {"control_period": 0.02, "dt": 0.005, "solver": "rk4", "control_delay": delay}
    y0 = system.initial_state()
    batch = djdyn.rollout(
        system, 0.2, State(starts.q, starts.v, y0.parts), backend="kernel", **how
    )
    one = State(starts.q[2], starts.v[2], y0.parts)
    alone = djdyn.simulate(system, 0.2, one, **how)
    assert jnp.allclose(batch.y.q[2], alone.y.q, rtol=1e-11)
    for sent in ("sampled", "applied"):
        u, known = (getattr(x, sent)["pid"]["u"] for x in (batch, alone))
        assert jnp.allclose(u[2], known, rtol=1e-11)

    def loss(kp, h=0.0):
        model = djdyn.with_parameters(system, {"pid.kp": kp + h})
        y0 = State(starts.q, starts.v, system.initial_state().parts)
        return jnp.sum(djdyn.rollout(model, 0.2, y0, backend="kernel", **how).y.q ** 2)

    kp, h = jnp.array(5.0), 1e-4
    difference = (loss(kp, h) - loss(kp, -h)) / (2 * h)
    assert jnp.allclose(jax.grad(loss)(kp), difference, rtol=1e-7)


def test_a_lane_that_blows_up_is_reported_and_spoils_no_other(pendulum, starts):
    damping = jnp.array([0.1, 1e6, 0.2])  # far too much for steps of 10 ms
    with pytest.warns(UserWarning, match=r"1 of 3 lanes failed \(1\).*joint"):
        batch = djdyn.rollout(
            pendulum,
            1.0,
            starts,
            parameters={"friction.viscous": damping},
            solver="semi_implicit",
            dt=0.01,
            saveat=101,
        )
    assert batch.ok.tolist() == [True, False, True]
    assert jnp.isfinite(batch.y.q[::2]).all()
    t, y = batch.stopped
    assert jnp.isfinite(y.q[1]).all()  # the last state that was a number
    assert 0 < t[1] < 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rollouts_and_gradients_lower_for_gpus(starts, dtype):
    """No host callbacks; the kernel is there as plain operations."""

    def loss(q, masses):
        system = build()
        y0 = State(q, jnp.zeros_like(q), system.initial_state().parts)
        trajectory = djdyn.rollout(
            system, 0.1, y0, parameters={"lower.mass": masses}, dt=0.01, saveat=2
        )
        return jnp.sum(trajectory.y.q**2)

    with jax.enable_x64(dtype == "float64"):
        q = jax.ShapeDtypeStruct(starts.q.shape, dtype)
        masses = jax.ShapeDtypeStruct((3,), dtype)
        both = jax.jit(jax.value_and_grad(loss, (0, 1)))
        text = jax.export.export(both, platforms=["cuda"])(q, masses).mlir_module()
    assert "djdyn." not in text
    assert "callback" not in text
    assert ("f64" in text) == (dtype == "float64")


BAD = np.array([3, 8, 13, 18])  # a NaN, an infinity, and two that diverge


@pytest.mark.parametrize("backend", ["kernel", "xla"])
@pytest.mark.filterwarnings("ignore:. of 20 lanes failed")
def test_bad_lanes_touch_no_others(pendulum, backend):
    """Results and gradients of the others are the same to the last bit."""
    good, n = np.ones(20, bool), 20
    good[BAD] = False
    fine = np.linspace(0.1, 1.0, n)
    spoilt = fine.copy()
    spoilt[BAD] = np.nan, np.inf, -1e9, 1e9
    q = jnp.stack([jnp.linspace(0.3, 0.6, n), jnp.linspace(0.1, -0.4, n)], 1)
    spring = JointSpring("upper", rest=0.1, stiffness=2.0)
    parts = {**pendulum.parts, "spring": spring}
    springy = System(pendulum.mechanism, parts, pendulum.inputs)
    start = State(q, 0.2 * q, springy.initial_state().parts)
    with pytest.raises(ValueError, match="does not fit the system"):
        djdyn.rollout(pendulum, 1.0, start)

    def run(rest, friction):
        system = djdyn.with_parameters(springy, {"friction.viscous": friction})
        lanes = {"spring.rest": rest}
        how = {"solver": "rk4", "dt": 0.02, "backend": backend, "saveat": 3}
        return djdyn.rollout(system, 0.2, start, parameters=lanes, **how)

    def loss(rest, friction):
        q = run(rest, friction).y.q
        return jnp.sum(jnp.where(good[:, None, None], q, 0.0) ** 2)

    before, after = (run(x, 0.1) for x in (fine, spoilt))
    assert np.array_equal(np.asarray(before.y.q)[good], np.asarray(after.y.q)[good])
    assert np.array_equal(after.ok[BAD[:2]], [False, False])
    slope = jax.grad(loss, (0, 1))
    one, two = (slope(jnp.asarray(x), jnp.array(0.1)) for x in (fine, spoilt))
    assert np.array_equal(np.asarray(one[0])[good], np.asarray(two[0])[good])
    assert one[1] == two[1] and one[1] != 0


WAYS = [
    {},
    pytest.param(
        {"solver": "rodas4", "rtol": 1e-4, "atol": 1e-4}, marks=pytest.mark.slow
    ),
    pytest.param(
        {"solver": "kvaerno5", "rtol": 1e-4, "atol": 1e-4}, marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize("how", WAYS, ids=["tsit5", "rodas4", "kvaerno5"])
def test_lanes_with_steps_of_their_own_have_their_own_gradients(how):
    """Some are done early, one overflows: a shared parameter's gradient is finite."""
    rod = djdyn.Body("rod", "world", djdyn.Revolute((0, 1, 0)), 1.0, (0, 0, -1.0))
    system = djdyn.System(djdyn.Mechanism((rod,)))
    v = jnp.array([[0.1], [1e200], [4.0]])

    @eqx.filter_jit
    def slopes(mass, v):
        def loss(given):
            heavy = djdyn.with_parameters(system, {"rod.mass": given[0]})
            y = djdyn.State(jnp.ones_like(v), given[1], system.initial_state().parts)
            runs = djdyn.rollout(heavy, 1.0, y, saveat=[1.0], **how)
            return jnp.sum(jnp.where(runs.ok, runs.y.q[:, -1, 0] ** 2, 0.0))

        return jax.grad(loss)((mass, v))

    shared, own = slopes(jnp.array(1.0), v)
    assert np.isfinite(shared) and own[1] == 0
    _, sound = slopes(jnp.array(1.0), v.at[1].set(0.5))
    assert np.all(sound != 0)
    newton = how.get("solver") == "kvaerno5"  # ends within its tolerance
    np.testing.assert_allclose(own[::2], sound[::2], rtol=1e-6 if newton else 1e-9)
