"""Boom crane: free body, single joints, slide and joint stops.

Read `study`, then `model` (cranes from the tables of the report), `joints` (free body
and pendulums), `slide`, `stops`, and `gradient` (through an impact).
"""
