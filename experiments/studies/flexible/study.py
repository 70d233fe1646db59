"""Flexible bodies: reduced models, rotation, large deflections, identification.

Every number stands beside one that somebody else worked out.
"""

import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.multibody.flexible import Beam, FlexibleBody, Piece, Rectangle
from djdyn.view.machine import draw

from ...harness.study import Study
from . import boom, chains, crank, reduced, rotation


TITLE = "Flexible bodies: beams in the floating frame of reference"
STAGES = 8
LAG = "Tip of the beam that is spun up, behind its hub"
BODIES = {"princeton": 8, "thick": 16}


def reduction(study: Study) -> None:
    """Compare reduced models and a hinged boom with published digits."""
    rows = [*reduced.chain_rows(), *reduced.boom_rows(), *reduced.hinged_rows()]
    units = [abs(found - value) / digit for _, found, value, digit in rows]
    study.metric(
        "flexible.reduction.max_error", max(units), at_most=0.51,
        note=f"of {len(rows)} numbers, in units of the last published digit",
    )  # fmt: skip
    first = next(x for x in rows if x[0].startswith("hinged boom, 4 clamped modes, 1"))
    study.metric(
        "flexible.hinged_boom", first[1], 88.9535, 2e-3, unit="Hz",
        note="pinned–free bending by four clamped–free modes behind a hinge",
    )  # fmt: skip
    study.report.table(
        "Reduced models", ("model", "found", "published", "off, in last digits"),
        [(name, f"{found:.8g}", f"{value:.8g}", f"{unit:.2f}")
         for (name, found, value, _), unit in zip(rows, units, strict=True)],
    )  # fmt: skip


def spun_up(study: Study) -> None:
    """Spin a beam up, and look at its lag and its stretch."""
    run = rotation.spin_up()
    behind = rotation.lag(run)
    peak = int(np.argmin(behind))
    study.metric(
        "flexible.spin_up.peak_error", abs(behind[peak] / rotation.PEAK - 1),
        at_most=0.01, note=f"peak {behind[peak]:.6f} m at {float(run.t[peak]):.2f} s",
    )  # fmt: skip
    found = rotation.stretch(run)
    study.metric(
        "flexible.spin_up.stretch_error", abs(found / rotation.STRETCH - 1),
        at_most=1e-3, note=f"mean stretch {found:.7g} m after the rise, tan(aL)/a − L",
    )  # fmt: skip
    study.report.plot(
        LAG, ("time", "s", np.asarray(run.t)), ("deflection", "m"), {"tip": behind}
    )
    scene = draw(run)
    scene.ground = -0.5  # m, below the plane of rotation
    study.report.scene(scene, "The beam that is spun up")


def blades(study: Study) -> None:
    """Compare frequencies of rotating beams with published ones."""
    scale = np.sqrt(rotation.EI / rotation.DENSITY / rotation.LENGTH**4)
    speeds = list(rotation.BLADES)
    found = rotation.frequencies("xz", [x * scale for x in speeds], 2)[:, :2] / scale
    wanted = np.array(list(rotation.BLADES.values()))
    study.metric(
        "flexible.blade.error", np.max(np.abs(found / wanted - 1)), at_most=1e-3,
        note="frequencies across the plane of rotation, six modes, up to 12 times the "
        "speed unit",
    )  # fmt: skip
    inside = rotation.frequencies("xy", [rotation.SPEED], 2)[0]
    off = np.max(np.abs(inside / np.array(rotation.AT_SPEED) - 1))
    study.metric(
        "flexible.blade.in_plane_error", off, at_most=2e-4,
        note="of the beam that is spun up, at 6 rad/s, printed to four or five digits",
    )  # fmt: skip
    study.report.table(
        "Rotating blades, frequencies over sqrt(EI/ρAL⁴)",
        ("speed", "first", "published", "second", "published"),
        [(f"{s:g}", f"{a:.5f}", f"{p:.5f}", f"{b:.4f}", f"{r:.4f}")
         for s, (a, b), (p, r) in zip(speeds, found, wanted, strict=True)],
    )  # fmt: skip


def slider_crank(study: Study) -> None:
    """Run the slider-crank of the test set."""
    run = crank.simulate(2e-5)
    off = crank.errors(run)
    study.metric(
        "flexible.slider_crank.error", max(off.values()), at_most=1e-5,
        note="at 0.1 s: angle (rad), slider (m), and deformation relative to its "
        "largest entry",
    )  # fmt: skip
    bent = np.asarray(run.q("rod.modes"))
    study.report.plot(
        "Deformation of the connecting rod",
        ("time", "ms", 1e3 * np.asarray(run.t)),
        ("modal coordinate", "µm"),
        {
            name: 1e6 * bent[:, i]
            for i, name in enumerate(("first sine", "second sine"))
        },
    )


