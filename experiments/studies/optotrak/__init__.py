"""Point-contact joint: a ball on a rod in a bowl (Knutson 2007).

Read `study`, then `model` (rod, springs and markers), `statics`, `trial`, `planar`,
`newton_raphson` (poses from five coordinates), `inertia` (of eight parts), `fit` (from
printed measurements), `identification` with `report`, `pose` and `comparison` (from
marker series), `own_record`, `own_trial` and `own_report` (from a user's own), and
`scene`.
"""
