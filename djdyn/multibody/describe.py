"""A mechanism as text and as HTML: the tree of bodies, their joints and masses."""

from collections.abc import Sequence
from html import escape

import jax
import numpy as np

from ..typing import known
from .assembly import AssemblyError, degrees_of_freedom
from .joints import AbstractJoint
from .mechanism import WORLD, Mechanism


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as columns of text, each as wide as its widest entry."""
    table = [header, *rows]
    wide = [max(len(row[i]) for row in table) for i in range(len(header))]
    pad = lambda row: "  ".join(f"{x:<{w}}" for x, w in zip(row, wide, strict=True))
    return "\n".join(pad(row).rstrip() for row in table)


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the same rows as an HTML table."""
    style = "text-align:left;white-space:pre"
    cells = lambda tag, row: "".join(
        f'<{tag} style="{style}">{escape(x)}</{tag}>' for x in row
    )
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<tr>{cells('th', header)}</tr>"
    return f"<b>{escape(title)}</b><table>{head}{body}</table>"


def body_rows(mechanism: Mechanism) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the tree: a body below and right of its parent."""
    rows: list[list[str]] = []

    def add(parent: str, depth: int) -> None:
        for body in mechanism.bodies:
            if body.parent == parent:
                name = "  " * depth + body.name
                rows.append([name, _joint(body.joint), _number(body.mass)])
                add(body.name, depth + 1)

    add(WORLD, 0)
    return ["body", "joint", "mass (kg)"], rows


def summary(mechanism: Mechanism) -> str:
    """Return one line that counts bodies, frames and freedoms."""
    frames = ", ".join(f"{f.name} on {f.body}" for f in mechanism.frames)
    counts = f"bodies {len(mechanism.bodies)}, coordinates {mechanism.nq}"
    counts += f", speeds {mechanism.nv}"
    if mechanism.loops:
        counts += f"; {loop_summary(mechanism)}"
    return counts + (f"; frames: {frames}" if frames else "")


def loop_summary(mechanism: Mechanism) -> str:
    """Return one line that names the loops and counts the freedoms they leave."""
    names = ", ".join(loop.name for loop in mechanism.loops)
    if not known(*jax.tree.leaves(mechanism)):
        return f"loops: {names}"
    try:
        left = degrees_of_freedom(mechanism)
    except AssemblyError as error:
        return f"loops: {names} ({error})"
    counts = f"loops: {names}, {left.rows} equations of rank {left.rank}"
    return f"{counts}, {left.degrees} degrees of freedom"


def _joint(joint: AbstractJoint) -> str:
    name, axis = type(joint).__name__, getattr(joint, "axis", None)
    if axis is None or not known(axis):
        return name
    word = "about" if name == "Revolute" else "along"
    return f"{name} {word} {_number(axis)}"


def _number(x: object) -> str:
    if not known(x):
        return "traced"
    values = np.asarray(x)
    if values.ndim == 0:
        return f"{float(values):.6g}"
    return "(" + ", ".join(f"{v:.4g}" for v in values.ravel()) + ")"
