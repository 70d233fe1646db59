"""Identification of two hinged blocks from recorded tosses.

Read `study`, then `model` (blocks, hinge, unknown parameters and errors), `fit`,
`peer` (MuJoCo) and `report`. Records are those of `cube_toss`.
"""
