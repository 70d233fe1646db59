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
QUICK = (
    ("restitution", impacts.run_restitution),
    ("separating axes of boxes", tyre.run_boxes),
    ("bristle friction", tyre.run_bristles),
    ("box on a slope", slope.run_slope),
)
SLOW = (
    ("flat box", beds.run_flat),
    ("tilted box", beds.run_tilted),
    ("bouncing sphere", beds.run_sphere),
    ("Hertz and Kelvin–Voigt impacts", impacts.run_hertz),
    ("drop on a spring and damper", impacts.run_drop),
    ("vehicle on one wheel", tyre.run_vehicle),
    ("spinning top", top.run_top),
    ("treadmill", treadmill.run_treadmill),
    ("gradients of tossed cubes", toss.run_toss),
    ("gradient through the time of impact", toss.run_ball),
)
STAGES = len(QUICK) + len(SLOW)

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
    study.run_cases(QUICK, SLOW)
    study.answer(summary(study.metrics), slope.STICKING_PLOT)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"contact.{name}"]
    said = (
        "Impacts have the restitution coefficient that is set, from 0.1 to 0.98, with "
        f"an error of at most {of('restitution.max_error'):.1g}. A box on a slope at "
        "up to 0.95 of the friction angle creeps by at most "
        f"{of('slope.creep_mm'):.2f} mm and then stays; a sliding one accelerates as "
        f"its closed form says, to {of('slope.slide_error'):.1g} of it. "
    )
    if "contact.toss.gradient_error" not in found:
        return said
    return said + (
        "Gradients through the impacts of tossed cubes have an error of at most "
        f"{of('toss.gradient_error'):.2g} %, and stick-slip oscillations have the "
        f"period of the closed form to {of('treadmill.period_error'):.1%}."
    )
