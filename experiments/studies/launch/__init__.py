"""Launch: crane, line, winch and payload together, on a moving ship.

Read `study`, then `model` (arm and crane), `runs` (simulation and derived series) and
`landing` (on a bed).
"""
