"""LLVM IR of elementary functions on vectors, within two units in the last place.

`declarations` and the `definition`s of some names, put together, are a module's text.
The functions have no branches, and call intrinsics only; angles too large for the
argument reduction go, lane by lane, to the C library.
"""

import functools
from collections.abc import Callable, Iterable

from . import _error as r, _exponential as e, _logarithm as l, _trigonometric as t
from ._ir import ATTRIBUTES, BITS, Function, Value, absolute, floating, vector


FUNCTIONS: dict[str, Callable] = {
    **dict(sin=t.sin, cos=t.cos, sincos=t.sincos, tan=t.tan),
    **dict(asin=t.asin, acos=t.acos, atan=t.atan, atan2=t.atan2),
    **dict(exp=e.exp, exp2=e.exp2, expm1=e.expm1),
    **dict(tanh=e.tanh, sinh=e.sinh, cosh=e.cosh),
    **dict(log=l.log, log1p=l.log1p, pow=l.pow, cbrt=l.cbrt),
    **dict(asinh=l.asinh, acosh=l.acosh, atanh=l.atanh, erf=r.erf, erfc=r.erfc),
}
# In single precision these are computed in double.
WIDENED: dict[str, Callable] = {
    **dict(sinh=e.sinh, cosh=e.cosh, asinh=l.asinh, acosh=l.acosh, atanh=l.atanh),
    **dict(pow=functools.partial(l.pow, precise=False), cbrt=l.cbrt),
    **dict(erf=r.erf, erfc=r.erfc),
}
NAMES = tuple(FUNCTIONS)
BINARY = ("atan2", "pow")
REDUCED = {"sin": ("sin",), "cos": ("cos",), "tan": ("tan",), "sincos": ("sin", "cos")}


def definition(name: str, lanes: int, bits: int) -> str:
    """Return LLVM IR that defines `@djdyn.<name>.f<bits>` on `lanes`-wide vectors.

    It has one argument, or two: `atan2(y, x)` and `pow(x, y)`. `sincos` returns a pair.
    """
    return _written(name, lanes, bits)[0]


def declarations(names: Iterable[str], lanes: int, bits: int) -> str:
    """Return declarations that the definitions of `names` need."""
    needed: dict[str, None] = {}
    for name in names:
        needed |= dict.fromkeys(_written(name, lanes, bits)[1])
    return "".join(needed)


@functools.cache
def _written(name: str, lanes: int, bits: int) -> tuple[str, tuple[str, ...]]:
    fn, scalar = Function(lanes), floating(bits)
    given = [Value(fn, scalar, ref) for ref in ("%x", "%y")[: 1 + (name in BINARY)]]
    if name in WIDENED and bits == 32:
        wide = WIDENED[name](*(x.cast("fpext", "double") for x in given))
        results = (wide.cast("fptrunc", "float"),)
    else:
        results = FUNCTIONS[name](*given)
        results = results if isinstance(results, tuple) else (results,)
    if name in REDUCED:
        limit = t.REDUCIBLE[scalar]
        results = _unless(absolute(given[0]) > limit, results, REDUCED[name])

    one = results[0].type
    result = one if len(results) == 1 else "{" + ", ".join([one] * len(results)) + "}"
    arguments = ", ".join(f"{x.type} {x.ref}" for x in given)
    head = f"define internal {result} @djdyn.{name}.f{bits}({arguments}) {ATTRIBUTES}"
    if len(results) == 1:
        tail = f"  ret {one} {results[0].ref}"
    else:
        a, b = (x.ref for x in results)
        tail = (
            f"  %pair = insertvalue {result} poison, {one} {a}, 0\n"
            f"  %both = insertvalue {result} %pair, {one} {b}, 1\n"
            f"  ret {result} %both"
        )
    text = "\n".join([head + " {", "entry:", *fn.lines, tail, "}\n"])
    return text, tuple(fn.declarations)


def _unless(rare: Value, fast: tuple, names: tuple[str, ...]) -> tuple:
    """Return the results, in lanes that are `rare` those of the C library.

    A lane's result does not depend on its neighbours.
    """
    fn, scalar = rare.fn, fast[0].scalar
    one, bits = fast[0].type, BITS[scalar]
    test = rare.ref
    if fn.lanes > 1:
        reduce = f"llvm.vector.reduce.or.v{fn.lanes}i1"
        fn.declarations[f"declare i1 @{reduce}({rare.type})\n"] = None
        test = "%any"
        fn.lines.append(f"  %any = call i1 @{reduce}({rare.type} {rare.ref})")
    slow = [f"%slow.{name}" for name in names]
    fn.lines += [f"  br i1 {test}, label %rare, label %common", "rare:"]
    for name, ref, x in zip(names, slow, fast, strict=True):
        fn.declarations |= dict.fromkeys(_lanewise(name, fn.lanes, bits))
        called = f"{ref}.all"
        fn.lines += [
            f"  {called} = call {one} @djdyn.{name}.lanes.f{bits}({one} %x)",
            f"  {ref} = select {rare.type} {rare.ref}, {one} {called}, {one} {x.ref}",
        ]
    fn.lines += ["  br label %common", "common:"]
    return tuple(
        fn.emit(scalar, f"phi {one} [{x.ref}, %entry], [{y}, %rare]")
        for x, y in zip(fast, slow, strict=True)
    )


def _lanewise(name: str, lanes: int, bits: int) -> tuple[str, str]:
    """Return a declaration of a C function, and a loop over lanes that calls it."""
    scalar = floating(bits)
    one, c_name = vector(scalar, lanes), name + "f" * (bits == 32)
    head = f"define internal {one} @djdyn.{name}.lanes.f{bits}({one} %x)"
    call = f"call {scalar} @{c_name}({scalar}"
    body = f"  %r = {call} %x)\n  ret {one} %r\n"
    if lanes > 1:
        body = f"""entry:
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  %done = phi {one} [poison, %entry], [%more, %loop]
  %a = extractelement {one} %x, i32 %i
  %r = {call} %a)
  %more = insertelement {one} %done, {scalar} %r, i32 %i
  %next = add i32 %i, 1
  %end = icmp eq i32 %next, {lanes}
  br i1 %end, label %out, label %loop
out:
  ret {one} %more
"""
    return (
        f"declare {scalar} @{c_name}({scalar}) {ATTRIBUTES}\n",
        f"{head} cold noinline {ATTRIBUTES} {{\n{body}}}\n",
    )
