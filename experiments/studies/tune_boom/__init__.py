"""Tuning of PID gains of a boom crane with limited power on a moving deck.

All is in `study`.
"""
