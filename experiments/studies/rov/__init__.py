"""A work-class ROV with an arm of three joints that lifts and places (Rokseth 2014).

Read `study`, then `model` (hull, arm, thrusters, control), `fixtures` (single states
and closed forms), `thrusters`, `lift`, `bluerov` (a small vehicle), and for the tuning
`tuning`.
"""
