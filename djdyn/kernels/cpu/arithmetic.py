"""Arithmetic, comparisons and elementary functions as LLVM assembly."""

from ..ir.graph import Value
from ..ir.operations import COMPARE
from .writer import BlockWriter


INTRINSICS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "round": "rint",
    "trunc": "trunc",
    "abs": "fabs",
    "copysign": "copysign",
}
ARITHMETIC = {
    "add": "fadd contract",  # may fuse into a multiply-add
    "sub": "fsub contract",
    "mul": "fmul contract",
    "div": "fdiv",
    "rem": "frem",
}
INTEGER = {"iadd": "add", "isub": "sub", "imul": "mul", "idiv": "sdiv", "irem": "srem"}
INTEGER_EXTREMA = {"imin": "smin", "imax": "smax"}
FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole"}
INTEGER_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle"}


def emit_arithmetic(code: BlockWriter, value: Value, lanes: int) -> str:
    """Emit an operation on vectors of lanes and return the name of its SSA value."""
    ctx, op = code.context, code.context.graph.ops[value]
    what, kind = op[0], code.context.graph.kinds[value]
    T, F, I, B = (ctx.type(k, lanes) for k in (kind, "f", "i", "b"))
    x = [code.operand(i, lanes) for i in op[1:]]
    if what in ARITHMETIC:
        return code.new(f"{ARITHMETIC[what]} {T} {x[0]}, {x[1]}")
    if what == "neg":
        return code.new(f"fneg {T} {x[0]}")
    if what == "select":
        return code.new(f"select {B} {x[0]}, {T} {x[1]}, {T} {x[2]}")
    if what in COMPARE:
        if ctx.graph.kinds[op[1]] == "f":
            return code.new(f"fcmp {FLOAT_PREDICATES[what]} {F} {x[0]}, {x[1]}")
        return code.new(f"icmp {INTEGER_PREDICATES[what]} {I} {x[0]}, {x[1]}")
    if what in ("and", "or", "xor"):
        return code.new(f"{what} {B} {x[0]}, {x[1]}")
    if what == "not":
        return code.new(f"xor {B} {x[0]}, {ctx.constant('b', True, lanes)}")
    if what in INTEGER:
        return code.new(f"{INTEGER[what]} {I} {x[0]}, {x[1]}")
    if what in INTEGER_EXTREMA:
        name = ctx.overload(INTEGER_EXTREMA[what], "i", lanes, 2)
        return code.new(f"call {I} {name}({I} {x[0]}, {I} {x[1]})")
    conversions = {
        "i_to_f": f"sitofp {I} {x[0]} to {F}",
        "b_to_f": f"uitofp {B} {x[0]} to {F}",
        "b_to_i": f"zext {B} {x[0]} to {I}",
    }
    if what in conversions:
        return code.new(conversions[what])
    if what == "f_to_i":  # as far as integers go; NaN is zero
        wide = f"v{lanes}" if lanes > 1 else ""
        name = f"@llvm.fptosi.sat.{wide}i{ctx.bits}.{wide}f{ctx.bits}"
        ctx.declared.add(f"declare {I} {name}({F})")
        return code.new(f"call {I} {name}({F} {x[0]})")
    given = ", ".join(f"{F} {i}" for i in x)
    if what in INTRINSICS:
        name = ctx.overload(INTRINSICS[what], "f", lanes, len(x))
        return code.new(f"call {F} {name}({given})")
    if what in ("sin", "cos") and op[1] in code.paired:
        both = f"{{{F}, {F}}}"
        if op[1] not in code.sincos:
            ctx.functions.add("sincos")
            call = f"@djdyn.sincos.f{ctx.bits}({given})"
            code.sincos[op[1]] = code.new(f"call {both} {call}")
        place = ("sin", "cos").index(what)
        return code.new(f"extractvalue {both} {code.sincos[op[1]]}, {place}")
    ctx.functions.add(what)
    return code.new(f"call {F} @djdyn.{what}.f{ctx.bits}({given})")
