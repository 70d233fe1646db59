"""Hydraulic boom: valves, stiff oil, a lifted boom, and its parameters identified.

The benchmark cases HYD-0 to HYD-3, and the lumped-volume circuits of Baharudin,
doctoral dissertation, Lappeenranta, 2016.
"""

from . import (
    hydraulic_boom_books as books,
    hydraulic_boom_fit as fit,
    hydraulic_boom_laws as laws,
    hydraulic_boom_lift as lift,
    hydraulic_boom_race as race,
    hydraulic_boom_valve as valve,
)
from .hydraulic_boom_rigs import boom
from .study import Study


TITLE = "Hydraulic boom: stiff oil, books, and identification"
CASES = (
    ("trapped oil (HYD-0)", valve.run_trapped),
    ("valve step (HYD-1)", valve.run_valve),
    ("valve step beside Exudyn (HYD-1)", race.run_race),
    ("no flow (HYD-2)", valve.run_zero_flow),
    ("water hammer (HYD-3)", valve.run_hammer),
    ("laws (V13, V14, V16, V22)", laws.run_laws),
    ("lifted boom (V15)", lift.run_series),
    ("stiff oil at long steps (V15)", lift.run_stiff),
    ("books", books.run_books),
    ("identification", fit.run_fit),
)
STAGES = len(CASES)

build = boom


def run(study: Study) -> None:
    for name, part in CASES:
        with study.stage(name):
            part(study)
