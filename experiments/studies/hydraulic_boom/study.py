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
    cases = QUICK if study.quick else (*QUICK, *SLOW)
    study.progress.update(study.task, total=len(cases))
    for name, part in cases:
        with study.stage(name):
            part(study)
