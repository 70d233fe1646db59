"""XLA's threads, which must not wait for each other."""

import subprocess
import sys


SOLVES = """
import djdyn
import jax
import jax.numpy as jnp

@jax.jit
def solved(A, b):
    one = lambda i: jax.scipy.linalg.solve_triangular(A + i, i * b, lower=True)
    return sum(jnp.sum(one(float(i))) for i in range(1, 9))

A, b = jnp.ones((3000, 12, 12)) + 12 * jnp.eye(12), jnp.ones((3000, 12, 1))
for _ in range(200):
    solved(A, b).block_until_ready()
"""


def test_batches_of_solves_at_once_come_to_an_end():
    """With two threads of XLA's they do not."""
    subprocess.run([sys.executable, "-c", SOLVES], check=True, timeout=300)
