"""Numerical methods, without physics.

Read in this order: `registry` (solvers by name, one door to diffrax), `solution` (runs
and their derivatives), `step_times` (steps that both sweeps of a gradient see alike),
`fixed_step` (plain functions for kernels), `rodas4` and `ros2` (linearly implicit
steps), `sampled_control` (zero-order hold).
"""
