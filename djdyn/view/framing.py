"""Where to stand, and how large the floor is, to see a whole motion."""

import itertools

import numpy as np
from jaxtyping import Float

from .items import Arrow, Item, Path, Solid, Triad


FIELD_OF_VIEW = 30.0  # degrees, vertical
ASPECT = 1.6  # width over height that any window is sure to show

Cloud = Float[np.ndarray, "N 3"]


def cloud(item: Item) -> Cloud:
    """Points that enclose an item at all key frames; of an arrow, its tail."""
    match item:
        case Solid():
            ends = item.vertices.min(axis=0), item.vertices.max(axis=0)
            corners = np.array(list(itertools.product(*np.transpose(ends))))
            return (corners @ item.R_WG.mT + item.p_WG[:, None]).reshape(-1, 3)
        case Triad():
            return item.p_WF
        case Arrow():
            return item.p_W
        case Path():
            return item.p_W.reshape(-1, 3)


def extent(points: Cloud) -> float:
    """The diagonal of the box around the points, 1 when there is none."""
    return float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0


def camera(points: Cloud) -> list[float]:
    """Position, target and up of a camera that sees all points, broadside to them."""
    azimuth, elevation = _broadside(points[:, :2]) + np.radians(25), np.radians(16)
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    level = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    back = level * np.cos(elevation) + [0.0, 0.0, np.sin(elevation)]
    axes = np.stack([right, np.cross(back, right), back])
    seen = points @ axes.T
    middle = (seen.min(axis=0) + seen.max(axis=0)) / 2
    x, y, z = (seen - middle).T
    slope = np.tan(np.radians(FIELD_OF_VIEW) / 2)
    distance = np.max(z + np.maximum(abs(x) / ASPECT, abs(y)) / slope)
    target = middle @ axes
    eye = target + back * max(1.15 * distance, 0.5 * extent(points))
    return [*eye.tolist(), *target.tolist(), 0.0, 0.0, 1.0]


def _broadside(xy: Float[np.ndarray, "N 2"]) -> float:
    """Azimuth from which points look widest, -y when all sides look much the same."""
    about = xy - xy.mean(axis=0)
    variance, axes = np.linalg.eigh(about.T @ about)
    normal = axes[:, 0] if variance[0] < 0.3 * variance[1] else np.array([0.0, -1.0])
    if normal @ (0.4, -1.0) < 0:
        normal = -normal
    return float(np.arctan2(normal[1], normal[0]))


def floor(
    points: Cloud, height: float | None, spacing: float
) -> Float[np.ndarray, "L 2 3"]:
    """Lines of a square grid under the points, at their lowest if given no height."""
    low, high = points.min(axis=0), points.max(axis=0)
    z = low[2] if height is None else height
    half = np.maximum((high - low)[:2] / 2 + spacing, 0.35 * extent(points))
    first = np.floor(((low + high)[:2] / 2 - half) / spacing)
    last = np.ceil(((low + high)[:2] / 2 + half) / spacing)
    lines = []
    for across in (0, 1):
        for step in np.arange(first[across], last[across] + 1):
            ends = np.full((2, 3), z)
            ends[:, across] = step * spacing
            ends[:, 1 - across] = (
                first[1 - across] * spacing,
                last[1 - across] * spacing,
            )
            lines.append(ends)
    return np.array(lines)


def round_number(x: float) -> float:
    """The nearest of 1, 2 or 5 times a power of ten."""
    power = np.floor(np.log10(x))
    digit = min((1, 2, 5, 10), key=lambda n: abs(np.log(x / 10**power / n)))
    return float(f"{digit}e{power:.0f}")
