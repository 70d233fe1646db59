"""MJCF files become systems that accelerate and measure as MuJoCo's do."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.io import keyframes, system_from_mjcf
from djdyn.parts import Actuator, JointStop, PositionLaw, TendonStop, VelocityLaw

from ..gradients import assert_gradient, quick_jit
from ..machines import DATA


mujoco = pytest.importorskip("mujoco")
GANTRY = DATA / "gantry.xml"
SPEEDS = np.arange(14)
SPEEDS[5:11] = [8, 9, 10, 5, 6, 7]  # of a free joint MuJoCo has the linear ones first
WARNS = pytest.mark.filterwarnings("ignore:read without sensor 'middle'")


@functools.cache
def gantry():
    with pytest.warns(UserWarning, match="read without sensor 'middle'"):
        return system_from_mjcf(GANTRY)


@functools.cache
def moving():
    """MuJoCo's data at a state inside all limits, in which all friction slides."""
    model = mujoco.MjModel.from_xml_path(str(GANTRY))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[12:16] = rng.normal(size=4)
    data.qpos[12:16] /= np.linalg.norm(data.qpos[12:16])
    data.qvel[:] = rng.uniform(0.2, 2.0, model.nv)
    data.ctrl[:] = 0.4, 0.6, 0.3, 0.7, 12.0, -0.2
    mujoco.mj_forward(model, data)
    assert np.isclose(data.qfrc_constraint[0], -0.3)
    return model, data


@functools.cache
def measured():
    """The system's accelerations and signals at MuJoCo's state."""
    system, (_, data) = gantry(), moving()
    states = {"lift:actuator": data.act[0], "creep:actuator": data.act[1]}
    states = {k: {"activation": jnp.asarray(x)} for k, x in states.items()}
    names: list[str] = list(system.inputs)
    y = system.initial_state(data.qpos, data.qvel[SPEEDS], states)
    inputs = dict(zip(names, jnp.asarray(data.ctrl), strict=True))
    now = quick_jit(lambda y, inputs: system.at(0.0, y, inputs))(y, inputs)
    return y, inputs, now


def test_accelerations_are_mujocos():
    (_, data), (_, _, now) = moving(), measured()
    size = np.abs(data.qacc).max()
    np.testing.assert_allclose(now.v_dot, data.qacc[SPEEDS], rtol=0, atol=1e-9 * size)
    rates = [
        now.responses[f"{x}:actuator"].rate["activation"] for x in ("lift", "creep")
    ]
    np.testing.assert_allclose(rates, data.act_dot, rtol=1e-12)


def passive_at_tool(now):
    """What gravity compensation and drag do below the elbow, seen from the tool.

    MuJoCo lets joints carry these forces; here they act from outside.
    """
    X, rows = now.world.pose("tool"), [now.world.mechanism.index("lower")]
    rows += [now.world.mechanism.index(finger) for finger in ("left", "right")]
    total = np.zeros((2, 3))
    for name, response in now.responses.items():
        if name.endswith(":drag") or name == "gravity_compensation":
            for load in response.loads:
                F = np.asarray(load.wrenches(now.world))[rows]
                arm = np.asarray(now.world.X_WB.p[np.array(rows)] - X.p[None])
                total[0] += np.sum(F[:, :3] + np.cross(arm, F[:, 3:]), 0)
                total[1] += np.sum(F[:, 3:], 0)
    torque, force = total @ np.asarray(X.R)
    return {"wrist_force": force, "wrist_torque": torque}


def test_sensors_measure_what_mujocos_do():
    (model, data), (_, _, now) = moving(), measured()
    for i in range(model.nsensor):
        name = model.sensor(i).name
        if name == "middle":
            assert "middle.value" not in now.signals
            continue
        expected = data.sensor(name).data
        found = np.atleast_1d(now.signals[f"{name}.value"])
        if name == "drone_attitude":
            expected = expected * np.sign(expected @ found)
        if name.startswith("wrist"):
            expected = expected - passive_at_tool(now)[name]
        size = 1e-9 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=size, err_msg=name)


