"""Element matrices of spline cables, beside the forces and masses of the library.

Annexes A and B of Roy, Steinke and Nicoll 2014 print the matrices of an element: rows
and columns are node 0, its curvature, node 1 and its curvature, in blocks of three. The
table in `data` holds them with misprints corrected. Curvatures follow from positions by
SciPy's natural spline, so that a condensed matrix acts on positions alone.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
from jaxtyping import ArrayLike, Float

from djdyn.cable import Cable, CableProperties, FreeEnd
from djdyn.cable.snapshot import CableSnapshot
from djdyn.cable.spline import Mesh
from djdyn.marine.water import Fluid
from djdyn.multibody.spatial import skew

from ...harness.study import Study
from .model import alone


TABLE = Path(__file__).parent / "data" / "element_matrices.csv"
ENTRIES = ("r0", "rpp0", "r1", "rpp1")
MESH = (0.0, 0.3, 0.55, 1.0)
LENGTH, DENSITY, DIAMETER, WATER = 10.0, 12.0, 0.1, 1025.0  # m, kg/m, m, kg/m^3
EA, EI, GRAVITY = 3e5, 400.0, 9.81  # N, N m^2, m/s^2
STRAIN = 0.02
PRINTED = {  # as A.2 is printed: another power of length, and another sign
    ("r0", "rpp0"): (-1 / 45, 1), ("rpp1", "rpp1"): (-2 / 945, 4),
}  # fmt: skip
RADIUS, RISE, TURNS = 2.0, 0.5, 1.25  # of a helix: m, m/rad, turns

Square = Float[np.ndarray, "n n"]


def rows(matrix: str) -> list[dict[str, str]]:
    """Return the table's rows of a matrix."""
    lines = [x for x in TABLE.read_text().splitlines() if not x.startswith("#")]
    return [row for row in csv.DictReader(lines) if row["matrix"] == matrix]


def number(text: str) -> float:
    """Return a coefficient such as -7/360."""
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def element(matrix: str, h: float, printed: bool = False) -> Square:
    """Return a matrix of an element of length `h`, an entry for each block of it.

    The prefactor is one, apart from the length in it.
    """
    found = np.zeros((4, 4))
    for row in rows(matrix):
        at = row["block_row"], row["block_col"]
        size, power = number(row["coefficient"]), int(row["L_power"])
        if printed:
            size, power = PRINTED.get(at, (size, power))
        found[ENTRIES.index(at[0]), ENTRIES.index(at[1])] = size * h**power
    return found * (h if matrix.startswith("M") else 1 / h)


def vector(matrix: str, h: float) -> Float[np.ndarray, " 4"]:
    """Return what an element takes of a uniform load per length."""
    found = np.zeros(4)
    for row in rows(matrix):
        at = ENTRIES.index(row["block_row"])
        found[at] += number(row["coefficient"]) * h ** (1 + int(row["L_power"]))
    return found


def assembled(parts: Sequence[np.ndarray], axes: int = 2) -> np.ndarray:
    """Return the sum of elements, nodes and curvatures taking turns."""
    size = 2 * (len(parts) + 1)
    found = np.zeros((size,) * axes)
    for k, part in enumerate(parts):
        found[(slice(2 * k, 2 * k + 4),) * axes] += part
    return found


