"""Benchmarks: speed, measured with `djdyn bench NAME` beside other engines.

Read `problems` (what is simulated), `engines` (who simulates it) and `timing` (how it
is timed), then the benchmarks: `rollout`, `gradient`, `compile` and `scaling` (with
`roofline` and `worker`), `gpu`, and those of single studies: `cable`, `contact`,
`hydraulic_boom`, `titan4`. `descriptions` exports models for engines that read URDF or
SDF.
"""
