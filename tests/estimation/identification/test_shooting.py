"""Multiple shooting of a chaotic record, which cannot be fitted in one piece."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from djdyn.typing import si
from estimation import Trial, fit, multiple_shooting


STEP = 0.02
TIMES = np.arange(300) * STEP


class Lorenz(eqx.Module):
    rho: Array = eqx.field(converter=si("1"), default=28.0)


def flow(model: Lorenz, times: np.ndarray, start: dict[str, Array]):
    """Return values and the last state by Runge-Kutta steps between samples."""

    def rate(y: Array) -> Array:
        a, b, c = y
        return jnp.stack([10 * (b - a), a * (model.rho - c) - b, a * b - 8 / 3 * c])

    def step(y: Array, _: None) -> tuple[Array, Array]:
        k1 = rate(y)
        k2 = rate(y + STEP / 2 * k1)
        k3 = rate(y + STEP / 2 * k2)
        k4 = rate(y + STEP * k3)
        return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y

    _, ys = jax.lax.scan(step, start["y"], length=len(times))
    return ys, {"y": ys[-1]}


def whole(model: Lorenz, times: np.ndarray, start: dict[str, Array]) -> Array:
    return flow(model, times, start)[0]


def measured() -> np.ndarray:
    clean = whole(Lorenz(), TIMES, {"y": jnp.array([1.0, 1.0, 20.0])})
    return np.asarray(clean) + 0.1 * np.random.default_rng(0).standard_normal((300, 3))


def test_pieces_run_alone_or_as_lanes():
    y = measured()[:60]
    starts = [{"y": jnp.asarray(y[k])} for k in (0, 30)]
    both = [
        multiple_shooting(TIMES[:60], y, flow, starts, tightness=0.1, autonomous=lanes)
        for lanes in (True, False)
    ]
    pairs = [t.residuals(Lorenz(), starts) for t in both]
    for a, b in zip(*pairs, strict=True):
        assert np.allclose(a, b)


@pytest.mark.slow
def test_a_chaotic_record_is_fitted_in_pieces():
    y, guess = measured(), Lorenz(24.0)
    start = {"y": jnp.asarray(y[0])}
    one = Trial(TIMES, y, whole, sigma=0.1, start=start, free=["start.y"])
    lost = fit(guess, one, ["rho"], hold_out=0.0, max_steps=60)
    assert abs(lost.values["rho"] - 28.0) > 0.1
    starts = [{"y": jnp.asarray(y[k])} for k in range(0, 300, 30)]
    how = {"tightness": 0.1, "sigma": 0.1}
    many = multiple_shooting(TIMES, y, flow, starts, autonomous=True, **how)
    found = fit(guess, many, ["rho"], hold_out=0.0, max_steps=60)
    assert abs(found.values["rho"] - 28.0) < 4 * found.deviations["rho"] < 0.1
    ends = flow(found.model, TIMES[:31], found.trial_starts[0][0])[1]["y"]
    assert np.allclose(ends, found.trial_starts[0][1]["y"], atol=0.3)
    with pytest.raises(ValueError, match="2 to 150 pieces"):
        multiple_shooting(TIMES, y, flow, starts[:1], tightness=0.01)
    with pytest.raises(ValueError, match="evenly spaced"):
        multiple_shooting(TIMES, y, flow, starts[:7], autonomous=True, **how)
