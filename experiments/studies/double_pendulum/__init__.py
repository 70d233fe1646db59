"""Identification of a torque-driven double pendulum from recorded trials.

Read `study`, then `records` (the data and their filters), `model` (the pendulum, its
torques and its simulated windows), `fits`, and `synthetic` (trials with known
parameters).
"""
