"""Launch: crane, line, winch and payload together, on a ship that moves.

The coupled cases of Roy, Steinke and Nicoll, *Ship Mechanical Systems API: Final
Report* (2014), sections 4.4.7, 4.4.8, 4.4.11, 4.4.12 and 4.5.4; then a payload lowered
by 10 m from a deck that heaves, rolls and pitches, with and without heave compensation.
"""

import numpy as np

import djdyn
from djdyn.view import Scene

from ...harness.study import Study
from .landing import run_landing
from .model import DENSITY, GRAVITY, LIGHT_LINE, SPAN, arm, circling, cone, drift, ship
from .runs import simulate


TITLE = "Launch: crane, line, winch and payload"
STAGES = 5
LOWERED = 10.0  # m
SCENE = "Lowering by 10 m from a moving deck"


def build() -> djdyn.System:
    """Return the crane that lowers a payload with heave compensation."""
    inertia = (50.0, 50.0, 20.0)
    return ship(
        motion=1.0,
        mass=300.0,
        inertia=inertia,
        density=DENSITY,
        length=8.0,
        lower=LOWERED,
        compensation=1.0,
    )


def run_static(study: Study) -> None:
    """Compare a hanging payload with its static position (section 4.4.7)."""
    system, span = arm(0.0, 0.0, DENSITY), 5.0 if study.quick else 30.0
    y0 = djdyn.equilibrium(system)
    _, seen = simulate(study, "static", system, y0, 981.0, span)
    stretch = (5 * 20 + DENSITY * 200) * GRAVITY / 8e5
    study.metric(
        "launch.static.position_error",
        np.max(np.abs(seen["p"][:, 2] - [0.0, 0.0, -21.0 - stretch])),
        at_most=1e-6,
        unit="m",
        note=f"largest error in {span:g} s; reference: 21 m and the static stretch",
    )
    study.metric("launch.static.height", seen["p"][-1, 2, 2], -21.0016, 1e-5, unit="m")


def run_centripetal(study: Study) -> None:
    """Compare the force on a circling payload at two rates (section 4.4.8)."""
    pulls, span = {}, 12.0 if study.quick else SPAN
    for name, rate in (("centripetal", 0.35), ("slow_centripetal", 0.014712)):
        system = arm(100.0, rate, LIGHT_LINE)
        y0 = circling(system, 100.0, rate)
        moved = 5 * (100 * rate) ** 2 / 2
        run, seen = simulate(study, name, system, y0, moved, span)
        t, p, pull = np.asarray(run.t), seen["p"][:, 2], seen["pull"]
        late = t >= span - 10
        radius = np.hypot(p[:, 0], p[:, 1])
        inwards = -np.sum(p[:, :2] * pull[:, :2], 1) / radius
        found, wanted = inwards[late].mean(), 5 * radius[late].mean() * rate**2
        study.metric(
            f"launch.{name}.force_error",
            found / wanted - 1,
            0.0,
            2e-3,
            note="mean centripetal force over the last 10 s, over m r w^2, less 1",
        )
        angle, total = cone(100.0, rate)
        across = total * np.sin(angle)
        study.metric(
            f"launch.{name}.force",
            found,
            across,
            2e-3 * across,
            unit="N",
            note="conical pendulum",
        )
        tension = np.linalg.norm(pull, axis=1)
        study.metric(
            f"launch.{name}.tension",
            tension[late].mean(),
            total,
            2e-3 * total,
            unit="N",
            note="mean tension; reference: conical pendulum",
        )
        pulls[f"{rate:g} rad/s"] = inwards
        if study.quick:
            break
    study.report.plot(
        "Circling payload: centripetal force of the line",
        ("time", "s", t),
        ("force", "N"),
        pulls,
    )


def run_voyage(study: Study) -> None:
    """Compare a payload on a ship moving at 1 m/s, initially moving or at rest.

    Roy, Steinke and Nicoll 2014, sections 4.4.11 and 4.4.12.
    """
    places = {}
    for name, with_it, slope, tolerance in (
        ("together", True, 1.0, 1e-4),
        ("left_behind", False, 1.00142, 5e-4),
    ):
        system = ship(velocity=1.0)
        y0 = drift(djdyn.equilibrium(system), 1.0, with_it)
        run, seen = simulate(study, name, system, y0, 2.5)
        t, x = np.asarray(run.t), seen["p"][:, 3, 0]
        study.metric(
            f"launch.{name}.slope",
            np.polyfit(t, x, 1)[0],
            slope,
            tolerance,
            unit="m/s",
            note="mean velocity of the payload over 80 s, by least squares",
        )
        places[name.replace("_", " ")] = x - t
        if not with_it:
            study.metric(
                "launch.left_behind.lag",
                np.max(np.abs(x - t)),
                1.4618,
                0.05,
                unit="m",
                note="largest distance; reference: slower of two pendulum modes",
            )
    study.report.plot(
        "Moving ship: position of the payload relative to the crane's tip",
        ("time", "s", t),
        ("relative position", "m"),
        places,
    )


