"""A scene as a k3d snapshot: the data a browser needs to replay it."""

import base64
from typing import Any

import numpy as np
from jaxtyping import Float

from . import colors, framing, shapes
from .items import Arrow, Path, Solid, Triad
from .scene import Scene


AXES = ("#d64545", "#3f9b45", "#3b6fd6")


def replay(scene: Scene) -> dict[str, Any]:
    """What the page needs to draw it: snapshot, times, legend, camera, speed, grid."""
    import k3d
    from ipywidgets import Widget

    if not scene.items:
        raise ValueError("the scene has nothing in it")
    points = np.concatenate([framing.cloud(item) for item in scene.items])
    size = framing.extent(points)
    spacing = framing.round_number(size / 10)
    floor = _floor(framing.floor(points, scene.ground, spacing))
    drawn, legend = [], {}
    for item in scene.items:
        entry = legend.setdefault(item.name, {"color": item.color, "ids": []})
        match item:
            case Solid():
                objects = [_solid(item)]
            case Triad():
                entry["color"] = f"linear-gradient(90deg, {', '.join(AXES)})"
                objects = [_triad(item, item.size or 0.12 * size)]
            case Arrow():
                scale = item.scale or _arrow_scale(item, scene, size)
                if item.unit:
                    unit = 1.0 if size > 0.2 else 1e-3
                    entry["note"] = f"{_length(unit)} = {unit / scale:.3g} {item.unit}"
                points = np.concatenate([points, item.p_W + scale * item.vector_W])
                objects = _arrow(item, scale, 0.012 * size)
            case Path():
                objects = [_path(item, item.size or 0.01 * size)]
        for thing in objects:
            thing.id = len(drawn) + 1  # k3d takes addresses, new ones each run
            entry["ids"].append(thing.id)
            drawn.append(thing)
    camera = framing.camera(points)
    plot = k3d.plot(  # pyright: ignore[reportCallIssue]
        grid_visible=False,
        menu_visibility=False,
        camera_auto_fit=False,
        camera_mode="orbit",
        camera_up_axis="z",
        camera_fov=framing.FIELD_OF_VIEW,
        camera=camera,
        axes_helper=90.0,
        axes_helper_colors=[colors.packed(color) for color in AXES],
        background_color=0xFFFFFF,
        lighting=1.9,
        camera_rotate_speed=0.6,
    )
    floor.id = len(drawn) + 1
    for thing in [*drawn, floor]:
        plot += thing
    data = base64.b64encode(plot.get_binary_snapshot(compression_level=9)).decode()
    for widget in [*drawn, floor, plot]:
        Widget.close(widget)  # or ipywidgets would keep it and its arrays for ever
    return {
        "data": data,
        "times": scene.t.tolist(),
        "legend": [{"name": name, **entry} for name, entry in legend.items()],
        "camera": camera,
        "speed": _pace(float(np.ptp(scene.t))),
        "grid": _length(spacing),
    }


def _length(metres: float) -> str:
    return f"{metres:g} m" if metres >= 0.01 else f"{1000 * metres:g} mm"


def _pace(duration: float) -> float:
    """Real time when that takes seconds, otherwise a round factor to make it so."""
    if duration == 0 or 2 <= duration <= 90:
        return 1.0
    return framing.round_number(duration / 10)


def _matrices(
    R: Float[np.ndarray, "K 3 3"],
    p: Float[np.ndarray, "K 3"],
    scale: Float[np.ndarray, "K 3"] | None = None,
) -> Any:
    """Model matrices by key frame, one array when nothing moves.

    Key frames are numbered, not timed: k3d takes times within 1 ms for the same.
    """
    X = np.tile(np.eye(4, dtype=np.float32), (len(p), 1, 1))
    X[:, :3, :3] = R if scale is None else R * scale[:, None, :]
    X[:, :3, 3] = p
    return X[0] if len(X) == 1 else {str(k): X[k] for k in range(len(X))}


def _mesh(
    name: str, vertices: shapes.Vertices, faces: shapes.Faces, **look: Any
) -> Any:
    import k3d

    look = {"side": "double", "flat_shading": False, "roughness": 0.55, **look}
    return k3d.mesh(
        vertices.astype(np.float32), faces.astype(np.uint32), name=name, **look
    )