def test_actuators_and_their_commands_go_by_their_names():
    system = gantry()
    assert list(system.inputs) == [
        "push",
        "aim",
        "elbow:command",  # a joint has the name itself
        "squeeze",
        "lift",
        "creep",
    ]
    aim, elbow = (system.parts[f"{name}:actuator"] for name in ("aim", "elbow"))
    assert isinstance(aim, Actuator) and isinstance(aim.law, PositionLaw)
    assert isinstance(elbow, Actuator) and isinstance(elbow.law, VelocityLaw)
    np.testing.assert_allclose([aim.law.kp, aim.law.kd], [60.0, 4.0])
    assert djdyn.get_parameters(system, "aim:actuator.law.kp") == 60.0
    text = str(system)
    for word in ("shoulder:stop", "JointStop", "grip:tendon", "inputs: push, aim"):
        assert word in text


@WARNS
def test_keyframes_are_states_and_inputs():
    home = keyframes(GANTRY)["home"]
    assert home.inputs["lift"] == 9.0 and home.inputs["elbow:command"] == 0.0
    assert home.parts["lift:actuator"] == {"activation": 8.0}
    y = gantry().initial_state(home.q, home.v, home.parts)
    np.testing.assert_allclose(y.v[5:11], [4, 5, 6, 1, 2, 3])
    np.testing.assert_allclose(y.q[:2], [0.2, 0.4])


SLIDER = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="b"><joint name="j" type="slide" axis="1 0 0" range="-1 1" limited="true"
    solreflimit="{}"/><geom size="0.1" mass="2.5" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("solref", ["0.02 1", "0.1 0.4", "-300 -20"])
def test_stops_push_back_with_the_time_constants_of_the_file(solref):
    """Deeper than `solimp`'s width and free of other forces MuJoCo's do the same."""
    text = SLIDER.format(solref)
    system, model = system_from_mjcf(text), mujoco.MjModel.from_xml_string(text)
    assert isinstance(system.parts["j:stop"], JointStop)
    data = mujoco.MjData(model)
    for q, v in ((1.01, 0.1), (-1.02, 0.05)):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        now = system.at(0.0, system.initial_state(q=[q], v=[v]))
        np.testing.assert_allclose(now.v_dot, data.qacc, rtol=1e-6)


def test_tendons_stop_where_they_are_limited():
    stop = gantry().parts["grip:stop"]
    assert isinstance(stop, TendonStop)
    np.testing.assert_allclose([stop.lower, stop.upper], [0.0, 0.07])
    y = gantry().initial_state(q={"left": 0.1, "right": 0.1})
    pushed = gantry().respond(("grip:stop",), 0.0, y)["grip:stop"]
    depth = 0.05 + 0.07 - 0.07
    np.testing.assert_allclose(pushed.outputs["force"], -depth * stop.stiffness)


def test_energy_balance_closes():
    """At every instant: the energy changes by what is drawn and what is lost."""
    system, (y, inputs, _) = gantry(), measured()

    @quick_jit
    def powers(y):
        rate = system.derivative(0.0, y, inputs)
        energy = lambda y: system.at(0.0, y, inputs).energy()
        return jax.jvp(energy, (y,), (rate,))[1], *system.powers(0.0, y, inputs)

    change, drawn, lost = powers(y)
    assert lost > 0
    np.testing.assert_allclose(change, drawn - lost, rtol=1e-10)


def test_accelerations_have_gradients():
    system, (y, inputs, _) = gantry(), measured()
    paths = (
        "cart.armature",
        "upper.mass",
        "aim:actuator.law.kp",
        "elbow:actuator.law.kv",
        "grip:tendon.stiffness",
        "rail:friction.coulomb",
        "gravity_compensation.fraction",
        "drone:drag.size",
    )
    theta = {path: djdyn.get_parameters(system, path) for path in paths}
    weights = jnp.asarray(np.random.default_rng(2).normal(size=system.mechanism.nv))

    def loss(theta):
        changed = djdyn.with_parameters(system, theta)
        return weights @ changed.derivative(0.0, y, inputs).v

    assert_gradient(loss, theta, h=1e-6, rtol=1e-6, jit=quick_jit)


