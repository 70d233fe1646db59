"""Trajectories: their numbers, their ledgers, their failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import JointPID, Reference
from djdyn.multibody.time_functions import Harmonic
from djdyn.parts import JointActuator, JointForce, JointFriction, JointSpring
from djdyn.simulation.series import load_dataset
from experiments.studies.swing_up import study as swing_up

from ..machines import double_pendulum, table


@pytest.fixture(scope="module")
def rods() -> djdyn.System:
    return djdyn.System(double_pendulum())


@pytest.fixture(scope="module")
def oscillator() -> djdyn.System:
    """Unit mass on a unit spring: q = cos t."""
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0)
    return djdyn.System(djdyn.Mechanism((body,)), {"spring": JointSpring("mass", 1.0)})


@pytest.mark.validation
def test_double_pendulum(rods):
    """Real-time-multibody V5: two rods released from the horizontal."""
    rows = table("rtmb_ref_double_pendulum.csv")
    times = np.array([float(row["t_s"]) for row in rows])
    known = np.array([[float(row[k]) for k in ("z1_rad", "z2_rad")] for row in rows])
    trajectory = djdyn.simulate(
        rods,
        times[-1],
        saveat=times,
        solver="dopri8",
        rtol=1e-10,
        atol=1e-10,
        ledger=True,
    )
    assert jnp.allclose(trajectory.y.q, known, atol=1e-7)
    residual = djdyn.energy_balance(rods, trajectory)
    assert jnp.max(jnp.abs(residual)) < 1e-8 * 9.81  # m g L is the scale of its energy


@pytest.mark.parametrize(
    ("solver", "order"), [("semi_implicit", 1), ("rk4", 4), ("tsit5", 5)]
)
def test_fixed_steps_converge_at_their_order(oscillator, solver, order):
    y0 = oscillator.initial_state(q=[1.0])
    errors = []
    for n in (16, 32):
        dt = 2.0 / n
        end = djdyn.simulate(oscillator, 2.0, y0, saveat=2, solver=solver, dt=dt)
        errors.append(float(jnp.abs(end.y.q[-1, 0] - jnp.cos(2.0))))
    assert (
        order - 0.2 < np.log2(errors[0] / errors[1]) < order + 2
    )  # a linear motion may gain an order


def test_stiff_preset_agrees_with_the_explicit_one(oscillator):
    y0 = oscillator.initial_state(q=[1.0])
    end = djdyn.simulate(oscillator, 2.0, y0, saveat=2, solver="kvaerno5", rtol=1e-6)
    assert jnp.abs(end.y.q[-1, 0] - jnp.cos(2.0)) < 1e-5


def test_moving_base_is_a_change_of_gravity():
    """A pendulum on a deck accelerating upwards swings as under stronger gravity."""
    rod = djdyn.Body("rod", "deck", djdyn.Revolute((0, 1, 0)), 1.0, (0, 0, -1.0))
    lift = djdyn.Prescribed(_lift)
    deck = djdyn.Body("deck", "world", lift, 3.0, I_BC=np.eye(3))
    moving = djdyn.System(djdyn.Mechanism((deck, rod)))
    fixed = djdyn.Body("deck", "world", djdyn.Fixed(), 3.0, I_BC=np.eye(3))
    heavier = djdyn.System(djdyn.Mechanism((fixed, rod), gravity_W=(0, 0, -11.81)))
    ends = []
    for system in (moving, heavier):
        y0 = system.initial_state(q={"rod": 0.5})
        ends.append(djdyn.simulate(system, 2.0, y0, rtol=1e-10, ledger=True))
    assert jnp.allclose(ends[0].y.q, ends[1].y.q, atol=1e-8)
    residual = djdyn.energy_balance(moving, ends[0])  # the deck's drive does work
    assert jnp.max(jnp.abs(residual)) < 1e-6
    assert jnp.ptp(ends[0].energy()) > 10.0


def _lift(t):
    return djdyn.Pose(jnp.eye(3), jnp.stack([0.0 * t, 0.0 * t, t**2]))


def test_time_functions_drive_a_system(oscillator):
    """An oscillator pushed from rest by sin 2t: q = (2 sin t - sin 2t) / 3."""
    system = djdyn.System(
        oscillator.mechanism,
        {
            "spring": JointSpring("mass", 1.0),
            "push": JointForce("mass", Harmonic([1.0], 2.0)),
        },
    )
    trajectory = djdyn.simulate(system, 3.0, rtol=1e-10)
    t = trajectory.t
    known = (2 * jnp.sin(t) - jnp.sin(2 * t)) / 3
    assert jnp.allclose(trajectory.y.q[:, 0], known, atol=1e-8)


def sampled_system() -> djdyn.System:
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0)
    parts = {
        "reference": Reference(1.0),
        "pid": JointPID(("mass",), "reference.value", 4.0, 2.0, 1.0),
        "motor": JointActuator(("mass",), "pid.u"),
    }
    return djdyn.System(djdyn.Mechanism((body,)), parts)


@pytest.mark.parametrize("dt", [None, 0.05])
def test_sampled_control_is_a_difference_equation(dt):
    """A double integrator under held force steps exactly, so a loop can foretell it."""
    system, period = sampled_system(), 0.1
    trajectory = djdyn.simulate(system, 2.0, control_period=period, dt=dt)
    q, v, integral, forces, places = 0.0, 0.0, 0.0, [], []
    for _ in range(20):
        places.append(q)
        u = 4.0 * (1 - q) + integral - 2.0 * v
        forces.append(u)
        integral += period * 1.0 * (1 - q)
        q, v = q + period * v + period**2 / 2 * u, v + period * u
    assert jnp.allclose(trajectory.y.q[:-1, 0], jnp.array(places), atol=1e-10)
    assert jnp.allclose(
        trajectory.signal("pid.u")[:-1, 0], jnp.array(forces), atol=1e-9
    )
    continuous = djdyn.simulate(system, 2.0, saveat=21)
    assert jnp.max(jnp.abs(continuous.y.q - trajectory.y.q)) > 1e-3


@pytest.mark.parametrize("dt", [None, 0.05])
def test_delayed_control_acts_a_sample_later(dt):
    """The force of the sample before; at first, that of the start."""
    system, period = sampled_system(), 0.1
    how = {"control_period": period, "control_delay": True, "dt": dt}
    trajectory = djdyn.simulate(system, 2.0, **how)
    q, v, integral, last, rows = 0.0, 0.0, 0.0, 4.0, []
    for _ in range(20):
        u = 4.0 * (1 - q) + integral - 2.0 * v
        rows.append((q, u, last))
        integral += period * 1.0 * (1 - q)
        q, v = q + period * v + period**2 / 2 * last, v + period * last
        last = u
    places, sent, acting = jnp.array(rows).T
    assert jnp.allclose(trajectory.y.q[:-1, 0], places, atol=1e-10)
    assert jnp.allclose(trajectory.signal("pid.u")[:-1, 0], sent, atol=1e-9)
    pushed = trajectory.map(lambda now: now.v_dot[0])
    assert jnp.allclose(pushed[:-1], acting, atol=1e-9)
    with pytest.raises(ValueError, match="needs control_period"):
        djdyn.simulate(system, 2.0, control_delay=True)


@pytest.mark.parametrize("period", [0.01, 0.02, 0.05])
def test_a_sample_period_may_be_any_fraction(period):
    """Rounding at the end of a period is not a failure, in either precision."""
    for double in (True, False):
        with jax.enable_x64(double):
            system = sampled_system()
            how = {"rtol": 1e-4, "atol": 1e-4}
            end = djdyn.simulate(system, 1.0, control_period=period, **how)
            assert end.ok


def test_a_filter_faster_than_the_samples_is_stable():
    """Velocity mode at 50 ms with a filter of 10 ms: stepped exactly, not by Euler."""
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0)
    pid = JointPID(("mass",), "reference.value", 2.0, 0.01, 1.0, mode="velocity")
    motor = JointActuator(("mass",), "pid.u")
    parts = {"reference": Reference(0.5), "pid": pid, "motor": motor}
    system = djdyn.System(djdyn.Mechanism((body,)), parts)
    end = djdyn.simulate(system, 30.0, control_period=0.05, dt=0.05)
    assert jnp.allclose(end.v("mass")[-1], 0.5, atol=1e-3)


def test_inputs_are_functions_of_time_alone_and_in_a_batch():
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0)
    parts = {
        "motor": JointActuator("mass", "push"),
        "brake": JointActuator("mass", "mass.v"),
    }
    system = djdyn.System(djdyn.Mechanism((body,)), parts, {"push": 0.0})
    inputs = {"push": _cosine}
    alone = djdyn.simulate(system, 1.0, saveat=3, inputs=inputs, ledger=True)
    t = alone.t  # v' = cos t + v
    assert jnp.allclose(
        alone.v("mass")[:, 0], (jnp.exp(t) + jnp.sin(t) - jnp.cos(t)) / 2
    )
    assert jnp.max(jnp.abs(djdyn.energy_balance(system, alone))) < 1e-6
    assert jnp.allclose(alone.signal("mass.v"), alone.v("mass")[:, 0])
    batch = djdyn.rollout(
        system, 1.0, parameters={"mass.mass": [1.0, 2.0]}, saveat=3, inputs=inputs
    )
    assert jnp.allclose(batch.y.v[0], alone.y.v, atol=1e-7)


def _cosine(t):
    return jnp.cos(t)


def test_sampled_control_has_gradients():
    system = sampled_system()

    def loss(kp, adjoint):
        model = djdyn.with_parameters(system, {"pid.kp": kp})
        how = {"control_period": 0.1, "dt": 0.1, "adjoint": adjoint}
        return jnp.sum(djdyn.simulate(model, 2.0, **how).y.q ** 2)

    kp, h = jnp.array(4.0), 1e-5
    value = jax.jit(lambda k: loss(k, "reverse"))
    reverse = jax.jit(jax.grad(lambda k: loss(k, "reverse")))(kp)
    _, forward = jax.jit(lambda k: jax.jvp(lambda k: loss(k, "forward"), (k,), (1.0,)))(
        kp
    )
    assert jnp.allclose(reverse, forward, rtol=1e-10)
    assert jnp.allclose(reverse, (value(kp + h) - value(kp - h)) / (2 * h), rtol=1e-7)


def test_rollout_batches_states_and_parameters(oscillator):
    y0 = oscillator.initial_state()
    y0 = djdyn.State(jnp.array([[1.0], [2.0], [3.0]]), y0.v, y0.parts)
    stiffness = jnp.array([1.0, 4.0, 9.0])
    batch = djdyn.rollout(
        oscillator, 2.0, y0, parameters={"spring.stiffness": stiffness}, saveat=5
    )
    known = y0.q * jnp.cos(jnp.sqrt(stiffness)[:, None] * batch.t[None])
    assert batch.y.q.shape == (3, 5, 1)
    assert jnp.allclose(batch.y.q[..., 0], known, atol=1e-6)
    force = batch.signal("spring.force")[..., 0]
    assert jnp.allclose(force, -stiffness[:, None] * batch.y.q[..., 0])
    alone = batch.lane(1)
    assert jnp.allclose(alone.signal("spring.force")[:, 0], force[1])


def test_a_diverging_lane_is_reported_and_spoils_no_other(oscillator):
    stiffness = jnp.array([1.0, 1e14, 4.0])  # the middle one needs far more steps
    with pytest.warns(UserWarning, match=r"1 of 3 lanes failed \(1\)"):
        batch = djdyn.rollout(
            oscillator,
            2.0,
            oscillator.initial_state(q=[1.0]),
            parameters={"spring.stiffness": stiffness},
            saveat=5,
            max_steps=2000,
        )
    assert batch.ok.tolist() == [True, False, True]
    known = jnp.cos(jnp.sqrt(stiffness[::2])[:, None] * batch.t[None])
    assert jnp.allclose(batch.y.q[::2, :, 0], known, atol=1e-6)


def test_a_failed_solve_names_time_part_and_state():
    class Fuse(djdyn.AbstractSignalPart):
        def initial_state(self):
            return {"heat": jnp.ones(())}

        def __call__(self, t, state, world, signals):
            return djdyn.Response({"heat": state["heat"] ** 2})  # infinite at t = 1

    body = djdyn.Body("mass", "world", djdyn.Prismatic(), 1.0)
    system = djdyn.System(djdyn.Mechanism((body,)), {"fuse": Fuse()})
    with pytest.raises(djdyn.SimulationError, match="'heat' of part 'fuse'") as caught:
        djdyn.simulate(system, 2.0)
    assert "t = 1 s" in str(caught.value)
    reached = caught.value.trajectory
    assert jnp.isfinite(reached.y.v[90]).all()  # what was reached is kept
    assert not jnp.isfinite(reached.y.v[-1]).any()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"solver": "euler"}, "unknown solver 'euler'"),
        ({"solver": "rk4"}, "fixed steps: give dt"),
        ({"dt": -0.1}, "dt must be positive"),
        ({"adjoint": "backwards"}, "unknown adjoint"),
        ({"saveat": [0.5, 0.2]}, "save times must be numbers that increase"),
        ({"saveat": []}, "save times must be numbers that increase"),
        ({"control_period": 0.1, "saveat": 5}, "no saveat"),
        ({"control_period": 0.0}, "control period must be positive"),
        ({"inputs": {"u": 1.0}}, "no input 'u'; there are none"),
        ({"rtol": -1.0}, "rtol must be at least 0"),
        ({"max_steps": -3}, "max_steps must be at least one"),
        ({"saveat": [0.5, 3.0]}, "between 0"),
        ({"control_period": 0.3}, "whole number of control periods"),
        ({"t0": 2.0}, "ends after it starts"),
    ],
)
def test_bad_settings_are_said(oscillator, how, said):
    with pytest.raises(ValueError, match=said):
        djdyn.simulate(oscillator, 1.0, **how)


def test_bad_initial_states_are_said(oscillator):
    y0 = oscillator.initial_state()
    broken = djdyn.State(jnp.array([jnp.nan]), y0.v, y0.parts)
    with pytest.raises(ValueError, match=r"initial q is not finite"):
        djdyn.simulate(oscillator, 1.0, broken)
    with pytest.raises(ValueError, match=r"q has shape \(2,\).*mass 1"):
        djdyn.simulate(oscillator, 1.0, djdyn.State(jnp.zeros(2), y0.v, y0.parts))
    with pytest.raises(ValueError, match=r"initial state\.q is not finite"):
        djdyn.rollout(oscillator, 1.0, broken, parameters={"spring.stiffness": [1.0]})
    with pytest.raises(ValueError, match=r"stiffness must be at least 0"):
        djdyn.rollout(oscillator, 1.0, parameters={"spring.stiffness": [1.0, -1.0]})
    with pytest.raises(ValueError, match=r"one axis more in front"):
        djdyn.rollout(oscillator, 1.0, parameters={"spring.stiffness": 1.0})
    with pytest.raises(ValueError, match=r"one batch size"):
        djdyn.rollout(oscillator, 1.0, y0)
    with pytest.raises(ValueError, match=r"unknown signal 'spring.tension'"):
        djdyn.simulate(oscillator, 1.0, y0, saveat=2).signal("spring.tension")


@pytest.mark.parametrize("ending", ["nc", "npz"])
def test_series_come_back_from_disk(oscillator, tmp_path, ending):
    y0 = oscillator.initial_state(q=[1.0])
    trajectory = djdyn.simulate(oscillator, 1.0, y0, saveat=5)
    trajectory.save(tmp_path / f"series.{ending}", tip=trajectory.pose("mass").p)
    data = load_dataset(tmp_path / f"series.{ending}")
    assert np.array_equal(data["mass.q"], trajectory.y.q[:, 0])
    assert np.array_equal(data["spring.force"], trajectory.signal("spring.force")[:, 0])
    assert data["tip"].shape == (5, 3)
    assert data.time.attrs["units"] == "s"
    units = [
        data[name].attrs.get("units") for name in ("mass.v", "spring.force", "tip")
    ]
    assert units == ["m/s", "N", None]
    assert data["mass.q"].dims == ("time",)


def test_single_precision_works():
    """The library does not ask for double precision; fixed steps stay accurate."""
    with jax.enable_x64(False):
        body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0)
        spring = {"spring": JointSpring("mass", 1.0)}
        system = djdyn.System(djdyn.Mechanism((body,)), spring)
        y0 = system.initial_state(q=[1.0])
        end = djdyn.simulate(system, 2.0, y0, saveat=2, dt=0.01)
        assert end.y.q.dtype == jnp.float32
        assert jnp.abs(end.y.q[-1, 0] - jnp.cos(2.0)) < 1e-5


TRACES = []


class Traced(djdyn.AbstractSignalPart):
    """Notes when it is traced."""

    def initial_state(self):
        return {}

    def __call__(self, t, state, world, signals):
        TRACES.append(1)
        return djdyn.Response({}, outputs={"q": world.q})


def test_equal_calls_are_traced_once(oscillator):
    parts = {"spring": JointSpring("mass", 1.0), "note": Traced()}
    system = djdyn.System(oscillator.mechanism, parts)
    y0 = system.initial_state(q=[1.0])

    def run(k):
        model = djdyn.with_parameters(system, {"spring.stiffness": k})
        return djdyn.simulate(model, 1.0, y0, saveat=3).signal("note.q")

    run(1.0)
    traced = len(TRACES)
    run(2.0)
    assert len(TRACES) == traced


def test_a_damped_wagon_settles_as_in_an_independent_simulation():
    """Rokseth 2014, example 3.6, with dampers of 1 N s/m and 0.05 N m s."""
    system = swing_up.build(
        rub=JointFriction("wagon", 1.0), bearing=JointFriction("rod", 0.05)
    )
    y0 = system.initial_state(jnp.array([0.1, 0.2]))
    times = np.array([0.0, 5.0, 60.0])
    run = djdyn.simulate(
        system, 60.0, y0, saveat=times, rtol=1e-10, atol=1e-11, max_steps=100_000
    )
    assert np.allclose(run.y.q[1], [2.46e-4, 2.646726], atol=[5e-7, 1e-6])
    assert np.allclose(run.y.q[2], [-2.6e-6, 2.670648], atol=[1e-7, 1e-6])
