"""Identification of the masses and dampings of a seven-joint arm from one marker.

Read `study` (model, fits and report), then `peer` (MuJoCo's record and fit).
"""