def _solid(item: Solid) -> Any:
    look = {"color": colors.packed(item.color), "opacity": item.opacity}
    look["flat_shading"] = not item.smooth
    thing = _mesh(item.name, item.vertices, item.faces, **look)
    thing.model_matrix = _matrices(item.R_WG, item.p_WG)
    return thing


def _triad(item: Triad, size: float) -> Any:
    shaft, faces = shapes.cylinder(0.03 * size, 0.8 * size)
    tip = shapes.cone(0.08 * size, 0.25 * size)
    up = size * np.array([0.0, 0.0, 1.0])
    along_z = shapes.join((shaft + 0.4 * up, faces), (tip[0] + 0.75 * up, tip[1]))
    turned = [(np.roll(along_z[0], axis + 1, axis=1), along_z[1]) for axis in range(3)]
    paint = np.repeat([colors.packed(color) for color in AXES], len(along_z[0]))
    thing = _mesh(item.name, *shapes.join(*turned), colors=paint.astype(np.uint32))
    thing.model_matrix = _matrices(item.R_WF, item.p_WF)
    return thing


def _arrow_scale(item: Arrow, scene: Scene, size: float) -> float:
    """One scale for all arrows of a unit, or of a name where there is no unit."""
    arrows = [other for other in scene.items if isinstance(other, Arrow)]
    longest = max(
        float(np.linalg.norm(other.vector_W, axis=-1).max())
        for other in arrows
        if (other.unit or other.name) == (item.unit or item.name)
    )
    return framing.round_number(0.25 * size / longest) if longest else 1.0


def _arrow(item: Arrow, scale: float, thickness: float) -> list[Any]:
    """A shaft that stretches and a head that keeps its shape while it has room."""
    length = scale * np.linalg.norm(item.vector_W, axis=-1)
    e, R = _along(item.vector_W)
    head = np.minimum(4 * thickness, 0.6 * length)
    still = 1e-6 * thickness  # a scale of zero has no inverse
    width = np.maximum(head / (4 * thickness), still)
    color = colors.packed(item.color)
    shaft = _mesh(
        item.name, *shapes.cylinder(thickness / 2, 1.0), color=color, roughness=0.8
    )
    along = np.maximum(length - head, still)
    shaft.model_matrix = _matrices(
        R, item.p_W + (along / 2)[:, None] * e, np.stack([width, width, along], axis=-1)
    )
    tip = _mesh(item.name, *shapes.cone(1.4 * thickness, 4 * thickness), color=color)
    tip.model_matrix = _matrices(
        R, item.p_W + along[:, None] * e, np.repeat(width[:, None], 3, axis=1)
    )
    return [shaft, tip]


def _along(
    vector: Float[np.ndarray, "K 3"],
) -> tuple[Float[np.ndarray, "K 3"], Float[np.ndarray, "K 3 3"]]:
    """Directions, zero keeping the last, and shortest rotations from z to them."""
    length = np.linalg.norm(vector, axis=-1)
    last = np.maximum.accumulate(np.where(length > 0, np.arange(len(vector)), 0))
    z = np.array([0.0, 0.0, 1.0])
    e = np.where(length[last][:, None] > 0, vector[last], z)
    e = e / np.linalg.norm(e, axis=-1, keepdims=True)
    half = e + z  # turning by pi about half-way takes z to e
    half[np.linalg.norm(half, axis=-1) < 1e-6] = [1.0, 0.0, 0.0]
    half = half / np.linalg.norm(half, axis=-1, keepdims=True)
    about_half = 2 * half[:, :, None] * half[:, None, :] - np.eye(3)
    return e, about_half @ np.diag([-1.0, -1.0, 1.0])


def _path(item: Path, size: float) -> Any:
    import k3d

    color = colors.packed(item.color)
    p = item.p_W.astype(np.float32)
    track: Any = p[0] if len(p) == 1 else {str(k): p[k] for k in range(len(p))}
    if item.kind == "points":
        return k3d.points(
            track, color=color, point_size=size, shader="3d", name=item.name
        )
    return k3d.line(track, color=color, width=size, shader="thick", name=item.name)


def _floor(lines: Float[np.ndarray, "L 2 3"]) -> Any:
    import k3d

    return k3d.lines(
        lines.reshape(-1, 3).astype(np.float32),
        np.arange(2 * len(lines), dtype=np.uint32),
        indices_type="segment",
        shader="simple",
        color=colors.packed("#cfd6de"),
    )
