"""Your own machine: scenario files, simulated, identified and tuned.

Read `simulate` first, then `kinds` (what a file may name beside djdyn's own parts).
"""
