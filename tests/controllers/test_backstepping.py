"""Model-based controllers on the Titan 4 arm."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import djdyn
from controllers import Backstepping, ComputedTorque, PDGravity, Reference
from controllers.model_based import coriolis
from djdyn.multibody.time_functions import Constant
from djdyn.parts import JointActuator
from experiments.harness import tables
from experiments.studies.titan4 import model as titan
from experiments.studies.titan4.operator_inputs import TRACKING, jumps, sticks


ARM = titan.mechanism()
NAMES = ("value", "rate", "acceleration", "jerk")


def signals(q_d, v_d, a_d, j_d, P_L) -> dict:
    path = dict(zip((f"path.{n}" for n in NAMES), (q_d, v_d, a_d, j_d), strict=True))
    pressures = {f"oil.A{k + 1}.bar": P_L[k] / 1e5 for k in range(6)}
    return path | pressures | {f"oil.B{k + 1}.bar": jnp.zeros(()) for k in range(6)}


def one_pressure_rates(control: Backstepping, x, j_d):
    """Return the rates of the control plant model: one pressure difference a joint."""
    q, v, P_L, q_d, v_d, a_d, e0 = x
    world = djdyn.forward_kinematics(ARM, q, v)
    u = control(0.0, {"integral": e0}, world, signals(*x[3:6], j_d, P_L)).outputs["u"]
    E = control.torque_per_pressure(q)
    z = control.supply - jnp.sign(u) * P_L
    filled = control.discharge * jnp.sqrt(z / control.density) * u
    v_dot = djdyn.forward_dynamics(ARM, q, v, E * P_L)
    return (v, v_dot, 2 * control.stiffness * (filled - E * v), v_d, a_d, j_d, q - q_d)


def state(seed: int):
    rng = np.random.default_rng(seed)
    random = lambda size: jnp.asarray(size * rng.normal(size=6))
    q, v = random(0.3), random(0.2)
    q_d, v_d = q + random(0.02), v + random(0.02)
    P_L = titan.SUPPLY * jnp.asarray(rng.uniform(-0.5, 0.5, 6))
    return (q, v, P_L, q_d, v_d, random(0.3), random(0.01)), random(0.5)


GAINS = {"kd": 300.0, "k3": 4.0, "epsilon": 0.02, "friction": 0.0}
SCALED = {"pressure_scale": 1e5}


def tuned(**gains) -> Backstepping:
    control = titan.controller(**SCALED)
    values = {k: jnp.full(6, x) for k, x in ({**GAINS, **gains}).items()}
    return eqx.tree_at(
        lambda c: [getattr(c, k) for k in values], control, list(values.values())
    )


@eqx.filter_jit
def along(control: Backstepping, x, j_d):
    """Return the Lyapunov function, its rate, and the errors' rates, on the model."""
    rates = one_pressure_rates(control, x, j_d)

    def errors(x):
        q, v, P_L, q_d, v_d, a_d, e0 = x
        given = signals(q_d, v_d, a_d, j_d, P_L)
        world = djdyn.forward_kinematics(ARM, q, v)
        now = control.errors({"integral": e0}, world, given)
        return control.lyapunov({"integral": e0}, world, given), now

    (_, now), (V_dot, change) = jax.jvp(errors, (x,), (rates,))
    C_e = coriolis(ARM, x[0], x[1], now.e1, jnp.zeros(()))
    return V_dot, now, change, C_e


@pytest.mark.parametrize("seed", range(3))
def test_pressure_errors_decay_and_lyapunov_falls_bond_graph_v19(seed):
    x, j_d = state(seed)
    control = tuned(ki=0.0)
    V_dot, now, change, C_e = along(control, x, j_d)
    assert jnp.allclose(change.alpha1, now.alpha1_rate, rtol=1e-9)
    w2, eps = control.pressure_scale**2, control.epsilon[0]
    decay = -w2 * now.E * (now.e2 + eps * now.e1) - control.k3 * now.e3
    assert jnp.allclose(change.e3, decay, rtol=1e-6)
    kp, kd = control.kp, control.kd
    law = -eps * jnp.sum(kp * now.e1**2) - jnp.sum(control.k3 * now.e3**2) / w2
    law = law - jnp.sum(kd * now.e2**2) + eps * now.e2 @ now.B @ now.e2
    law = law - eps * jnp.sum(kd * now.e1 * now.e2) + eps * now.e2 @ C_e
    assert jnp.allclose(V_dot, law, rtol=1e-8)
    assert V_dot < 0


