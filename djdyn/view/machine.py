"""A mechanism's motion as a scene, drawn from its geometry or from given shapes."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..multibody.flexible import Beam, FlexibleBody, shape_points
from ..multibody.spatial import Pose
from ..simulation.trajectory import Trajectory
from .scene import Scene


def draw(trajectory: Trajectory, shapes: Sequence[Mapping[str, Any]] = ()) -> Scene:
    """Bodies over time.

    A body without a shape is drawn as rods from its origin to the joints and frames it
    carries and to its centre of mass, with a ball there.

    **Arguments:**

    - `shapes`: tables with `type` (`box`, `sphere`, `capsule`, `cylinder`), `body`, and
      the arguments of the scene's method of that name.
    """
    mechanism = trajectory.system.mechanism
    scene = Scene(np.asarray(trajectory.t))
    poses = trajectory.map(_poses)
    for shape in shapes:
        b = mechanism.index(shape["body"])
        own = {k: v for k, v in shape.items() if k not in ("type", "body")}
        where = {"R": np.asarray(poses.R[:, b]), "p": np.asarray(poses.p[:, b])}
        getattr(scene, shape["type"])(shape["body"], **own, **where)
    drawn = {shape["body"] for shape in shapes}
    reach = _reach(trajectory)
    for b, body in enumerate(mechanism.bodies, start=1):
        if body.name in drawn:
            continue
        if isinstance(body, FlexibleBody):
            _bent(scene, trajectory, body, poses, b, 0.02 * reach)
            continue
        R, p = np.asarray(poses.R[:, b]), np.asarray(poses.p[:, b])
        ends = [c.X_PJ.p for c in mechanism.bodies if c.parent == body.name]
        ends += [f.X_BF.p for f in mechanism.frames if f.body == body.name]
        for end in [*map(np.asarray, ends), np.asarray(body.p_BC)]:
            length = float(np.linalg.norm(end))
            if length > 1e-9 * reach:
                turn = _along(end / length)
                offset = (turn, end / 2)
                scene.capsule(body.name, 0.012 * reach, length, R, p, offset=offset)
        ball = (np.eye(3), np.asarray(body.p_BC))
        if float(body.mass) > 0:
            scene.sphere(body.name, 0.025 * reach, R, p, offset=ball)
    return scene


def _bent(
    scene: Scene,
    trajectory: Trajectory,
    body: FlexibleBody,
    poses: Pose,
    b: int,
    size: float,
) -> None:
    """A flexible body through its nodes: a line where it is a beam, else points."""
    eta = trajectory.q(f"{body.name}.modes")
    x_B = np.asarray(jax.vmap(lambda eta: shape_points(body, eta))(eta))
    R, p = np.asarray(poses.R[:, b]), np.asarray(poses.p[:, b])
    x_W = p[:, None] + np.einsum("tij,tnj->tni", R, x_B)
    draws = scene.polyline if isinstance(body.model, Beam) else scene.points
    draws(body.name, x_W, size=size)


def _poses(now) -> Pose:
    return now.world.X_WB


def _reach(trajectory: Trajectory) -> float:
    """A length that the drawn sizes follow."""
    lengths = [0.0]
    for body in trajectory.system.mechanism.bodies:
        lengths += [float(np.linalg.norm(x)) for x in (body.X_PJ.p, body.p_BC)]
    return max(lengths) or 1.0


def _along(direction: np.ndarray) -> np.ndarray:
    """A rotation that takes z to `direction`."""
    helper = np.eye(3)[np.argmin(np.abs(direction))]
    x = np.cross(helper, direction)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(direction, x), direction], axis=1)
