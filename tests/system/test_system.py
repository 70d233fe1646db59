"""Signals, names, states, and systems with published motions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import JointPID, Reference
from djdyn.parts import JointActuator, JointFriction, JointSpring
from experiments.studies.titan4 import model as titan4

from ..machines import wagon_pendulum


def pendulum() -> djdyn.Mechanism:
    body = djdyn.Body("rod", "world", djdyn.Revolute((0, 1, 0)), 1.0, (0, 0, -1.0))
    return djdyn.Mechanism((body,))


def controlled(order: list[str]) -> djdyn.System:
    parts = {
        "reference": Reference(0.3),
        "pid": JointPID(("rod",), "reference.value", 5.0, 1.0, 2.0),
        "motor": JointActuator(("rod",), "pid.u"),
    }
    return djdyn.System(pendulum(), [(name, parts[name]) for name in order])


def test_evaluation_follows_the_connections_not_the_order():
    names = ["reference", "pid", "motor"]
    one, other = controlled(names), controlled(names[::-1])
    rate = eqx.filter_jit(lambda s: s.derivative(0.0, s.initial_state()).v)
    assert rate(one) == rate(other) == 0.3 * 5.0


class Echo(djdyn.AbstractSignalPart):
    """Repeats a signal; lets a test tie a knot."""

    heard: str = eqx.field(static=True)

    def initial_state(self):
        return {"memory": jnp.zeros(())}

    def __call__(self, t, state, world, signals):
        del t, world
        heard = signals[self.heard]
        rate = {"memory": heard - state["memory"]}
        return djdyn.Response(rate, outputs={"said": heard})


def test_a_cycle_of_signals_is_named():
    parts = {"a": Echo("b.said"), "b": Echo("c.said"), "c": Echo("a.said")}
    with pytest.raises(ValueError, match=r"cycle: (a -> b -> c -> a|b -> c|c -> a)"):
        djdyn.System(pendulum(), parts)


def test_a_state_breaks_a_cycle():
    parts = {"a": Echo("b.said"), "b": Echo("a.memory")}
    system = djdyn.System(pendulum(), parts)
    y = system.initial_state(parts={"a": {"memory": jnp.array(2.0)}})
    assert system.at(0.0, y).signals["a.said"] == 2.0


def test_signals_of_joints_and_inputs():
    system = djdyn.System(pendulum(), {"a": Echo("rod.q"), "b": Echo("u")}, {"u": 4.0})
    y = system.initial_state(q={"rod": 0.7})
    signals = system.at(0.0, y).signals
    assert signals["a.said"] == 0.7
    assert signals["b.said"] == 4.0
    assert system.at(0.0, y, {"u": jnp.array(5.0)}).signals["b.said"] == 5.0


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([("a", Reference(0.0)), ("a", Reference(1.0))], "two parts are called 'a'"),
        ({"rod": Reference(0.0)}, "name of a body, joint or frame"),
        ({"a.b": Reference(0.0)}, "has no dot"),
        ({"a": 3.0}, "not a part"),
        ({"a": Echo("b.said")}, "part 'a' reads unknown signal 'b.said'"),
        ({"a": Echo("b.sad"), "b": Reference(0.0)}, "there are b.value, b.rate"),
        ({"pid": JointPID(("arm",), "rod.q", 1.0)}, "part 'pid': unknown joint 'arm'"),
    ],
)
def test_bad_systems_are_refused(parts, said):
    with pytest.raises(ValueError, match=said):
        djdyn.System(pendulum(), parts)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"q": {"arm": 1.0}}, "unknown joint 'arm'"),
        ({"q": {"rod": [1.0, 2.0]}}, r"joint 'rod' has shape \(2,\), expected \(1,\)"),
        ({"v": [1.0, 2.0]}, r"initial v has shape \(2,\)"),
        ({"parts": {"x": {}}}, "unknown part 'x'"),
    ],
)
def test_bad_initial_states_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        djdyn.System(pendulum()).initial_state(**given)


def wagon() -> djdyn.System:
    springs = {"k1": JointSpring("wagon", 3.0), "k2": JointSpring("pendulum", 0.5)}
    return djdyn.System(wagon_pendulum(), springs)


@pytest.mark.validation
def test_wagon_pendulum_free_motion():
    """Bond-graph V2: positions to the printed digits, energy conserved."""
    system = wagon()
    known = {
        0.5: (0.01276055, 1.80910531, 0.15679522, 7.93989473),
        1.0: (0.09584614, 3.28702490, -1.09413706, -10.10075058),
        2.0: (-0.08072645, 0.77503677, -0.37620378, 4.13021271),
        5.0: (0.03324498, 0.20256442, 0.11822244, -0.29992471),
        10.0: (-0.07054329, 0.20346788, 0.09144331, -0.42306971),
    }
    y0 = system.initial_state(q=[0.1, 0.2])
    trajectory = djdyn.simulate(
        system, 10.0, y0, saveat=[0.0, *known], solver="dopri8", rtol=1e-12, atol=1e-12
    )
    found = jnp.concatenate([trajectory.y.q, trajectory.y.v], axis=1)[1:]
    # The digits printed; this free motion multiplies an early error many times over.
    assert jnp.allclose(found, jnp.array(list(known.values())), atol=2e-7)
    energy = trajectory.energy()
    assert jnp.allclose(energy, 2.9093359386, atol=1e-9)


@pytest.mark.validation
def test_wagon_pendulum_equilibria():
    """Bond-graph V3: modes about the upright and the hanging equilibrium."""
    system = wagon()

    def field(x):
        y = djdyn.State(x[:2], x[2:], {"k1": {}, "k2": {}})
        rate = system.derivative(0.0, y)
        return jnp.concatenate([rate.q, rate.v])

    linearise = jax.jit(lambda x: (field(x), jax.jacfwd(field)(x)))

    def poles(q2):
        rest, A = linearise(jnp.array([0.0, q2, 0.0, 0.0]))
        assert jnp.allclose(rest, 0.0, atol=1e-6)
        return np.linalg.eigvals(A)

    upright = poles(0.0)
    assert np.isclose(np.abs(upright.imag).max(), 1.00605, atol=1e-5)
    assert np.isclose(upright.real.max(), 6.34262, atol=1e-5)
    hanging = np.sort(np.abs(poles(2.6706475).imag))
    assert np.allclose(hanging[::2], [0.996126, 6.895965], atol=1e-6)


@pytest.mark.validation
@pytest.mark.parametrize("friction", [False, True])
def test_titan_passive_swing(friction):
    """Bond-graph V8: the arm falls, without and with joint friction."""
    viscous = (100.0, 80.0, 50.0, 20.0, 5.0, 2.5)
    parts = {f"f{i}": JointFriction(f"joint{i}", d) for i, d in enumerate(viscous, 1)}
    system = djdyn.System(titan4.mechanism(), parts if friction else {})
    y0 = system.initial_state(q=[0.2, 0.8, -0.5, 0.3, 0.4, 0.1])
    times = [0.25, 1.0]
    trajectory = djdyn.simulate(
        system, 1.0 if friction else 0.25, y0, saveat=times if friction else times[:1]
    )
    q, energy = trajectory.y.q, trajectory.energy()
    if not friction:
        known = [0.189683, 0.590164, -0.686667, 1.004059, 0.665152, 0.257203]
        assert jnp.allclose(q[0], jnp.array(known), atol=1e-6)
        assert jnp.allclose(energy, 639.0832494, atol=1e-6)
        return
    known = [
        [0.195317, 0.620128, -0.557880, 0.400746, 0.568560, 0.091714],
        [0.203459, -1.769359, -0.266742, 0.044735, -0.018300, 0.092960],
    ]
    assert jnp.allclose(q, jnp.array(known), atol=1e-6)
    assert jnp.allclose(energy, jnp.array([623.095084, -41.480170]), atol=1e-5)
