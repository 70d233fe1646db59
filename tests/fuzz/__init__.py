"""Comparisons with other programs on machines that are not the project's own.

`python -m tests.fuzz.robots FOLDER` reads every MJCF and URDF file below a folder.
"""
