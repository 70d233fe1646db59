"""Tuning of gains and timing of an offshore crane for low loads in its foot.

Read `study`, then `model` (crane, free parameters and cost).
"""