def large(study: Study) -> None:
    """Bend the Princeton beam and a thick cantilever far."""
    bodies = 4 if study.quick else BODIES["princeton"]
    worst, rows = chains.princeton_errors(bodies)
    study.metric(
        "flexible.princeton.error", 100 * worst, at_most=None if study.quick else 0.5,
        unit="%", note=f"of the tip's deflection, chain of {bodies} bodies",
    )  # fmt: skip
    study.report.table(
        "Princeton beam: tip by beam elements of a commercial code, and by a chain",
        ("load (N)", "angle (°)", "y (mm)", "found", "z (mm)", "found", "off (%)"),
        [tuple(f"{x:.4g}" if abs(x) > 1e-9 else "0" for x in row) for row in rows],
    )


def thick(study: Study) -> None:
    """Bend a thick cantilever to a third of its length."""
    mechanism = chains.thick_cantilever(BODIES["thick"])
    tip = chains.bent(mechanism, [np.array([0.0, chains.THICK_LOAD, 0.0])])[0]
    found = np.array([2.0 - tip[0], tip[1]])
    off = np.abs(found / np.array(chains.THICK_TIP) - 1)
    study.metric(
        "flexible.thick_cantilever.error", 100 * off.max(), at_most=0.5, unit="%",
        note=f"tip at {found[0]:.5f}, {found[1]:.5f} m, chain of {BODIES['thick']}",
    )  # fmt: skip


def gradients(study: Study) -> None:
    """Compare derivatives of a tip's deflection with differences, in both modes."""
    scales = jnp.array([2e8, 0.05, 0.1])

    def deflection(x):
        E, height, damping = scales * x
        beam = Beam((Piece(1.0, Rectangle(0.05, height), elements=3),), E, 8e7, 1000.0)
        body = FlexibleBody(
            "b", "world", djdyn.Revolute((0, 1, 0)), beam, {"xz": 0}, damping=damping
        )
        system = djdyn.System(djdyn.Mechanism((body,)))
        y0 = jax.tree.map(lambda x: x[None], system.initial_state())
        run = djdyn.rollout(system, 0.05, y0, solver="rk4", dt=5e-4, saveat=[0.05])
        return djdyn.frame_pose(system.mechanism, run.y.q[0, 0], "b.tip").p[2]

    at = jnp.ones(3)
    value = jax.jit(deflection)
    reverse, forward = (
        jax.jit(jax.grad(deflection))(at),
        jax.jit(jax.jacfwd(deflection)),
    )
    steps = 1e-4 * np.eye(3)
    near = np.array([(value(at + h) - value(at - h)) / 2e-4 for h in steps])
    # Third derivatives go with the square of the step: two steps take them out.
    far = np.array([(value(at + 2 * h) - value(at - 2 * h)) / 4e-4 for h in steps])
    wanted = (4 * near - far) / 3
    off = [np.max(np.abs(g - wanted) / np.abs(wanted)) for g in (reverse, forward(at))]
    study.metric(
        "flexible.gradient_error", max(off), at_most=1e-6,
        note="of a tip's height by Young's modulus, section height and damping",
    )  # fmt: skip


def identified(study: Study) -> None:
    """Identify a boom's modulus and damping from noisy markers."""
    values = boom.record(boom.build(3))
    found = boom.identify(values)
    true = {"boom.model.E": boom.E, "boom.damping": boom.DAMPING}
    z = []
    for name, value in found.values.items():
        deviation = float(found.deviations[name])
        z.append(abs(float(value) - true[name]) / deviation)
        study.metric(
            f"flexible.identified.{name.rsplit('.', 1)[-1]}", value, true[name],
            1.96 * deviation, note=f"± {1.96 * deviation:.3g}, 95 %",
        )  # fmt: skip
    study.metric(
        "flexible.identified.max_z", max(z), at_most=2.5,
        note="distance to the truth in standard errors",
    )  # fmt: skip
    model = np.asarray(jax.jit(lambda m: boom.markers(m, boom.TIMES))(found.model))
    study.report.plot(
        "Marker at the tip of the boom, and the identified model",
        ("time", "s", boom.TIMES), ("height", "mm"),
        {"model": 1e3 * (model[:, 1] - 0.15)}, {"record": 1e3 * (values[:, 1] - 0.15)},
    )  # fmt: skip


def run(study: Study) -> None:
    """Run all cases and say what they show."""
    study.run_cases(
        (
            ("reduction", reduction),
            ("rotating blades", blades),
            ("slider-crank", slider_crank),
            ("spin-up", spun_up),
            ("Princeton beam", large),
            ("identification", identified),
        ),
        (("thick cantilever", thick), ("gradients", gradients)),
    )
    of = lambda name: study.metrics[f"flexible.{name}"]
    study.answer(
        "A beam on a hinge has its frequencies by clamped modes. One that is spun up "
        f"lags as published to {100 * of('spin_up.peak_error'):.2g} % and stretches to "
        f"{of('spin_up.stretch_error'):.1g} of the closed form, because what bending "
        "takes from its length is part of its kinematics. A chain of bodies bends as "
        f"far as a nonlinear beam, to {of('princeton.error'):.2g} %. A boom's modulus "
        "and damping are found from its markers within "
        f"{of('identified.max_z'):.2g} standard errors.",
        LAG,
    )
