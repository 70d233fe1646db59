"""Roofline: peak arithmetic and bandwidth of the computer, and rollouts below it."""

import time

import jax
import numpy as np

import djdyn
from djdyn.kernels import trace

from ..harness.study import Study
from .problems import Problem
from .timing import Engines, curves


NOT_COUNTED = ("constant", "load", "store", "neg")  # a sign merges with its sum


def peak_operations(size: int = 1500, repeats: int = 20) -> float:
    """Return operations per second of NumPy's matrix product on all cores."""
    a, b = np.random.default_rng(0).normal(size=(2, size, size))
    out, best = np.empty_like(a), np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def bandwidth(size: int = 200_000_000, repeats: int = 6) -> float:
    """Return bytes per second, read and written, of a copy larger than the caches."""
    a, b, best = np.zeros(size // 8), np.ones(size // 8), np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        np.copyto(a, b)
        best = min(best, time.perf_counter() - start)
    return 2 * size / best


def operations(machine: Problem) -> float:
    """Return the arithmetic operations of one evaluation of the equations of motion.

    The same number is used for all engines, so that shares of the peak are comparable.
    """
    system = machine.build()
    y = system.initial_state()
    rate = lambda q, v: system.derivative(0.0, djdyn.State(q, v, y.parts)).v
    graph = trace(jax.make_jaxpr(rate)(y.q, y.v)).graph
    return float(sum(op[0] not in NOT_COUNTED for op in graph.ops))


def draw(
    study: Study, machine: Problem, engines: Engines, rates: dict[str, float]
) -> None:
    """Plot the roofline, and rollouts at the traffic of initial and final states.

    A call of one step moves as much data as a call of many, so its intensity is lowest.
    """
    peak, copy = peak_operations(), bandwidth()
    count, traffic = operations(machine), 2 * 8 * (len(machine.q0) + len(machine.v0))
    least, most = count / traffic, count * engines.steps / traffic
    study.metric(
        "scaling.machine.operations", peak, unit="1/s", note="peak of all cores"
    )
    study.metric("scaling.machine.bandwidth", copy, unit="B/s")
    study.metric(f"scaling.{machine.name}.operations_a_step", count)
    marks = {}
    for key, rate in rates.items():
        tail = "" if key == "djdyn" else f".{key}"
        share = f"scaling.{machine.name}{tail}.share_of_peak"
        study.metric(share, rate * count / peak)
        marks[f"{engines.names[key]}, {machine.name}"] = ([most], [rate * count])
    intensity = np.geomspace(min(0.1, least / 10), most * 10, 60)
    roof = np.minimum(peak, copy * intensity)
    lines = {"roof": (list(intensity), list(roof))}
    lines["one step per call"] = ([least, least], [roof.min(), peak])
    axes = (("operations a byte", "1/B"), ("operations", "1/s"))
    curves(study, "Roofline of this machine", *axes, lines, marks=marks)
