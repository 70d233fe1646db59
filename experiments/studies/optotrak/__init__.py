"""Point-contact joint: a ball on a rod in a bowl (Knutson 2007).

Read `study`, then `model` (rod, springs and markers), `statics`, `trial`, `planar`,
`fit` (from printed measurements), `identification` with `report`, `pose` and
`comparison` (from marker series), and `scene`.
"""
