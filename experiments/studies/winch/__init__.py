"""Winch: tension and velocity control, and tuning on irregular seas.

Read `study`, then `model` (line, winch and controller), `loop` (independent models),
`sea_states` (scenarios and cost) and `tuning`.
"""
