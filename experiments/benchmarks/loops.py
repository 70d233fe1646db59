"""Speed of batches with closed loops, beside MuJoCo and Exudyn at equal error.

A four-bar, a row of four of them and Andrews' squeezer, each from one start in many
lanes. Errors are those of the first coordinate beside a run at a tolerance of 1e-11.
MuJoCo closes loops by soft connect constraints; its steps are the coarsest that keep
the error asked for, or the best that it reaches, and djdyn's are the coarsest at least
as good.
"""

import importlib.util
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn

from ..harness.exudyn_planar import run_planar
from ..harness.study import Study
from ..studies.loops import planar
from ..studies.loops.comparison import CRANK_START, exudyn_model, four_bar
from .engines.mujoco import threaded
from .timing import fastest


TITLE = "Closed loops: batches, gradients, MuJoCo and Exudyn"
STAGES = 3
OPTIONS = {"rounds": 3, "batch": 1024, "error": 1e-4}
FINEST = 10  # halvings of the first step


class Machine(NamedTuple):
    """A machine with loops, its start, span and first step (s), and its motor."""

    system: djdyn.System
    start: djdyn.State
    span: float
    step: float
    moment: float = 0.0


def machines() -> dict[str, Machine]:
    """Return the machines by name."""
    one = djdyn.System(four_bar())
    row = planar.four_bars(4)
    squeezer = planar.andrews()
    return {
        "four_bar": Machine(
            one, one.initial_state(q={"crank": CRANK_START}), 1.0, 1 / 16
        ),
        "four_bars_4": Machine(djdyn.System(row), planar.standing(row), 1.0, 1 / 16),
        "andrews": Machine(
            squeezer,
            squeezer.initial_state(q=planar.ANDREWS_START),
            0.015,
            0.015 / 16,
            moment=0.033,
        ),
    }


@eqx.filter_jit
def ends(system: djdyn.System, y0: djdyn.State, span: float, dt: float) -> Array:
    """Return the first coordinate of every lane at the end."""
    how: dict[str, Any] = {"solver": "rk4", "dt": dt, "saveat": [0.0, span]}
    return djdyn.rollout(system, span, y0, **how).y.q[:, -1, 0]


@eqx.filter_jit
def slopes(system: djdyn.System, y0: djdyn.State, span: float, dt: float) -> Array:
    """Return derivatives of all ends to their initial speeds."""
    at = lambda v: eqx.tree_at(lambda y: y.v, y0, v)
    return jax.grad(lambda v: jnp.sum(ends(system, at(v), span, dt) ** 2))(y0.v)


def lanes(y0: djdyn.State, batch: int) -> djdyn.State:
    """Return the same start in many lanes."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), y0)


def coarsest(
    error: Callable[[float], float], span: float, step: float, wanted: float
) -> tuple[float, float]:
    """Return the longest halved step whose error is at most `wanted`, and its error.

    The best one, if none is.
    """
    best = (np.inf, step)
    for _ in range(FINEST):
        found = error(step)
        best = min(best, (found, step))
        if found <= wanted:
            break
        step /= 2
    return best[1], best[0]


def run(study: Study) -> None:
    """Time all machines."""
    rounds, batch = int(study.options["rounds"]), int(study.options["batch"])
    batch = 16 if study.quick else batch
    cores = len(os.sched_getaffinity(0))
    study.report.text(
        f"Best of {rounds} runs of {batch} lanes, double precision, {cores} cores. "
        "Times do not include compilation."
    )
    for name, machine in machines().items():
        with study.stage(name):
            compare(study, name, machine, batch, rounds)


def compare(study: Study, name: str, machine: Machine, batch: int, rounds: int) -> None:
    """Time one machine in djdyn, MuJoCo and, where it is planar bars, Exudyn."""
    system, y0, span, step, _ = machine
    tight = {"rtol": 1e-11, "atol": 1e-11, "saveat": 2, "max_steps": 50_000}
    true = float(djdyn.simulate(system, span, y0, **tight).y.q[-1, 0])
    wanted = float(study.options["error"])
    model = mujoco_model(machine)
    theirs: tuple[float, float] | None = None
    if model is not None:
        off = lambda dt: abs(mujoco_end(model, y0, span, dt) - true)
        theirs = coarsest(off, span, step / 4, wanted)
    wanted = min(wanted, theirs[1]) if theirs else wanted
    many, pair = lanes(y0, batch), lanes(y0, 2)
    off = lambda dt: abs(float(ends(system, pair, span, dt)[0]) - true)
    dt, error = coarsest(off, span, step, max(wanted, 1e-12))
    taken = fastest(lambda: ends(system, many, span, dt), rounds)
    rate, stem = batch * round(span / dt) / taken, f"loops.{name}"
    study.metric(f"{stem}.steps_per_s", rate, note=f"RK4, {1e3 * dt:.3g} ms")
    study.metric(f"{stem}.error", error, unit="rad")
    again = fastest(lambda: slopes(system, many, span, dt), rounds)
    study.metric(f"{stem}.gradient_ratio", again / taken, at_most=5.0)
    rows = [("djdyn, kernels", 1e3 * dt, error, taken)]
    if theirs:
        call = mujoco_batch(model, y0, span, theirs[0], batch)
        slow = fastest(call, rounds)
        rows.append(("MuJoCo, connect", 1e3 * theirs[0], theirs[1], slow))
        study.metric(f"{stem}.vs_mujoco", slow / taken, note="at djdyn's error or more")
    if name == "four_bars_4":
        rows.append(exudyn_row(machine, batch, wanted))
        study.metric(f"{stem}.vs_exudyn", rows[-1][-1] / taken, note="on every core")
    head = ("engine", "step (ms)", "error (rad)", f"time of {batch} lanes (s)")
    study.report.table(name, head, rows)


def exudyn_row(machine: Machine, batch: int, wanted: float) -> tuple:
    """Return Exudyn's coarsest step, its error, and its time on all cores."""
    bodies, joints = exudyn_model(4)
    span, cores = machine.span, len(os.sched_getaffinity(0))
    go = lambda dt: run_planar(bodies, joints, span, round(span / dt), -9.81)
    tight = {"rtol": 1e-11, "atol": 1e-11, "saveat": 2}
    run = djdyn.simulate(machine.system, span, machine.start, **tight)
    x = float(np.cos(run.y.q[-1, 0]))
    dt, error = coarsest(lambda dt: abs(go(dt)[0][0] - x), span, 1 / 256, wanted)
    return "Exudyn", 1e3 * dt, error, go(dt)[1] * batch / cores


