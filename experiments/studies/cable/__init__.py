"""Cables: statics, vibration, slack and snap loads.

Read `study`, then `model` (cables with closed forms), `statics`, `vibration`,
`transients`, and `heave` (comparison with MoorDyn).
"""
