"""Minimisation: BFGS, NL2SOL, and runs of solvers from many starts.

Read in this order: `trial_steps` (what both methods share), `bfgs` with `line_search`
and `box_qp`, `nl2sol`, then `problem` and `multistart` (one problem, many starts) with
`checkpoint`.
"""
