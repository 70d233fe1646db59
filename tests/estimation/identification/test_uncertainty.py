"""Uncertainty, compared with linear regression, bootstrap and samples."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from djdyn import FreeParameter, Positive
from djdyn.typing import si
from estimation import (
    Problem,
    Trial,
    compare_fits,
    cross_validate,
    design,
    fit,
    parametric_bootstrap,
    posterior,
    prediction_bands,
    profile,
    residuals,
)

from ..models import TIMES, Decay, Line, decay, line, record


SIGMA = 0.02
FREE = ["height", FreeParameter("rate", Positive()), "floor"]
A = np.stack([np.ones_like(TIMES), TIMES], 1)


@pytest.fixture(scope="module")
def decayed():
    return fit(Decay(), Trial(TIMES, record(), decay, sigma=SIGMA), FREE, hold_out=0.0)


@pytest.fixture(scope="module")
def straight():
    y = 0.7 - 0.2 * TIMES + 0.1 * np.random.default_rng(1).standard_normal(len(TIMES))
    return fit(Line(), Trial(TIMES, y, line, sigma=0.1), ["a", "b"], hold_out=0.0)


def test_the_profile_of_a_linear_model_is_a_parabola(straight):
    found = profile(straight, "b", points=7)
    sd = straight.deviations["b"]
    away = (found.values - straight.values["b"]) / sd
    assert np.allclose(found.costs - straight.cost, away**2 / 2, atol=1e-8)
    low, high = found.interval()
    assert np.allclose(np.array([low, high]) - straight.values["b"],
                       np.array([-1, 1]) * 1.9596 * sd, rtol=1e-4)  # fmt: skip


def test_refits_are_fits_of_other_data(straight, decayed):
    """A line is fitted in one step as by least squares, a decay as by `fit`."""
    noise = np.random.default_rng(3).standard_normal((4, len(TIMES)))
    x, _ = parametric_bootstrap(
        straight.problem, straight.x, straight.J, jnp.asarray(noise), 1
    )
    known = straight.x[None] + np.linalg.lstsq(A, 0.1 * noise.T)[0].T
    assert np.allclose(x, known, atol=1e-12)
    x, last = parametric_bootstrap(
        decayed.problem, decayed.x, decayed.J, jnp.asarray(noise[:1]), 12
    )
    other = Trial(TIMES, record() + SIGMA * noise[0], decay, sigma=SIGMA)
    again = fit(Decay(), other, FREE, hold_out=0.0, tolerance=1e-9)
    assert np.allclose(
        x[0], again.x, rtol=1e-3, atol=1e-3 * np.abs(again.x - decayed.x)
    )
    assert np.abs(last).max() < 1e-6


def test_a_profile_is_a_fit_of_all_others(decayed):
    found = profile(decayed, "rate", points=5)
    for rate, cost in zip(found.values[::2], found.costs[::2], strict=True):
        basis = np.stack([np.exp(-rate * TIMES), np.ones_like(TIMES)], 1) / SIGMA
        left = np.linalg.lstsq(basis, record() / SIGMA)[1][0]
        assert np.isclose(cost, left / 2, rtol=1e-6)
    with pytest.raises(ValueError, match="no unknown 'mass'"):
        profile(decayed, "mass")


def test_bands_are_those_of_linear_regression(straight):
    values, sd = prediction_bands(straight)["trial"]
    C = 0.01 * np.linalg.inv(A.T @ A)
    assert np.allclose(sd[:, 0], np.sqrt(np.einsum("ni,ij,nj->n", A, C, A)), rtol=1e-9)
    assert np.allclose(values[:, 0], A @ [straight.values["a"], straight.values["b"]])


class Stretched(eqx.Module):
    """A prediction of the line at stretched times."""

    factor: Array = eqx.field(converter=si(""), default=1.0)

    def __call__(self, model: Line, times: np.ndarray) -> Array:
        return model.a + model.b * self.factor * jnp.asarray(times)


def test_design_says_what_would_make_a_variance_smaller():
    trial = Trial(TIMES, TIMES, Stretched(2.0), sigma=0.1)
    problem = Problem(Line(a=1.0, b=1.0), trial, ["a", "b"])
    value, slope = design(problem, "b", ["predict.factor"])
    C = 0.01 * np.linalg.inv(A.T @ A)
    assert np.isclose(value, np.log(C[1, 1] / 4), rtol=1e-10)
    assert np.isclose(slope["predict.factor"], -2 / 2.0, rtol=1e-10)
    # A slow decay is told best by a high one: its variance falls as height**-2.
    problem = Problem(Decay(2.0, 1.0), Trial(TIMES, record(), decay, sigma=0.1), FREE)
    _, slope = design(problem, "rate", ["height"])
    assert np.isclose(slope["height"], -2 / 2.0, rtol=1e-9)
    with pytest.raises(ValueError, match="no unknown"):
        design(problem, "mass", ["height"])


def test_residuals_of_a_right_model_are_noise_and_of_a_wrong_one_are_not(decayed):
    (right,) = residuals(decayed)
    assert right.p_white[0] > 0.01 and not right.outliers.any()
    y = record()
    y[30] += 0.3
    trial = Trial(TIMES, y, decay, sigma=SIGMA)
    wrong = fit(Decay(), trial, FREE[:2], hold_out=0.0)  # no floor
    (left,) = residuals(wrong)
    assert left.p_white[0] < 1e-6 and "lacks something" in str(left)
    (spoilt,) = residuals(fit(Decay(), trial, FREE, hold_out=0.0))
    assert np.flatnonzero(spoilt.outliers[:, 0]).tolist() == [30]


def test_noise_is_white_as_often_as_it_says():
    from estimation.identification.diagnostics import _whiteness

    rng = np.random.default_rng(0)
    p = [_whiteness(rng.standard_normal(300), 10) for _ in range(200)]
    assert 0.01 < np.mean(np.array(p) < 0.05) < 0.1


def test_information_criteria_prefer_the_model_that_made_the_data(decayed):
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    short = fit(Decay(), trial, FREE[:2], hold_out=0.0)
    table = compare_fits({"no floor": short, "floor": decayed})
    assert next(iter(table)) == "floor"
    assert table["floor"]["aic"] == 2 * decayed.cost + 6
    with pytest.raises(ValueError, match="same data"):
        compare_fits({"all": decayed, "some": fit(Decay(), trial, FREE)})


def test_trials_are_predicted_from_each_other():
    trials = [
        Trial(TIMES, record(k), decay, sigma=SIGMA, name=f"run{k}") for k in range(3)
    ]
    odd = Trial(TIMES, 1.2 * record(3), decay, sigma=SIGMA, name="odd")
    errors = cross_validate(Decay(), [*trials, odd], FREE)
    assert errors["odd"] > 2 * max(e for name, e in errors.items() if name != "odd")


def test_samples_of_a_linear_model_have_its_covariance(straight):
    pytest.importorskip("blackjax")
    found = posterior(straight, samples=400, warmup=200, chains=2)
    for path in ("a", "b"):
        x, sd = found.values[path], straight.deviations[path]
        assert found.mixing[path] < 1.05
        assert abs(x.mean() - straight.values[path]) < 0.25 * sd
        assert np.isclose(x.std(), sd, rtol=0.15)
    low, high = found.interval("b")
    ends = straight.intervals()["b"]
    assert np.allclose([low, high], ends, atol=0.4 * straight.deviations["b"])
    assert found.divergent == 0 and "mixing" in str(found)
