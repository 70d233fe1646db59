"""Options of simulations: one object, its keywords, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, CableProperties, FixedEnd
from djdyn.parts import JointFriction
from djdyn.simulation.options import OptionKeywords, resolve_options


@pytest.fixture(scope="module")
def pendulum():
    rod = {"mass": 1.0, "p_BC": (0, 0, -0.5), "I_BC": 0.1 * jnp.eye(3)}
    body = djdyn.Body("arm", "world", djdyn.Revolute((0, 1, 0)), **rod)
    parts = {"bearing": JointFriction("arm", viscous=0.1)}
    return djdyn.System(djdyn.Mechanism((body,)), parts)


@pytest.fixture(scope="module")
def run(pendulum):
    options = djdyn.SimulationOptions(solver="rk4", dt=0.01)
    y0 = pendulum.initial_state(q={"arm": 1.0})
    return djdyn.simulate(pendulum, 0.5, y0, saveat=6, options=options)


def test_keywords_are_the_fields_of_the_options(pendulum, run):
    y0 = pendulum.initial_state(q={"arm": 1.0})
    same = djdyn.simulate(pendulum, 0.5, y0, saveat=6, solver="rk4", dt=0.01)
    assert jnp.array_equal(run.y.q, same.y.q)
    fields = set(vars(djdyn.SimulationOptions()))
    assert fields == set(OptionKeywords.__annotations__)


def test_keywords_change_given_options():
    options = djdyn.SimulationOptions(solver="rk4", dt=0.01)
    changed = resolve_options(options, dt=0.02)
    assert (changed.solver, changed.dt) == ("rk4", 0.02)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"solver": "euler"}, "unknown solver 'euler'"),
        ({"solver": "rk4"}, "has fixed steps: give dt"),
        ({"control_delay": True}, "needs control_period"),
        ({"control_period": -1.0}, "must be positive"),
        ({"rtol": -1.0}, "rtol must be at least 0"),
    ],
)
def test_bad_options_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        djdyn.SimulationOptions(**given)


def test_an_unknown_option_is_named():
    with pytest.raises(TypeError, match="unknown option 'tolerance'; there are solver"):
        resolve_options(tolerance=1e-3)  # pyright: ignore


def test_tables(run):
    data, frame = run.to_xarray(), run.to_pandas()
    assert data["arm.q"].dims == ("time",)
    assert np.array_equal(frame["arm.q"], data["arm.q"])
    assert frame.index.name == "time"


def test_tables_of_a_batch(pendulum):
    lanes = {"bearing.viscous": [0.1, 0.2]}
    run = djdyn.rollout(
        pendulum, 0.1, parameters=lanes, saveat=3, solver="rk4", dt=0.01
    )
    frame = run.to_pandas()
    assert frame.index.names == ["lane", "time"] and len(frame) == 6


def test_pictures(run, tmp_path):
    page = run.plot("arm.q", "bearing.force").save(tmp_path / "p.html").read_text()
    assert "arm.q [rad]" in page and "bearing.force [N m]" in page
    assert "<iframe" in run.show()._repr_html_()
    with pytest.raises(ValueError, match="takes names of signals"):
        run.plot()


def test_print_shows_tree_and_table(pendulum):
    said = str(pendulum)
    assert "arm" in said and "Revolute about (0, 1, 0)" in said
    assert "bearing  JointFriction" in said
    assert "<table>" in pendulum._repr_html_()
    assert "<table>" in pendulum.mechanism._repr_html_()
    assert repr(pendulum.mechanism) == str(pendulum.mechanism)


def test_deep_parameters_keep_their_domain():
    ends = FixedEnd((0, 0, 0)), FixedEnd((0, 0, -1))
    line = Cable(CableProperties(linear_density=1.0, EA=1e6), 1.0, *ends, mesh=4)
    body = djdyn.Body("b", "world", djdyn.Free(), mass=1.0, I_BC=jnp.eye(3))
    system = djdyn.System(djdyn.Mechanism((body,)), {"line": line})
    with pytest.raises(ValueError, match=r"line\.rope\.EA must be"):
        djdyn.with_parameters(system, {"line.rope.EA": -1.0})
