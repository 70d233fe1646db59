"""Offshore crane on a moving vessel, and the loads in its slewing bearing.

Read `study`, then `model` (vessel, crane and control), `cases` (single states, hoisting
cycles and gradients) and `report` (plots and replay).
"""
