"""Compiler of JAX functions on small arrays: to machine code on SIMD lanes, or to C.

Everything outside of this package imports from here:

- `as_kernel`, `pattern`: a function as one kernel that JAX can differentiate and batch.
- `time_loop`, `Checkpoints`: fixed steps as one kernel with an exact reverse sweep.
- `c_function`, `CFunction` and `c_array`, `c_number`, `c_type`: the same as C source.
- `trace`, `eliminate_dead_code`, `lift_constants`, `depends`: passes and analyses of
  jaxprs.
- `user_cache`: the folder of compiled programs that belongs to the user alone.
- `UnsupportedError`: raised for what kernels cannot express; XLA then runs it.

To read the compiler, follow a function through it: `frontend` (jaxpr to scalar
operations), `ir` (the graph of operations and its schedule), `cpu` (LLVM assembly and
machine code) or `c` (C source); then `primitive` (the JAX primitive around a kernel)
and `time_loop`. There is no physics in it.
"""

from .c.source import (
    CFunction as CFunction,
    c_array as c_array,
    c_function as c_function,
    c_number as c_number,
    c_type as c_type,
)
from .cpu.cache import user_cache as user_cache
from .frontend.passes import (
    eliminate_dead_code as eliminate_dead_code,
    lift_constants as lift_constants,
)
from .frontend.trace import (
    UnsupportedError as UnsupportedError,
    depends as depends,
    trace as trace,
)
from .primitive import as_kernel as as_kernel, pattern as pattern
from .time_loop import Checkpoints as Checkpoints, time_loop as time_loop
