"""Water, waves, wind, hulls and thrusters, and what they do to bodies and lines.

Read in this order: `flow` and `water` (density, current, surface; buoyancy and drag of
bodies), `current_grid`, `wave_field` (linear waves), `waves` (their spectra), `wind`,
`drag` (damping of bodies, accelerating water, strips of links), `hull` (what floats),
`allocation` and `thruster`, `sea_bed` (elastic, with friction), `member` (slender rigid
cylinders).
"""
