"""Water, waves, and what they do to bodies and lines.

Read in this order: `water` (density, current, surface; buoyancy and drag of bodies),
`current_grid`, `sea_bed` (elastic, with friction), `member` (slender rigid cylinders),
`waves` (irregular seas as functions of time).
"""
