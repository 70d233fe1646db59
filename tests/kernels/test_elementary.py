"""Elementary functions against correctly rounded ones, and against the C standard."""

import ctypes
import ctypes.util
import functools
import itertools
import math

import mpmath
import numpy as np
import pytest

from djdyn.kernels.cpu.elementary import BINARY, NAMES, declarations, definition


llvm = pytest.importorskip("llvmlite.binding")

DTYPE = {64: np.float64, 32: np.float32}
WIDTHS = [(64, 1), (64, 4), (64, 8), (32, 1), (32, 4), (32, 16)]
DOMAIN = {
    **dict.fromkeys(("asin", "acos", "atanh"), (-1, 1)),
    **dict.fromkeys(("log", "pow"), (0, math.inf)),
    **{"log1p": (-1, math.inf), "acosh": (1, math.inf)},
}
QUARTER_TURNS = (11, 355, 51819, 573204, 42781604, 122925461, 1068966896)  # nearly
REFERENCE = {
    **{"atan2": mpmath.atan2, "pow": mpmath.power},
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "exp2": lambda x: mpmath.power(2, x),
    "erfc": lambda x: mpmath.erfc(min(x, 100)),  # it overflows, further out
}


def arity(name: str) -> int:
    return 2 if name in BINARY else 1


def caller(name: str, lanes: int, bits: int) -> str:
    """`@call.<name>(x, y, out)` of one vector."""
    scalar = "double" if bits == 64 else "float"
    one = scalar if lanes == 1 else f"<{lanes} x {scalar}>"
    result = f"{{{one}, {one}}}" if name == "sincos" else one
    given = ", ".join([f"{one} %a", f"{one} %b"][: arity(name)])
    return f"""
define void @call.{name}(ptr %x, ptr %y, ptr %out) {{
  %a = load {one}, ptr %x, align 4
  %b = load {one}, ptr %y, align 4
  %r = call {result} @djdyn.{name}.f{bits}({given})
  store {result} %r, ptr %out, align 4
  ret void
}}
"""


