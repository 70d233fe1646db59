"""Hydraulic boom: valves, stiff oil, a lifted boom, and its identification.

Circuits with closed forms (trapped oil, valve step, zero flow, water hammer), and the
lumped-volume circuits of Baharudin, doctoral dissertation, Lappeenranta, 2016.
"""

from ...harness.study import Study
from . import (
    comparison as comparison,
    components as components,
    energy_balance as energy_balance,
    fit as fit,
    lift as lift,
    valve as valve,
)
from .model import boom


TITLE = "Hydraulic boom: stiff oil, energy balance, and identification"
QUICK = (
    ("trapped oil", valve.run_trapped),
    ("valve step", valve.run_valve),
    ("zero flow", valve.run_zero_flow),
    ("single components", components.run_components),
    ("lifted boom", lift.run_series),
)
SLOW = (
    ("valve step beside Exudyn", comparison.compare_with_exudyn),
    ("water hammer", valve.run_hammer),
    ("stiff oil with long steps", lift.run_stiff),
    ("energy and oil balance", energy_balance.run_energy_balance),
    ("identification", fit.run_fit),
)
STAGES = len(QUICK) + len(SLOW)

build = boom


def run(study: Study) -> None:
    """Run all cases, or the quick ones."""
    study.report.text(
        "Trapped oil, a valve step, zero flow and water hammer are compared with "
        "closed forms and with Radau's method. Lumped volumes, valves, friction and a "
        "lifted boom follow Baharudin, doctoral dissertation, Lappeenranta, 2016; "
        "their references were computed independently. The solver `rodas4` integrates "
        "stiff oil with steps that its stiffness does not limit."
    )
    study.run_cases(QUICK, SLOW)
    study.answer(summary(study.metrics), lift.SCENE)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"hydraulic_boom.{name}"]
    said = (
        "After a valve step, chambers of 1000 ml down to 1 ml have pressures within "
        f"{1e3 * of('hyd1.max_error_bar'):.1f} mbar of Radau's method. Angle, rate, "
        "pressures and valve of the lifted boom follow independent series to "
        f"{of('reference_error'):.1g} of their ranges. "
    )
    if "hydraulic_boom.hyd1.vs_exudyn" in found:
        said += (
            "With the stiffest oil, a run is "
            f"{of('hyd1.vs_exudyn'):.1f} times as fast as Exudyn's. "
        )
    if "hydraulic_boom.fit.max_z" in found:
        said += (
            "Oil, valve, leakage and friction are identified from a noisy record with "
            f"errors of at most {of('fit.max_z'):.1f} standard errors."
        )
    return said
