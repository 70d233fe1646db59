"""The intermediate representation: scalar operations, basic blocks and slots.

Read in this order: `operations` (what there is), `graph` (SSA values, simplified as
they are written down), `schedule` (basic blocks and loops in order), `slots` (live
ranges and the memory between basic blocks).
"""
