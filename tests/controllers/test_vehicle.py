"""Control of vehicles and of arms on them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import (
    ArmPID,
    EndEffectorControl,
    Reference,
    SecondOrderReference,
    VehiclePID,
    angle_rates,
    roll_pitch_yaw,
)
from djdyn.marine.allocation import Allocation, ThrusterLayout
from djdyn.marine.drag import BodyDamping
from djdyn.marine.thruster import FirstOrderThrust, Thrusters
from djdyn.marine.water import Buoyancy, Fluid
from djdyn.marine.wave_field import regular_waves
from djdyn.multibody.spatial import (
    quat_from_rotation,
    quat_rate,
    quat_to_rotation,
    rotation_rpy,
)
from djdyn.multibody.time_functions import Constant
from djdyn.parts import FrameActuator, JointActuator

from ..gradients import assert_gradient


INERTIA = np.diag([2.0, 3.0, 4.0])
EIGHT = ThrusterLayout(
    [[1, 1, 0], [1, -1, 0], [-1, 1, 0], [-1, -1, 0], [1, 1, 0], [1, -1, 0],
     [-1, 1, 0], [-1, -1, 0]],
    [[1, -1, 0], [1, 1, 0], [1, 1, 0], [1, -1, 0], *[[0, 0, 1.0]] * 4],
)  # fmt: skip


def test_angles_and_their_rates():
    angles = jnp.array([0.4, -0.7, 2.1])
    R = rotation_rpy(*angles)
    assert jnp.allclose(roll_pitch_yaw(R), angles, rtol=1e-12)
    w, q = jnp.array([0.3, -0.2, 0.5]), quat_from_rotation(R)
    turn = lambda q: roll_pitch_yaw(quat_to_rotation(q))
    _, rate = jax.jvp(turn, (q,), (quat_rate(q, w),))
    assert jnp.allclose(angle_rates(angles) @ w, rate, rtol=1e-12)


def vehicle(pid: VehiclePID, target=(0.0,) * 6, **parts) -> djdyn.System:
    body = djdyn.Body("hull", "world", djdyn.Free(), 50.0, I_BC=INERTIA)
    path = Reference(Constant(jnp.asarray(target, float)))
    parts = {"path": path, "pid": pid} | parts
    flat = djdyn.Mechanism((body,), gravity_W=(0.0, 0.0, 0.0))
    return djdyn.System(flat, parts)


@eqx.filter_jit
def asked(system, y):
    now = system.at(0.0, y)
    return now.signals, now.responses["pid"].rate["integral"]


def test_exact_torques_do_the_work_of_the_angles():
    r"""$\tau\cdot\omega = \tau_\Theta\cdot\dot\Theta$, which rotation only nears."""
    kp, kd = np.array([0, 0, 0, 5.0, 6, 7]), np.zeros(6)
    angles = jnp.array([0.3, -0.5, 1.0])
    q = jnp.concatenate([jnp.zeros(3), quat_from_rotation(rotation_rpy(*angles))])
    w = jnp.array([0.2, 0.4, -0.3])
    for kind, near in (("exact", 1e-12), ("rotation", 0.5)):
        system = vehicle(VehiclePID("hull", "path", kp, kd, torques=kind))
        y = system.initial_state({"hull": q}, {"hull": jnp.concatenate([w, 0 * w])})
        signals, _ = asked(system, y)
        power = signals["pid.u"][:3] @ w
        wanted = -(kp[3:] * angles) @ (angle_rates(angles) @ w)
        assert (abs(power / wanted - 1) < near) and (kind == "exact") == bool(
            abs(power / wanted - 1) < 1e-9
        )


def test_forces_turn_with_the_vehicle_and_yaw_takes_the_shorter_way():
    kp = np.array([10.0, 20, 30, 0, 0, 7])
    system = vehicle(VehiclePID("hull", "path", kp, np.zeros(6)), [1, 2, 3, 0, 0, 3.0])
    q = jnp.concatenate(
        [jnp.zeros(3), quat_from_rotation(rotation_rpy(*jnp.array([0.0, 0, -3.0])))]
    )
    signals, _ = asked(system, system.initial_state({"hull": q}))
    R = rotation_rpy(*jnp.array([0.0, 0, -3.0]))
    assert jnp.allclose(R @ signals["pid.u"][3:], jnp.array([10.0, 40, 90]))
    assert jnp.allclose(signals["pid.u"][2], 7 * (6.0 - 2 * np.pi))


def test_the_integral_follows_what_thrusters_can_give():
    share = Allocation(EIGHT, lower=-20.0, upper=20.0)
    kp, ki = np.full(6, 100.0), np.full(6, 3.0)
    pid = VehiclePID("hull", "path", kp, np.zeros(6), ki, share)
    system = vehicle(pid, [5.0, 0, 0, 0, 0, 0])
    signals, build_up = asked(system, system.initial_state())
    most = 4 * 20.0 / np.sqrt(2)
    assert jnp.allclose(signals["pid.u"][3], most, rtol=1e-6)
    assert jnp.allclose(build_up[0], 3.0 * 5 + 3 / 100 * (most - 500.0), rtol=1e-6)
    assert jnp.allclose(build_up[1:], 0.0, atol=1e-9)


def test_a_reference_rises_at_its_limit_and_settles_as_its_poles():
    path = SecondOrderReference("target", [0.0, 0.0], 2.0, 2.0, 2.0, [1e9, 0.05])
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0)
    system = djdyn.System(
        djdyn.Mechanism((body,), gravity_W=(0.0, 0.0, 0.0)), {"path": path},
        {"target": jnp.ones(2)},
    )  # fmt: skip
    run = djdyn.simulate(system, 6.0, saveat=601, rtol=1e-8, atol=1e-9)
    x = np.asarray(run.y.parts["path"]["path"])
    overshoot = np.exp(-np.pi * 0.5 / np.sqrt(0.75))
    assert np.isclose(x[:, 0].max() - 1, overshoot, rtol=1e-4)
    rates = np.diff(x[:, 1]) / 0.01
    assert rates.max() < 0.05 + 1e-6 and np.isclose(rates[300], 0.05, rtol=1e-6)


def test_station_keeping_in_current_and_waves():
    """The mean place is kept; the mean thrust is the drag in the mean current."""
    water = Fluid(
        1000.0, currents=[[0.4, 0.0, 0.0]], surface=8.0, waves=regular_waves(1.0, 6.0)
    )
    share = Allocation(EIGHT, lower=-200.0, upper=200.0)
    pid = VehiclePID(
        "hull", "path", np.full(6, 200.0), np.full(6, 150.0), np.full(6, 60.0), share
    )
    parts = {
        "thrusters": Thrusters(
            "hull", EIGHT, "pid.thrust", FirstOrderThrust(0.1, -200.0, 200.0), water
        ),
        "drag": BodyDamping("hull", np.full(6, 20.0), [0, 0, 0, 80, 80, 80], water),
    }
    system = vehicle(pid, **parts)
    run = djdyn.simulate(system, 120.0, saveat=np.linspace(60.0, 120.0, 241))
    x = np.asarray(run.q("hull"))
    assert np.abs(x[:, :3].mean(0)).max() < 2e-3
    assert np.abs(x[:, 0]).max() < 0.1
    # |u|u in a wave of orbital speed a: more than in the mean current alone.
    force = np.asarray(run.signal("pid.u"))[:, 3].mean()
    assert -(20 * 0.4 + 80 * 0.16) * 1.2 < force < -(20 * 0.4 + 80 * 0.16)


# Arms ---------------------------------------------------------------------------------


JOINTS = ("a", "b", "c", "d")


def arm(parts, base: bool = True, inputs=None) -> djdyn.System:
    """A planar-spatial arm of four links on a floating base."""
    bodies = [djdyn.Body("hull", "world", djdyn.Free(), 90.0, I_BC=30 * np.eye(3))]
    parent, at = "hull", (0.5, 0.0, 0.0)
    for name, axis in zip(
        JOINTS, ((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 0, 1)), strict=True
    ):
        bodies.append(
            djdyn.Body(
                name, parent, djdyn.Revolute(axis), 3.0, (0.25, 0, 0),
                0.05 * np.eye(3), djdyn.translation(at),
            )
        )  # fmt: skip
        parent, at = name, (0.5, 0.0, 0.0)
    frames = (djdyn.Frame("tool", "d", djdyn.translation((0.4, 0.0, 0.0))),)
    return djdyn.System(djdyn.Mechanism(tuple(bodies), frames), parts, inputs or {})


def test_feed_forward_is_what_holds_the_arm():
    """With a base that is held, feed-forward alone gives the reference acceleration."""
    water = Fluid(1000.0)
    lifts = tuple(Buoyancy(name, 1e-3, water) for name in JOINTS)
    path = {"value": [0.1, 0.2, -0.3, 0.4], "rate": [0.5, -0.4, 0.3, 0.2],
            "acceleration": [1.0, -2.0, 0.5, 0.3]}  # fmt: skip
    inputs = {k: jnp.array(x) for k, x in path.items()}

    class Given(djdyn.AbstractSignalPart):
        def initial_state(self):
            return {}

        def __call__(self, t, state, world, signals):
            outputs = {k: signals[k] for k in path}
            return djdyn.Response(state, outputs=outputs)

    control = ArmPID(
        JOINTS, "path", 10.0, 1.0, 2.0, known=lifts, payload=2.0, tool="tool"
    )
    parts = {
        "path": Given(), "arm": control, "motors": JointActuator(JOINTS, "arm.u"),
        **{f"lift{i}": lift for i, lift in enumerate(lifts)},
    }  # fmt: skip
    system = arm(parts, inputs=inputs)
    q = dict(zip(JOINTS, path["value"], strict=True))
    v = dict(zip(JOINTS, path["rate"], strict=True))

    @eqx.filter_jit
    def needed(system, y):
        now = system.at(0.0, y)
        m = system.mechanism
        a = jnp.concatenate([jnp.zeros(6), jnp.array(path["acceleration"])])
        tip = now.world.jacobian("tool")[3:].T @ (2.0 * m.gravity_W)
        tau = djdyn.inverse_dynamics(m, y.q, y.v, a, now.F_WB)
        return now.signals["arm.u"], (tau - tip)[6:]

    u, wanted = needed(system, system.initial_state(q, v))
    assert jnp.allclose(u, wanted, rtol=1e-10)


def test_the_tool_follows_its_path_while_the_base_moves():
    """Redundancy resolved: the tool keeps its path, the posture is the nearest."""
    hold = Reference(Constant(jnp.zeros(6)))
    kp, kd = np.full(6, 30.0), np.full(6, 60.0)
    start = jnp.array([0.2, 0.4, 0.5, 0.1])
    parts = {
        "base": hold, "pid": VehiclePID("hull", "base", kp, kd),
        "ideal": FrameActuator("hull", "pid.u", follows=True),
        "hand": EndEffectorControl(
            JOINTS, "tool", "target", start, 3.0, start, 0.5, damping=1e-3
        ),
        "arm": ArmPID(JOINTS, "hand", 400.0, 60.0, base="moving"),
        "motors": JointActuator(JOINTS, "arm.u"),
    }  # fmt: skip
    target = jnp.array([1.9, 0.5, -0.7])
    system = arm(parts, inputs={"target": target})
    weightless = eqx.tree_at(lambda s: s.mechanism.gravity_W, system, jnp.zeros(3))
    y0 = weightless.initial_state(
        dict(zip(JOINTS, [[x] for x in start], strict=True)),
        {"hull": [0.02, -0.03, 0.02, 0.05, 0.03, 0.0]},
    )
    run = djdyn.simulate(weightless, 20.0, y0, saveat=[5.0, 20.0])
    tool = run.map(lambda now: now.world.pose("tool").p)
    assert jnp.allclose(tool[-1], target, atol=2e-3)
    assert jnp.linalg.norm(run.v("hull")[0]) > 1e-3


def test_gradients_of_control():
    share = Allocation(EIGHT, lower=-20.0, upper=25.0, width=5.0, rounds=1)
    q = jnp.concatenate(
        [
            jnp.array([0.1, 0.2, 0.3]),
            quat_from_rotation(rotation_rpy(*jnp.array([0.1, 0.2, 0.3]))),
        ]
    )

    def loss(x):
        pid = VehiclePID("hull", "path", x[:6], x[6:12], x[12:18], share, "exact")
        system = vehicle(pid, [0.5, 0, 0, 0, 0.2, 0])
        y = system.initial_state({"hull": q}, {"hull": jnp.arange(6.0) / 20})
        now = system.at(0.0, y)
        return jnp.sum(now.signals["pid.thrust"]) + jnp.sum(
            now.responses["pid"].rate["integral"]
        )

    assert_gradient(loss, 10.0 + jnp.arange(18.0), h=1e-4, rtol=1e-6, modes_rtol=1e-9)


def test_bad_references_are_named():
    pid = VehiclePID("hull", "path", np.ones(6), np.ones(6))
    with pytest.raises(
        ValueError, match="part 'pid': the reference 'path' of a vehicl"
    ):
        vehicle(pid, [0.0, 0.0, 0.0])
    hand = EndEffectorControl(("hull",), "tool", "target", [0.0])
    with pytest.raises(ValueError, match="joint 'hull' of the arm has not one speed"):
        arm({"hand": hand}, inputs={"target": jnp.zeros(3)})