def test_closed_loop_eigenvalues_bond_graph_v18():
    """The torques are those of pressures that follow their set points at once."""
    control = titan.controller()
    zero = jnp.zeros(6)

    @eqx.filter_jit
    def jacobian(control, damping):
        def rates(x):
            q, v, e0 = jnp.split(x, 3)
            world = djdyn.forward_kinematics(ARM, q, v)
            given = signals(zero, zero, zero, zero, zero)
            now = control.errors({"integral": e0}, world, given)
            tau = now.E * now.alpha1 - damping * v
            return jnp.concatenate([v, djdyn.forward_dynamics(ARM, q, v, tau), q])

        return jax.jacfwd(rates)(jnp.zeros(18))

    B = np.asarray(djdyn.mass_matrix(ARM, zero))
    for friction, worst in ((0.0, 0.796), (control.friction, -0.4016)):
        found = np.linalg.eigvals(jacobian(control, friction * jnp.ones(6)))
        D = np.diag(np.asarray(friction * jnp.ones(6)))
        I, O = np.eye(6), np.zeros((6, 6))
        solve = lambda X: -np.linalg.solve(B, X)
        lower = [solve(np.diag(control.kp)), solve(D), solve(np.diag(control.ki))]
        known = np.linalg.eigvals(np.block([[O, I, O], lower, [I, O, O]]))
        order = lambda x: np.sort_complex(np.round(x, 9))
        assert np.abs(order(found) - order(known)).max() < 1e-6
        assert abs(found.real.max() - worst) < 1e-3


GAIN_NAMES = ("kp", "kd", "ki", "k3")


@eqx.filter_jit
def areas(gains, x, j_d):
    """Return relative valve areas, and their change with all gains."""

    def u(gains):
        where = lambda c: [getattr(c, k) for k in GAIN_NAMES]
        control = eqx.tree_at(where, tuned(), list(gains))
        given = signals(*x[3:6], j_d, x[2])
        world = djdyn.forward_kinematics(ARM, x[0], x[1])
        return control(0.0, {"integral": x[6]}, world, given).outputs["u"] / 4e-7

    value, change = jax.jvp(u, (gains,), (gains,))
    weights = jnp.arange(1.0, 7.0)
    reverse = jax.grad(lambda g: u(g) @ weights)(gains)
    back = sum(jnp.vdot(r, g) for r, g in zip(reverse, gains, strict=True))
    return value, change, back - change @ weights


def slopes(gains, x, j_d, smooth=True):
    """Return the change by the derivative and by differences from both sides."""
    scaled = lambda s: tuple(s * g for g in gains)
    value, change, gap = areas(gains, x, j_d)
    if smooth:  # at a kink forward and reverse may take different sides
        assert jnp.abs(gap) < 1e-9 * (1 + jnp.abs(change).max())
    assert jnp.isfinite(gap)
    h = 1e-6
    low, high = (areas(scaled(1 + s), x, j_d)[0] for s in (-h, h))
    return value, change, (value - low) / h, (high - value) / h


