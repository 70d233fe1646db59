"""Every part: its ledger, its gradients, and its worst points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.marine.inertia_box import InertiaBoxDrag
from djdyn.marine.water import Buoyancy, Drag, Fluid
from djdyn.multibody.spatial import translation
from djdyn.multibody.time_functions import DeckMotion, Harmonic
from djdyn.parts import (
    Actuator,
    AffineLaw,
    ExternalWrench,
    FrameActuator,
    FrameTransmission,
    GearFriction,
    GravityCompensation,
    JointActuator,
    JointForce,
    JointFriction,
    JointSpring,
    JointStop,
    JointTransmission,
    MotorLaw,
    PositionLaw,
    SpringDamper,
    StribeckFriction,
    TendonSpring,
    TendonStop,
    VelocityLaw,
)

from ..gradients import random_direction


WATER = Fluid(1000.0, [-1.0, 2.0], [[0.2, 0, 0], [0.5, 0.1, 0]], surface=0.6)
INERTIA = np.diag([0.3, 0.4, 0.5])


def machine() -> djdyn.Mechanism:
    """A slider, an arm on it, and a free body beside them, on a moving deck."""
    deck = DeckMotion([0.1, 0.2, 0.3, 0.1, 0.2, 0.3], [1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
    return djdyn.Mechanism(
        (
            djdyn.Body("deck", "world", djdyn.Prescribed(deck), 5.0, I_BC=INERTIA),
            djdyn.Body("cart", "deck", djdyn.Prismatic((1, 0, 0)), 2.0, I_BC=INERTIA),
            djdyn.Body(
                "arm", "cart", djdyn.Revolute((0, 1, 0)), 1.0, (0, 0, 0.4), INERTIA
            ),
            djdyn.Body("buoy", "world", djdyn.Free(), 3.0, (0.1, 0, 0), INERTIA),
        ),
        (djdyn.Frame("tip", "arm", translation((0.0, 0.1, 0.8))),),
    )


BAND = JointTransmission(("cart", "arm"), [2.0, 0.5])  # 0.9 m long, -0.8 + v_arm / 2
ROTOR = FrameTransmission("tip", [0.1, 0, 0.2, 0, 0, 1])
PARTS = {
    "servo": Actuator(BAND, "one", PositionLaw(20.0, 3.0), force_range=[-90.0, 90.0]),
    "pump": Actuator(BAND, "one", VelocityLaw(3.0), command_range=[-1.0, 0.4]),
    "valve": Actuator(BAND, "one", AffineLaw([1.0, 2, 3], [0.1, -4, -2])),
    "rotor": Actuator(ROTOR, "one", MotorLaw(3.0), time_constant=0.2, start=0.3),
    "band": TendonSpring(BAND, 30.0, 2.0, 0.4, friction=1.0, friction_width=0.5),
    "tight band": TendonSpring(BAND, 30.0, 2.0, 0.4, slack=0.2, corner=0.01),
    "loose band": TendonSpring(BAND, 30.0, 2.0, 1.4, slack=0.2, corner=0.01),
    "band's upper stop": TendonStop(BAND, 0.1, 0.5, 300.0, 20.0, 0.1),
    "band's lower stop": TendonStop(BAND, 1.1, 1.5, 300.0, 20.0, 0.1),
    "floating": GravityCompensation(("arm", "buoy"), [0.4, 1.1]),
    "box": InertiaBoxDrag("buoy", [0.1, 0.2, 0.3], 30.0, 2.0, [0.4, 0.3, 0.1]),
    "line": SpringDamper("tip", "buoy", 50.0, 3.0, 0.7),
    "cubic spring": SpringDamper("deck", "tip", 50.0, 3.0, 0.7, exponent=3),
    "spring of any exponent": SpringDamper("deck", "tip", 50.0, 3.0, 0.7, exponent=1.5),
    "heavy spring": SpringDamper("deck", "tip", 50.0, 3.0, 0.7, mass=0.3),
    "spring to world": SpringDamper("world", "tip", 50.0, 3.0, 0.2),
    "joint spring": JointSpring("arm", 20.0, 0.5, 0.1),
    "cubic joint spring": JointSpring("cart", 20.0, 0.5, 0.1, exponent=3),
    "square joint spring": JointSpring("arm", 20.0, 0.5, 0.9, exponent=2),
    "friction": JointFriction("arm", 0.4, 2.0, 0.5),
    "stiction": StribeckFriction("arm", 3.0, 2.0, 0.6, 0.4, 0.5),
    "gear": GearFriction("arm", "command", 0.2, 0.3, 1, 0.5, 0.1),
    "upper stop": JointStop("arm", -1.0, 0.1, 300.0, 20.0, 0.01),
    "lower stop": JointStop("arm", 0.9, 2.0, 300.0, 20.0, 0.5),
    "wrench": ExternalWrench("tip", Harmonic([1.0, 2, 3, 4, 5, 6], 2.0, 0.3)),
    "following wrench": ExternalWrench("buoy", [1.0, 2, 3, 4, 5, 6], follows=True),
    "joint force": JointForce("cart", Harmonic([7.0], 2.0, 0.3)),
    "actuator": JointActuator(("cart", "arm"), "command"),
    "frame actuator": FrameActuator("tip", "wanted", follows=True),
    "lift": Buoyancy("tip", 0.01, WATER, 0.9),
    "drag": Drag("buoy", [0.1, 0.2, 0.3], 0.2, WATER, 0.7),
}


def system(parts: dict[str, djdyn.AbstractPart]) -> djdyn.System:
    return djdyn.System(
        machine(),
        parts,
        {
            "idle": 0.0,
            "command": [3.0, -2.0],
            "wanted": [1.0, 2, 3, 4, 5, 6],
            "one": 0.6,
        },
    )


def state(system: djdyn.System, v_arm: float) -> djdyn.State:
    free = [1.0, 0.2, 0.5, 0.9, 0.1, -0.3, 0.2]
    return system.initial_state(
        q={"cart": 0.3, "arm": 0.6, "buoy": free},
        v={"cart": -0.4, "arm": v_arm, "buoy": [0.3, -0.2, 0.5, 1.0, 0.4, -0.6]},
    )


@pytest.fixture(scope="module")
def everything() -> djdyn.System:
    """All parts at once: one compilation serves all of them."""
    return system(PARTS)


@eqx.filter_jit
def ledgers(system: djdyn.System, t, y):
    """By part: rate of its energy, what its ledger says it should be, and its loss."""
    now, rate = system.at(t, y), system.derivative(t, y)
    ledger = {}
    for name, part in system.parts.items():

        def stored(t, y, name=name, part=part):
            world = djdyn.forward_kinematics(system.mechanism, y.q, y.v, t)
            return part.energy(y.parts[name], world)

        _, gained = jax.jvp(stored, (t, y), (jnp.ones(()), rate))
        arguments = (t, y.parts[name], now.world, now.signals)
        does = now.responses[name]
        powers = [load.power(now.world) for load in does.loads]
        powers += [mass.power(now.world, now.A_WB) for mass in does.inertias]
        power = sum(powers, start=jnp.zeros(()))
        loss = part.power_loss(*arguments)
        ledger[name] = gained, part.power_in(*arguments) - loss - power, loss
    _, gained = jax.jvp(system.energy, (t, y), (jnp.ones(()), rate))
    power_in, power_loss = system.powers(t, y)
    ledger["the whole system"] = gained, power_in - power_loss, power_loss
    return ledger


@pytest.mark.parametrize("v_arm", [0.7, -0.7])
def test_ledgers_close(everything, v_arm):
    ledger = ledgers(everything, jnp.array(0.4), state(everything, v_arm))
    for name, (gained, expected, loss) in ledger.items():
        assert jnp.allclose(gained, expected, rtol=1e-10, atol=1e-10), name
        assert loss >= 0, name


def test_gradients_of_every_part(everything):
    """Reverse, forward and differences, along a random direction for each part."""
    y = state(everything, 0.7)
    weights = jnp.asarray(np.cos(1.0 + np.arange(everything.mechanism.nv)))

    @eqx.filter_jit
    def loss(numbers):
        model = djdyn.with_parameters(everything, numbers)
        return weights @ model.derivative(0.4, y).v

    table = djdyn.parameters(everything)
    gradient = jax.jit(jax.grad(loss))(dict(table))
    along = jax.jit(lambda x, d: jax.jvp(loss, (x,), (d,))[1])
    for name in (*PARTS, "arm", "buoy", "deck", "gravity_W", "tip"):
        mine = {k: x for k, x in table.items() if k.split(".")[0] == name}
        if not mine:
            assert name.endswith("actuator")  # it has no numbers of its own
            continue
        d = {k: jnp.zeros_like(x) for k, x in table.items()} | random_direction(mine)
        reverse = sum(jnp.vdot(gradient[k], d[k]) for k in mine)
        h = 1e-5
        move = lambda s, d=d: {k: x + s * d[k] for k, x in table.items()}
        difference = (loss(move(h)) - loss(move(-h))) / (2 * h)
        assert reverse != 0, name
        assert jnp.allclose(reverse, along(dict(table), d), rtol=1e-9), name
        assert jnp.allclose(reverse, difference, rtol=1e-6, atol=1e-8), name


EDGES = {
    "spring of no length": SpringDamper("arm", "cart", 50.0, 3.0),
    "spring at its rest length": SpringDamper("world", "tip", 50.0, 3.0, 0.8),
    "friction": JointFriction("arm", 0.4, 2.0),
    "stiction": StribeckFriction("arm", 3.0, 2.0, 0.6, width=0.1),
    "gear": GearFriction("arm", "idle", 0.2, 0.3, width=0.1),
    "stop": JointStop(
        "arm", -1.0, 0.6, 300.0, 20.0, 3.0
    ),  # wide: differences resolve it
    "cubic spring": JointSpring("arm", 20.0, rest=0.6, exponent=3),
    "slack spring": SpringDamper("world", "tip", 50.0, 3.0, 0.8, exponent=2.5),
    "square spring": JointSpring("arm", 5.0, rest=0.6, exponent=2),
}


@pytest.mark.parametrize("v", [0.0, 1.0])
def test_gradients_are_right_at_the_edges(v):
    """At zero speed, zero length, rest length, and the edge of a stop."""
    model = system(EDGES)

    def powers(x):
        y = model.initial_state(q={"arm": x[:1]}, v={"arm": x[1:]})
        now = model.at(0.0, y)
        forces = []
        for name in EDGES:
            (load,) = now.responses[name].loads
            if isinstance(load, djdyn.Load):
                forces.append(
                    jnp.vdot(now.world.jacobians()[:, 1], load.wrenches(now.world))
                )
            else:
                forces.append(load.force[0])
        return jnp.stack(forces)

    x = jnp.array([0.6, v])
    reverse = jax.jit(jax.vmap(jax.jacrev(powers)))(jnp.stack([x, x]))[0]
    forward = jax.jit(jax.jacfwd(powers))(x)
    h, moved = 1e-7, jax.jit(jax.vmap(powers))
    up, down = moved(x[None] + h * jnp.eye(2)), moved(x[None] - h * jnp.eye(2))
    assert jnp.all(jnp.isfinite(reverse))
    assert jnp.allclose(reverse, forward, rtol=1e-12, atol=1e-12)
    scale = 1e-6 * (1 + jnp.max(jnp.abs(reverse)))
    assert jnp.allclose(reverse, ((up - down) / (2 * h)).T, atol=scale)


def test_a_spring_of_no_rest_length_pulls_smoothly_through_zero():
    """f = -k d, so its slope at zero length is -k in every direction."""
    parts = {"spring": SpringDamper("world", "buoy", 50.0)}
    body = djdyn.Body("buoy", "world", djdyn.Free(), 2.0, I_BC=INERTIA)
    model = djdyn.System(djdyn.Mechanism((body,), gravity_W=(0, 0, 0)), parts)

    def acceleration(p):
        y = model.initial_state()
        y = djdyn.State(y.q.at[:3].set(p), y.v, y.parts)
        return model.derivative(0.0, y).v[3:]

    slope = jax.jit(jax.jacfwd(acceleration))(jnp.zeros(3))
    assert jnp.allclose(slope, -25.0 * jnp.eye(3))


def test_a_stop_is_continuous_and_never_pulls():
    model = system({"part": JointStop("arm", -1.0, 0.5, 300.0, 20.0, 1e-3)})

    @jax.jit
    @jax.vmap
    def force(q, v):
        y = model.initial_state(q={"arm": q}, v={"arm": v})
        return model.at(0.0, y).signals["part.force"][0]

    q = jnp.linspace(0.499, 0.51, 12001)
    for v in (-5.0, 0.0, 5.0):
        f = force(q, jnp.full_like(q, v))
        assert jnp.all(f <= 0)
        assert jnp.max(jnp.abs(jnp.diff(f))) < 0.2  # 100 N would be the jump at 5 rad/s
        assert f[0] == 0


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: SpringDamper("tip", "buoy", -1.0), "stiffness must be at least 0"),
        (lambda: SpringDamper("tip", "buoy", 1.0, exponent=0.5), "at least 1"),
        (lambda: JointFriction("arm", width=0.0), "width must be above 0"),
        (lambda: JointStop("arm", 1.0, -1.0, 1.0), "the lower is above"),
        (lambda: system({"p": JointForce("arm", [1.0, 2.0])}), "which has 1 speeds"),
        (lambda: JointSpring("arm", float("nan")), "must be a number"),
        (
            lambda: system({"part": SpringDamper("tip", "boj", 1.0)}),
            "part 'part': unknown frame 'boj'",
        ),
        (lambda: system({"part": JointFriction("elbow")}), "unknown joint 'elbow'"),
        (
            lambda: system({"part": JointSpring("buoy", 1.0)}),
            "7 coordinates for 6 speeds",
        ),
        (lambda: system({"part": ExternalWrench("tip", [1.0, 2.0])}), "6 components"),
        (
            lambda: system({"part": JointActuator(("arm",), "command")}),
            "one value for each",
        ),
        (
            lambda: system({"part": JointActuator(("arm",), "orders")}),
            "unknown signal 'orders'",
        ),
    ],
)
def test_bad_input_is_said(build, said):
    with pytest.raises(ValueError, match=said):
        build()


def test_a_gear_passes_on_its_efficiency_and_stiction_its_laws_ends():
    gear = GearFriction("arm", "u", load_share=0.2, force_width=1e-9)
    for u in (7.0, -7.0):  # driving, and driven back by the load
        force = gear.force(jnp.array([0.5]), {"u": jnp.array([u])})
        assert jnp.allclose(force, -0.2 * 7.0, rtol=1e-9)
    rub = StribeckFriction("arm", 3.0, 2.0, 0.1, width=1e-6)
    speeds = jnp.array([1e-4, 1.0, -1.0])
    assert jnp.allclose(rub.force(speeds, {}), jnp.array([-3.0, -2.0, 2.0]), rtol=1e-5)
