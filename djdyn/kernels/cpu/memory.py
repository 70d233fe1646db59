"""Memory accesses as LLVM assembly: slots of the frame, buffers, gathers, scatters."""

import numpy as np

from ..ir.graph import Value
from ..ir.operations import Kind
from .writer import FRAME_POINTERS, FRAME_SPAN, BlockWriter


def slot_pointer(code: BlockWriter, value: Value) -> str:
    """Return a pointer to a value's slot in the frame."""
    ctx, place = code.context, code.context.plan.slots[value]
    if code.width(value) == ctx.lanes:
        return frame_pointer(code, place * ctx.lanes)
    return code.new(
        f"getelementptr {ctx.real}, ptr %single, i64 {place - FRAME_SPAN // 2}"
    )


def frame_pointer(code: BlockWriter, index: int) -> str:
    """Return a pointer to a number of the frame, from the nearest base pointer.

    Short offsets make short instructions.
    """
    k = min(index // (FRAME_SPAN * code.context.lanes), FRAME_POINTERS - 1)
    middle = (2 * k + 1) * FRAME_SPAN * code.context.lanes // 2
    return code.new(
        f"getelementptr {code.context.real}, ptr %frame{k}, i64 {index - middle}"
    )


def load_slot(code: BlockWriter, pointer: str, kind: Kind, lanes: int) -> str:
    """Load a value of a kind from the frame."""
    T = code.context.stored(kind, lanes)
    x = code.new(f"load {T}, ptr {pointer}, align {alignment(code, lanes)}")
    if kind != "b":
        return x
    return code.new(f"trunc {T} {x} to {code.context.type('b', lanes)}")


def store_slot(code: BlockWriter, pointer: str, x: str, kind: Kind, lanes: int) -> None:
    """Store a value of a kind in the frame."""
    T = code.context.stored(kind, lanes)
    if kind == "b":
        x = code.new(f"zext {code.context.type('b', lanes)} {x} to {T}")
    code.lines.append(f"  store {T} {x}, ptr {pointer}, align {alignment(code, lanes)}")


def alignment(code: BlockWriter, lanes: int) -> int:
    """Return the alignment of a vector in the frame, bytes."""
    return lanes * code.context.bits // 8


def outer_array(code: BlockWriter, which: int) -> str:
    """Return the array of arguments (0), of results (1) or of loop counters (2)."""
    if which not in code.arrays:
        at = code.new(f"getelementptr ptr, ptr %outside, i64 {which}")
        code.arrays[which] = code.new(f"load ptr, ptr {at}")
    return code.arrays[which]


def buffer_pointer(code: BlockWriter, number: int) -> str:
    """Return a pointer to a buffer's first number, one per lane if it is batched."""
    if number in code.buffers:
        return code.buffers[number]
    ctx, buffer = code.context, code.context.graph.buffers[number]
    if buffer.role == "scratch":
        found = frame_pointer(code, ctx.plan.scratch[number] * ctx.lanes)
    elif buffer.role == "table":
        found = f"@table{number}"
    else:
        array = outer_array(code, 0 if buffer.role == "argument" else 1)
        here = code.new(f"getelementptr ptr, ptr {array}, i64 {buffer.number}")
        found = code.new(f"load ptr, ptr {here}")
        if ctx.per_lane(buffer):
            I = ctx.wide("i64", ctx.lanes)
            size = str(buffer.size) if ctx.lanes == 1 else f"splat (i64 {buffer.size})"
            step = code.new(f"mul {I} %lanes, {size}")
            inner = ctx.memory(buffer.dtype)
            found = code.new(f"getelementptr {inner}, ptr {found}, {I} {step}")
    code.buffers[number] = found
    return found


def strided_offset(code: BlockWriter, at: int, loop: int | None, stride: int) -> str:
    """Return the index `at + stride * i`, with the counter `i` of a loop."""
    if loop is None or stride == 0:
        return str(at)
    key = (at, loop, stride)
    if key not in code.offsets:
        depth = code.context.graph.loops[loop].depth - 1
        where = code.new(f"getelementptr i64, ptr {outer_array(code, 2)}, i64 {depth}")
        turn = code.new(f"load i64, ptr {where}")
        steps = code.new(f"mul i64 {turn}, {stride}")
        code.offsets[key] = code.new(f"add i64 {steps}, {at}")
    return code.offsets[key]


def gather(code: BlockWriter, inner: str, pointers: str) -> str:
    """Load a number of type `inner` for each lane."""
    L = code.context.lanes
    T, P, B = f"<{L} x {inner}>", f"<{L} x ptr>", f"<{L} x i1>"
    short = inner.replace("double", "f64").replace("float", "f32")
    name = f"@llvm.masked.gather.v{L}{short}.v{L}p0"
    code.context.declared.add(f"declare {T} {name}({P}, {B}, {T})")
    size = int(short[1:]) // 8
    mask = f"{B} splat (i1 true)"
    return code.new(f"call {T} {name}({P} align {size} {pointers}, {mask}, {T} poison)")


def scatter(code: BlockWriter, inner: str, x: str, pointers: str) -> None:
    """Store a number of type `inner` for each lane."""
    L = code.context.lanes
    T, P, B = f"<{L} x {inner}>", f"<{L} x ptr>", f"<{L} x i1>"
    short = inner.replace("double", "f64").replace("float", "f32")
    name = f"@llvm.masked.scatter.v{L}{short}.v{L}p0"
    code.context.declared.add(f"declare void {name}({T}, {P}, {B})")
    size = int(short[1:]) // 8
    mask = f"{B} splat (i1 true)"
    call = f"{name}({T} {x}, {P} align {size} {pointers}, {mask})"
    code.lines.append(f"  call void {call}")


def from_memory(code: BlockWriter, x: str, dtype: np.dtype, lanes: int) -> str:
    """Convert from the type in a buffer to that of arithmetic."""
    T, size = code.context.wide(code.context.memory(dtype), lanes), 8 * dtype.itemsize
    if dtype.kind == "b":
        zero = "0" if lanes == 1 else "zeroinitializer"
        return code.new(f"icmp ne {T} {x}, {zero}")
    if dtype.kind == "f" or size == code.context.bits:
        return x
    way = "trunc" if size > code.context.bits else "sext"
    return code.new(f"{way} {T} {x} to {code.context.type('i', lanes)}")


def to_memory(code: BlockWriter, x: str, dtype: np.dtype, lanes: int) -> str:
    """Convert from the type of arithmetic to that in a buffer."""
    T, size = code.context.wide(code.context.memory(dtype), lanes), 8 * dtype.itemsize
    if dtype.kind == "b":
        return code.new(f"zext {code.context.type('b', lanes)} {x} to {T}")
    if dtype.kind == "f" or size == code.context.bits:
        return x
    way = "sext" if size > code.context.bits else "trunc"
    return code.new(f"{way} {code.context.type('i', lanes)} {x} to {T}")


def load(code: BlockWriter, value: Value) -> str:
    """Emit a load from a buffer."""
    ctx = code.context
    _, number, place, loop, stride = ctx.graph.ops[value]
    buffer, lanes = ctx.graph.buffers[number], code.width(value)
    base = buffer_pointer(code, number)
    offset = strided_offset(code, place, loop, stride)
    if buffer.role == "scratch":
        T = ctx.stored(buffer.kind, ctx.lanes)
        pointer = code.new(f"getelementptr {T}, ptr {base}, i64 {offset}")
        return load_slot(code, pointer, buffer.kind, ctx.lanes)
    inner = ctx.memory(buffer.dtype)
    if ctx.per_lane(buffer) and ctx.lanes > 1:
        P = f"<{ctx.lanes} x ptr>"
        pointers = code.new(f"getelementptr {inner}, {P} {base}, i64 {offset}")
        return from_memory(code, gather(code, inner, pointers), buffer.dtype, ctx.lanes)
    pointer = code.new(f"getelementptr {inner}, ptr {base}, i64 {offset}")
    one = code.new(f"load {inner}, ptr {pointer}")
    one = one if lanes == 1 else code.broadcast(one, inner)
    return from_memory(code, one, buffer.dtype, lanes)


def store(code: BlockWriter, op: tuple) -> None:
    """Emit a store to a buffer."""
    ctx, (_, number, place, loop, stride, value) = code.context, op
    buffer, lanes = ctx.graph.buffers[number], code.context.lanes
    base = buffer_pointer(code, number)
    offset = strided_offset(code, place, loop, stride)
    x = code.operand(value, lanes)
    if buffer.role == "scratch":
        T = ctx.stored(buffer.kind, lanes)
        pointer = code.new(f"getelementptr {T}, ptr {base}, i64 {offset}")
        store_slot(code, pointer, x, buffer.kind, lanes)
        return
    inner, x = ctx.memory(buffer.dtype), to_memory(code, x, buffer.dtype, lanes)
    P = ctx.wide("ptr", lanes)
    pointers = code.new(f"getelementptr {inner}, {P} {base}, i64 {offset}")
    if lanes > 1:
        scatter(code, inner, x, pointers)
    else:
        code.lines.append(f"  store {inner} {x}, ptr {pointers}")


def lookup(code: BlockWriter, value: Value) -> str:
    """Emit a load at a computed index."""
    ctx = code.context
    _, number, place, index, stride = ctx.graph.ops[value]
    buffer, lanes = ctx.graph.buffers[number], code.width(value)
    I, many = ctx.type("i", lanes), lambda n: ctx.constant("i", n, lanes)
    steps = code.new(f"mul {I} {code.operand(index, lanes)}, {many(stride)}")
    steps = code.new(f"add {I} {steps}, {many(place)}")
    inner = ctx.memory(buffer.dtype)
    if buffer.role == "scratch":
        inner = ctx.stored(buffer.kind, 1)
        if lanes > 1:
            steps = code.new(f"mul {I} {steps}, {many(lanes)}")
            order = ", ".join(f"{ctx.whole} {k}" for k in range(lanes))
            steps = code.new(f"add {I} {steps}, <{order}>")
    base = buffer_pointer(code, number)
    P = ctx.wide("ptr", lanes) if ctx.per_lane(buffer) else "ptr"
    pointers = code.new(f"getelementptr {inner}, {P} {base}, {I} {steps}")
    one = lanes == 1
    x = (
        code.new(f"load {inner}, ptr {pointers}")
        if one
        else gather(code, inner, pointers)
    )
    if buffer.role != "scratch":
        return from_memory(code, x, buffer.dtype, lanes)
    if buffer.kind != "b":
        return x
    return code.new(f"trunc {I} {x} to {ctx.type('b', lanes)}")
