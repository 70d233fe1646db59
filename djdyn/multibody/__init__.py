"""Trees of rigid bodies: their kinematics and their equations of motion.

Read in this order: `spatial` (rotations, poses, twists, wrenches), `joints`,
`mechanism` (bodies, frames, topology), `kinematics` (forward kinematics, the `World`),
`mass_matrix` (solving with it), `dynamics` (forward and inverse), `reactions`,
`constraints` (forces of unknown size). `time_functions` are prescribed motions as data,
`point_contact_joints` a ball in a bowl, `curved_surfaces` what else it may roll on,
`describe` the printed tree.
"""
