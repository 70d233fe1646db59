"""Checks of recorded markers; faults are returned as sentences."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .registration import mean_shape, register


Times = Float[np.ndarray, " n"]
Positions = Float[np.ndarray, "n m 3"]
Visible = Bool[np.ndarray, "n m"]

MIN_REPORTED_GAP = 1.0  # s without any marker
MAX_JUMP_TIME = 0.1  # s between samples in which a body cannot have turned over
MAX_TIMES_NAMED = 3  # in one sentence


def basic_faults(
    times: Times, labels: tuple[str, ...], positions: Positions, visible: Visible
) -> list[str]:
    """Return faults of times, labels and visibility, and constant channels."""
    said = []
    for what, at in (
        ("runs backwards", np.flatnonzero(np.diff(times) < 0)),
        ("stands still", np.flatnonzero(np.diff(times) == 0)),
    ):
        if len(at):
            k = at[0]
            said.append(
                f"time {what} at {len(at)} of {len(times)} samples, first at sample "
                f"{k + 2}: {times[k + 1]:g} s after {times[k]:g} s"
            )
    for label in dict.fromkeys(labels):
        if labels.count(label) > 1:
            said.append(f"{labels.count(label)} markers are called {label!r}")
    blind = [
        (t0, t1)
        for t0, t1 in _spans(times, np.all(~visible, 1))
        if abs(t1 - t0) >= MIN_REPORTED_GAP
    ]
    if blind:
        said.append(f"all markers are hidden {_told(blind)}")
    for i, label in enumerate(labels):
        seen = positions[visible[:, i], i]
        if not len(seen):
            said.append(f"marker {label!r} is never seen")
        elif len(seen) > 2:
            still = [
                axis for axis, x in zip("xyz", seen.T, strict=True) if not np.ptp(x)
            ]
            if still:
                said.append(
                    f"{', '.join(still)} of marker {label!r} never changes in "
                    f"{len(seen)} samples"
                )
    return said


def shape_faults(
    times: Times,
    labels: tuple[str, ...],
    positions: Positions,
    visible: Visible,
    shape: Float[np.ndarray, "m 3"] | None,
    tolerance: float,
) -> tuple[list[str], set[frozenset[str]]]:
    """Return faults of the markers of a rigid body: swapped or out of shape.

    Two labels are swapped where the body fits after their exchange, but not before.

    **Returns:** sentences, and the pairs of labels that are swapped.
    """
    if shape is None and not np.any(np.all(visible, 1)):
        return [f"markers {', '.join(labels)} are never all seen at once"], set()
    shape = mean_shape(positions, visible) if shape is None else shape
    pairs, worst, pair = swaps(positions, visible, shape, tolerance)
    bad, cured, said, named = worst > tolerance, pair >= 0, [], set()
    for row, (i, j) in enumerate(pairs):
        if np.any(pair == row):
            named.add(frozenset((labels[i], labels[j])))
            where = _told(_spans(times, pair == row))
            said.append(f"markers {labels[i]!r} and {labels[j]!r} are swapped {where}")
    if np.any(bad & ~cured):
        off = 1e3 * worst[bad & ~cured].max()
        said.append(
            f"markers {', '.join(labels)} are up to {off:.3g} mm out of shape "
            f"{_told(_spans(times, bad & ~cured))}, and no swap of two explains it"
        )
    return said, named


def swaps(
    positions: Positions,
    visible: Visible,
    shape: Float[np.ndarray, "m 3"],
    tolerance: float,
) -> tuple[list[tuple[int, int]], Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Find samples in which the exchange of two markers makes a rigid body fit.

    **Returns:** all pairs of markers, the misfit of each sample, m, and the index of
    the pair whose exchange removes it, or -1.
    """
    m, worst = len(shape), _misfit(positions, visible, shape)
    pairs, pair = list(combinations(range(m), 2)), np.full(len(worst), -1)
    bad = worst > tolerance
    if bad.any():
        order = np.tile(np.arange(m), (len(pairs), 1))
        for row, (i, j) in enumerate(pairs):
            order[row, [i, j]] = j, i
        misfits = [_misfit(positions[:, o], visible[:, o], shape) for o in order]
        cured = bad & (np.min(misfits, 0) < tolerance)
        pair[cured] = np.argmin(misfits, 0)[cured]
    return pairs, worst, pair


@jax.jit
def _worst(positions: Array, visible: Array, shape: Array) -> Array:
    def once(p_A: Array, visible: Array) -> Array:
        found = register(p_A, shape, visible)
        return jnp.max(jnp.where(visible & found.ok, found.residuals, 0.0))

    return jax.vmap(once)(positions, visible)


def _misfit(
    positions: Positions, visible: Visible, shape: Float[np.ndarray, "m 3"]
) -> Float[np.ndarray, " n"]:
    """Return the largest distance of a marker from its place; 0 where unknown."""
    return np.asarray(_worst(*map(jnp.asarray, (positions, visible, shape))))


def jump_faults(
    times: Times, labels: tuple[str, ...], positions: Positions, visible: Visible
) -> dict[frozenset[str], str]:
    """Return pairs of markers that jump to each other's positions, with sentences.

    The exchange must halve the distance that both travel, which no translation does.
    """
    said = {}
    for i, j in combinations(range(len(labels)), 2):
        both = np.flatnonzero(visible[:, i] & visible[:, j])
        p, t = positions[both][:, [i, j]], times[both]
        came = np.linalg.norm(np.diff(p, axis=0), axis=-1).sum(-1)
        across = np.linalg.norm(p[1:, ::-1] - p[:-1], axis=-1).sum(-1)
        jumped = (across < 0.5 * came) & (np.abs(np.diff(t)) < MAX_JUMP_TIME)
        if jumped.any():
            when = [f"{x:g} s" for x in t[1:][jumped][:MAX_TIMES_NAMED]]
            more = ", …" if jumped.sum() > MAX_TIMES_NAMED else ""
            said[frozenset((labels[i], labels[j]))] = (
                f"markers {labels[i]!r} and {labels[j]!r} change places at "
                f"{', '.join(when)}{more}"
            )
    return said


def _spans(times: Times, true: Bool[np.ndarray, " n"]) -> list[tuple[float, float]]:
    """Return first and last time of every run of samples that are true."""
    edges = np.diff(np.concatenate([[0], true.astype(int), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [
        (float(times[a]), float(times[b])) for a, b in zip(starts, ends, strict=True)
    ]


def _told(spans: list[tuple[float, float]]) -> str:
    """Return spans of time in words."""
    told = [f"from {a:g} to {b:g} s" if a != b else f"at {a:g} s" for a, b in spans]
    more = (
        f" and {len(told) - MAX_TIMES_NAMED} times more"
        if len(told) > MAX_TIMES_NAMED
        else ""
    )
    return ", ".join(told[:MAX_TIMES_NAMED]) + more
