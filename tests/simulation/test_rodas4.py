"""Linearly implicit steps: their order, and gradients through runs of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.hydraulics import (
    Circuit,
    HydraulicCylinder,
    Leakage,
    Oil,
    OnJoint,
    SealStribeck,
    ServoValve,
    Supply,
    Tank,
    Volume,
)
from djdyn.simulation.solvers.rodas4 import rosenbrock_step

from ..gradients import assert_gradient
from ..hydraulics.rigs import BAR, slider, valve_step


def kaps(epsilon: float):
    """Kaps' problem: exp(-2t) and exp(-t), however stiff."""

    def field(t, y):
        del t
        fast = -(1 / epsilon + 2) * y[0] + y[1] ** 2 / epsilon
        return jnp.stack([fast, y[0] - y[1] - y[1] ** 2])

    return field, [1.0, 1.0], np.exp([-2.0, -1.0])


def driven(t, y):
    """Depends on time: exp(sin t)."""
    return y * jnp.cos(t)


@pytest.mark.parametrize(
    ("field", "y0", "y1"),
    [kaps(1e-8), kaps(1.0), (driven, [1.0], np.exp([np.sin(1.0)]))],
)
def test_order_four_stiff_or_not(field, y0, y1):
    @jax.jit
    def ends(h):
        def turn(carry, _):
            t, y = carry
            live = t < 1 - h / 2
            stepped, _ = rosenbrock_step(field, t, y, h)
            return (jnp.where(live, t + h, t), jnp.where(live, stepped, y)), None

        start = jnp.zeros(()), jnp.asarray(y0)
        return jax.lax.scan(turn, start, length=40)[0][1]

    errors = [np.abs(ends(1 / n) - y1).max() for n in (10, 20, 40)]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.all(orders > 3.6), (errors, orders)


def test_its_error_estimate_is_of_order_three():
    """The last stage: sixteen times less at half the step."""
    field, y0, _ = kaps(1.0)
    sizes = [
        np.abs(rosenbrock_step(field, 0.0, jnp.asarray(y0), h)[1]).max()
        for h in (0.1, 0.05)
    ]
    assert 3.5 < np.log2(sizes[0] / sizes[1]) < 5.0


PATHS = ("oil.oil.bulk_modulus", "oil.valve.gain", "oil.valve.lag", "oil.A.volume")
PATHS += ("oil.ram.area_a", "oil.ram.friction.viscous", "oil.leak.conductance")
PATHS += ("oil.P.pressure", "oil.T.pressure", "oil.oil.air", "mass.mass", "u")


def reversing() -> tuple[djdyn.System, djdyn.State]:
    """A spool on its way through zero, and a piston that it turns back."""
    parts = {
        "P": Supply(150 * BAR),
        "T": Tank(1 * BAR),
        "A": Volume(2e-5, 80 * BAR, 1e-5),
        "B": Volume(2e-5, 70 * BAR),
        "valve": ServoValve("P", "T", "A", "B", "u", 2e-7, spool="lag", width=0.1),
        "leak": Leakage("A", "B", 1e-11),
        "ram": HydraulicCylinder(
            "A", "B", OnJoint("mass"), 2e-3, 1.5e-3, 0.5, 0.0, SealStribeck(500.0, 50.0)
        ),
    }
    system = slider(Circuit(Oil(air=0.002), parts), 200.0, u=-0.6)
    y = system.initial_state(q={"mass": 0.2}, v={"mass": 0.1})
    y.parts["oil"]["valve.spool"] = jnp.array(0.5)
    return system, y


@pytest.mark.slow
def test_gradients_through_a_run_in_which_the_valve_crosses_zero():
    """Reverse, forward, differences; two lanes at once; and the same in kernels."""
    system, y = reversing()
    values = {path: djdyn.get_parameters(system, path) for path in PATHS}

    def loss(theta, backend="xla"):
        lanes = {
            path: values[path] * (1 + x * jnp.array([1.0, 0.5]))
            for path, x in theta.items()
        }
        saves = np.array([0.0, 0.01, 0.02])
        run = djdyn.rollout(
            system, 0.02, y, parameters=lanes, solver="rodas4", dt=5e-4,
            saveat=saves, backend=backend,
        )  # fmt: skip
        spool = run.y.parts["oil"]["valve.spool"]
        return jnp.sum(run.y.q * 10) + jnp.sum(
            run.y.parts["oil"]["A.bar"] / 100 + spool
        )

    theta = {path: jnp.zeros(()) for path in PATHS}
    end = djdyn.simulate(system, 0.02, y, solver="rodas4", saveat=[0.0, 0.02])
    assert end.y.parts["oil"]["valve.spool"][-1] < -0.3  # it did cross
    assert_gradient(loss, theta, h=1e-5, rtol=1e-6, modes_rtol=1e-9)
    one, other = (
        jax.jit(jax.grad(lambda x, b=b: loss(x, b)))(theta) for b in ("xla", "kernel")
    )
    for path in PATHS:
        assert one[path] != 0
        assert jnp.allclose(one[path], other[path], rtol=1e-8), path


def test_a_step_far_too_long_stays_finite():
    """2 ms on oil that takes 60 microseconds: stages look far below a vacuum."""
    how = {"solver": "rodas4", "dt": 2e-3, "saveat": [0.0, 0.002]}
    for double in (True, False):
        with jax.enable_x64(double):
            run = djdyn.simulate(valve_step(1e-6), 0.002, **how)
            assert run.ok
