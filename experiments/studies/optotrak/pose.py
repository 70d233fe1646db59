"""Observability of the pose: how little markers tell of the ball's position.

A prior, a fifth marker and the motion itself are compared as remedies.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from estimation import Identifiability, MarkerSet, Problem, design

from ...harness.study import Study
from .identification import NOISE, POSE, PRIOR_DEVIATION, Found, held
from .model import SET, build, places
from .statics import static_state


SINGULAR_VALUES = (15.2, 15.2, 0.99, 0.13, 0.071)  # mm/deg, at rest
HEIGHTS = np.linspace(0.04, 0.30, 14)  # m from the ball's centre; the rim is at 0.032
FIFTH_HEIGHT = 0.04  # m, proposed height of a fifth marker
WORST = "held/start.q[1]"
OFFSETS = ["predict.markers.offsets"]
ANGLES = tuple(f"x{i}" for i in range(1, 6))


@eqx.filter_jit
def slopes(
    mechanism: djdyn.Mechanism, q: Array, markers: MarkerSet = SET
) -> Float[Array, "c 5"]:
    """Return the Jacobian of marker positions by the angles, mm/deg."""
    seen = lambda q: places(mechanism, q, markers).ravel()
    return jnp.deg2rad(1e3) * jax.jacfwd(seen)(q)


def run_pose(study: Study) -> None:
    """Compare the singular values of the marker Jacobian at equilibrium."""
    system = study.customise(build())
    J = slopes(system.mechanism, static_state(system).q)
    sizes = np.linalg.svd(J, compute_uv=False)
    note = "singular value of 12 marker coordinates by 5 angles, at equilibrium"
    for i, (size, known) in enumerate(
        zip(sizes, SINGULAR_VALUES, strict=True), start=1
    ):
        within, name = 0.05 if known > 1 else 0.005, f"optotrak.pose.singular_{i}"
        within = 0.0005 if known == SINGULAR_VALUES[-1] else within
        study.metric(name, size, known, within, unit="mm/deg", note=note)


def with_fifth(height: float) -> MarkerSet:
    """Return the marker set with a fifth marker on the rod's axis."""
    offsets = jnp.concatenate([SET.offsets, jnp.array([[height, 0.0, 0.0]])])
    return MarkerSet((*SET.labels, "5"), (*SET.frames, "rod"), offsets)


def sight(found: Found, markers: MarkerSet) -> Problem:
    """Return the problem of the pose from one sample at release."""
    q, system = found.start.q, found.truth
    seen = places(system.mechanism, q, markers)
    return Problem(system, held(found.start, np.asarray(seen), markers))


def moved(problem: Problem, markers: MarkerSet) -> Problem:
    """Return the problem with another marker set."""
    at = lambda p: p.trials[0].predict.markers
    return eqx.tree_at(at, problem, markers)


def pose_deviations(J: Float[np.ndarray, "n k"], prior: float = np.inf) -> np.ndarray:
    """Return standard deviations of the last five parameters, the pose's angles."""
    size = np.linalg.norm(J, axis=0)
    told = (J / size).T @ (J / size)
    told[-5:, -5:] += np.diag(1 / (size[-5:] * prior) ** 2)
    return (np.sqrt(np.diag(np.linalg.inv(told))) / size)[-5:]


def run_cures(study: Study, found: Found) -> None:
    """Compare a prior, a fifth marker and the motion as sources of the pose."""
    q, mechanism = found.start.q, found.truth.mechanism
    four = np.asarray(slopes(mechanism, q)) / (1e3 * NOISE)
    five = np.asarray(slopes(mechanism, q, with_fifth(FIFTH_HEIGHT))) / (1e3 * NOISE)
    J = np.deg2rad(found.fit.J)  # its last rows are those of the prior on the pose
    before, after, motion = (pose_deviations(x) for x in (four, five, J))
    rows = {
        "one sample, four markers": before,
        "the same with a prior of 5 deg": pose_deviations(
            four, np.rad2deg(PRIOR_DEVIATION[POSE])
        ),
        f"one sample, a fifth marker {1e3 * FIFTH_HEIGHT:g} mm up the rod": after,
        "5 s of motion, four markers, no prior on the pose": pose_deviations(J[:-5]),
        "5 s of motion, four markers, prior of 5 deg": motion,
    }
    study.report.table(
        "Standard errors of the pose at release, deg, by "
        f"{1e3 * NOISE:g} mm of noise (synthetic)",
        ("from", *ANGLES),
        [(name, *row) for name, row in rows.items()],
    )
    for name, value, note in (
        ("sample_sd_deg", before.max(), "worst angle from one sample of four markers"),
        ("fifth_sd_deg", after.max(), "worst angle with a fifth marker low on the rod"),
        ("motion_sd_deg", motion.max(), "worst angle from 5 s of motion"),
    ):
        note = f"synthetic record: {note}"
        study.metric(f"optotrak.pose.{name}", value, unit="deg", note=note)
    low = sight(found, with_fifth(FIFTH_HEIGHT))
    values = [design(moved(low, with_fifth(h)), WORST, OFFSETS) for h in HEIGHTS]
    gains = np.array([slope[OFFSETS[0]][-1, 0] for _, slope in values])
    errors = np.rad2deg(np.exp(0.5 * np.array([value for value, _ in values])))
    study.report.plot(
        "Standard error of x2 from one sample, by the height of a fifth marker",
        ("height on the rod above the ball's centre", "mm", 1e3 * HEIGHTS),
        ("standard error of x2", "deg"),
        {
            "five markers": errors,
            "four markers": np.full(len(HEIGHTS), before[1]),
        },
    )
    _, singular, directions = np.linalg.svd(four, full_matrices=False)
    test = Identifiability(ANGLES, singular, directions, 1.0)
    ways = [test.direction(i) for i in (-1, -2)]
    study.report.text(
        "Four markers at the top of the rod hardly determine the position of the ball: "
        "if the ball slides in the bowl while the rod tilts back, they move by about "
        "0.1 mm for each degree. The identifiability test reports for one sample and a "
        f"scale of one degree: {ways[0]}; {ways[1]}. A fifth marker determines the "
        "position, the lower on the rod the better: half way up, each centimetre lower "
        f"makes the variance of x2 {_share(gains):.0%} smaller. The motion determines "
        "it too, because it depends on where the ball rolls. A prior of 5 degrees "
        "keeps a fit bounded, but adds little to one sample. A prior that determines "
        f"the pose alone must be much narrower than {before.max():.1f} degrees."
    )


def _share(slopes: np.ndarray) -> float:
    """Return the share of the variance that a centimetre half way up removes."""
    return 1 - np.exp(-0.01 * slopes[len(slopes) // 2])
