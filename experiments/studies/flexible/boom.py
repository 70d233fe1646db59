"""A boom identified from two markers at its tip: Young's modulus and damping."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn import FreeParameter, Positive
from djdyn.multibody.flexible import Beam, FlexibleBody, Hollow, Piece
from estimation import FitResult, Trial, fit


NOISE, RATE, SPAN, STEP = 5e-5, 200, 1.0, 2.5e-4  # m, Hz, s, s
E, DAMPING = 2.1e11, 0.015  # Pa, 1
TIMES = np.arange(1, round(RATE * SPAN) + 1) / RATE  # s
FREE = [
    FreeParameter("boom.model.E", Positive()),
    FreeParameter("boom.damping", Positive()),
]
LABELS = ("tip x", "tip z", "lug z")


def build(modes: int = 1) -> djdyn.System:
    """Return the clamped boom with a load at its tip, as it is let go straight."""
    piece = Piece(4.0, Hollow(0.2, 0.3, 0.01), elements=8)
    beam = Beam((piece,), E, 8e10, 7850.0)
    boom = FlexibleBody(
        "boom", "world", djdyn.Fixed(), beam, {"xz": modes}, damping=DAMPING,
        nodes={"tip": -1},
    )  # fmt: skip
    load = djdyn.Body("load", "boom.tip", djdyn.Fixed(), 200.0)
    frames = (
        djdyn.Frame("tip", "boom.tip", djdyn.translation((0.0, 0.0, 0.15))),
        djdyn.Frame("lug", "boom.tip", djdyn.translation((-0.5, 0.0, 0.0))),
    )
    return djdyn.System(djdyn.Mechanism((boom, load), frames))


def markers(system: djdyn.System, times: np.ndarray) -> Array:
    """Return the coordinates of the markers that are fitted, m."""
    y0 = jax.tree.map(lambda x: x[None], system.initial_state())
    run = djdyn.rollout(system, times[-1], y0, saveat=times, solver="rk4", dt=STEP)
    return _seen(run)


def _seen(run: djdyn.Trajectory) -> Array:
    tip, lug = (run.pose(k).p.reshape(-1, 3) for k in ("tip", "lug"))
    return jnp.stack([tip[:, 0], tip[:, 2], lug[:, 2]], 1)


def record(system: djdyn.System, seed: int = 0) -> np.ndarray:
    """Return a noisy record, by adaptive steps unlike those of the fit."""
    run = djdyn.simulate(system, SPAN, saveat=TIMES, rtol=1e-9, atol=1e-11)
    noise = np.random.default_rng(seed).standard_normal((len(TIMES), len(LABELS)))
    return np.asarray(_seen(run)) + NOISE * noise


def identify(values: np.ndarray) -> FitResult:
    """Fit both from a start a tenth below and half above."""
    start = djdyn.with_parameters(
        build(), {"boom.model.E": 0.9 * E, "boom.damping": 1.5 * DAMPING}
    )
    trial = Trial(TIMES, values, markers, sigma=NOISE, labels=LABELS, name="release")
    return fit(start, trial, FREE, growing_windows=(0.2, 0.5), hold_out=0.0)
