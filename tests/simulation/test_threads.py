"""Threads and processes: XLA's own, and those of a user."""

import subprocess
import sys

import pytest


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


MACHINE = """
import os, sys
import jax
import jax.numpy as jnp
import djdyn

jax.config.update("jax_enable_x64", True)
rod = djdyn.Body("rod", "world", djdyn.Revolute((0, 1, 0)), 1.0, (0, 0, -1.0))

def build():
    return djdyn.System(djdyn.Mechanism((rod,)))
"""

FORK = """
system = build()
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for ask in (build, lambda: djdyn.simulate(system, 1.0)):
    try:
        ask()
    except RuntimeError as error:
        assert "forked from one in which JAX runs" in str(error)
    else:
        os._exit(1)
os._exit(0)
"""

THREADS = """
from concurrent.futures import ThreadPoolExecutor

def work(_):
    system = build()
    y = system.initial_state(q={"rod": 1.0})

    def end(mass):
        heavy = djdyn.with_parameters(system, {"rod.p_BC": jnp.array([0, 0, -mass])})
        return djdyn.simulate(heavy, 1.0, y, solver="rk4", dt=0.05).y.q[-1, 0]

    masses = {"rod.mass": jnp.linspace(1.0, 2.0, 8)}
    runs = djdyn.rollout(system, 1.0, y, parameters=masses, solver="rk4", dt=0.05)
    return [float(x) for x in (end(1.0), jax.grad(end)(1.0), runs.y.q[0, -1, 0])]

with ThreadPoolExecutor(6) as pool:
    found = list(pool.map(work, range(6)))
assert all(x == found[0] for x in found), found
"""


@pytest.mark.parametrize("script", [FORK, THREADS], ids=["fork", "threads"])
def test_results_or_a_sentence(script):
    """From six threads at once, and in a process that was forked."""
    ask = [sys.executable, "-W", "ignore", "-c", MACHINE + script]
    subprocess.run(ask, check=True, timeout=300)
