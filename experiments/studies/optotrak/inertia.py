"""Inertia of the rod assembled from its eight parts (Knutson 2007, section 3.7.8)."""

import numpy as np
from jaxtyping import Float

from ...harness import tables
from ...harness.study import Study
from .model import INERTIA


MOMENTS = ("Ixx_kg_m2", "Iyy_kg_m2", "Izz_kg_m2")
PRODUCTS = ("Ixy_kg_m2", "Ixz_kg_m2", "Iyz_kg_m2")
MISPRINT = ("shaft_collar_2", "Iyz_kg_m2", 0.1)  # ten times too large, by the total
TOTAL = "TOTAL_as_printed"


def assembled(printed: bool = False) -> Float[np.ndarray, "3 3"]:
    """Return the tensor about the mass centre, the sum of those of the parts, kg m^2.

    All parts are given about the mass centre of the whole, in axes of the body.
    Products are integrals of `x y dm`, so that they enter the tensor negated.

    **Arguments:**

    - `printed`: keeps the misprint of one product.
    """
    rows = [r for r in tables.read("optotrak/inertia_parts.csv") if r["part"] != TOTAL]
    part, column, factor = MISPRINT
    if not printed:
        rows = [
            {**r, column: str(factor * float(r[column]))} if r["part"] == part else r
            for r in rows
        ]
    xx, yy, zz = tables.columns(rows, *MOMENTS).sum(0)
    xy, xz, yz = -tables.columns(rows, *PRODUCTS).sum(0)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def run_inertia(study: Study) -> None:
    """Compare the sum of the parts with the printed total."""
    I_BC = assembled()
    moments, products = INERTIA["tables"]
    total = np.array([*moments, *products])
    found = np.array([*np.diag(I_BC), I_BC[0, 1], I_BC[0, 2], I_BC[1, 2]])
    digit = np.array([1e-7, 1e-5, 1e-5, 1e-9, 1e-7, 1e-8])  # the last one printed
    note = "sum of eight parts less the printed total, in units of its last digit"
    error = np.abs((found - total) / digit).max()
    study.metric("optotrak.inertia.sum_digits", error, at_most=1.0, note=note)
    names = ("xx", "yy", "zz", "xy", "xz", "yz")
    study.report.table(
        "Inertia of the rod about its mass centre, kg m^2",
        ("entry", "sum of eight parts", "printed total"),
        list(zip(names, found, total, strict=True)),
    )
