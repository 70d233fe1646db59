"""Beams that several tests use."""

from typing import Any

import numpy as np

import djdyn
from djdyn.multibody.flexible import Beam, FlexibleBody, Hollow, Piece, Rectangle


def steel_boom(elements: int = 20, **more: Any) -> Beam:
    """The boom of Baharudin's real-time models: 4 m, EI 25.35 MN m^2, 75.36 kg/m."""
    piece = Piece(4.0, Hollow(0.2, 0.3, 0.01), elements=elements)
    return Beam((piece,), 2.1e11, 8e10, 7850.0, rotary_inertia=False, **more)


def soft_beam(elements: int = 3, **more: Any) -> Beam:
    """A short soft bar, equal in both planes."""
    piece = Piece(1.0, Rectangle(0.05, 0.05), elements=elements)
    return Beam((piece,), 2e8, 8e7, 1000.0, **more)


def family(beam: Beam, name: str) -> tuple[Any, Any]:
    """Mass and stiffness matrices of one family of motions."""
    M, K = beam.matrices()
    own = np.ix_(beam.families[name], beam.families[name])
    return M[own], K[own]


def hinged(
    beam: Beam, modes: dict[str, int], method: str = "craig_bampton", **more: Any
) -> FlexibleBody:
    """A beam on a hinge about y."""
    joint = more.pop("joint", djdyn.Revolute((0, 1, 0)))
    parent = more.pop("parent", "world")
    return FlexibleBody("boom", parent, joint, beam, modes, method=method, **more)