def spread(lengths: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    """Return what makes nodes and curvatures of nodes, by a natural spline."""
    s, eye = np.append(0.0, np.cumsum(lengths)), np.eye(len(lengths) + 1)
    bent = scipy.interpolate.CubicSpline(s, eye, bc_type="natural")(s, 2)
    return np.stack([eye, bent], 1).reshape(-1, len(s))


# The library at a state ---------------------------------------------------------------


def lengths() -> Float[np.ndarray, " 3"]:
    """Return the unstretched lengths of the elements."""
    return LENGTH * np.diff(MESH)


def line(lumping: str, wet: bool = False) -> Cable:
    """Return a line of three elements whose ends are free."""
    rope = CableProperties(
        DENSITY, EA, EI=EI, diameter=DIAMETER, compression=1.0, axial_damping=0.0,
        normal_drag=1.2 if wet else 0.0, added_mass=1.0 if wet else 0.0,
    )  # fmt: skip
    fluid = Fluid(WATER) if wet else None
    ends = (FreeEnd(), FreeEnd())
    return Cable(rope, LENGTH, *ends, MESH, fluid=fluid, lumping=lumping)


def snapshot(
    cable: Cable, r: ArrayLike, v: ArrayLike | None = None, g: float = 0.0
) -> CableSnapshot:
    """Return the line at a state, without a winch."""
    system = alone(cable, g)
    world = system.at(0.0, system.initial_state()).world
    v = np.zeros(np.shape(r)) if v is None else v
    state = {"r": jnp.asarray(r), "v": jnp.asarray(v)}
    return cable.snapshot(jnp.zeros(()), state, world, jnp.zeros(2))


def straight(direction: Sequence[float], strain: float = 0.0) -> np.ndarray:
    """Return nodes on a straight line from the origin."""
    e = np.asarray(direction) / np.linalg.norm(direction)
    return (1 + strain) * LENGTH * np.outer(MESH, e)


def off(found: ArrayLike, wanted: ArrayLike) -> float:
    """Return the largest difference, over the largest wanted value."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def shape_products(h: float) -> Square:
    """Return the integrals of products of an element's shape functions."""
    s, weights = np.polynomial.legendre.leggauss(4)  # exact for polynomials to degree 7
    mesh, found = Mesh((0.0, 1.0)), np.zeros((4, len(s)))
    for i in range(4):
        r, m = np.zeros((2, 3)), np.zeros((2, 3))
        (m if i % 2 else r)[i // 2, 0] = h**2 if i % 2 else 1.0
        at = jax.vmap(mesh.at, (None, None, 0))
        found[i] = at(jnp.asarray(r), jnp.asarray(m), jnp.asarray((1 + s) / 2))[0][:, 0]
    return np.einsum("ik,jk,k->ij", found, found, weights * h / 2)


def mass_errors() -> dict[str, float]:
    """Compare masses and weights: lumped A.6, A.7, A.17, consistent A.2, A.12."""
    T, h = spread(lengths()), lengths()
    consistent = T.T @ assembled([element("M_C", x) for x in h]) @ T
    one = shape_products(h[0])
    half = assembled([element("M_G", x) for x in h]).sum(1)[::2]
    weights = T.T @ assembled([vector("W", x) for x in h], 1)
    halves = assembled([vector("W_G", x) for x in h], 1)[::2]
    r = straight((1, 0, 0))
    lumped = snapshot(line("half"), r, g=GRAVITY)
    spline = snapshot(line("spline"), r, g=GRAVITY)
    return {
        "M_G": off(lumped.mass[:, 0, 0], DENSITY * half),
        "M_C": off(spline.mass[:, 0, 0], DENSITY * consistent.sum(1)),
        "M_C, all entries": off(one, element("M_C", h[0])),
        "M_C as printed": off(one, element("M_C", h[0], printed=True)),
        "W_G": off(lumped.load[:, 2], -DENSITY * GRAVITY * halves),
        "W": off(spline.load[:, 2], -DENSITY * GRAVITY * weights),
    }


def stretch_errors() -> dict[str, float]:
    """Compare axial forces, A.14, and the stiffness across a tight line, A.8.

    The annex multiplies EA times strain by the chord over its unstretched length, the
    library by its direction: a factor of one plus the strain.
    """
    T, h = spread(lengths()), lengths()
    r, bare = straight((3, 1, -2), STRAIN), line("half")
    K = assembled([element("K_epsG", x) for x in h])[::2, ::2]
    wanted = EA * STRAIN * K @ r
    slack = snapshot(bare, straight((3, 1, -2)))
    load = np.asarray(snapshot(bare, r).load - slack.load)
    across = T.T @ assembled([element("K_eps", x) for x in h]) @ T
    limp = eqx.tree_at(lambda c: c.rope.EI, bare, jnp.zeros(()))
    along = straight((1, 0, 0), STRAIN)
    y = jnp.zeros(len(MESH))
    tight = lambda y: snapshot(limp, jnp.asarray(along).at[:, 1].set(y)).load[:, 1]
    slope = jax.jit(jax.jacfwd(tight))(y)
    return {
        "K_epsG": off(load * (1 + STRAIN), wanted),
        "K_epsG as printed": off(load, wanted),
        "K_eps": off(slope * (1 + STRAIN), EA * STRAIN * across),
    }


def bending_error() -> float:
    """Compare bending forces of a line out of any plane with A.15."""
    r = straight((1, 0, 0)) + np.random.default_rng(0).normal(size=(4, 3))
    bent = line("half")
    limp = eqx.tree_at(lambda c: c.rope.EI, bent, jnp.zeros(()))
    load = snapshot(bent, r).load - snapshot(limp, r).load
    K = assembled([element("K_kappaG", x) for x in lengths()])[::2]
    return off(load, EI * K @ spread(lengths()) @ r)


def water_errors() -> dict[str, float]:
    """Compare added mass, A.3 and A.4, and drag, A.18, on an inclined line."""
    e = np.array([2.0, 0.0, 1.0]) / np.sqrt(5)
    r, v = straight(e), np.tile([0.3, 0.5, -0.2], (4, 1))
    found = snapshot(line("half", wet=True), r, v)
    area = np.pi / 4 * DIAMETER**2
    M_I = DENSITY * np.eye(3) + WATER * area * (np.eye(3) - np.outer(e, e))
    half = assembled([element("M_G", x) for x in lengths()]).sum(1)[::2]
    across = v[0] - (v[0] @ e) * e
    push = -WATER / 2 * DIAMETER * 1.2 * np.linalg.norm(across) * across
    share = assembled([vector("H_G", x) for x in lengths()], 1)[::2]
    return {
        "M_G with added mass": off(found.mass, half[:, None, None] * M_I),
        "H_G": off(found.drag, share[:, None] * push),
    }


# Torsion ------------------------------------------------------------------------------


def helix(elements: int) -> tuple[np.ndarray, float, list[tuple[np.ndarray, ...]]]:
    """Return nodes of a helix, its length, and the Frenet frames of its ends."""
    a = 2 * np.pi * TURNS * np.linspace(0.0, 1.0, elements + 1)
    r = np.stack([RADIUS * np.cos(a), RADIUS * np.sin(a), RISE * a], -1)
    rate = np.hypot(RADIUS, RISE)
    frames = []
    for x in a[[0, -1]]:
        t = np.array([-RADIUS * np.sin(x), RADIUS * np.cos(x), RISE]) / rate
        frames.append((t, np.array([-np.cos(x), -np.sin(x), 0.0])))
    return r, rate * a[-1], frames


def torsion_errors(elements: int) -> tuple[float, float]:
    """Compare twist and forces of torsion with Annex B and A.16 on a helix.

    The library turns a side vector from node to node, the annex sums the torsion of
    the curve: both converge to one angle. Forces are compared away from the ends.
    """
    r, length, frames = helix(elements)
    rope = CableProperties(1.0, 1.0, GJ=1.0)
    mesh = Mesh(tuple(np.linspace(0.0, 1.0, elements + 1).tolist()), (True, True))
    ends = tuple((jnp.asarray(t), jnp.asarray(n)) for t, n in frames)
    size = jnp.asarray(length)

    def twist(r: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = rope.measures(mesh, size, r, (ends[0], ends[1]), [])
        return found.twist, found.curvature

    (angle, bent), slope = jax.jit(jax.value_and_grad(twist, has_aux=True))(
        jnp.asarray(r)
    )
    gamma = RISE / (RADIUS**2 + RISE**2)
    wanted = gamma * length  # Annex B, with frames of the ends on those of the curve
    turns = 2 * np.pi * round((wanted - float(angle)) / (2 * np.pi))
    tau, h = wanted / length, length / elements
    Q = [np.asarray(skew(m)) for m in bent]
    load = np.zeros_like(r)
    for k in range(elements):
        X = [r[k], np.asarray(bent[k]), r[k + 1], np.asarray(bent[k + 1])]
        blocks = {"Q0": Q[k], "Q1": Q[k + 1], "Q0+Q1": Q[k] + Q[k + 1]}
        for row in rows("K_tauG"):
            to = k + (row["block_row"] == "r1")
            scale = number(row["coefficient"]) * h ** int(row["L_power"]) * tau / h
            block = blocks[row["block"]]
            load[to] += scale * block @ X[ENTRIES.index(row["block_col"])]
    inner = slice(elements // 4, -(elements // 4))
    found = -tau * np.asarray(slope)
    return abs(float(angle) + turns - wanted), off(found[inner], load[inner])


def run_elements(study: Study) -> None:
    """Compare masses and forces with the printed matrices (annexes A and B)."""
    found = mass_errors() | stretch_errors() | water_errors()
    found["K_kappaG"] = bending_error()
    exact = {k: x for k, x in found.items() if not k.endswith("as printed")}
    study.metric(
        "cable.elements.max_error", max(exact.values()), at_most=1e-9,
        note="masses, weight, drag, stretch and bending beside annex A, corrected",
    )  # fmt: skip
    meshes = (16, 32, 64)
    twists, loads = np.array([torsion_errors(n) for n in meshes]).T
    for name, errors, unit, note in (
        ("twist", twists, "rad", "twist of a helix beside annex B"),
        ("torsion", loads, "", "forces of torsion in a helix beside A.16"),
    ):
        study.metric(
            f"cable.elements.{name}_error", errors[-1], at_most=5e-3, unit=unit,
            note=f"{note}; 64 elements",
        )  # fmt: skip
        study.metric(
            f"cable.elements.{name}_order", np.log2(errors[-2] / errors[-1]),
            at_least=1.9, note=f"{note}: order of convergence, 32 to 64 elements",
        )  # fmt: skip
    table = [(k, x) for k, x in found.items()]
    table += [(f"K_tauG, {n} elements", x) for n, x in zip(meshes, loads, strict=True)]
    table += [(f"twist, {n}, rad", x) for n, x in zip(meshes, twists, strict=True)]
    study.report.table(
        "Element matrices of annexes A and B: relative differences",
        ("matrix", "largest difference"), table,
    )  # fmt: skip
