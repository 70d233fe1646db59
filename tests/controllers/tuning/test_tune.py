"""Tuning, compared with closed forms: regulators, second-order responses, limits."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import controllers as c
import djdyn
from controllers import (
    JointPID,
    MeanSquare,
    RobustnessMargins,
    SearchOptions,
    cost_of,
    sample,
    tune,
)
from controllers.linear.margins import moduli, opened
from controllers.tuning.evaluate import costs_of
from djdyn import FreeParameter, Positive, Sigmoid
from djdyn.parts import JointActuator, JointSpring


MASS, RHO = 2.0, 0.05
GAINS = [FreeParameter("pid.kp", Positive()), FreeParameter("pid.kd", Positive())]
HOW = {"solver": "rk4", "dt": 0.02, "progress": False}
REST = djdyn.System.initial_state
LM = SearchOptions(method="lm")


@pytest.fixture(scope="module")
def slide() -> djdyn.System:
    """A mass that a PD controller brings back to zero."""
    body = djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), MASS)
    parts = {
        "pid": JointPID("slide", "target", kp=[2.0], kd=[1.0]),
        "motor": JointActuator(("slide",), "pid.u"),
        "wall": JointSpring("slide", 0.0),
    }
    return djdyn.System(djdyn.Mechanism((body,)), parts, {"target": [0.0]})


@pytest.fixture(scope="module")
def moved(slide):
    q = {"slide": scipy.stats.norm(0.0, 1.0)}
    return sample(slide, 8, q=q, v={"slide": scipy.stats.norm(0.0, 1.0)})


COST = {
    "tracking": MeanSquare("slide.q"),
    "effort": MeanSquare("pid.u", scale=1 / np.sqrt(RHO)),
}


@pytest.mark.parametrize("method", ["bfgs", "lm", "nl2sol"])
def test_the_best_gains_are_those_of_a_regulator(slide, moved, method):
    """The integral of q2 + rho u2 is least for kp2 = 1/rho, kd2 = 2 m kp."""
    found = tune(
        slide, 16.0, free=GAINS, cost=COST, scenarios=moved, saves=801,
        search=SearchOptions(method=method),
        robustness=RobustnessMargins(REST, "pid.u"), **HOW,
    )  # fmt: skip
    kp = np.sqrt(1 / RHO)
    assert np.allclose(found.gains["pid.kp"], kp, rtol=2e-3)
    assert np.allclose(found.gains["pid.kd"], np.sqrt(2 * MASS * kp), rtol=2e-3)
    assert found.stable and found.better and found.cost_ratio < 1
    assert found.margins is not None and found.margins[1].phase[0] > 60  # a regulator's
    assert found.margins[1].modulus[0] > 0.99
    assert "pid.kp[0]" in str(found)
    # A gradient counts as four, a Jacobian of two unknowns as three.
    taken = np.diff(found.history[:, 0]) < 0
    first, each = {
        "bfgs": (4, 4),
        "lm": (6, 3),
        "nl2sol": (3, np.where(taken, 4, 1)),
    }[method]
    assert found.simulations[0] == first
    assert np.all(np.diff(found.simulations) == each)


def test_a_limit_is_kept(slide, tmp_path):
    """The effort is largest at the start, kp times 1 m."""
    start = c.Scenarios({}, slide.initial_state(q={"slide": 1.0}))
    found = tune(
        slide, 6.0, free=GAINS, cost={"tracking": MeanSquare("slide.q", scale=0.3)},
        scenarios=start, constraints={"force": c.Limit("pid.u", -4.0, 4.0)},
        search=SearchOptions(outer_iterations=6), saves=151, **HOW,
    )  # fmt: skip
    assert np.allclose(found.gains["pid.kp"], 4.0, rtol=5e-3)
    assert found.simulations[0] == 8  # two gradients: one of what limits add alone
    assert found.summary()["tuned on"]["force exceeded by"][1] < 5e-3
    found.save(tmp_path / "gains.json")
    again = djdyn.with_parameters(slide, c.load_gains(tmp_path / "gains.json"))
    assert np.allclose(djdyn.get_parameters(again, "pid.kd"), found.gains["pid.kd"])


def test_penalties_are_what_limits_add(slide):
    """The effort of 2 N at 1 m exceeds its limit."""
    start = c.Scenarios({}, slide.initial_state(q={"slide": 1.0}))
    cost = {"tracking": MeanSquare("slide.q", scale=0.3)}
    search = SearchOptions(max_steps=1)
    given = {"scenarios": start, "search": search, "saves": 151, **HOW}
    force = {"force": c.Limit("pid.u", -0.5, 0.5)}
    free = tune(slide, 6.0, free=GAINS, cost=cost, **given).objective
    held = tune(slide, 6.0, free=GAINS, cost=cost, constraints=force, **given).objective
    alone, x = held.penalties(), held.x0
    assert free.penalties() is None and alone is not None
    assert np.isclose(alone.cost(x), held.cost(x) - free.cost(x), rtol=1e-12)
    pull = jax.grad(held.cost)(x) - jax.grad(free.cost)(x)
    assert np.allclose(alone.slope(x)[1], pull, rtol=1e-9)
    assert np.all(np.abs(pull) > 1e-3)


@pytest.mark.slow
def test_many_gains_are_looked_at_at_once(slide, moved):
    """A batch has the costs of single runs, also with limits and margins."""
    pytest.importorskip("cma")
    found = tune(
        slide, 3.0, free=GAINS, cost=COST, scenarios=moved, saves=151,
        constraints={"force": c.Limit("pid.u", -1.0, 1.0)},
        search=SearchOptions(max_steps=12),
        robustness=RobustnessMargins(REST, "pid.u", delay=0.02, modulus=0.7), **HOW,
    )  # fmt: skip
    objective, rng = found.objective, np.random.default_rng(0)
    xs = objective.x0[None] + 0.3 * rng.standard_normal((6, 2))  # as many as CMA-ES has
    one_by_one = [cost_of(objective, x) for x in xs]
    assert np.allclose(costs_of(objective, xs), one_by_one, rtol=1e-12)
    runs = c.compare_searches(found, budget=40, progress=False)
    assert all(len(run.history) <= 40 for run in runs.values())
    start = float(cost_of(objective, objective.x0))
    at_once = costs_of(objective, np.tile(objective.x0, (6, 1)))  # by the same program
    assert runs["random search"].history[0, 2] <= float(at_once[0])
    assert np.isclose(runs["Nelder-Mead"].history[0, 2], start)
    assert runs["gradient"].cost < runs["CMA-ES"].cost < start


def test_gains_that_are_best_at_a_bound_end_there(slide):
    """Only errors have a cost, so the stiffness reaches its bound."""
    start = c.Scenarios({}, slide.initial_state(q={"slide": 1.0}))
    free = [
        FreeParameter("pid.kp", djdyn.Box([1.0], [6.0])),
        FreeParameter("pid.kd", djdyn.Box([1.0], [30.0])),
    ]
    cost = {"tracking": MeanSquare("slide.q", scale=0.3)}
    found = tune(slide, 6.0, free=free, cost=cost, scenarios=start, saves=151, **HOW)
    assert found.gains["pid.kp"] == 6.0
    # Least of the integral of q2 over all time: kd2 = m kp.
    assert np.allclose(found.gains["pid.kd"], np.sqrt(MASS * 6.0), rtol=1e-2)
    assert len(found.history) < 25


def test_a_margin_is_kept(slide):
    """Without the margin, gains grow until the loop tolerates no delay."""
    start = c.Scenarios({}, slide.initial_state(q={"slide": 1.0}))
    found = tune(
        slide, 6.0, free=GAINS, cost={"tracking": MeanSquare("slide.q", scale=0.3)},
        scenarios=start, search=SearchOptions(outer_iterations=6), saves=151,
        robustness=RobustnessMargins(REST, "pid.u", delay=0.02, modulus=0.7), **HOW,
    )  # fmt: skip
    assert found.margins is not None
    assert np.allclose(found.margins[1].modulus, 0.7, atol=5e-3)
    assert found.summary()["tuned on"]["modulus margin exceeded by"][1] < 2e-3


@pytest.mark.slow
def test_margins_of_a_motion_have_derivatives_by_gains(slide):
    """With a hardening spring, margins depend on where each run is."""
    bent = JointSpring("slide", 40.0, exponent=3)
    system = djdyn.System(slide.mechanism, {**slide.parts, "bent": bent}, slide.inputs)
    some = c.Scenarios({}, system.initial_state(q={"slide": 1.0}))
    found = tune(
        system, 2.0, free=GAINS, cost=COST, scenarios=some, saves=51,
        search=SearchOptions(max_steps=1),
        robustness=RobustnessMargins(0.4, "pid.u", delay=0.05, modulus=0.9), **HOW,
    )  # fmt: skip
    assert found.margins is not None and found.spectral_abscissa is not None
    excess = lambda x: found.objective.evaluate(x).excess
    of = jax.jit(lambda x: jnp.concatenate([e[0] for e in excess(x).values()]))
    at = found.objective.states_at(found.x, 0.4)
    y = jax.tree.map(lambda x: x[0], at)
    known = c.margins(found.system, y, "pid.u", 0.05, 0.4)
    assert np.allclose(
        of(found.x), [1 - known.modulus[0] / 0.9, known.spectral_abscissa], rtol=1e-3
    )
    at_loop = lambda o: o.loop.states
    held = eqx.tree_at(at_loop, found.objective, at, is_leaf=lambda x: x is None)
    of_held = lambda x: jnp.concatenate(
        [e[0] for e in held.evaluate(x).excess.values()]
    )
    of_held, x = jax.jit(of_held), found.x
    slopes = [(of_held(x + d) - of_held(x - d)) / 2e-5 for d in 1e-5 * jnp.eye(2)]
    assert np.allclose(jax.jacrev(of)(x), np.transpose(slopes), rtol=1e-4)
    rested = c.margins(found.system, system.initial_state(), "pid.u", 0.05)
    assert abs(known.modulus[0] - rested.modulus[0]) > 0.01


def test_moduli_have_derivatives(slide):
    """Values are those of `margins`, derivatives those of differences."""
    y = slide.initial_state()

    @jax.jit
    def of(gains):
        modulus, abscissa = moduli(
            opened(with_parameters(gains), y, ("pid.u",)).with_delay(0.05)
        )
        return jnp.stack([modulus[0], abscissa])

    with_parameters = lambda x: djdyn.with_parameters(
        slide, {"pid.kp": x[:1], "pid.kd": x[1:2], "pid.ki": x[2]}
    )
    stable, unstable = jnp.array([30.0, 8.0, 9.0]), jnp.array([30.0, 2.0, 60.0])
    with_delay = jnp.array([300.0, 80.0, 9.0])  # stable without its delay alone
    for x in (stable, unstable, with_delay):
        known = c.margins(with_parameters(x), y, "pid.u", 0.05)
        assert np.allclose(
            of(x), [known.modulus[0], known.spectral_abscissa], rtol=1e-3
        )
        slopes = [(of(x + d) - of(x - d)) / 2e-4 for d in 1e-4 * jnp.eye(3)]
        slopes = np.transpose(slopes)
        assert np.allclose(jax.jacrev(of)(x), slopes, rtol=1e-5)
        assert np.allclose(jax.jacfwd(of)(x), slopes, rtol=1e-5)
    assert 0.2 < of(stable)[0] < 0.9 and of(stable)[1] < 0 < of(with_delay)[1]
    assert c.margins(with_parameters(with_delay), y, "pid.u").spectral_abscissa < 0
    loop = lambda s: MASS * s**3 + (2 * s**2 + 30 * s + 60) * np.exp(-0.05 * s)
    abscissa = scipy.optimize.newton(loop, 0.5 + 4j).real
    assert np.allclose(of(unstable)[1], abscissa) and abscissa > 0.1
    assert np.isnan(of(jnp.array([jnp.nan, 8.0, 9.0]))[1])  # and nothing raised


def test_a_limit_that_cannot_be_kept_is_named(slide):
    """Gains of at least 5 N/m cannot keep the force below 4 N at 1 m."""
    start = c.Scenarios({}, slide.initial_state(q={"slide": 1.0}))
    stiff = djdyn.with_parameters(slide, {"pid.kp": jnp.array([6.0])})
    with pytest.warns(UserWarning, match=r"limit 'force' is not kept.* in 1 of 1"):
        tune(
            stiff, 2.0, free=[FreeParameter("pid.kp", Sigmoid(5.0, 9.0))],
            cost=COST, scenarios=start, saves=51,
            search=SearchOptions(outer_iterations=2, max_steps=5),
            constraints={"force": c.Limit("pid.u", -4.0, 4.0)}, **HOW,
        )  # fmt: skip


def test_a_tuning_goes_on_where_it_stopped(slide, moved, tmp_path):
    given = {"free": GAINS, "cost": COST, "scenarios": moved, "saves": 101, **HOW}
    few, more = SearchOptions(max_steps=3), SearchOptions(max_steps=6)
    whole = tune(slide, 4.0, search=more, **given)
    tune(slide, 4.0, search=few, save=tmp_path / "kept", **given)
    resumed = tune(slide, 4.0, search=more, save=tmp_path / "kept", **given)
    assert np.allclose(resumed.x, whole.x)
    assert len(resumed.history) == len(whole.history)
    with pytest.raises(ValueError, match="another method"):
        adam = SearchOptions(method="adam")
        tune(slide, 4.0, search=adam, save=tmp_path / "kept", **given)
    with pytest.raises(ValueError, match="other data or settings"):
        heavy = djdyn.with_parameters(slide, {"slide.mass": 3.0})
        tune(heavy, 4.0, save=tmp_path / "kept", **given)


@pytest.mark.parametrize("risk", ["worst", 0.5])
def test_risks_look_at_the_worst(slide, moved, risk):
    given = {"free": GAINS, "cost": COST, "scenarios": moved, "saves": 101, **HOW}
    found = tune(slide, 4.0, search=SearchOptions(risk=risk, max_steps=2), **given)
    costs = np.sort(found.evaluations["tuned on"][1].costs)
    wanted = costs[-1] if risk == "worst" else costs[-4:].mean()
    assert np.isclose(found.summary()["tuned on"]["cost"][1], wanted)


@pytest.mark.parametrize("diverged", ["penalise", "exclude"])
def test_a_scenario_that_diverges_spoils_no_other(slide, diverged):
    """A wall of 1e9 N/m is too stiff for steps of 20 ms."""
    wall = {"wall.stiffness": jnp.array([0.0, 1e9, 0.1])}
    lanes = c.Scenarios(wall, slide.initial_state(q={"slide": 1.0}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tune(
            slide, 4.0, free=GAINS, cost=COST, scenarios=lanes, saves=101,
            search=SearchOptions(diverged=diverged, max_steps=10),
            robustness=RobustnessMargins(2.0, "pid.u", modulus=0.5), **HOW,
        )  # fmt: skip
    assert found.summary()["tuned on"]["diverged"] == (1.0, 1.0)
    assert np.all(np.isfinite(found.x)) and found.cost_ratio < 1
    assert (
        found.spectral_abscissa is not None
        and found.margins is not None
        and not found.stable
    )
    assert np.array_equal(np.isinf(found.spectral_abscissa), 2 * [[False, True, False]])
    assert np.all(found.margins[1].modulus > 0.5)


def test_several_starts_run_at_once(slide, moved):
    given = {"free": GAINS, "cost": COST, "scenarios": moved, "saves": 101, **HOW}
    found = tune(slide, 8.0, search=SearchOptions(num_starts=3, max_steps=40), **given)
    assert found.history.shape[1] == 3
    assert np.allclose(found.history[-1], found.history[-1].min(), rtol=1e-3)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("no free parameter is named", {"free": []}),
        ("'pid.mode' is no number", {"free": ["pid.mode"]}),
        ("no parameter 'pid.kq'", {"free": ["pid.kq"]}),
        ("no terms", {"cost": {}}),
        (
            "from 0 to 1 s have no state at 1.5 s",
            {"robustness": RobustnessMargins(1.5)},
        ),
        (
            "only method 'bfgs' keeps the bounds of 'pid.kp'",
            {"search": LM, "free": [FreeParameter("pid.kp", djdyn.Box(1, 9))]},
        ),
        ("not 'worst'", {"search": SearchOptions(method="lm", risk="worst")}),
        ("unknown signal 'pid.w'", {"cost": {"effort": MeanSquare("pid.w")}}),
        ("method is", {"search": SearchOptions(method="simplex")}),
        ("not a sum of squares", {"search": LM, "cost": {"a": c.Peak("pid.u")}}),
        (
            "not inside the domain",
            {"free": [FreeParameter("pid.kp", Sigmoid(5.0, 9.0))]},
        ),
    ],
)
def test_what_cannot_be_tuned_is_named(slide, said, wrong):
    with pytest.raises(ValueError, match=said):
        tune(slide, 1.0, **({"free": GAINS, "cost": COST, **HOW} | wrong))


def test_options_that_make_no_sense_are_named():
    with pytest.raises(ValueError, match="risk is"):
        SearchOptions(risk=2.0)
    with pytest.raises(ValueError, match="diverged is"):
        SearchOptions(diverged="forget")
    with pytest.raises(ValueError, match="at least one start"):
        SearchOptions(num_starts=0)
    with pytest.raises(ValueError, match="a modulus margin needs a loop"):
        RobustnessMargins(REST, modulus=0.5)


def test_evaluations_are_those_of_a_tuning(slide, moved):
    given = {"scenarios": moved, "saves": 101, "solver": "rk4", "dt": 0.02}
    limits = {"force": c.Limit("pid.u", -1.0, 1.0)}
    found = tune(
        slide, 2.0, free=GAINS, cost=COST, constraints=limits, progress=False,
        search=SearchOptions(max_steps=2), **given,
    )  # fmt: skip
    pair = zip((slide, found.system), found.evaluations["tuned on"], strict=True)
    for system, known in pair:
        alone = c.evaluate(system, 2.0, COST, constraints=limits, **given)
        assert np.allclose(alone.costs, known.costs, rtol=1e-10)
        assert np.allclose(alone.excess["force"], known.excess["force"], atol=1e-10)
    options = djdyn.SimulationOptions(solver="rk4", dt=0.02)
    given = {"scenarios": moved, "saves": 101, "constraints": limits}
    same = c.evaluate(slide, 2.0, COST, options=options, **given)
    assert np.array_equal(
        same.costs, c.evaluate(slide, 2.0, COST, solver="rk4", dt=0.02, **given).costs
    )
    one = c.evaluate(slide, 2.0, COST, solver="rk4", dt=0.02)
    assert one.costs.shape == (1,) and one.costs == 0.0 and one.ok


def test_what_cannot_be_sampled_is_named(slide):
    with pytest.raises(ValueError, match="empty"):
        sample(slide, 0)
    with pytest.raises(ValueError, match="same number of scenarios"):
        c.Scenarios({"slide.mass": jnp.ones(2), "pid.kp": jnp.ones((3, 1))})
    with pytest.raises(ValueError, match="cannot be kept"):
        c.Limit("pid.u", 2.0, 1.0)