def run_lowering(study: Study) -> None:
    """Lower a payload by 10 m from a moving deck."""
    heights, tensions, left = {}, {}, {}
    system, span = study.customise(build()), 50.0 if study.quick else SPAN
    off = djdyn.with_parameters(system, {"felt.share": 0.0, "hoist.kp": 0.0})
    for name, here in (("compensated", system), ("uncompensated", off)):
        y0 = djdyn.equilibrium(here)
        run, seen = simulate(study, name, here, y0, 300 * GRAVITY * LOWERED, span)
        t, height = np.asarray(run.t), np.asarray(run.signal("load.height"))
        wanted = np.asarray(run.signal("order.value"))[:, 0]
        heights[name], left[name] = height, np.std((height - wanted)[t > 10])
        tensions[name] = np.asarray(run.signal("line.head_tension"))
        if name == "compensated":
            study.metric(
                "launch.lowered",
                height[0] - height[-1],
                LOWERED + height[0] - wanted[0],
                0.1,
                unit="m",
                note="lowered distance; reference: set point",
            )
            study.report.scene(scene(t, seen), SCENE)
        if study.quick:
            break
    if not study.quick:
        study.metric(
            "launch.residual_heave_ratio",
            left["compensated"] / left["uncompensated"],
            at_most=0.03,
            note="rms motion of the payload with heave compensation over that without",
        )
    time = ("time", "s", t)
    study.report.plot(
        "Lowering: height of the payload",
        time,
        ("height", "m"),
        heights,
        {"set point": wanted},
    )
    study.report.plot("Lowering: tension", time, ("tension", "N"), tensions)


def scene(t: np.ndarray, seen: dict[str, np.ndarray]) -> Scene:
    """Return the replay of crane, line and payload."""
    replay = Scene(t)
    R, p = seen["R"], seen["p"]
    for row, name, size, centre, opacity in (
        (1, "deck", (7.0, 5.0, 0.4), (-5.0, 0.0, -1.6), 1.0),
        (1, "column", (0.7, 0.7, 1.4), (-2.0, 0.0, -0.7), 0.6),
        (2, "boom", (2.0, 0.4, 0.4), (1.0, 0.0, 0.0), 1.0),
        (3, "payload", (0.8, 0.8, 2.0), (0.0, 0.0, 0.0), 1.0),
    ):
        offset = np.eye(3), np.array(centre)
        replay.box(name, size, R[:, row], p[:, row], offset=offset, opacity=opacity)
    replay.polyline("line", seen["line"], size=0.06)
    replay.arrow("pull on the payload", p[:, 3], seen["pull"], unit="N")
    return replay


def run(study: Study) -> None:
    """Run the coupled cases and the lowering from a moving deck."""
    study.report.text(
        "The coupled cases of Roy, Steinke and Nicoll, Ship Mechanical Systems API: "
        "Final Report (2014), and the lowering of a payload from a moving deck. The "
        "circling payload starts on the cone on which it follows the arm. On the "
        "moving ship, the line hangs from the end of the boom, not 0.5 m from it. The "
        "references have no mass in the line, and neither have these runs, except for "
        "the hanging payload and the lowering."
    )
    quick = (
        ("hanging payload", run_static),
        ("circling payload", run_centripetal),
        ("lowering from a moving deck", run_lowering),
    )
    slow = (("moving ship", run_voyage), ("landing on a bed", run_landing))
    study.run_cases(quick, slow)
    study.answer(summary(study.metrics), SCENE)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"launch.{name}"]
    said = (
        "A payload circling on 100 m of line pulls inwards with "
        f"{of('centripetal.force'):.1f} N, "
        f"{abs(of('centripetal.force_error')):.2%} from m r ω². From a deck that "
        "heaves, rolls and pitches, a payload of 300 kg is lowered by "
        f"{of('lowered'):.2f} m"
    )
    if "launch.residual_heave_ratio" not in found:
        return f"{said}."
    return (
        f"{said}; heave compensation leaves {of('residual_heave_ratio'):.1%} of its "
        "motion. Without it on the ship at first, a payload lags by at most "
        f"{of('left_behind.lag'):.2f} m behind a ship that moves at 1 m/s."
    )
