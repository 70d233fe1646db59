"""Neighbouring numbers of batched buffers, loaded and stored as rows.

Each lane has a row of memory: vectors along the rows are loaded and transposed in
registers, which takes fewer instructions than a gather of every number.
"""

from ..ir.graph import Value
from .memory import buffer_pointer, strided_offset
from .writer import BlockWriter


def group_rows(code: BlockWriter, items: list[Value]) -> list[Value | list[Value]]:
    """Return the operations, with loads and stores of neighbouring numbers in lists."""
    ctx, L = code.context, code.context.lanes
    rows: dict[tuple, list[tuple[int, Value]]] = {}
    for item in items:
        op = ctx.graph.ops[item]
        if L > 1 and op[0] in ("load", "store"):
            buffer = ctx.graph.buffers[op[1]]
            if ctx.per_lane(buffer) and buffer.dtype.kind == "f":
                key = (op[0], op[1], op[3], op[4])
                rows.setdefault(key, []).append((op[2], item))
    joined: dict[Value, list[Value]] = {}
    for row in rows.values():
        row.sort()
        while row:
            first = row[0][0]
            part = [item for place, item in row if place < first + L]
            row = row[len(part) :]
            whole = [ctx.graph.ops[i][2] for i in part] == list(
                range(first, first + len(part))
            )
            if whole and len(part) > 2:
                joined |= dict.fromkeys(part, part)
    out: list[Value | list[Value]] = []
    seen: set[Value] = set()
    late: list[list[Value]] = []
    for item in items:
        part = joined.get(item)
        if part is None:
            out.append(item)
        elif part[0] not in seen:
            seen.add(part[0])
            (out if ctx.graph.ops[item][0] == "load" else late).append(part)
    return [*out, *late]  # stores when all of their values are there


def row_pointers(
    code: BlockWriter, op: tuple, count: int
) -> tuple[list[str], str, str]:
    """Return pointers to a row of each lane, the row's type and the mask of `count`."""
    ctx, (number, place, loop, stride) = code.context, op[1:5]
    base = buffer_pointer(code, number)
    offset = strided_offset(code, place, loop, stride)
    P, inner = f"<{ctx.lanes} x ptr>", ctx.real
    if number not in code.lane_pointers:
        code.lane_pointers[number] = [
            code.new(f"extractelement {P} {base}, i64 {k}") for k in range(ctx.lanes)
        ]
    pointers = [
        code.new(f"getelementptr {inner}, ptr {p}, i64 {offset}")
        for p in code.lane_pointers[number]
    ]
    bits = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(ctx.lanes))
    return pointers, ctx.type("f", ctx.lanes), f"<{ctx.lanes} x i1> <{bits}>"


def load_rows(code: BlockWriter, items: list[Value]) -> None:
    """Emit the loads of neighbouring numbers: rows, transposed."""
    ctx, L, count = code.context, code.context.lanes, len(items)
    pointers, T, mask = row_pointers(code, ctx.graph.ops[items[0]], count)
    size = ctx.bits // 8
    if count == L:
        rows = [code.new(f"load {T}, ptr {p}, align {size}") for p in pointers]
    else:
        name = f"@llvm.masked.load.v{L}f{ctx.bits}.p0"
        ctx.declared.add(f"declare {T} {name}(ptr, <{L} x i1>, {T})")
        call = f"call {T} {name}(ptr align {size} {{}}, {mask}, {T} zeroinitializer)"
        rows = [code.new(call.format(p)) for p in pointers]
    for item, x in zip(items, transpose(code, rows), strict=False):
        code.names[item] = x


def store_rows(code: BlockWriter, items: list[Value]) -> None:
    """Emit the stores of neighbouring numbers: rows, transposed."""
    ctx, L, count = code.context, code.context.lanes, len(items)
    op, size = ctx.graph.ops[items[0]], ctx.bits // 8
    pointers, T, mask = row_pointers(code, op, count)
    columns = [code.operand(ctx.graph.ops[i][5], L) for i in items]
    rows = transpose(code, [*columns, *(columns[-1:] * (L - count))])
    for p, x in zip(pointers, rows, strict=True):
        if count == L:
            code.lines.append(f"  store {T} {x}, ptr {p}, align {size}")
        else:
            name = f"@llvm.masked.store.v{L}f{ctx.bits}.p0"
            ctx.declared.add(f"declare void {name}({T}, ptr, <{L} x i1>)")
            call = f"{name}({T} {x}, ptr align {size} {p}, {mask})"
            code.lines.append(f"  call void {call}")


def transpose(code: BlockWriter, rows: list[str]) -> list[str]:
    """Return the transpose of a square of numbers, by recursive halving."""
    n, T = len(rows), code.context.type("f", len(rows))
    half = n // 2
    while half:
        low = [k + (k // half % 2) * (n - half) for k in range(n)]
        high = [x + half for x in low]
        mixed = list(rows)
        for i in range(n):
            if not i & half:
                a, b = rows[i], rows[i + half]
                for place, order in ((i, low), (i + half, high)):
                    picks = ", ".join(f"i32 {k}" for k in order)
                    mask = f"<{n} x i32> <{picks}>"
                    mixed[place] = code.new(f"shufflevector {T} {a}, {T} {b}, {mask}")
        rows, half = mixed, half // 2
    return rows
