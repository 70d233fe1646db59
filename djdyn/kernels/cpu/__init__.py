"""Machine code: LLVM assembly on SIMD lanes, compiled by llvmlite and called by XLA.

Read in this order: `compile` (jaxpr to loaded machine code), `cache` (kept on disk),
`llvm` (the module), `simd` (one basic block) with `writer`, `memory`, `rows` and
`arithmetic`, `ffi_handler` (the function that XLA calls). `elementary` holds sine,
exponential and their like as LLVM assembly, from `_ir`, `_trigonometric`,
`_exponential`, `_logarithm` and `_error`.
"""