def test_gradients_to_the_gains():
    """Cases: in motion, without errors, with a saturated valve, and with a shut one."""
    control = tuned()
    gains = tuple(getattr(control, k) for k in GAIN_NAMES)
    x, j_d = state(0)
    _, change, low, high = slopes(gains, x, j_d)
    assert jnp.allclose(change, (low + high) / 2, rtol=1e-5)
    assert jnp.all(jnp.abs(change) > 0)
    # Beyond the supply's pressure.
    beyond = (*x[:2], 1.2 * titan.SUPPLY * jnp.ones(6), *x[3:])
    _, change, low, high = slopes(gains, beyond, j_d)
    assert jnp.allclose(change, (low + high) / 2, rtol=1e-5)
    # At rest where it should be, nothing depends on the gains.
    zero = jnp.zeros(6)
    still = (zero, zero, zero, zero, zero, zero, zero)
    world = djdyn.forward_kinematics(ARM, zero, zero)
    now = control.errors({"integral": zero}, world, signals(*[zero] * 5))
    still = (zero, zero, now.alpha1, *still[3:])
    value, change, low, high = slopes(gains, still, zero)
    assert jnp.allclose(value, 0.0, atol=1e-12)
    assert jnp.allclose(change, 0.0, atol=1e-9)
    # Where joint 1's valve shuts, its area has a slope to either side: one of them.
    root = lambda k3: areas((*gains[:3], gains[3].at[0].set(k3)), x, j_d)[0][0]
    k3 = scipy.optimize.brentq(lambda k: float(root(k)), -1e4, 1e4, xtol=1e-13)
    shut = (*gains[:3], gains[3].at[0].set(k3))
    value, change, low, high = slopes(shut, x, j_d, smooth=False)
    assert jnp.abs(value[0]) < 1e-9
    near = [jnp.allclose(change[0], side[0], rtol=1e-4) for side in (low, high)]
    assert any(near)


@pytest.mark.slow
@pytest.mark.validation
def test_tracking_run_bond_graph_v20():
    rows = tables.read("titan4/ref_tracking.csv")
    group = lambda name: tables.columns(rows, *(f"{name}{i}_rad" for i in range(1, 7)))
    times = tables.columns(rows, "t_s")[:, 0]
    run = djdyn.simulate(
        titan.build(), times[-1], saveat=times, rtol=1e-6, atol=1e-6,
        inputs={"sticks": sticks()}, jumps=jumps(TRACKING),
    )  # fmt: skip
    error, known = run.y.q - run.y.parts["path"]["path"], group("q") - group("qd")
    ratio = np.abs(error).max(0) / np.abs(known).max(0)
    assert np.all((0.95 < ratio) & (ratio < 1.05))
    assert np.abs(error - known).max() < 6e-5
    assert np.abs(run.y.q - group("q")).max() < 5e-4


@pytest.mark.parametrize(
    "control",
    [ComputedTorque("path", 100.0, 20.0), PDGravity("path", 4e4, 4e3)],
    ids=["computed torque", "PD"],
)
def test_an_arm_is_held_where_it_should_be(control):
    """At the target both controllers give gravity's torque; off it, their own laws."""
    where = jnp.array([0.3, 0.5, -0.7, 0.4, -0.2, 0.9])
    path = Still(Constant(where))
    parts = {"path": path, "pd": control, "motors": JointActuator(titan.JOINTS, "pd.u")}
    system = djdyn.System(titan.mechanism(False), parts)
    v_dot = eqx.filter_jit(lambda q, v: system.derivative(0.0, djdyn.State(
        q, v, system.initial_state().parts)).v)  # fmt: skip
    v = jnp.array([0.1, -0.2, 0.3, -0.4, 0.5, -0.6])
    assert jnp.allclose(v_dot(where, 0 * v), 0.0, atol=1e-9)
    if isinstance(control, ComputedTorque):
        assert jnp.allclose(v_dot(where - 0.1, v), 100 * 0.1 - 20 * v, rtol=1e-9)


class Still(djdyn.AbstractSignalPart):
    """A constant reference."""

    path: Constant

    def initial_state(self) -> dict:
        return {}

    def __call__(self, t, state, world, signals) -> djdyn.Response:
        zero = jnp.zeros(6)
        outputs = {"value": self.path(t), "rate": zero, "acceleration": zero}
        return djdyn.Response(state, outputs=outputs)


def test_bad_controllers_are_refused():
    with pytest.raises(ValueError, match=r"6 joints need 6 triangles"):
        Backstepping(
            titan.JOINTS, "path", (("a", "b"),) * 6, [1e-4] * 6, (), 1, 1, 1, 1
        )
    body = djdyn.Body("ball", "world", djdyn.Spherical(), 1.0, I_BC=np.eye(3))
    parts = {"path": Reference([0.0]), "pd": PDGravity("path", 1.0, 1.0)}
    with pytest.raises(ValueError, match=r"4 coordinates and 3 speeds"):
        djdyn.System(djdyn.Mechanism((body,)), parts)
