"""Fits of a pendulum with unknown starts, simulated by adaptive steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn import FreeParameter, Positive
from djdyn.parts import JointFriction
from estimation import Trial, fit, linearise_residuals


TIMES = np.linspace(0.0, 3.0, 61)
FREE = [FreeParameter("bearing.viscous", Positive()), "tip.X_BF.p[2]"]


def tip(system: djdyn.System, times: np.ndarray, start: djdyn.State, adjoint: str):
    run = djdyn.simulate(system, times[-1], start, saveat=times, adjoint=adjoint)
    place = lambda q: djdyn.frame_pose(system.mechanism, q, "tip").p[jnp.array([0, 2])]
    return jax.vmap(place)(run.y.q)


def swing(viscous: float = 0.05) -> djdyn.System:
    I_BC = jnp.diag(jnp.array([1 / 12, 1 / 12, 1e-3]))
    rod = djdyn.Body(
        "rod", "world", djdyn.Revolute((0, 1, 0)), 1.0, p_BC=(0, 0, -0.5), I_BC=I_BC
    )
    frame = djdyn.Frame("tip", "rod", djdyn.translation((0, 0, -1)))
    mechanism = djdyn.Mechanism((rod,), (frame,))
    return djdyn.System(mechanism, {"bearing": JointFriction("rod", viscous=viscous)})


def trial(system: djdyn.System, q: float, name: str, seed: int) -> Trial:
    start = system.initial_state(q=[q])
    grains = 1e-3 * np.random.default_rng(seed).standard_normal((len(TIMES), 2))
    values = np.asarray(tip(system, TIMES, start, "forward")) + grains
    guess = system.initial_state(q=[q + 0.1])
    return Trial(
        TIMES, values, tip, sigma=1e-3, start=guess, free=["start.q", "start.v"],
        labels=("x", "z"), name=name,
    )  # fmt: skip


@pytest.mark.slow
def test_starts_are_estimated_with_the_machine():
    true = swing()
    trials = [trial(true, 0.9, "far", 0), trial(true, 0.4, "near", 1)]
    found = fit(djdyn.with_parameters(true, {"bearing.viscous": 0.2}), trials, FREE)
    assert found.converged and 0.7 < found.chi2 < 1.3
    truth = {"bearing.viscous": 0.05, "tip.X_BF.p[2]": -1.0, "far/start.q": 0.9,
             "near/start.q": 0.4, "far/start.v": 0.0}  # fmt: skip
    for path, value in truth.items():
        away = np.abs(np.ravel(found.values[path])[0] - value)
        assert away < 4 * np.ravel(found.deviations[path])[0]
    assert found.hold_out_error is not None and 0.6 < found.hold_out_error < 1.5
    assert np.isclose(found.trial_starts[0].q[0], found.values["far/start.q"][0])
    d, h = jnp.cos(jnp.arange(1.0, len(found.x) + 1)), 1e-5
    ends = [linearise_residuals(found.problem, found.x + s * h * d)[0] for s in (1, -1)]
    slopes = (ends[0] - ends[1]) / (2 * h)
    assert np.allclose(slopes, found.J @ d, rtol=1e-5, atol=1e-3)
