"""Exported C: compiles without a warning, and computes what Python does."""

import ctypes
import re
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import djdyn
from controllers import JointPID
from djdyn.export.c_source import export_c, prefix
from djdyn.io.scenario import read_scenario
from djdyn.kernels import c_function
from djdyn.multibody.flexible import Beam, FlexibleBody, Piece, Rectangle
from djdyn.parts import JointActuator
from experiments.__main__ import main
from experiments.machine.kinds import KINDS
from experiments.studies.crane import model as crane

from ..multibody.loops import four_bar


ROOT = Path(__file__).parents[2]
PENDULUM = ROOT / "experiments/scenarios/double_pendulum.toml"
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion")
REAL = {"float64": ctypes.c_double, "float32": ctypes.c_float}


def run(*command) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def load(path: Path) -> ctypes.CDLL:
    library = path.with_suffix(".so")
    run("cc", *STRICT, "-Werror", "-O2", "-shared", "-fPIC", path, "-o", library, "-lm")
    return ctypes.CDLL(str(library))


class Machine:
    """The functions of an exported file on NumPy arrays."""

    def __init__(self, path: Path, dtype: str = "float64"):
        self.name, self.dtype, self.library = prefix(path), dtype, load(path)
        real, header = REAL[dtype], path.with_suffix(".h").read_text()
        self.n_state, self.n_input = (
            int(re.search(rf"_N_{x} (\d+)", header)[1]) for x in ("STATE", "INPUT")
        )
        for what in ("step", "derivative"):
            fn = getattr(self.library, f"{self.name}_{what}")
            fn.argtypes, fn.restype = [real, *[ctypes.c_void_p] * 3], ctypes.c_int
            setattr(self, f"_{what}", fn)

    def array(self, what: str, n: int) -> np.ndarray:
        found = (REAL[self.dtype] * n).in_dll(self.library, f"{self.name}_{what}")
        return np.array(found, self.dtype)

    def names(self, what: str, n: int) -> list[str]:
        where = f"{self.name}_{what}_names"
        found = list((ctypes.c_char_p * (n + 1)).in_dll(self.library, where))
        assert found.pop() is None
        return [name.decode() for name in found]

    def call(self, what: str, t: float, y, u=(), out=None):
        y, u = np.asarray(y, self.dtype), np.asarray(u, self.dtype)
        out = np.empty_like(y) if out is None else out
        status = getattr(self, f"_{what}")(t, y.ctypes, u.ctypes, out.ctypes)
        return status, out

    def march(self, y, dt: float, n: int, u=()) -> np.ndarray:
        y, u = np.array(y, self.dtype), np.asarray(u, self.dtype)
        for k in range(n):  # in place, as the header allows
            assert self._step(k * dt, y.ctypes, u.ctypes, y.ctypes) == 0
        return y


def flat(y) -> np.ndarray:
    return np.array(ravel_pytree(y)[0])


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> tuple[djdyn.System, djdyn.State, Path]:
    """The offshore crane, its start, and its C file."""
    system = crane.build()
    y0, path = crane.start(system), tmp_path_factory.mktemp("c") / "crane.c"
    export_c(system, path, y0, dt=1e-3)
    return system, y0, path


def rolled(system, y0, t1, dt=1e-3, **how) -> np.ndarray:
    one = jax.tree.map(lambda x: x[None], y0)
    if "control_period" not in how:
        how["saveat"] = np.array([t1])
    found = djdyn.rollout(system, t1, one, dt=dt, **how)
    return flat(jax.tree.map(lambda x: x[0, -1], found.y))


def assert_close(found, wanted, rtol):
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * scale)


def test_the_crane_steps_as_in_python(exported):
    system, y0, path = exported
    machine = Machine(path)
    start = machine.array("initial_state", machine.n_state)
    np.testing.assert_array_equal(start, flat(y0))
    end = machine.march(start, 1e-3, 10_000)
    assert_close(end, rolled(system, y0, 10.0, solver="semi_implicit"), 1e-12)


def test_the_crane_has_its_derivative(exported):
    system, y0, path = exported
    machine, (start, unravel) = Machine(path), ravel_pytree(y0)
    derivative = jax.jit(lambda t, y: system.derivative(t, unravel(y)))
    rng = np.random.default_rng(0)
    for t in (0.0, 3.0, 12.5):
        y = start + 0.3 * rng.normal(size=start.shape)
        status, rate = machine.call("derivative", t, y)
        assert status == 0
        assert_close(rate, flat(derivative(t, y)), 1e-12)


