"""Contact: elastic beds, impacts and friction beside closed forms.

The contact cases of Roy, Steinke and Nicoll, *Ship Mechanical Systems API: Final
Report* (2014), sections 4.5.1 to 4.5.3 and 4.5.5, and contact models of Baharudin,
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


TITLE = "Contact: beds, impacts and friction"
CASES = (
    ("flat box", beds.run_flat),
    ("tilted box", beds.run_tilted),
    ("bouncing sphere", beds.run_sphere),
    ("restitution", impacts.run_restitution),
    ("Hertz and Kelvin–Voigt impacts", impacts.run_hertz),
    ("drop on a spring and damper", impacts.run_drop),
    ("separating axes of boxes", tyre.run_boxes),
    ("bristle friction", tyre.run_bristles),
    ("vehicle on one wheel", tyre.run_vehicle),
    ("box on a slope", slope.run_slope),
    ("spinning top", top.run_top),
    ("treadmill", treadmill.run_treadmill),
    ("gradients of tossed cubes", toss.run_toss),
    ("gradient through the time of impact", toss.run_ball),
)
QUICK = (impacts.run_restitution, tyre.run_boxes, tyre.run_bristles, slope.run_slope)
STAGES = len(CASES)

build = beds.flat_box


def run(study: Study) -> None:
    """Run all cases, or the quick ones."""
    study.report.text(
        "The contact cases of Roy, Steinke and Nicoll, Ship Mechanical Systems API: "
        "Final Report (2014), sections 4.5.1 to 4.5.3, and tests that section 4.5.5 "
        "suggests; contact and friction models of Baharudin, doctoral dissertation, "
        "Lappeenranta, 2016, with independent references; and impacts with closed "
        "forms."
    )
    cases = [x for x in CASES if x[1] in QUICK] if study.quick else CASES
    study.progress.update(study.task, total=len(cases))
    for name, part in cases:
        with study.stage(name):
            part(study)
