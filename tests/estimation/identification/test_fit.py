"""Fits, compared with SciPy and with closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from djdyn import Box, FreeParameter, Positive
from estimation import (
    Cauchy,
    Huber,
    LogNormal,
    Problem,
    SoftL1,
    Trial,
    UnidentifiableError,
    fit,
    linearise_residuals,
    random_starts,
)

from ..models import TIMES, TRUE, Decay, Line, decay, decay_from, line, record


FREE = ["height", FreeParameter("rate", Positive()), "floor"]
SIGMA = 0.02


def curve(x: np.ndarray) -> np.ndarray:
    return x[0] * np.exp(-x[1] * TIMES) + x[2]


def found(result) -> np.ndarray:
    return np.array([result.values[k] for k in ("height", "rate", "floor")])


@pytest.fixture(scope="module")
def reference():
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    return fit(Decay(), trial, FREE, hold_out=0.0)


def test_a_straight_line_has_the_covariance_of_linear_regression():
    rng = np.random.default_rng(1)
    y = 0.7 - 0.2 * TIMES + 0.1 * rng.standard_normal(len(TIMES))
    trial = Trial(TIMES, y, line, sigma=0.1)
    result = fit(Line(), trial, ["a", "b"], hold_out=0.0)
    A = np.stack([np.ones_like(TIMES), TIMES], 1)
    expected = np.linalg.lstsq(A, y)[0]
    got = np.array([result.values["a"], result.values["b"]])
    assert np.allclose(got, expected, rtol=1e-10)
    assert np.allclose(result.covariance, 0.01 * np.linalg.inv(A.T @ A), rtol=1e-10)
    assert result.num_evaluations < 10


def test_a_fit_is_that_of_scipy(reference):
    y, result = record(), reference
    peer = scipy.optimize.least_squares(
        lambda x: (curve(x) - y) / SIGMA, [1.0, 1.0, 0.0], xtol=1e-12, ftol=1e-12
    )
    assert np.allclose(found(result), peer.x, rtol=1e-6)
    assert np.isclose(result.cost, peer.cost, rtol=1e-10)
    order = [result.names.index(k) for k in ("height", "rate", "floor")]
    covariance = result.covariance[np.ix_(order, order)]
    assert np.allclose(covariance, np.linalg.inv(peer.jac.T @ peer.jac), rtol=1e-4)
    assert 0.7 < result.chi2 < 1.3
    low, high = result.intervals()["rate"]
    assert 0 < low < TRUE[1] < high
    assert "rate" in str(result) and "1/s" in str(result)


def test_robust_losses_are_those_of_scipy():
    r = np.concatenate([np.linspace(-6.0, 6.0, 41), [1e-7, 0.0]])
    z = (r / 1.5) ** 2
    rho = {
        Huber: np.where(z > 1, 2 * np.sqrt(z) - 1, z),
        SoftL1: 2 * (np.sqrt(1 + z) - 1),
        Cauchy: np.log1p(z),
    }
    for loss, expected in rho.items():
        bent, slopes = jax.jvp(loss(1.5), (jnp.asarray(r),), (jnp.ones(len(r)),))
        assert np.allclose(bent**2, 1.5**2 * expected, rtol=1e-9)
        assert np.all(np.isfinite(slopes)) and np.isclose(slopes[-1], 1.0)
    y = record()
    y[::9] += 1.0  # outliers, fifty deviations away
    trial = Trial(TIMES, y, decay, sigma=SIGMA)
    start = Decay(2.0, 1.3, 0.5)
    result = fit(start, trial, FREE, loss=Cauchy(1.5), hold_out=0.0)
    peer = scipy.optimize.least_squares(
        lambda x: (curve(x) - y) / SIGMA,
        TRUE,
        loss="cauchy",
        f_scale=1.5,
        xtol=1e-12,
        ftol=1e-14,
        gtol=1e-12,
    )
    assert np.isclose(result.cost, peer.cost, rtol=1e-8)
    assert np.allclose(found(result), peer.x, rtol=1e-4)
    assert np.allclose(found(result), TRUE, atol=0.05)


@pytest.mark.parametrize("method", ["dogleg", "nl2sol", "bfgs", "adam"])
def test_all_methods_end_at_the_same_place(method, reference):
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    steps, near = (2000, 1e-3) if method == "adam" else (100, 1e-5)
    result = fit(Decay(), trial, FREE, method=method, hold_out=0.0, max_steps=steps)
    assert np.allclose(found(result), found(reference), rtol=near)


def test_a_loss_may_be_any_number(reference):
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    mean = lambda r: jnp.mean(r**2)
    result = fit(Decay(), trial, FREE, loss=mean, method="bfgs", hold_out=0.0)
    assert np.allclose(found(result), found(reference), rtol=1e-4)
    with pytest.raises(ValueError, match="residuals"):
        fit(Decay(), trial, FREE, loss=mean)


def test_many_starts_descend_together(reference):
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    starts = random_starts(Decay(1.0, 1.0, 0.3), FREE, 8, decades=2.0)
    result = fit(Decay(), trial, FREE, starts=starts, hold_out=0.0)
    assert result.all_x.shape == (8, 3) and result.history.shape[1] == 8
    assert np.allclose(found(result), found(reference), rtol=1e-6)
    assert np.sum(result.costs < 1.01 * result.cost) >= 6
    with pytest.raises(ValueError, match="'rate' is outside"):
        fit(Decay(), trial, FREE, starts={"rate": [-1.0, 1.0]})


def test_trials_share_some_unknowns_and_have_others_of_their_own():
    trials = [
        Trial(
            TIMES,
            record(k, true=np.array([h, 1.3, 0.5])),
            decay_from,
            sigma=SIGMA,
            start={"height": jnp.array(1.0)},
            free=["start.height"],
            name=f"launch{k}",
        )
        for k, h in enumerate((2.0, 1.0, 0.6))
    ]
    free = [FreeParameter("rate", Positive()), "floor"]
    result = fit(Decay(), trials, free, hold_out=0.0)
    paths = ("rate", "floor", *(f"launch{k}/start.height" for k in range(3)))
    data = np.stack([np.asarray(t.values[:, 0]) for t in trials])

    def residuals(x):
        return ((x[2:, None] * np.exp(-x[0] * TIMES) + x[1] - data) / SIGMA).ravel()

    peer = scipy.optimize.least_squares(residuals, [1.0, 0.0, 1, 1, 1], xtol=1e-12)
    assert np.allclose([result.values[p] for p in paths], peer.x, rtol=1e-5)
    assert np.isclose(result.trial_starts[1]["height"], peer.x[3], rtol=1e-5)
    # Standard errors go with their names, some of which come before those of trials.
    error = np.sqrt(np.linalg.inv(peer.jac.T @ peer.jac).diagonal())
    assert list(result.values)[::4] == ["floor", "rate"]
    assert np.allclose([result.deviations[p] for p in paths], error, rtol=1e-4)
    # Trials that differ are predicted one by one, to the same residuals.
    odd = Trial(TIMES[:60], record()[:60], decay, sigma=SIGMA, name="odd")
    mixed = Problem(Decay(), [*trials, odd], free)
    alone = [Problem(Decay(), t, free) for t in (*trials, odd)]
    each = [p.data_residuals(p.x)[0] for p in alone]
    assert np.allclose(mixed.data_residuals(mixed.x)[0], np.concatenate(each))


def test_gradients_forward_and_reverse_are_those_of_the_jacobian():
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    problem = Problem(Decay(), trial, FREE, {"rate": LogNormal(1.2, 0.1)}, Huber())
    r, J = linearise_residuals(problem, problem.x)
    d, h = jnp.cos(jnp.arange(1.0, 4.0)), 1e-6
    ends = [problem.cost(problem.x + s * h * d) for s in (1, -1)]
    assert np.isclose((ends[0] - ends[1]) / (2 * h), r @ J @ d, rtol=1e-6)
    assert np.allclose(jax.grad(problem.cost)(problem.x), J.T @ r, rtol=1e-10)
    assert np.allclose(problem.slope(problem.x)[1], J.T @ r, rtol=1e-10)
    batch = jnp.stack([problem.x, problem.x + 0.1])
    assert np.allclose(jax.jit(jax.vmap(problem.residuals))(batch)[0], r)


def test_what_the_data_cannot_determine_is_named_before_anything_is_fitted():
    trial = Trial(TIMES, 0.7 - 0.2 * TIMES, line, sigma=0.1)
    with pytest.raises(
        UnidentifiableError, match="raising a while lowering offset"
    ) as e:
        fit(Line(), trial, ["a", "b", "offset"])
    assert e.value.check.unidentifiable == ("a", "offset")
    assert e.value.check.singular.min() < 1e-10
    prior = {"offset": (0.1, 0.01)}
    result = fit(Line(), trial, ["a", "b", "offset"], priors=prior, hold_out=0.0)
    assert np.isclose(result.values["a"], 0.6, atol=1e-6)
    free = fit(
        Line(), trial, ["a", "b", "offset"], allow_unidentifiable=True, hold_out=0.0
    )
    assert np.isclose(free.values["a"] + free.values["offset"], 0.7, atol=1e-6)
    assert "cannot determine a, offset" in str(free)


def test_priors_weigh_as_measurements():
    y = record()
    trial = Trial(TIMES, y, decay, sigma=SIGMA)
    priors = {"rate": LogNormal(1.0, 0.01), "floor": (0.4, 0.001)}
    result = fit(Decay(), trial, FREE, priors=priors, hold_out=0.0)

    def residuals(x):
        more = [np.log(x[1] / 1.0) / 0.01, (x[2] - 0.4) / 0.001]
        return np.concatenate([(curve(x) - y) / SIGMA, more])

    peer = scipy.optimize.least_squares(residuals, TRUE, xtol=1e-12)
    assert np.allclose(found(result), peer.x, rtol=1e-6)
    with pytest.raises(ValueError, match="prior on 'mass'"):
        fit(Decay(), trial, FREE, priors={"mass": (1.0, 1.0)})
    with pytest.raises(ValueError, match="'rate': estimates take a Sigmoid"):
        fit(Decay(), trial, [FreeParameter("rate", Box(0.1, 9.0))])


def test_an_error_on_data_not_fitted_comes_with_the_result():
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    result = fit(Decay(), trial, FREE, hold_out=0.25)
    assert result.measured == 61
    assert result.hold_out_error is not None and 0.6 < result.hold_out_error < 1.6
    other = Trial(TIMES, record(5), decay, sigma=SIGMA, name="other")
    judged = fit(Decay(), trial, FREE, hold_out=other)
    assert judged.measured == 81
    assert judged.hold_out_error is not None and 0.7 < judged.hold_out_error < 1.4
    assert "not fitted" in str(judged)


def test_an_interrupted_fit_goes_on_as_if_nothing_had_happened(tmp_path):
    trial = Trial(TIMES, record(), decay, sigma=SIGMA)
    given = dict(free=FREE, hold_out=0.0)
    whole = fit(Decay(), trial, **given)
    save = tmp_path / "kept.npz"
    fit(Decay(), trial, **given, max_steps=4, save=save)
    resumed = fit(Decay(), trial, **given, save=save)
    assert np.array_equal(resumed.history, whole.history)
    assert np.array_equal(resumed.x, whole.x)
    with pytest.raises(ValueError, match="other unknowns"):
        fit(Decay(), trial, ["height"], hold_out=0.0, save=save)
