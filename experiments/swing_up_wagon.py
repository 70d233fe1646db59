"""The wagon with a pendulum of the study: springs, rod and a push."""

from typing import Any

import djdyn
from djdyn.parts import JointActuator, JointSpring


PUSH = 20.0  # N, the most that the drive gives


def wagon(**parts: Any) -> djdyn.System:
    """After Rokseth, *Bond graph modelling ...* (2014), example 3.6.

    The angle is counted from the upward vertical. The input `push` drives the wagon,
    unless `parts` give its drive another command.
    """
    bodies = (
        djdyn.Body("wagon", "world", djdyn.Prismatic((1, 0, 0)), 2.0),
        djdyn.Body("rod", "wagon", djdyn.Revolute((0, 1, 0)), 1.0, p_BC=(0, 0, 0.3)),
    )
    given = {
        "wall": JointSpring("wagon", 3.0),
        "hinge": JointSpring("rod", 0.5),
        "drive": JointActuator(("wagon",), command="push"),
        **parts,
    }
    inputs = {} if "drive" in parts else {"push": [0.0]}
    return djdyn.System(djdyn.Mechanism(bodies), given, inputs)
