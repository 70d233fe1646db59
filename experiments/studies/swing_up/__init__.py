"""Swing-up of a pendulum on a wagon: plans by iLQR, regulation by LQR.

All is in `study`.
"""