@pytest.mark.parametrize("way", [djdyn.Projection(), djdyn.Multipliers()])
def test_closed_loops_step_as_in_python(tmp_path, way):
    """A step of the C code projects states as that of Python does."""
    system, path = djdyn.System(four_bar(way)), tmp_path / "bars.c"
    y0 = system.initial_state(q={"crank": 1.0}, v={"crank": 2.0})
    export_c(system, path, y0, dt=0.01, solver="rk4")
    end = Machine(path).march(flat(y0), 0.01, 50)
    assert_close(end, rolled(system, y0, 0.5, dt=0.01, solver="rk4"), 1e-12)


def servo() -> djdyn.System:
    pid = JointPID(("block",), "wanted", kp=50.0, kd=8.0, ki=20.0)
    parts = {"pid": pid, "motor": JointActuator(("block",), "pid.u")}
    return djdyn.System(block(), parts, {"wanted": jnp.ones(1)})


@pytest.mark.parametrize(
    ("how", "step"),
    [
        ({"solver": "rk4"}, 0.01),
        ({"solver": "tsit5"}, 0.01),
        ({"solver": "semi_implicit", "control_period": 0.025}, 0.025),  # short ends
    ],
)
def test_a_servo_steps_as_in_python(tmp_path, how, step):
    system, path = servo(), tmp_path / "servo.c"
    y0 = system.initial_state()
    export_c(system, path, y0, dt=0.01, **how)
    end = Machine(path).march(flat(y0), step, round(0.5 / step), [1.0])
    assert_close(end, rolled(system, y0, 0.5, dt=0.01, **how), 1e-12)


def test_single_precision(tmp_path, exported):
    system, y0, path = exported
    export_c(system, tmp_path / "s.c", dt=1e-3, precision="float32")
    assert "double" not in (tmp_path / "s.c").read_text()
    single, double = Machine(tmp_path / "s.c", "float32"), Machine(path)
    y = flat(y0)
    y[:12] += 0.01 * np.random.default_rng(1).normal(size=12)
    for what in ("step", "derivative"):
        found, wanted = (m.call(what, 3.0, y)[1] for m in (single, double))
        assert found.dtype == np.float32
        assert_close(found, wanted, 1e-5)


def test_nothing_is_allocated_and_the_header_stands_alone(tmp_path, exported):
    source = exported[2]
    header, program = source.with_suffix(".h"), tmp_path / "program"
    text = source.read_text() + header.read_text()
    assert not re.search(r"\b(malloc|calloc|realloc|alloca|free)\b\s*\(", text)
    wanted = {'"crane.h"', "<math.h>", "<stdint.h>"}
    assert set(re.findall(r"#include (.*)", text)) == wanted
    run("cc", *STRICT, "-Wvla", "-Werror", "-c", source, "-o", tmp_path / "o.o")
    for language, standard in (("c", "c99"), ("c++", "c++11")):
        how = (f"-std={standard}", *STRICT[1:], "-fsyntax-only", "-x", language)
        run("cc", *how, "-Werror", header)
    caller = tmp_path / "caller.cpp"
    caller.write_text(
        f'#include "{header}"\nint main() {{\n  double y[CRANE_N_STATE];\n'
        "  return crane_step(0, crane_initial_state, 0, y);\n}\n"
    )
    run("g++", "-Wall", "-Werror", caller, tmp_path / "o.o", "-o", program)
    run(program)
    fast = ("cc", "-ffast-math", "-fsyntax-only", str(source))
    assert subprocess.run(fast, capture_output=True).returncode != 0


def test_a_state_that_is_not_finite_is_reported(exported):
    machine = Machine(exported[2])
    y = machine.array("initial_state", machine.n_state)
    y[7] = np.nan
    assert machine.call("step", 0.0, y)[0] == 1
    y[7] = 1e200
    assert machine.call("derivative", 0.0, y)[0] == 1


def block() -> djdyn.Mechanism:
    body = djdyn.Body("block", "world", djdyn.Prismatic((1, 0, 0)), 2.0)
    return djdyn.Mechanism((body,))


def slider(name: str = "push") -> djdyn.System:
    inputs = {name: jnp.zeros(1), "bias": jnp.ones((2, 1))}
    return djdyn.System(block(), {"motor": JointActuator(("block",), name)}, inputs)


