"""Compilation of a jaxpr to machine code in memory, with a cache on disk."""

import ctypes
import functools
import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import llvmlite
import llvmlite.binding as llvm
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from ..frontend.trace import trace
from ..ir.schedule import schedule
from .cache import load_entry, save_entry
from .ffi_handler import handler
from .llvm import module


SOURCES = Path(__file__).parents[1]  # the folder of `djdyn.kernels`


def machine() -> llvm.TargetMachine:
    """Return a new target machine for this CPU; an execution engine owns its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )


@functools.cache
def vector_bytes() -> int:
    """Return the size of a vector register of this CPU."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx2") else 16


@functools.cache
def _compiler_digest() -> bytes:
    """Return a digest of the compiler itself: its sources, this CPU, and versions."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.py")):
        digest.update(path.read_bytes())
    host = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    for x in (*host, llvmlite.__version__, jax.__version__):
        digest.update(x.encode())
    return digest.digest()


def fingerprint(closed: ClosedJaxpr) -> bytes:
    """Return a digest of a jaxpr: its operations, their order, and its constants."""
    digest = hashlib.sha256()
    _feed(digest, closed.jaxpr, closed.consts)
    return digest.digest()


def _feed(digest: Any, jaxpr: Any, consts: Any) -> None:
    """Add a jaxpr to a digest, with variables numbered in order."""
    numbers: dict[Any, int] = {}

    def name(v: Any) -> str:
        if isinstance(v, Literal):
            value = np.asarray(v.val)
            return f"{value.dtype}:{value.tolist()!r}"
        return str(numbers.setdefault(v, len(numbers)))

    for v in (*jaxpr.constvars, *jaxpr.invars):
        digest.update(f"{name(v)}{v.aval.shape}{v.aval.dtype};".encode())
    for c in consts:
        value = np.asarray(c)
        digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    for eqn in jaxpr.eqns:
        words = [
            eqn.primitive.name,
            *map(name, eqn.invars),
            "=",
            *map(name, eqn.outvars),
        ]
        for key, value in eqn.params.items():
            words.append(key)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, ClosedJaxpr):
                    _feed(digest, item.jaxpr, item.consts)
                elif hasattr(item, "eqns"):
                    _feed(digest, item, ())
                elif not callable(item):
                    words.append(repr(item))
        digest.update(" ".join(words).encode())
    digest.update(" ".join(map(name, jaxpr.outvars)).encode())


class Compiled:
    """Machine code in memory; kept alive as long as the process."""

    def __init__(self, code: bytes):
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        at = self._engine.get_function_address("handler")
        self.handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(at)
        at = self._engine.get_function_address("run")
        whole, pointer = ctypes.c_int64, ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(None, pointer, pointer, whole, whole, whole, pointer)
        self.run = kind(at)


def assembly(
    closed: ClosedJaxpr,
    batched: tuple[bool, ...],
    lanes: int,
    patterns: Sequence[bytes | None] = (),
) -> str:
    """Return the LLVM assembly of a kernel and of its handler."""
    program = trace(closed, patterns)
    plan = schedule(program.graph, batched if lanes > 1 else ())
    frame = plan.frame(lanes) * program.dtype.itemsize
    text = module(program, plan, batched, lanes)
    return text + handler(lanes, any(batched), frame)


def object_code(text: str) -> bytes:
    """Return the object file of LLVM assembly."""
    code, target = llvm.parse_assembly(text), machine()
    code.triple, code.data_layout = target.triple, str(target.target_data)
    code.verify()
    return target.emit_object(code)


_loaded: dict[str, Compiled] = {}
_loading = threading.RLock()  # a name is registered with XLA once


def compile_kernel(
    closed: ClosedJaxpr,
    batched: tuple[bool, ...],
    batch: int,
    patterns: Sequence[bytes | None] = (),
) -> tuple[str, Compiled]:
    """Return a function's kernel and its name, from memory, disk or the compiler."""
    lanes = lanes_for(closed, batch)
    digest = hashlib.sha256(_compiler_digest() + fingerprint(closed))
    digest.update(f"{batched}{lanes}{patterns}".encode())
    key, name = digest.digest(), f"djdyn.{digest.hexdigest()[:32]}"
    with _loading:
        if name not in _loaded:
            code = load_entry(key)
            if code is None:
                code = object_code(assembly(closed, batched, lanes, patterns))
                save_entry(key, code)
            loaded = Compiled(code)
            capsule = jax.ffi.pycapsule(loaded.handler)
            jax.ffi.register_ffi_target(name, capsule, platform="cpu")
            _loaded[name] = loaded
        return name, _loaded[name]


def lanes_for(closed: ClosedJaxpr, batch: int) -> int:
    """Return the number of lanes: those of a vector register, or one."""
    sizes = {
        v.aval.dtype.itemsize for v in closed.jaxpr.invars if v.aval.dtype.kind == "f"
    }
    return 1 if batch == 1 else vector_bytes() // (min(sizes) if sizes else 8)
