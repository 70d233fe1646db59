"""Co-simulation: two systems that trade motions and loads act as one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.multibody.time_functions import DeckMotion, GuidedMotion
from djdyn.parts import FrameActuator, SpringDamper
from djdyn.simulation.cosimulation import CoSimulation

from ..gradients import quick_jit


STIFFNESS, DAMPING, T1 = 40.0, 0.5, 1.0
STILL = np.zeros((3, 6))


def pendulum(name: str, mass: float, x: float) -> djdyn.Body:
    at = djdyn.translation((x, 0.0, 0.0))
    hinge = djdyn.Revolute((0, 1, 0))
    return djdyn.Body(name, "world", hinge, mass, (0, 0, -1.0), np.eye(3) * 0.1, at)


def bob(body: str) -> djdyn.Frame:
    return djdyn.Frame(
        "bob" if body == "left" else "tip", body, djdyn.translation((0, 0, -1.0))
    )


SPRING = SpringDamper("bob", "tip", STIFFNESS, DAMPING, 1.0)
START = {"left": 0.4}


@pytest.fixture(scope="module")
def whole():
    bodies = (pendulum("left", 2.0, 0.0), pendulum("right", 3.0, 1.0))
    machine = djdyn.Mechanism(bodies, (bob("left"), bob("right")))
    system = djdyn.System(machine, {"spring": SPRING})
    y0 = system.initial_state(q=START)
    return djdyn.simulate(system, T1, y0, saveat=2).y.q[-1]


@pytest.fixture(scope="module")
def halves() -> tuple[djdyn.System, djdyn.System]:
    """The left one feels a force; the right one has the spring, to a driven place."""
    left = djdyn.System(
        djdyn.Mechanism((pendulum("left", 2.0, 0.0),), (bob("left"),)),
        {"pull": FrameActuator("bob", "wrench")},
        {"wrench": np.zeros(6)},
    )
    joint = djdyn.Prescribed(GuidedMotion(STILL, STILL))
    anchor = djdyn.Body("anchor", "world", joint, 0.0)
    spring = SpringDamper("anchor", "tip", STIFFNESS, DAMPING, 1.0)
    bodies = (anchor, pendulum("right", 3.0, 1.0))
    machine = djdyn.Mechanism(bodies, (bob("right"),))
    return left, djdyn.System(machine, {"spring": spring})


def together(left: CoSimulation, right: CoSimulation, steps: int, q0=0.4):
    """The left one steps first, with the last force; the right one follows its bob."""

    def motion(pose, twist):
        rows = jnp.stack([pose.p, twist[3:], jnp.zeros(3)])
        return jnp.concatenate([rows, jnp.zeros((3, 3))], 1)

    def turn(carry, _):
        a, b, F = carry
        a, seen = left.step(a, {"wrench": F})
        b, felt = right.step(b, {"anchor": motion(seen["bob.pose"], seen["bob.twist"])})
        return (
            a,
            b,
            jnp.concatenate([jnp.zeros(3), -felt["anchor.reaction"][3:]]),
        ), None

    a = left.start(left.system.initial_state(q={"left": q0}))
    seen, b = left.read(a), right.start()
    rows = motion(seen["bob.pose"], seen["bob.twist"])
    b = djdyn.CoSimulationState(b.t, b.y, b.inputs, {"anchor": rows}, b.ok)
    F = jnp.concatenate([jnp.zeros(3), -right.read(b)["anchor.reaction"][3:]])
    (a, b, _), _ = jax.lax.scan(turn, (a, b, F), None, steps)
    return jnp.concatenate([a.y.q, b.y.q]), a.ok & b.ok


def ports(halves, dt):
    left, right = halves
    options = djdyn.SimulationOptions(solver="rk4", dt=dt)
    how = {"dt": dt, "hold": True, "options": options}
    return CoSimulation(left, ["bob.pose", "bob.twist"], **how), CoSimulation(
        right, ["anchor.reaction"], **how
    )


def test_two_systems_act_as_one_and_the_error_falls_with_the_step(halves, whole):
    found = []
    for dt in (0.02, 0.01, 0.005):
        run = quick_jit(lambda dt=dt: together(*ports(halves, dt), round(T1 / dt)))
        q, ok = run()
        assert ok
        found.append(q)
    errors = [float(jnp.max(jnp.abs(q - whole))) for q in found]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 4e-3
    assert np.all(orders > 0.9), (errors, orders)
    # A held force is of first order: without that term the rest is small.
    assert jnp.allclose(2 * found[-1] - found[-2], whole, atol=2e-4)


@pytest.mark.slow
def test_steps_have_gradients_and_batches(halves):
    """By where a boundary goes, by a parameter and by the state it starts from."""
    _, right = ports(halves, 0.05)

    def value(x):
        port = djdyn.with_parameters(right, {"system.spring.stiffness": x[0]})
        state = port.start(port.system.initial_state(q={"right": x[1]}))
        led = jnp.zeros((3, 6)).at[0, 0].set(x[2])
        turn = lambda state, s: port.step(state, {"anchor": s * led})
        state, seen = jax.lax.scan(turn, state, jnp.array([1.0, 2.0]))
        return state.y.v[0] + 0.01 * seen["anchor.reaction"][-1, 3]

    x, h = jnp.array([[30.0, 0.1, 0.02], [40.0, -0.2, 0.01]]), 1e-5
    reverse = quick_jit(jax.vmap(jax.grad(value)))(x)
    forward = quick_jit(jax.vmap(jax.jacfwd(value)))(x)
    assert jnp.allclose(reverse, forward, rtol=1e-11)
    both = quick_jit(jax.vmap(value))
    for i, e in enumerate(h * jnp.eye(3)):
        slope = (both(x + e[None]) - both(x - e[None])) / (2 * h)
        assert jnp.allclose(reverse[:, i], slope, rtol=1e-6), i


def test_a_guided_deck_equals_the_function_that_guides_it():
    """Quintic pieces through a harmonic deck: order six of the macro step."""
    deck = DeckMotion([0.1, 0.2, 0.3, 0.1, 0.2, 0.3], [1.0, 1.1, 1.2, 1.3, 1.4, 1.5])

    def place(t):
        return deck.mean + deck.amplitude * jnp.sin(deck.frequency * t + deck.phase)

    rows = lambda t: jnp.stack(
        [f(t) for f in (place, jax.jacfwd(place), jax.jacfwd(jax.jacfwd(place)))]
    )

    def hung(motion):
        body = djdyn.Body(
            "deck", "world", djdyn.Prescribed(motion), 5.0, I_BC=np.eye(3)
        )
        arm = djdyn.Revolute((0, 1, 0))
        tool = djdyn.Body("arm", "deck", arm, 1.0, (0, 0, -0.5), np.eye(3) * 0.1)
        return djdyn.System(djdyn.Mechanism((body, tool)))

    true = djdyn.simulate(hung(deck), 1.0, saveat=2, solver="rk4", dt=0.01)
    start = rows(jnp.array(0.0))
    port = CoSimulation(
        hung(GuidedMotion(start, start)),
        ["deck.reaction", "arm.q", "arm.pose"],
        dt=0.1,
        options=djdyn.SimulationOptions(solver="rk4", dt=0.01),
    )

    @jax.jit
    def run():
        times = 0.1 * jnp.arange(1.0, 11.0)
        step = lambda s, t: port.step(s, {"deck": rows(t)})
        return jax.lax.scan(step, port.start(), times)

    state, seen = run()
    assert jnp.allclose(state.y.q, true.y.q[-1], atol=1e-8)
    assert jnp.allclose(seen["arm.q"][-1], true.y.q[-1, 0], atol=1e-8)
    assert jnp.allclose(seen["deck.reaction"][-1], true.reaction("deck")[-1], atol=1e-4)


def test_inputs_are_lines_or_held(halves):
    """A force that grows to 6 N over a step: the impulse is a half or all of it."""
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 2.0)
    parts = {"push": FrameActuator("mass", "wrench")}
    system = djdyn.System(djdyn.Mechanism((body,)), parts, {"wrench": np.zeros(6)})
    for hold, speed in ((False, 0.15), (True, 0.3)):
        port = CoSimulation(system, ["mass.v"], dt=0.1, hold=hold)
        state, seen = port.step(port.start(), {"wrench": [0, 0, 0, 6.0, 0, 0]})
        assert jnp.allclose(seen["mass.v"], speed)
        state, seen = port.step(state)  # what is not given stays
        assert jnp.allclose(seen["mass.v"], speed + 0.3)
        assert jnp.allclose(state.t, 0.2)


def test_what_is_wrong_is_said(halves):
    left, right = halves
    with pytest.raises(
        ValueError, match=r"unknown output 'bob.force'; there are frame"
    ):
        CoSimulation(left, ["bob.force"], dt=0.1)
    with pytest.raises(ValueError, match="macro step dt must be positive"):
        CoSimulation(left, dt=0.0)
    port = CoSimulation(right, dt=0.1)
    with pytest.raises(
        ValueError, match="nothing comes in as 'wrench'; there are anchor"
    ):
        port.step(port.start(), {"wrench": np.zeros(6)})
    with pytest.raises(
        ValueError, match=r"'anchor' has shape \(6,\), expected \(3, 6\)"
    ):
        port.step(port.start(), {"anchor": np.zeros(6)})
    with pytest.raises(RuntimeError, match=r"the step from t = 0 s was not solved"):
        options = djdyn.SimulationOptions(rtol=1e-15, atol=1e-18, max_steps=3)
        tight = CoSimulation(right, dt=0.1, options=options)
        tight.step(tight.start())
