"""From a system to its motion, alone or in batches, with gradients.

Read in this order: `options` (all numerical choices), `vector_field` (the equations on
one flat array), `simulate`, `trajectory` (what a run gives), `series` (labelled tables,
files), `saved_state` (from which a run goes on), `rollout` (batches, as kernels where
possible), `cosimulation` (macro steps for other simulators), `gradient_check`.
`solvers/` holds the numerical methods.
"""
