"""Cable: beams, chains, catenaries, pendulums, slack and snap loads.

The cable cases of Roy, Steinke and Nicoll, *Ship Mechanical Systems API: Final Report*
(2014), sections 4.1.1, 4.1.4 and 4.3.4 to 4.3.6, and cases with references from closed
forms or from MoorDyn.
"""

from ...harness.study import Study
from . import (
    elements as elements,
    heave as heave,
    statics as statics,
    transients as transients,
    vibration as vibration,
)


TITLE = "Cable: statics, vibrations, slack and snap loads"
STAGES = 15

QUICK = (
    ("element matrices", elements.run_elements),
    ("payload on a line", statics.run_payload),
    ("catenary and cantilever", statics.run_convergence),
    ("vibrating cantilever", vibration.run_beam),
    ("hanging chain", vibration.run_chain),
    ("pendulums and torsion", vibration.run_payloads),
    ("capstan", transients.run_capstan),
)
SLOW = (
    ("taut string", vibration.run_string),
    ("beams under their weight", statics.run_beams),
    ("cantilever under a sudden force", vibration.run_far_beam),
    ("oscillating top", transients.run_shaken),
    ("heaving payload", heave.run_heave),
    ("winch", transients.run_winch),
    ("payout and retrieval", transients.run_payout),
    ("snap load", transients.run_snap),
)


def run(study: Study) -> None:
    """Run all cases, or the quick ones."""
    study.report.text(
        "The cable cases of Roy, Steinke and Nicoll, Ship Mechanical Systems API: "
        "Final Report (2014), and further cases with closed forms. References are "
        "closed forms where they exist, otherwise independent simulations."
    )
    study.report.text(
        "The report has some errors. It expects 49.5 instead of 49.05 N under 5 kg "
        "(4.3.4). For a cantilever with a large deflection (4.1.1) it takes 0.45 m of "
        "linear theory instead of 0.4400 m, and 3.52 instead of 3.5160 in its period. "
        "From the spectrum of 60 s it finds 8.85 s for a pendulum of 8.97 s (4.3.5). "
        "It does not give EA of the cantilever and the cables of 4.3.4 to 4.3.6; those "
        "here are chosen. Its three elements with lumped mass swing 5 % too slowly; "
        "the consistent mass of splines leaves less than 1 %. After 8 s the payload "
        "under an oscillating top (4.1.4) approaches a parametric resonance, and runs "
        "are no longer comparable."
    )
    study.run_cases(QUICK, SLOW)
    picture = None if study.quick else heave.PLOT
    study.answer(summary(study.metrics), picture)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: abs(found[f"cable.{name}"])
    said = (
        f"Twenty elements have the end tension of a catenary to "
        f"{of('catenary.end_tension_error'):.1g} of it, twelve the large deflection of "
        f"a cantilever to {of('beam.deflection_error'):.1g} and its period to "
        f"{of('beam.period_error'):.1g}, and ten the first four frequencies of a "
        f"hanging chain to {of('chain.max_frequency_error'):.1g}. "
    )
    if "cable.snap.peak_over_spring" in found:
        said += (
            f"A line that snaps taut peaks at {of('snap.peak_over_spring'):.2f} times "
            "the tension of a massless spring. "
        )
    if "cable.moordyn.tension_range_diff" in found:
        said += (
            "Under a heaving top the range of the tension differs from MoorDyn's by "
            f"{of('moordyn.tension_range_diff'):.1%}."
        )
    return said
