"""Water, waves, and what they do to bodies and lines.

Read in this order: `water` (density, current, surface; buoyancy and drag of bodies),
`waves` (irregular seas as functions of time).
"""
