"""Finite-element models by their matrices, from any program that writes them."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import Numbers, Scalar, check_values, known, si


ASYMMETRY, NEGATIVE = 1e-9, 1e-9  # relative, of matrices in circulation


class FiniteElements(eqx.Module):
    """A body as mass and stiffness matrices over nodes.

    A node has three displacements, or three displacements and three rotations, in this
    order, in the axes of `positions`. The model is free: its matrices know nothing of
    supports.
    """

    positions: Float[Array, "nodes 3"] = eqx.field(converter=si("m"))
    mass_matrix: Float[Array, "dofs dofs"] = eqx.field(converter=si("kg, kg m, kg m^2"))
    stiffness_matrix: Float[Array, "dofs dofs"] = eqx.field(converter=si("N/m, N, N m"))

    def __check_init__(self):
        check_values(self)
        shape = self.positions.shape
        if len(shape) != 2 or shape[1] != 3:
            raise ValueError(f"positions of nodes have shape {shape}, not (nodes, 3)")
        sizes = {3 * shape[0], 6 * shape[0]}
        for name in ("mass_matrix", "stiffness_matrix"):
            matrix = getattr(self, name)
            if matrix.shape not in {(n, n) for n in sizes}:
                raise ValueError(
                    f"{name} has shape {matrix.shape}: {shape[0]} nodes have "
                    f"{3 * shape[0]} or {6 * shape[0]} degrees of freedom"
                )
            if known(matrix):
                self._check(name, np.asarray(matrix))
        if self.mass_matrix.shape != self.stiffness_matrix.shape:
            raise ValueError("mass_matrix and stiffness_matrix differ in size")

    def _check(self, name: str, A: np.ndarray) -> None:
        size = np.abs(A).max()
        if not np.isfinite(A).all() or not size > 0:
            raise ValueError(f"{name} must be finite and not zero")
        if np.abs(A - A.T).max() > ASYMMETRY * size:
            raise ValueError(f"{name} must be symmetric")
        least, most = np.linalg.eigvalsh(0.5 * (A + A.T))[[0, -1]]
        if least < -NEGATIVE * most:
            raise ValueError(
                f"{name} has the negative eigenvalue {least:.4g}: no elastic body "
                "has one"
            )
        if name == "mass_matrix":
            of_node = np.diag(A).reshape(self.n_nodes, -1) > 0
            if not of_node.all():
                node, dof = np.argwhere(~of_node)[0]
                what = "mass" if dof < 3 else "rotary inertia"
                raise ValueError(f"node {node} has no {what} in mass_matrix")

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.positions)

    @property
    def node_dofs(self) -> int:
        """Degrees of freedom of a node, 3 or 6."""
        return len(self.mass_matrix) // self.n_nodes

    @property
    def families(self) -> dict[str, np.ndarray]:
        """All degrees of freedom: whether some do not couple is not known."""
        return {"all": np.arange(len(self.mass_matrix))}

    def mass(self) -> Scalar:
        """Return the mass, kg: a third of the trace of its matrix over translations."""
        M = self.mass_matrix.reshape(self.n_nodes, self.node_dofs, self.n_nodes, -1)
        return jnp.einsum("iaja->", M[:, :3, :, :3]) / 3

    def matrices(self) -> tuple[Array, Array]:
        """Mass and stiffness matrices, made symmetric."""
        return tuple(0.5 * (A + A.T) for A in (self.mass_matrix, self.stiffness_matrix))  # type: ignore[return-value]


def read_finite_elements(
    mass_matrix: str | Path,
    stiffness_matrix: str | Path,
    positions: str | Path | Numbers,
) -> FiniteElements:
    """Return a model whose matrices are NumPy (`.npy`) or Matrix Market (`.mtx`) files.

    **Arguments:**

    - `positions`: of the nodes, m: a file, or the numbers themselves.

    !!! example

        ```python
        model = read_finite_elements("mass.mtx", "stiffness.mtx", "nodes.npy")
        ```
    """
    own = _read(positions) if isinstance(positions, str | Path) else positions
    return FiniteElements(
        np.asarray(own, float), _read(mass_matrix), _read(stiffness_matrix)
    )


def _read(path: str | Path) -> np.ndarray:
    path = Path(path)
    if path.suffix == ".npy":
        return np.asarray(np.load(path, allow_pickle=False), float)
    if path.suffix != ".mtx":
        raise ValueError(f"{path.name!r} is neither a .npy nor a .mtx file")
    from scipy.io import mmread

    found = mmread(path)
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    return np.asarray(dense, float)