def test_inputs_are_arguments_in_the_order_of_their_declaration(tmp_path):
    path = tmp_path / "9 lives-of.c"
    export_c(slider(), path, dt=0.1)
    machine = Machine(path)
    assert machine.name == "model_9_lives_of"
    assert machine.names("state", 2) == ["block.q", "block.v"]
    assert machine.names("input", 3) == ["push[0]", "bias[0][0]", "bias[1][0]"]
    np.testing.assert_array_equal(machine.array("default_inputs", 3), [0, 1, 1])
    _, y = machine.call("step", 0.0, [0.0, 1.0], [4.0, 0.0, 0.0])
    np.testing.assert_allclose(y, [0.12, 1.2], rtol=1e-15)


def test_given_inputs_are_part_of_the_code(tmp_path):
    path = tmp_path / "slider.c"
    export_c(slider(), path, dt=0.1, inputs={"push": lambda t: 4.0 * t[None]})
    machine = Machine(path)
    assert machine.names("input", 2) == ["bias[0][0]", "bias[1][0]"]
    _, rate = machine.call("derivative", 3.0, [0.0, 1.0], [0.0, 0.0])
    np.testing.assert_allclose(rate, [1.0, 6.0], rtol=1e-15)


def test_odd_names_are_harmless(tmp_path):
    name = 'a"\\??/*b*/ü'
    path = tmp_path / "odd.c"
    export_c(slider(name), path, dt=0.1)
    assert Machine(path).names("input", 3)[0] == f"{name}[0]"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            {"solver": "dopri8"},
            "fixed steps are semi_implicit, ros2, rodas4, rk4, tsit5, not",
        ),
        ({"dt": 0.0}, "step dt must be positive"),
        ({"dt": float("nan")}, "step dt must be positive"),
        ({"control_period": -1.0}, "control period must be positive"),
        ({"inputs": {"pull": 1.0}}, "no input 'pull'"),
        ({"path": "slider.cpp"}, "ends in .c"),
    ],
)
def test_bad_arguments_are_refused(how, said):
    given = {"path": "nowhere/slider.c", "dt": 0.1, **how}
    with pytest.raises(ValueError, match=said):
        export_c(slider(), **given)


def test_what_c_cannot_express_is_said(tmp_path):
    sort = lambda t: jnp.sort(jnp.stack([t, 2 * t]))[:1]
    with pytest.raises(djdyn.kernels.UnsupportedError, match="primitive 'sort'"):
        export_c(slider(), tmp_path / "s.c", dt=0.1, inputs={"push": sort})
    assert not list(tmp_path.iterdir())


# The command and the documents --------------------------------------------------------


