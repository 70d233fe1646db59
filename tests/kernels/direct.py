"""Machine code called from NumPy: neither XLA nor the cache on disk is in between."""

import ctypes
import math
from collections.abc import Callable, Sequence

import jax
import numpy as np

from djdyn.kernels.cpu.compile import Compiled, object_code, vector_bytes
from djdyn.kernels.cpu.ffi_handler import handler
from djdyn.kernels.cpu.llvm import module
from djdyn.kernels.frontend.trace import trace
from djdyn.kernels.ir.schedule import schedule


def run(
    fn: Callable, args: Sequence[np.ndarray], batched: Sequence[bool], *, lanes: int = 0
) -> list[np.ndarray]:
    """The results of `fn` for a batch; batched arguments have a leading axis.

    `lanes` is one or a whole vector register, the default.
    """
    flags = tuple(batched)
    (batch,) = {len(x) for x, b in zip(args, flags, strict=True) if b} or {1}
    lines = [x[0] if b else x for x, b in zip(args, flags, strict=True)]
    closed = jax.make_jaxpr(fn)(*lines)
    program = trace(closed)
    lanes = lanes or vector_bytes() // program.dtype.itemsize
    plan = schedule(program.graph, flags if lanes > 1 else ())
    size = plan.frame(lanes) * program.dtype.itemsize
    text = module(program, plan, flags, lanes) + handler(lanes, any(flags), size)
    code = Compiled(object_code(text))

    lead = (batch,) if any(flags) else ()
    rets = [np.full((*lead, *r.shape), 99, r.dtype) for r in program.results]
    args = [np.ascontiguousarray(x) for x in args]
    frame = np.full(size + 64, 0xFF, np.uint8)  # NaN, lest anything be read too soon
    here = frame.ctypes.data + -frame.ctypes.data % 64
    groups = math.ceil(batch / lanes)
    code.run(_pointers(args), _pointers(rets), 0, groups, batch - 1, here)
    return rets


def _pointers(arrays: Sequence[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(x.ctypes.data for x in arrays))
