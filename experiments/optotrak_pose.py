"""Markers hardly see where the ball is: by how little, and what cures it."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from estimation import Fit, MarkerSet, Problem, design, observability

from .optotrak_rest import rest
from .optotrak_rig import build
from .optotrak_twin import NOISE, POSE, SET, SURE, Found, held
from .study import Study


DERIVED = (15.2, 15.2, 0.99, 0.13, 0.071)  # mm/deg, at rest
HEIGHTS = np.linspace(0.04, 0.30, 14)  # m from the ball's centre; the rim is at 0.032
LOW = 0.04  # m, where a fifth marker would sit
WORST = "held/start.q[1]"
OFFSETS = ["predict.markers.offsets"]
ANGLES = tuple(f"x{i}" for i in range(1, 6))


def places(q: Array, mechanism: djdyn.Mechanism) -> Float[Array, " c"]:
    """Of the markers, mm."""
    return 1e3 * SET.at(djdyn.look(mechanism, q)).ravel()


def run_pose(study: Study) -> None:
    """What each angle moves, at rest."""
    system = study.customise(build())
    J = jax.jit(jax.jacfwd(places))(rest(system).q, system.mechanism)
    sizes = np.linalg.svd(np.deg2rad(J), compute_uv=False)
    note = "derived; singular values of 12 marker coordinates by 5 angles, at rest"
    for i, (size, known) in enumerate(zip(sizes, DERIVED, strict=True), start=1):
        within, name = 0.05 if known > 1 else 0.005, f"optotrak.pose.singular_{i}"
        within = 0.0005 if known == DERIVED[-1] else within
        study.metric(name, size, known, within, unit="mm/deg", note=note)


def with_fifth(height: float) -> MarkerSet:
    """One marker more, on the rod's axis."""
    offsets = jnp.concatenate([SET.offsets, jnp.array([[height, 0.0, 0.0]])])
    return MarkerSet((*SET.labels, "5"), (*SET.frames, "rod"), offsets)


def sight(found: Found, markers: MarkerSet = SET, prior: bool = False) -> Problem:
    """One sample at release: all that is known of the pose before the motion."""
    q, system = found.start.q, found.truth
    seen = markers.at(djdyn.look(system.mechanism, q))
    about = {POSE: (q, SURE[POSE])} if prior else {}
    trial = held(found.start, np.asarray(seen), markers)
    return Problem(system, trial, priors=about)


def sure(problem: Problem) -> np.ndarray:
    """Deviations of the five angles, deg."""
    return np.rad2deg(observability(problem).deviations * np.asarray(problem.scale))


def without_prior(found: Fit) -> np.ndarray:
    """Deviations of the pose had it no prior, deg: its rows are the last."""
    scale = np.asarray(found.problem.scale)
    J = np.asarray(found.J)[:-5] * scale
    return np.rad2deg(np.sqrt(np.diag(np.linalg.inv(J.T @ J)))[-5:] * scale[-5:])


def run_cures(study: Study, found: Found) -> None:
    """A prior, a fifth marker, or the motion."""
    alone = sight(found)
    before, after = sure(alone), sure(sight(found, with_fifth(LOW)))
    error = found.fit.deviations[f"twin/{POSE}"]
    rows = {
        "one sample, four markers": before,
        "the same with a prior of 5 deg": sure(sight(found, prior=True)),
        f"one sample, a fifth marker {1e3 * LOW:g} mm up the rod": after,
        "5 s of motion, four markers, no prior on the pose": without_prior(found.fit),
        "5 s of motion, four markers, prior of 5 deg": np.rad2deg(error),
    }
    study.report.table(
        f"How surely the pose at release is known, deg, by {1e3 * NOISE:g} mm of noise",
        ("from", *ANGLES),
        [(name, *row) for name, row in rows.items()],
    )
    for name, value, note in (
        ("sample_sd_deg", before.max(), "worst angle from one sample of four markers"),
        ("fifth_sd_deg", after.max(), "the same with a fifth marker low on the rod"),
        ("motion_sd_deg", np.rad2deg(error).max(), "the same from 5 s of motion"),
    ):
        study.metric(f"optotrak.pose.{name}", value, unit="deg", note=note)
    values = [design(sight(found, with_fifth(h)), WORST, OFFSETS) for h in HEIGHTS]
    slopes = np.array([slope[OFFSETS[0]][-1, 0] for _, slope in values])
    errors = np.rad2deg(np.exp(0.5 * np.array([value for value, _ in values])))
    study.report.plot(
        "Where a fifth marker tells most: error of x2 from one sample",
        ("height on the rod above the ball's centre", "mm", 1e3 * HEIGHTS),
        ("standard error of x2", "deg"),
        {
            "five markers": errors,
            "four markers": np.full(len(HEIGHTS), before[1]),
        },
    )
    weakest = observability(alone)
    ways = [weakest.direction(i) for i in np.argsort(weakest.singular)[:2]]
    study.report.text(
        "Four markers at the rod's top hardly see where the ball is: sliding it in the "
        "bowl while the rod tilts back moves them by about 0.1 mm for each degree. In "
        f"the gate's words, for one sample: {ways[0]}; {ways[1]}. A fifth marker cures "
        "it, the lower on the rod the better: half way up, each centimetre lower makes "
        f"the variance of x2 {_share(slopes):.0%} smaller. So does the motion itself, "
        "which depends on where the ball rolls. A prior of 5 degrees keeps a fit from "
        "running away, but tells little that one sample does not; to cure it alone, a "
        f"prior would have to be much narrower than {before.max():.1f} degrees."
    )


def _share(slopes: np.ndarray) -> float:
    """Of the variance, gained by a centimetre half way up."""
    return 1 - np.exp(-0.01 * slopes[len(slopes) // 2])
