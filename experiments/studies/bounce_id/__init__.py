"""Identification of contact stiffness and dissipation from a bouncing sphere.

All is in `study`.
"""
