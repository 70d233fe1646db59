"""Mechanisms with closed loops beside published and worked answers.

Read in this order: `planar` (pendulum, chains of four-bars, Andrews' squeezer, slider
crank), `spatial` (Bricard's linkage, a spatial slider crank, the harvester), `bicycle`,
`cases` (each beside its answer), `study`.
"""
