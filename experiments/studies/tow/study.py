"""Tow: a body on 300 m of line in a current, its steady shape and depth control."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn

from ...harness.study import Study
from .model import (
    LENGTH,
    NORMAL,
    SPEED,
    build as build,
    critical_angle,
    matching_area,
    shape,
    straight,
    top_tension,
)


TITLE = "Tow: a body on a long line"
STAGES = 4
SHAPE_PLOT = "Steady shape: the straight line, and a body of more and of less drag"
DEPTH_PLOT = "Depth control in waves: height of the body"


def angle() -> float:
    """Return the critical angle at the speed of the study, rad."""
    return float(critical_angle(jnp.asarray(SPEED), jnp.asarray(NORMAL)))


def places(y: djdyn.State) -> np.ndarray:
    """Return the nodes of the line from the body up, without its upper end."""
    return np.concatenate([np.asarray(y.q)[None], np.asarray(y.parts["line"]["r"])])


def run_straight(study: Study) -> None:
    """Compare angle and tension of the straight line with the closed form."""
    system, phi = build(), angle()
    y = djdyn.equilibrium(system, straight(system, phi))
    nodes = np.concatenate([places(y), [[0.0, 0.0, -1.0]]])
    rise = np.diff(nodes, axis=0)
    angles = np.arctan2(rise[:, 2], rise[:, 0])
    study.metric(
        "tow.angle_error_deg",
        np.abs(np.rad2deg(angles - phi)).max(),
        at_most=0.05,
        unit="deg",
        note=f"largest error of an element's angle; closed form {np.rad2deg(phi):.3f}",
    )
    tension = system.at(0.0, y).signals["line.head_tension"]
    study.metric(
        "tow.tension_error",
        abs(float(tension) / top_tension(phi) - 1),
        at_most=1e-3,
        note=f"relative error of the tension at the ship, {top_tension(phi):.1f} N",
    )


def run_curved(study: Study) -> None:
    """Compare the place of bodies of other drag with the line's equations."""
    worst, tense, lines = 0.0, 0.0, {}
    for name, share in (("straight", 1.0), ("half the drag", 0.5), ("twice", 2.0)):
        area = share * matching_area()
        system = build(area)
        y = djdyn.equilibrium(system, straight(system, angle()))
        place, tension = shape(area)
        found = np.asarray(y.q)[[0, 2]] + [0.0, 1.0]
        worst = max(worst, np.linalg.norm(found - place))
        head = float(system.at(0.0, y).signals["line.head_tension"])
        tense = max(tense, abs(head / tension - 1))
        nodes = np.concatenate([places(y), [[0.0, 0.0, -1.0]]])
        grid = np.linspace(nodes[0, 0], 0.0, 60)
        lines[name] = (grid, np.interp(grid, nodes[:, 0], nodes[:, 2]))
    study.metric(
        "tow.place_error", worst, at_most=0.02 * LENGTH / 100, unit="m",
        note="largest error of the body's place, three drags, against the differential "
        "equations of the line",
    )  # fmt: skip
    study.metric("tow.curved_tension_error", tense, at_most=1e-3)
    first = lines.pop("straight")
    study.report.plot(
        SHAPE_PLOT, ("distance behind the ship", "m", first[0]), ("height", "m"),
        {"straight": first[1]}, lines,
    )  # fmt: skip


def run_gradients(study: Study) -> None:
    """Compare derivatives of the angle with those of the closed form."""
    system, phi = build(), angle()
    y0, area = straight(system, phi), matching_area()

    @eqx.filter_jit
    def found(x: Array) -> Array:
        """The angle from the body's end to the ship, by speed and drag."""
        flow = jnp.array([[-1.0, 0.0, 0.0]]) * x[0]
        pull = area * SPEED**2 / x[0] ** 2
        angle = critical_angle(x[0], x[1])
        matching = pull * jnp.tan(phi) / jnp.tan(angle)
        moved = djdyn.with_parameters(
            system,
            {"line.fluid.currents": flow, "drag.fluid.currents": flow,
             "line.rope.normal_drag": x[1], "drag.area": matching},
        )  # fmt: skip
        y = djdyn.equilibrium(moved, y0)
        return jnp.arctan2(-1.0 - y.q[2], -y.q[0])

    x = jnp.array([SPEED, NORMAL])
    exact = jax.grad(lambda x: critical_angle(x[0], x[1]))(x)
    slopes = jax.jit(jax.grad(found))(x)
    for name, ours, theirs in zip(("speed", "drag"), slopes, exact, strict=True):
        study.metric(
            f"tow.gradient_{name}_error",
            abs(float(ours / theirs) - 1),
            at_most=1e-3,
            note=f"derivative of the angle by {name}, {float(theirs):.4g} in closed "
            "form, relative",
        )


def run_depth(study: Study) -> None:
    """Hold and change the depth of the body by the winch, in waves."""
    still, phi = build(), angle()
    y0 = djdyn.equilibrium(still, straight(still, phi))
    system = build(controlled=True)
    line = system.initial_state().parts["line"] | {
        "r": y0.parts["line"]["r"], "v": y0.parts["line"]["v"]
    }  # fmt: skip
    start = system.initial_state(y0.q, parts={"line": line})
    height, span = float(y0.q[2]), 60.0
    times = np.linspace(0.0, span, 241)
    wanted = djdyn.Interpolated([0.0, 10.0, 12.0], [height, height, height - 5.0])
    errors, heights = {}, {}
    for name, limit in (("locked winch", 1e-6), ("winch", 1.5)):
        moved = djdyn.with_parameters(system, {"pid.limit": limit})
        run = djdyn.simulate(
            moved, span, start, saveat=times, solver="ros2", dt=0.02,
            inputs={"wanted": wanted},
        )  # fmt: skip
        heights[name] = np.asarray(run.y.q[:, 2])
        asked = np.asarray(jax.vmap(wanted)(jnp.asarray(times)))
        last = times > 40.0
        errors[name] = float(np.abs((heights[name] - asked)[last].mean()))
    study.metric(
        "tow.depth_error", errors["winch"], at_most=0.2, unit="m",
        note="mean error of the depth in the last third, after a change of 5 m in a "
        "sea of 2 m",
    )  # fmt: skip
    study.report.plot(
        DEPTH_PLOT, ("time", "s", times), ("height", "m"), heights,
        {"wanted": (times, asked)},
    )  # fmt: skip


def run(study: Study) -> None:
    """Run all cases; a quick run leaves out the depth control."""
    study.report.text(
        "A body of 1500 N is towed at 2 m/s on 300 m of line. Ship and body stand, and "
        "the water flows. Where the body pulls at the critical angle the line is "
        "straight, and its angle and tension are known in closed form."
    )
    study.run_cases(
        (
            ("straight line", run_straight),
            ("curved lines", run_curved),
            ("gradients", run_gradients),
        ),
        (("depth control", run_depth),),
    )
    study.answer(summary(study.metrics), SHAPE_PLOT)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"tow.{name}"]
    said = (
        f"The straight line is off by {of('angle_error_deg'):.1g} degrees and its "
        f"tension by {of('tension_error'):.1g}; bodies of half and twice the drag are "
        f"within {100 * of('place_error'):.1f} cm of where the line's equations put "
        "them. Derivatives of the angle by speed and drag agree with the closed form "
        f"to {max(of('gradient_speed_error'), of('gradient_drag_error')):.1g}. "
    )
    if "tow.depth_error" in found:
        said += (
            "After a change by 5 m in waves the winch holds the depth to "
            f"{100 * of('depth_error'):.0f} cm on average."
        )
    return said