def test_the_command_and_the_example_of_the_docs(tmp_path):
    out = tmp_path / "pendulum.c"
    arguments = ["--c", str(out), "--dt", "0.001", "--solver", "rk4"]
    assert main(["export", str(PENDULUM), *arguments]) == 0
    text = (ROOT / "docs/export.md").read_text()
    example, program = tmp_path / "main.c", tmp_path / "main"
    example.write_text(re.search(r"```c\n(.*?)```", text, re.S)[1])
    run("cc", *STRICT, "-Werror", "-O2", example, out, "-o", program, "-lm")
    said = [line.split() for line in run(program).splitlines()]
    scenario = read_scenario(PENDULUM, KINDS)
    wanted = rolled(scenario.system, scenario.initial_state, 1.0, solver="rk4")
    names = ["shoulder.q", "elbow.q", "shoulder.v", "elbow.v", "pid.integral[0]"]
    assert [name for name, _ in said] == names
    assert_close([float(x) for _, x in said], wanted, 1e-12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "double_pendulum.toml has no fixed steps: give --dt"),
        (["--dt", "0.1", "--solver", "euler"], "unknown solver 'euler'"),
        (["--dt", "0.1", "--solver", "dopri8"], "fixed steps are"),
        (["--dt", "-1"], "must be positive"),
    ],
)
def test_a_bad_command_is_one_sentence_and_status_2(tmp_path, capsys, arguments, said):
    out = str(tmp_path / "p.c")
    assert main(["export", str(PENDULUM), "--c", out, *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("djdyn: ")
    assert said in error
    assert error.count("\n") == 1


def test_a_delay_is_not_exported(tmp_path, capsys):
    text = PENDULUM.read_text()
    late = "[simulation]\ncontrol_period = 0.01\ncontrol_delay = true\ndt = 0.01\n"
    scenario = tmp_path / "late.toml"
    scenario.write_text(text.replace("[simulation]\n", late))
    assert main(["export", str(scenario), "--c", str(tmp_path / "out.c")]) == 2
    assert "has a control_delay" in capsys.readouterr().err


# The printer --------------------------------------------------------------------------

NUMBERS = np.array([-2.5, -0.5, -0.0, 0.0, 0.3, 0.5, 1.5, 7.0, np.inf, -np.inf, np.nan])


def elementary(x):
    y, unit = jnp.abs(x) + 1.0, x / (1.0 + jnp.abs(x))
    one = [jnp.sin, jnp.cos, jnp.tan, jnp.arctan, jnp.exp, jnp.exp2, jnp.expm1]
    one += [jnp.tanh, jnp.sinh, jnp.cosh, jnp.arcsinh, jnp.cbrt, jnp.floor, jnp.ceil]
    one += [jnp.trunc, jnp.round, jnp.abs, jnp.sign, jax.scipy.special.erf]
    one += [jax.scipy.special.erfc, jax.nn.sigmoid]
    found = [fn(x) for fn in one] + [jnp.sqrt(y), jnp.log(y), jnp.log1p(y)]
    found += [jnp.arccosh(y), jnp.arcsin(unit), jnp.arccos(unit), jnp.arctanh(unit)]
    return [*found, jnp.arctan2(x, y), y**unit, jax.lax.rem(x, y)]


def choices(x):
    big = jnp.where(x > 0.4, jnp.inf, jnp.nan)
    return jnp.maximum(x, 0.4), jnp.minimum(big, x), jnp.isfinite(x), x != x


def integers(x):
    i = jnp.clip(jnp.floor(x), -5, 5).astype(jnp.int64)
    wide = x.astype(jnp.int64)  # saturates
    whole = [i, i * i - 3, jnp.maximum(i, 1), i // 3, i % 3, wide]
    return *whole, i.astype(jnp.int32), (i > 0) | (i < -1)


def loops(x):
    x = x[:7]
    table = jnp.asarray(np.arange(300.0).reshape(100, 3))
    index = jnp.clip(jnp.floor(10 * x), 0, 99).astype(jnp.int32)

    def turn(carry, row):
        even = jnp.where(carry[0] > 3.0, carry * 0.5, carry + row.sum())
        return even, (even * even, even[0] > 3.0, index[0])

    last, stacked = jax.lax.scan(turn, x, table)
    back, _ = jax.lax.scan(turn, x, table, reverse=True)
    until = lambda carry: carry[1].sum() < 100.0
    n, grown = jax.lax.while_loop(
        until, lambda c: (c[0] + 1, c[1] * 1.5 + 1.0), (0, jnp.abs(x))
    )
    picked = table[index]
    return last, stacked, back, n, grown, picked


@pytest.mark.parametrize("fn", [elementary, choices, integers, loops])
def test_programs(tmp_path, fn):
    closed = jax.make_jaxpr(fn)(NUMBERS)
    wanted = jax.tree.leaves(jax.jit(fn)(NUMBERS))
    text = "#include <math.h>\n#include <stdint.h>\n" + c_function("fn", closed).text
    path = tmp_path / "fn.c"
    path.write_text(text.replace("static void fn(", "extern void fn();\nvoid fn("))
    found = [np.empty(x.shape, x.dtype) for x in wanted]
    load(path).fn(NUMBERS.ctypes, *(x.ctypes for x in found))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-15)


def test_a_flexible_body_has_its_derivative(tmp_path):
    beam = Beam((Piece(1.0, Rectangle(0.05, 0.05), elements=2),), 2e8, 8e7, 1000.0)
    boom = FlexibleBody("boom", "world", djdyn.Revolute((0, 1, 0)), beam, {"xz": 0})
    load = djdyn.Body("load", "boom.tip", djdyn.Fixed(), 0.3)
    system = djdyn.System(djdyn.Mechanism((boom, load)))
    y0 = system.initial_state(q=[0.3, 1e-3, -1e-3], v=[1.0, 0.02, 0.03])
    export_c(system, tmp_path / "boom.c", y0, dt=1e-3)
    status, found = Machine(tmp_path / "boom.c").call("derivative", 0.0, flat(y0))
    assert status == 0
    assert_close(found, flat(system.derivative(0.0, y0)), 1e-12)
