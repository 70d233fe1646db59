"""Identification of a cube's contact parameters from recorded tosses.

Read `study`, then `records` (the data), `model` (cube and unknown parameters), `fit`,
`synthetic` (tosses with known parameters), `peer` (MuJoCo) and `report`.
"""
