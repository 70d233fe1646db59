"""Contact: beds, bounces, friction and stick-slip beside closed forms.

The contact cases V28 to V30 and V32 of Roy, Steinke and Nicoll, *Ship Mechanical Systems
API: Final Report* (2014), and V17 to V20 of the real-time models of Baharudin, doctoral
dissertation, Lappeenranta, 2016.
"""

from . import contact_beds as beds
from .contact_beds import flat_box as build
from .study import Study


TITLE = "Contact: beds, bounces, friction and stick-slip"
CASES = (
    ("flat box (V28)", beds.run_flat),
    ("tilted box (V29)", beds.run_tilted),
    ("bouncing sphere (V30)", beds.run_sphere),
)
STAGES = len(CASES)


def run(study: Study) -> None:
    study.report.text(
        "Cases V28 to V30 and V32 of Roy, Steinke and Nicoll, Ship Mechanical Systems "
        "API: Final Report (2014), V17 to V20 after Baharudin, doctoral dissertation, "
        "Lappeenranta, 2016, worked out by others, and closed forms of impacts."
    )
    for name, part in CASES:
        with study.stage(name):
            part(study)
