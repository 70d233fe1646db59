"""Hydraulic boom: valves, stiff oil, a lifted boom, and its parameters identified.

The benchmark cases HYD-0 to HYD-3, and the lumped-volume circuits of Baharudin,
doctoral dissertation, Lappeenranta, 2016.
"""

from ...harness.study import Study
from . import (
    comparison as race,
    components as laws,
    energy_balance as books,
    fit as fit,
    lift as lift,
    valve as valve,
)
from .model import boom


TITLE = "Hydraulic boom: stiff oil, books, and identification"
QUICK = (
    ("trapped oil (HYD-0)", valve.run_trapped),
    ("valve step (HYD-1)", valve.run_valve),
    ("no flow (HYD-2)", valve.run_zero_flow),
    ("laws (V13, V14, V16, V22)", laws.run_laws),
    ("lifted boom (V15)", lift.run_series),
)
SLOW = (
    ("valve step beside Exudyn (HYD-1)", race.run_race),
    ("water hammer (HYD-3)", valve.run_hammer),
    ("stiff oil at long steps (V15)", lift.run_stiff),
    ("books of energy and oil", books.run_books),
    ("identification", fit.run_fit),
)
STAGES = len(QUICK) + len(SLOW)

build = boom


def run(study: Study) -> None:
    study.report.text(
        "The benchmark cases HYD-0 to HYD-3, whose references are closed forms and "
        "runs of Radau's method, and the lumped volumes, valves, friction and lifted "
        "boom (V13 to V16, V22) of Baharudin, doctoral dissertation, Lappeenranta, "
        "2016, worked out by others. Stiff oil is integrated by `rodas4`, whose steps "
        "the oil does not dictate."
    )
    cases = QUICK if study.quick else (*QUICK, *SLOW)
    study.progress.update(study.task, total=len(cases))
    for name, part in cases:
        with study.stage(name):
            part(study)