SERVO = """
<mujoco><worldbody><body name="arm">
  <joint name="hinge" axis="0 1 0" armature="0.1" damping="0.5" frictionloss="0.1"/>
  <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1"/>
</body></worldbody><actuator>
  <position name="servo" joint="hinge" kp="50" kv="5" forcerange="-8 8"/>
</actuator></mujoco>"""


def test_a_batch_of_gains_runs_in_one_kernel():
    system = system_from_mjcf(SERVO)
    gains = jnp.array([20.0, 50.0])
    how = {"solver": "rk4", "dt": 2e-3, "saveat": [0.1, 0.2]}
    lanes = {"servo:actuator.law.kp": gains, "arm.armature": jnp.array([[0.1], [0.3]])}
    given = {"parameters": lanes, "inputs": {"servo": 0.5}}
    runs = djdyn.rollout(system, 0.2, **given, **how, backend="kernel")
    plain = djdyn.rollout(system, 0.2, **given, **how, backend="xla")
    found = runs.q("hinge")
    np.testing.assert_allclose(found, plain.q("hinge"), rtol=1e-9)
    model = mujoco.MjModel.from_xml_string(SERVO)
    model.opt.timestep, model.opt.integrator = 1e-4, int(mujoco.mjtIntegrator.mjINT_RK4)
    for lane in range(2):
        data = mujoco.MjData(model)
        model.actuator_gainprm[0, 0] = gains[lane]
        model.actuator_biasprm[0, 1] = -gains[lane]
        model.dof_armature[0] = lanes["arm.armature"][lane, 0]
        data.ctrl[0] = 0.5
        for _ in range(2000):
            mujoco.mj_step(model, data)
        np.testing.assert_allclose(found[lane, -1], data.qpos, rtol=2e-3)


# Refusals -----------------------------------------------------------------------------


def pair(more: str, joint: str = "") -> str:
    body = '<body name="{0}" pos="{1} 0 0"><joint name="{0}1" {2}/>'
    body += '<geom size="0.1"/></body>'
    both = body.format("a", 0, joint) + body.format("b", 1, "")
    return f"<mujoco><worldbody>{both}</worldbody>{more}</mujoco>"


@pytest.mark.parametrize(
    "kind, culprit, text",
    [
        (
            "equality",
            r"equality 'gears' \(tendon\)",
            pair(
                '<tendon><fixed name="t"><joint joint="a1" coef="1"/></fixed></tendon>'
                '<equality><tendon name="gears" tendon1="t"/></equality>'
            ),
        ),
        (
            "actuator",
            "actuator 'meat'",
            pair(
                '<actuator><muscle name="meat" joint="a1" lengthrange="0 1"/>'
                "</actuator>"
            ),
        ),
        (
            "stiffness",
            r"joint 'a1' \(neither hinge nor slide\)",
            pair("", 'type="ball" stiffness="3"'),
        ),
        (
            "limit",
            r"joint 'a1' \(neither hinge nor slide\)",
            pair("", 'type="ball" limited="true" range="0 1"'),
        ),
        (
            "saturation",
            "joint 'a1'",
            pair(
                '<actuator><motor joint="a1"/><motor joint="a1"/></actuator>',
                'actuatorfrcrange="-1 1"',
            ),
        ),
    ],
)
def test_what_a_system_cannot_hold_is_refused_by_name(kind, culprit, text):
    with pytest.raises(ValueError, match=f"{kind} of {culprit}.*System cannot hold"):
        system_from_mjcf(text, ignore=("contact",))
    ignore = ("contact", kind)
    assert system_from_mjcf(text, ignore=ignore).mechanism.nv >= 2


def test_a_refusal_counts_what_it_does_not_name():
    bodies = "".join(
        f'<body name="b{i}" pos="{i} 0 0"><joint name="j{i}" damping="1"/>'
        '<geom size="0.1"/></body>'
        for i in range(30)
    )
    text = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
    with pytest.raises(ValueError) as refusal:
        djdyn.from_mjcf(text)
    assert "damping of joint 'j0', joint 'j1', joint 'j2' and 27 more" in str(
        refusal.value
    )
    assert len(str(refusal.value)) < 400
