"""Closed loops: linkages, an overconstrained one, rolling wheels, beside their answers.

Benchmarks of the IFToMM library and of the IVP test set, an example of SUNDIALS, the
bicycle of Meijaard et al. (2007), and worked four-bars and harvesters after Baharudin
(2016).
"""

import djdyn
from djdyn.view.machine import draw

from ...harness.study import Study
from . import cases, comparison, planar, spatial
from .cases import Closure


TITLE = "Closed loops: linkages beside published answers"
STAGES = 13
GAPS = "Widest gap of each case"
SCENE = "Bricard's linkage"

QUICK = {
    "Four-bar": cases.fourbar,
    "Augmented Lagrangian": cases.iterations,
    "Andrews' squeezer": cases.andrews,
    "Bricard's linkage": cases.bricard,
    "Slider crank": cases.slider_crank,
    "Two four-bars": cases.four_bars(2),
}
SLOW = {
    "Simple pendulum": cases.pendulum,
    "Harvester": cases.harvester,
    "Forty four-bars": cases.four_bars(40),
    "Spatial slider crank": cases.spatial_slider_crank,
    "Bicycle": cases.uncontrolled_bicycle,
    "Derivatives of the squeezer": cases.andrews_gradient,
    "Derivatives of the slider crank": cases.slider_crank_gradient,
}


def run(study: Study) -> None:
    """Run all cases and compare with their answers."""
    study.report.text(
        "Each mechanism is a tree whose loops are closed by joints between two "
        "frames. By default the loops' multipliers follow from the accelerations, and "
        "states are projected onto the loops after every step. Answers are those that "
        "the sources print, or were worked out by other solvers at tolerances of 1e-10 "
        "and tighter."
    )
    gaps = Closure()
    bind = lambda case: lambda study: case(study, gaps)
    quick = [(name, bind(case)) for name, case in QUICK.items()]
    slow = [(name, bind(case)) for name, case in SLOW.items()]
    slow.append(("Ways to close loops", comparison.formulations))
    slow.append(("Exudyn", comparison.beside_exudyn))
    study.run_cases(quick, slow)
    names, worst = list(gaps.worst), list(gaps.worst.values())
    study.metric(
        "loops.closure.worst",
        max(worst),
        at_most=1e-10,
        unit="m or rad",
        note="over all cases and saved times",
    )
    study.report.table(
        GAPS, ("case", "gap (m or rad)"), list(zip(names, worst, strict=True))
    )
    scene(study)
    study.answer(summary(study.metrics), SCENE)


def scene(study: Study) -> None:
    """Show the linkages in motion."""
    shown = {
        SCENE: (spatial.bricard(), None, 5.0),
        "Spatial slider crank": (
            spatial.slider_crank(),
            ({"crank": 0.0, "slider": 0.2}, {"crank": 6.0}),
            1.0,
        ),
        "Andrews' squeezer": (planar.andrews(), (planar.ANDREWS_START,), 0.03),
    }
    if study.quick:
        shown = {SCENE: shown[SCENE]}
    for name, (system, start, span) in shown.items():
        y0 = system.initial_state(*(start or ()))
        run = djdyn.simulate(system, span, y0, saveat=101, rtol=1e-6, atol=1e-6)
        study.report.scene(draw(run), name)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: f"{found[f'loops.{name}']:.1g}"
    said = (
        f"Andrews' squeezer ends within {of('andrews.max_error')} rad of the published "
        f"angles, Bricard's overconstrained linkage within {of('bricard.error')} m. No "
        f"loop opens by more than {of('closure.worst')} m."
    )
    if "loops.four_bars_40.error" in found:
        said += (
            f" Forty four-bars pass their singular position and are off by "
            f"{of('four_bars_40.error')} m after 10 s. The bicycle's weave and capsize "
            f"speeds agree to {of('bicycle.speed_error')} m/s, derivatives of the "
            f"slider crank to {of('slider_crank.dG_error')} in both modes."
        )
    return said
