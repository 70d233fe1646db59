"""Titan 4 under operator inputs: tracking, joint limit, energy and oil balance."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.hydraulics import Triangle
from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractSignalPart, Response, Signals

from ...harness import tables
from ...harness.study import Study
from . import model as titan
from .operator_inputs import STOP, TRACKING, Sticks, sticks


SPAN = 10.0  # s


class OilInflow(AbstractSignalPart):
    """Net volume of oil through the valves, l."""

    def initial_state(self) -> dict[str, Array]:
        return {"litres": jnp.zeros(())}

    def __call__(self, t, state: dict, world: World, signals: Signals) -> Response:
        del t, state, world
        flows = [signals[f"oil.valve{k}.flow_{x}"] for k in range(1, 7) for x in "ab"]
        return Response({"litres": 1e3 * jnp.sum(jnp.stack(flows))})


def runs(sets: dict[str, Any]) -> list[djdyn.Trajectory]:
    """Simulate tracking, and the joint limit with reactions counted once and twice."""

    def lane(held: Sticks, bonds: Array) -> djdyn.Trajectory:
        system = titan.build(bonds=bonds)
        parts = {**system.parts, "drawn": OilInflow()}
        system = djdyn.with_parameters(
            djdyn.System(system.mechanism, parts, system.inputs), sets
        )
        y0 = jax.tree.map(lambda x: x[None], system.initial_state())
        return djdyn.rollout(
            system, SPAN, y0, saveat=np.linspace(0.0, SPAN, 201), solver="rk4",
            dt=5e-4, inputs={"sticks": held}, ledger=True,
        ).lane(0)  # fmt: skip

    held = [sticks(rows) for rows in (TRACKING, STOP, STOP)]
    held = jax.tree.map(lambda *x: jnp.stack(x), *held)
    found = eqx.filter_vmap(lane)(held, jnp.array([0.0, 0.0, 1.0]))
    return [jax.tree.map(lambda x, k=k: x[k], found) for k in range(3)]


# The largest error of each joint over 10 s, rad, in an independent simulation: first of
# the controller as it is, then of others. Pairs are shares of friction and of integral.
BEST = (6.9e-5, 4.8e-4, 2.7e-4, 4.3e-3, 3.2e-3, 2.5e-4)
VARIANTS: dict[str, tuple[tuple[float, float], str, tuple[float, ...]]] = {
    "no_friction": (
        (0.0, 1.0), "desired", (5.4e-4, 5.4e-4, 3.8e-4, 1.6e-2, 1.0e-2, 6.6e-3),
    ),
    "no_friction_no_integral": (
        (0.0, 0.0), "desired", (7.3e-4, 1.7e-3, 5.3e-4, 2.4e-2, 1.3e-2, 7.9e-3),
    ),
    "measured": ((1.0, 1.0), "measured", (3.2e-2, 6.3e-2, 6.0e-2, 1.43, 0.72, 7.7e-2)),
    "measured_no_integral": (
        (1.0, 0.0), "measured", (5.7e-2, 0.36, 1.40, 2.33, 1.35, 0.34),
    ),
}  # fmt: skip


def variant_errors(
    friction_at: Literal["desired", "measured"],
) -> dict[str, np.ndarray]:
    """Return the largest error of each joint, by variant of the controller."""
    names = [name for name, row in VARIANTS.items() if row[1] == friction_at]
    system = titan.build(friction_at=friction_at)
    friction, ki = (
        np.asarray(djdyn.get_parameters(system, f"control.{key}"))
        for key in ("friction", "ki")
    )
    shares = np.array([VARIANTS[name][0] for name in names])
    lanes = jax.tree.map(lambda x: jnp.stack([x] * len(names)), system.initial_state())
    run = djdyn.rollout(
        system, SPAN, lanes, saveat=np.linspace(0.0, SPAN, 1001), solver="rk4", dt=5e-4,
        parameters={
            "control.friction": np.outer(shares[:, 0], friction),
            "control.ki": np.outer(shares[:, 1], ki),
        },
        inputs={"sticks": sticks(TRACKING)},
    )  # fmt: skip
    return dict(zip(names, np.abs(error(run)).max(1), strict=True))


def run_variants(study: Study) -> None:
    """Compare four other ways to treat friction and integral with an independent run.

    Only their order is judged: most of these loops are hardly damped or unstable, and
    largest errors there hang on details such as the step in which a stick moves.
    """
    rows, least = [], np.inf
    for name, found in {
        **variant_errors("desired"),
        **variant_errors("measured"),
    }.items():
        known = VARIANTS[name][2]
        rows += [(name, *row) for row in zip(range(1, 7), found, known, strict=True)]
        least = min(least, np.min(found / np.array(BEST)))
        study.metric(
            f"titan4.variants.{name}", found.max(), unit="rad",
            note=f"largest error of a joint; {max(known):.2g} in an independent run",
        )  # fmt: skip
    study.metric(
        "titan4.variants.least_ratio", least, at_least=1.0,
        note="least error of another controller over that of the one in use",
    )  # fmt: skip
    study.report.table(
        "Largest tracking errors of four other controllers, rad",
        ("controller", "joint", "found", "independent run"), rows,
    )  # fmt: skip


def error(run: djdyn.Trajectory) -> np.ndarray:
    """Return the error of each joint, rad."""
    return np.asarray(run.y.q - run.y.parts["path"]["path"])


def run_tracking(study: Study, run: djdyn.Trajectory) -> None:
    """Compare tracking errors while sticks move one joint after another."""
    rows = tables.read("titan4/ref_tracking.csv")
    group = lambda name: tables.columns(rows, *(f"{name}{i}_rad" for i in range(1, 7)))
    t, known = tables.columns(rows, "t_s")[:, 0], group("q") - group("qd")
    found = error(run)
    ratios = np.abs(found[::2]).max(0) / np.abs(known).max(0)
    study.metric(
        "titan4.tracking.max_error",
        np.abs(found).max(),
        unit="rad",
        note="tracking: largest error of a joint over 10 s",
    )
    study.metric(
        "titan4.tracking.max_error_ratio",
        ratios.max(),
        at_most=1.05,
        note="tracking: largest error over that of an independent run, six joints",
    )
    study.metric(
        "titan4.tracking.max_error_gap",
        np.abs(found[::2] - known).max(),
        at_most=6e-5,
        unit="rad",
        note="tracking: largest difference of errors over 10 s; the reference has "
        "steps of 2 ms",
    )
    study.metric(
        "titan4.tracking.max_state_gap",
        np.abs(np.asarray(run.y.q)[::2] - group("q")).max(),
        at_most=5e-4,
        unit="rad",
        note="tracking: largest difference of joints; sticks move inside steps of the "
        "reference",
    )
    lines = lambda x: {f"joint {i + 1}": x[:, i] for i in range(6)}
    marks = lambda x: {f"joint {i + 1}": (t[::3], x[::3, i]) for i in range(6)}
    time = ("time", "s", run.t)
    study.report.plot(
        "Tracking: joints", time, ("angle", "rad"), lines(np.asarray(run.y.q)),
        marks(group("q")),
    )  # fmt: skip
    study.report.plot(
        "Tracking: errors", time, ("error", "rad"), lines(found), marks(known)
    )
    oil = run.y.parts["oil"]
    bars = np.stack([oil[f"A{k}.bar"] - oil[f"B{k}.bar"] for k in range(1, 7)], 1)
    known = tables.columns(rows, *(f"PL{k}_bar" for k in range(1, 7)))
    study.report.plot(
        "Tracking: load pressures", time, ("pressure", "bar"), lines(bars),
        marks(known),
    )  # fmt: skip
    data = run.to_xarray()
    areas = 1e6 * data["control.u"].values
    study.report.plot("Tracking: valve areas", time, ("area", "mm^2"), lines(areas))
    study.series("tracking", data)


def run_energy_balance(study: Study, run: djdyn.Trajectory) -> None:
    """Report the residuals of energy and oil of the tracking run."""
    assert run.work is not None
    drawn, gap = float(run.work[-1, 0]), djdyn.energy_balance(run.system, run)
    study.metric(
        "titan4.tracking.energy_ledger",
        np.abs(gap).max() / drawn,
        at_most=1e-9,
        note=f"energy residual, over {drawn:.4g} J drawn from the supply",
    )
    oil = run.y.parts["oil"]
    bars = sum(oil[f"{x}{k}.bar"] for k in range(1, 7) for x in "AB")
    taken = (
        1e3 * titan.VOLUME / titan.MODULUS * 1e5 * np.asarray(bars)
    )  # l, by compression
    lever = Triangle("joint2", *titan.TRIANGLE).lever
    length = np.asarray(jax.vmap(lever)(run.y.q[:, 1])[0])
    swept = 1e3 * (titan.AREA_UP - titan.AREA_DOWN) * length
    held, through = taken + swept, np.asarray(run.y.parts["drawn"]["litres"])
    study.metric(
        "titan4.tracking.oil_ledger",
        np.abs((held - held[0]) - through).max() / np.ptp(held),
        at_most=1e-9,
        note=f"oil residual, over {np.ptp(held):.3g} l of exchanged oil",
    )
    study.report.plot(
        "Tracking: energy balance",
        ("time", "s", run.t),
        ("energy", "J"),
        {
            "drawn": run.work[:, 0],
            "lost": run.work[:, 1],
            "stored": run.work[:, 0] - run.work[:, 1] + gap,
        },
    )


def run_stop(study: Study, off: djdyn.Trajectory, on: djdyn.Trajectory) -> None:
    """Compare joint 2 at its limit while joint 3 moves."""
    right, source = error(off), error(on)
    at = lambda run, s: np.abs(run[round(s / SPAN * 200), 1])
    for name, value, known, tolerance, note in (
        (
            "error",
            np.abs(right[:, 1]).max(),
            1.9e-4,
            1e-5,
            "joint 2, reactions counted once",
        ),
        (
            "source_error",
            np.abs(source[:, 1]).max(),
            1.5e-3,
            5e-5,
            "joint 2, reactions counted twice as in the source",
        ),
        (
            "source_error_8s",
            at(source, 8.0),
            5.7e-4,
            1e-5,
            "joint 2 at 8 s, counted twice",
        ),
        (
            "source_error_9s",
            at(source, 9.0),
            2.1e-4,
            1e-5,
            "joint 2 at 9 s, counted twice",
        ),
        (
            "source_joint3",
            np.abs(source[:, 2]).max(),
            1.2e-2,
            5e-4,
            "joint 3, counted twice",
        ),
    ):
        study.metric(
            f"titan4.stop.{name}", value, known, tolerance, unit="rad",
            note=f"joint limit: {note}",
        )  # fmt: skip
    target = np.asarray(off.y.parts["guide"]["target"])[:, 1]
    note = "joint limit: final target of joint 2"
    study.metric("titan4.stop.target", target[-1], 1.3, 1e-5, unit="rad", note=note)
    time = ("time", "s", off.t)
    study.report.plot(
        "Joint 2 at its limit", time, ("angle", "rad"),
        {"joint 2": off.y.q[:, 1], "joint 3": off.y.q[:, 2]},
        {"target of joint 2": target},
    )  # fmt: skip
    study.report.plot(
        "Joint 2 at its limit: error, with reactions counted once and twice",
        time,
        ("error", "mrad"),
        {
            "once": 1e3 * right[:, 1],
            "twice": 1e3 * source[:, 1],
        },
    )
    study.series("stop", off)
