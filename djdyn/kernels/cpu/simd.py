"""One basic block as LLVM assembly: each operation on a vector of lanes."""

from ..ir.graph import Value
from ..ir.schedule import BasicBlock
from .arithmetic import emit_arithmetic
from .elementary import NAMES
from .memory import load, load_slot, lookup, slot_pointer, store, store_slot
from .rows import group_rows, load_rows, store_rows
from .writer import BlockWriter, KernelContext


def write_block(context: KernelContext, block: BasicBlock) -> list[str]:
    """Return the lines of a basic block: imports from slots, operations, exports."""
    code, graph = BlockWriter(context), context.graph
    for x in block.imports:
        kind, lanes = graph.kinds[x], code.width(x)
        code.names[x] = load_slot(code, slot_pointer(code, x), kind, lanes)
    code.paired = _angles(context, block, "sin") & _angles(context, block, "cos")
    for item in group_rows(code, block.items):
        if isinstance(item, list):
            is_load = graph.ops[item[0]][0] == "load"
            (load_rows if is_load else store_rows)(code, item)
            continue
        found = _emit(code, item)
        if found is not None:
            code.names[item] = found
    for x, target in block.exports:
        kind, lanes = graph.kinds[x], code.width(target)
        pointer = slot_pointer(code, target)
        store_slot(code, pointer, code.operand(x, lanes), kind, lanes)
    return code.lines


def _angles(context: KernelContext, block: BasicBlock, name: str) -> set[Value]:
    """Return the arguments of a function in a block."""
    ops = [context.graph.ops[item] for item in block.items]
    return {op[1] for op in ops if op[0] == name}


def _emit(code: BlockWriter, value: Value) -> str | None:
    """Emit one operation and return the name of its SSA value, if it has one."""
    ctx, op = code.context, code.context.graph.ops[value]
    what, lanes = op[0], code.width(value)
    match what:
        case "load":
            return load(code, value)
        case "store":
            return store(code, op)
        case "lookup":
            return lookup(code, value)
    if what in NAMES and lanes < ctx.lanes:
        # Elementary functions exist for whole vectors only.
        wide = emit_arithmetic(code, value, ctx.lanes)
        return code.new(f"extractelement {ctx.type('f', ctx.lanes)} {wide}, i64 0")
    return emit_arithmetic(code, value, lanes)
