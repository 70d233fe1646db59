"""Contact: beds, bounces and friction beside closed forms.

The contact cases V28 to V30 and V32 of Roy, Steinke and Nicoll, *Ship Mechanical
Systems API: Final Report* (2014), and V17 to V20 of the real-time models of Baharudin,
doctoral dissertation, Lappeenranta, 2016.
"""

from ...harness.study import Study
from . import (
    beds as beds,
    impacts as impacts,
    slope as slope,
    top as top,
    toss as toss,
    treadmill as treadmill,
    tyre as tyre,
)


TITLE = "Contact: beds, bounces and friction"
CASES = (
    ("flat box (V28)", beds.run_flat),
    ("tilted box (V29)", beds.run_tilted),
    ("bouncing sphere (V30)", beds.run_sphere),
    ("restitution", impacts.run_restitution),
    ("Hertz, Kelvin and Voigt", impacts.run_hertz),
    ("drop (V18)", impacts.run_drop),
    ("turned boxes (V17)", tyre.run_boxes),
    ("bristles (V19)", tyre.run_bristles),
    ("wheel (V20)", tyre.run_vehicle),
    ("box on a slope", slope.run_slope),
    ("spinning top (V32)", top.run_top),
    ("treadmill (V32)", treadmill.run_treadmill),
    ("tossed cubes (GRAD-2)", toss.run_toss),
    ("time of impact", toss.run_ball),
)
QUICK = (impacts.run_restitution, tyre.run_boxes, tyre.run_bristles, slope.run_slope)
STAGES = len(CASES)

build = beds.flat_box


def run(study: Study) -> None:
    study.report.text(
        "Cases V28 to V30 and V32 of Roy, Steinke and Nicoll, Ship Mechanical Systems "
        "API: Final Report (2014), V17 to V20 after Baharudin, doctoral dissertation, "
        "Lappeenranta, 2016, worked out by others, and closed forms of impacts."
    )
    cases = [x for x in CASES if x[1] in QUICK] if study.quick else CASES
    study.progress.update(study.task, total=len(cases))
    for name, part in cases:
        with study.stage(name):
            part(study)
