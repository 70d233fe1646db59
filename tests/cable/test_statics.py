"""Lines at rest, beside catenaries, beams and the elastica."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, CableProperties, FixedEnd, FreeEnd, PinnedEnd
from djdyn.system.equilibrium import EquilibriumError, equilibrium
from experiments.studies.cable.model import (
    along_x,
    beam,
    ground,
    hanging,
    heavy_beam,
    mooring,
    payload,
    signals,
)
from experiments.studies.cable.statics import TENSION

from ..gradients import assert_gradient


@pytest.mark.validation
def test_catenary_converges_to_its_end_tension():
    """CAB-2: 5e-4 with 20 elements is asked for."""
    errors = []
    for n in (10, 20):
        system = mooring(n)
        found = signals(system, equilibrium(system))["line.head_tension"]
        errors.append(abs(float(found) / TENSION - 1))
    assert errors[1] < 5e-5
    assert np.log2(errors[0] / errors[1]) > 2


def test_gradient_of_the_rest():
    system = mooring(4)
    paths = ["line.length", "line.rope.EA", "line.rope.linear_density"]
    scale = {p: djdyn.get_parameters(system, p) for p in paths}

    def tension(x):
        model = djdyn.with_parameters(
            system, {p: scale[p] * x[i] for i, p in enumerate(paths)}
        )
        model = eqx.tree_at(lambda s: s.parts["line"].head.point, model, x[3:])
        y = equilibrium(model)
        return model.at(0.0, y).signals["line.head_tension"] / 1e5

    x = jnp.array([1.0, 1.0, 1.0, 200.0, 0.0, 100.0])
    assert_gradient(tension, x, rtol=1e-5, modes_rtol=1e-8, h=1e-5)


@pytest.mark.validation
def test_payload_hangs():
    """Ship V13: 49.05 N, and the stretch of the line under it and itself."""
    system = hanging()
    y = equilibrium(system)
    stretch = 20 * (5 + 0.151189 * 10) * 9.81 / 8e5
    assert np.isclose(signals(system, y)["line.head_tension"], 49.05, rtol=1e-8)
    assert np.isclose(y.q[2], -stretch, rtol=1e-6)


@pytest.mark.validation
def test_beams_under_their_weight():
    """CAB-7."""
    for supported, node, wanted in ((False, -1, -0.122625), (True, 3, -0.0127734)):
        system = heavy_beam(supported)
        y = equilibrium(system, along_x(system, 10.0))
        assert np.isclose(y.parts["line"]["r"][node, 2], wanted, rtol=3e-4)


@pytest.mark.validation
def test_elastica():
    """Ship V1: tip of the inextensible elastica at 0.4400 m."""
    system = beam(12, 5e4)
    line = system.parts["line"]
    y = equilibrium(system, along_x(system, 3.0))
    assert np.isclose(y.parts["line"]["r"][-1, 2], 0.4400, atol=1e-4)
    load = eqx.filter_jit(line.end_loads)(system.at(0.0, y), "line")[0]
    lever = float(y.parts["line"]["r"][-1, 0])
    assert np.allclose(load, [0, -5e4 * lever, 0, 0, 0, 5e4], rtol=1e-5, atol=1.0)


def test_slack_line_that_is_very_stiff():
    rope, head = CableProperties(71.0, 1e9), FixedEnd([60.0, 0.0, 20.0])
    line = Cable(rope, 230.0, FixedEnd([0, 0, 0]), head, mesh=20)
    system = djdyn.System(ground(), {"line": line})
    y = equilibrium(system)
    rate = jax.jit(lambda y: system.derivative(0.0, y).parts["line"]["v"])(y)
    assert np.max(np.abs(rate)) < 1e-5


def test_nothing_holds_it():
    line = Cable(CableProperties(1.0, 1e5), 10.0, FreeEnd(), PinnedEnd("load"), mesh=2)
    system = djdyn.System(payload(5.0, 5.0, 20.0), {"line": line})
    with pytest.raises(EquilibriumError, match="is something not held"):
        equilibrium(system)
