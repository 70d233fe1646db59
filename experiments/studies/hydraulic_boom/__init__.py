"""Hydraulic boom: circuits with closed forms, a lifted boom, and its identification.

Read `study`, then `model` (circuits), `valve`, `components`, `lift`, `energy_balance`,
`record` and `fit` (identification), and `comparison` (Exudyn).
"""
