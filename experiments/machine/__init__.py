"""Your own machine: scenario files, simulated, identified and tuned.

Read `simulate` first, then `kinds` (what a file may name beside djdyn's own parts) and
`identify`. `tune` is the command of that name; `tune_table` reads what it is asked for,
with `tune_terms`, `tune_scenarios` and `tune_search`, and `tune_report` says what it
found. `new` writes scenarios to start from, from the folder `starters`;
`starter_table` has the true parameters and the records of each.
"""
