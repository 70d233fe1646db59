"""A search that is killed, or whose disk fills up, loses nothing."""

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn.files
from djdyn.optimize.multistart import descend, solver_for
from djdyn.optimize.problem import AbstractProblem


class Rosenbrock(AbstractProblem):
    """The banana valley, as a sum of squares."""

    names: tuple[str, ...] = eqx.field(static=True, default=("x", "y"))
    scale: jax.Array = eqx.field(default_factory=lambda: jnp.ones(2))
    steepness: jax.Array = eqx.field(default_factory=lambda: jnp.array(10.0))

    def residuals(self, x):
        return jnp.stack([self.steepness * (x[1] - x[0] ** 2), 1 - x[0]])

    def linearise_residuals(self, x):
        return self.residuals(x), jax.jacfwd(self.residuals)(x)

    def cost(self, x):
        return jnp.sum(self.residuals(x) ** 2) / 2

    def slope(self, x):
        return jax.value_and_grad(self.cost)(x)

    def bounds(self):
        return jnp.full(2, -jnp.inf), jnp.full(2, jnp.inf)

    def penalties(self):
        return None


START = jnp.array([[-1.2, 1.0]])


def search(save, problem=None, steps=12):
    problem = Rosenbrock() if problem is None else problem
    solver = solver_for("nl2sol", 1e-12)
    return descend(problem, START, None, solver, steps, save, progress=False)


KILLED_WHILE_WRITING = """
import os, sys
from pathlib import Path
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
import djdyn.files
from tests.optimize.test_checkpoint import search

write, calls = np.savez_compressed, []

def write_half_of_the_fifth(file, **arrays):
    calls.append(1)
    if len(calls) == 5:
        file.write(b"half of a file")
        file.flush()
        os.kill(os.getpid(), 9)
    write(file, **arrays)

np.savez_compressed = write_half_of_the_fifth
search(Path(sys.argv[1]))
"""


def test_a_killed_search_resumes_to_the_same_result(tmp_path):
    path = tmp_path / "fit.npz"
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(path)]
    root = Path(__file__).parents[2]
    assert subprocess.run(command, cwd=root).returncode == -9
    assert len(djdyn.files.read_arrays(path, "a search")["history"]) == 4
    resumed, whole = search(path), search(None)
    for a, b in zip(resumed, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-20)
    assert len(resumed[3]) == 12


def test_a_search_outlives_a_full_disk(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(djdyn.files.np, "savez_compressed", full)
    with pytest.warns(UserWarning, match=r"goes on without.*No space"):
        search(tmp_path / "fit.npz", steps=2)
    assert not [*tmp_path.iterdir()]


def test_damaged_and_foreign_states_are_refused(tmp_path):
    path = tmp_path / "fit.npz"
    search(path, steps=2)
    steeper = Rosenbrock(steepness=jnp.array(20.0))
    with pytest.raises(ValueError, match="other data or settings"):
        search(path, steeper, steps=2)
    with pytest.raises(ValueError, match="other unknowns or by another method"):
        search(path, Rosenbrock(names=("x", "z")), steps=2)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="is not the saved state of a search, or"):
        search(path, steps=2)
    djdyn.files.write_arrays(path, {"a": np.zeros(3)})
    with pytest.raises(ValueError, match=r"is not the saved state of a search$"):
        search(path, steps=2)
