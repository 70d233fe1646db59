"""The front end: translation of jaxprs to scalar operations.

Read in this order: `passes` (dead-code elimination, loop-invariant code motion and
other passes on jaxprs), `trace` (evaluates a jaxpr on arrays of SSA values), then the
rules of primitives: `elementwise`, `reshaping`, `indexing`, `reductions`, `linear`,
`control`.
"""
