"""Bodies that bend: reduction, rotation, large deflection, identification.

Read in this order: `reduced` (reduction and small motions), `rotation` (a beam spun
up, rotating blades), `crank` (a flexible slider-crank), `chains` (large static
deflections), `boom` (a boom identified from markers), `study`.
"""
