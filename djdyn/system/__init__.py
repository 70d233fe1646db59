"""A mechanism and its parts as one system of equations.

Read in this order: `state`, `signals` (parts are evaluated as they read each other),
`instant` (everything at one time), `system` (the vector field, the energy ledger),
`parameters` (numbers by dotted path), `transforms` (domains of free parameters),
`manifold` (differences of states), `equilibrium` (static states), `units` (of
signals), `describe` (text).
"""