@functools.cache
def compiled(bits: int, lanes: int):
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = declarations(NAMES, lanes, bits)
    text += "".join(definition(name, lanes, bits) for name in NAMES)
    text += "".join(caller(name, lanes, bits) for name in NAMES)
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def evaluate(name: str, bits: int, lanes: int, *points: np.ndarray) -> np.ndarray:
    """One row of results; two of `sincos`."""
    address = compiled(bits, lanes).get_function_address(f"call.{name}")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)
    count = -(-len(points[0]) // lanes)
    given = [np.resize(p, (count, lanes)) for p in (*points, points[0])[:2]]
    out = np.empty((count, 2 if name == "sincos" else 1, lanes), DTYPE[bits])
    for x, y, r in zip(*given, out, strict=True):
        call(x.ctypes.data, y.ctypes.data, r.ctypes.data)
    return out.swapaxes(0, 1).reshape(out.shape[1], -1)[:, : len(points[0])]


@functools.cache
def points(name: str, bits: int) -> tuple[np.ndarray, ...]:
    """Return points over all magnitudes, over common ones, and where it is hard."""
    dtype, rng = DTYPE[bits], np.random.default_rng(7)
    info = np.finfo(dtype)
    lowest, highest = int(info.minexp) - info.nmant, int(info.maxexp)

    def spread(low, high, n=250):
        return rng.choice([-1.0, 1.0], n) * 2.0 ** rng.uniform(low, high, n)

    near_one = 1 + spread(-info.nmant, -1)
    quarter_turns = np.pi / 2 * rng.integers(0, 2**16, 150)
    all_turns = np.outer(QUARTER_TURNS, 2.0 ** np.arange(8)).ravel()
    turns = np.concatenate([quarter_turns, all_turns, rng.uniform(-20, 20, 150)])
    steep = rng.uniform(lowest, highest, 250)  # the range of exp2, and of exp
    x = [spread(lowest, highest), spread(-20, 10), turns, near_one, -near_one]
    x += [steep, steep * math.log(2), rng.uniform(-1.5, 1.5, 500)]
    x = np.concatenate(x).astype(dtype)
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    x = x[(low < x) & (x < high)]
    if name == "atan2":
        return x, rng.permutation(x)
    if name == "pow":
        exponent = rng.uniform(lowest, highest, len(x)) / np.log2(x.astype(float))
        y = np.where(rng.random(len(x)) < 0.2, rng.integers(-9, 9, len(x)), exponent)
        y[x == 1] = 1
        return x, np.clip(y, -info.max, info.max).astype(dtype)
    return (x,)


@functools.cache
def expected(name: str, bits: int) -> np.ndarray:
    """Rows `e, n, f`: the exact result is `2**e (n + f)`, `2**e` its last place."""
    info = np.finfo(DTYPE[bits])
    function = REFERENCE.get(name) or getattr(mpmath, name)
    rows = []
    with mpmath.workprec(250):
        top = mpmath.ldexp(1, int(info.maxexp))  # what rounds to infinity
        for row in zip(*points(name, bits), strict=True):
            exact = function(*(mpmath.mpf(float(x)) for x in row))
            exact = max(-top, min(top, exact))
            place = mpmath.frexp(exact)[1] - info.nmant - 1
            place = max(place, int(info.minexp) - info.nmant)
            exact = mpmath.ldexp(exact, -place)
            n = mpmath.nint(exact)
            rows.append((place, float(n), float(exact - n)))
    return np.array(rows).T


def error(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest, in units in the last place."""
    place, n, fraction = exact
    place = place.astype(int)
    with np.errstate(over="ignore"):
        top = np.ldexp(1.0, int(np.finfo(found.dtype).maxexp) - place)
    count = np.ldexp(found.astype(float), -place)
    count = np.where(np.isinf(found), np.copysign(top, found), count)
    return np.abs(count - n - fraction).max()


@pytest.mark.parametrize("bits, lanes", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_two_units_in_the_last_place(name, bits, lanes):
    found = evaluate(name, bits, lanes, *points(name, bits))
    for part, row in zip(("sin", "cos"), found, strict=False):
        assert not np.isnan(row).any()
        assert error(row, expected(part if name == "sincos" else name, bits)) < 2


@pytest.mark.parametrize("bits, lanes", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_c(name, bits, lanes):
    info = np.finfo(DTYPE[bits])
    some = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 1.5, 2.0, 3.0, 2.0**80]
    some = [float(s * x) for x in [*some, info.max, np.inf, np.nan] for s in (1, -1)]
    rows = list(itertools.product(some, repeat=arity(name)))
    found = evaluate(name, bits, lanes, *np.array(rows, DTYPE[bits]).T)
    number = ctypes.c_double if bits == 64 else ctypes.c_float
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    for part, values in zip(("sin", "cos"), found, strict=False):
        wanted = (part if name == "sincos" else name) + ("f" if bits == 32 else "")
        function = library[wanted]
        function.restype, function.argtypes = number, [number] * arity(name)
        exact = np.array([function(*row) for row in rows], DTYPE[bits])
        special = ~np.isfinite(exact) | (exact == 0)
        np.testing.assert_array_equal(values[special], exact[special])
        signed = ~np.isnan(exact)
        assert (np.signbit(values) == np.signbit(exact))[signed].all()
        ordinary = ~special
        np.testing.assert_allclose(
            values[ordinary], exact[ordinary], rtol=8 * info.eps, atol=0
        )


def test_declarations_are_not_repeated():
    lines = declarations((*NAMES, "sin"), 8, 64).splitlines()
    declared = [line for line in lines if line.startswith(("declare", "define"))]
    assert len(declared) == len(set(declared))


def test_only_huge_angles_branch():
    branching = {name for name in NAMES if "br i1" in definition(name, 8, 64)}
    assert branching == {"sin", "cos", "sincos", "tan"}