# MuJoCo -------------------------------------------------------------------------------


def mujoco_model(machine: Machine) -> str | None:
    """Return the machine as MJCF without its step; None if MuJoCo is not installed."""
    if importlib.util.find_spec("mujoco") is None:
        return None
    mechanism, moment = machine.system.mechanism, machine.moment
    numbers = lambda x: " ".join(f"{v:.17g}" for v in np.ravel(x))
    places: dict[str, list[str]] = {}
    for frame in mechanism.frames:
        site = f'<site name="{frame.name}" pos="{numbers(frame.X_BF.p)}"/>'
        places.setdefault(frame.body, []).append(site)

    def tree(parent: str) -> str:
        text = "".join(places.get(parent, []))
        for body in mechanism.bodies:
            if body.parent == parent:
                I = float(body.I_BC[2, 2]) or float(body.I_BC[1, 1])
                axis: Any = body.joint
                text += (
                    f'<body name="{body.name}" pos="{numbers(body.X_PJ.p)}">'
                    f'<joint name="{body.name}" axis="{numbers(axis.axis)}"/>'
                    f'<inertial pos="{numbers(body.p_BC)}" mass="{float(body.mass)}" '
                    f'diaginertia="{I} {I} {I}"/>{tree(body.name)}</body>'
                )
        return text

    loops: Any = mechanism.loops
    ties = "".join(
        f'<connect site1="{loop.parent}" site2="{loop.child}" solref="SOLREF 1" '
        'solimp="0.9999 0.9999 0.001"/>'
        for loop in loops
    )
    driven = ""
    if moment:
        driven = (
            '<tendon><spatial stiffness="4530" springlength="0.07785">'
            '<site site="spring_base"/><site site="spring_end"/></spatial></tendon>'
            '<actuator><motor joint="crank"/></actuator>'
        )
    return (
        f'<mujoco><compiler angle="radian" boundmass="1e-12" boundinertia="1e-12"/>'
        f'<option timestep="STEP" integrator="RK4" iterations="100" tolerance="1e-14" '
        f'gravity="{numbers(mechanism.gravity_W)}"/><worldbody>{tree("world")}'
        f"</worldbody><equality>{ties}</equality>{driven}</mujoco>"
    )


def mujoco_batch(
    model: str | None, y0: djdyn.State, span: float, dt: float, batch: int
) -> Callable[[], np.ndarray]:
    """Return a threaded rollout of the machine in many lanes."""
    mujoco: Any = importlib.import_module("mujoco")
    mujoco.set_mju_user_warning(lambda message: None)  # steps too coarse diverge
    text = (
        (model or "").replace("STEP", f"{dt:.17g}").replace("SOLREF", f"{2 * dt:.17g}")
    )
    compiled = mujoco.MjModel.from_xml_string(text)
    start = np.tile(np.concatenate([y0.q, y0.v]), (batch, 1))
    steps = round(span / dt)
    control = np.full((batch, steps, compiled.nu), 0.033) if compiled.nu else None
    return threaded(compiled, start, steps, control)


def mujoco_end(model: str, y0: djdyn.State, span: float, dt: float) -> float:
    """Return the first coordinate at the end of one run."""
    return float(mujoco_batch(model, y0, span, dt, 1)()[0, -1, 0])
