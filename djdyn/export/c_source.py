"""The equations of motion as one C99 file with a header, for real-time targets."""

import importlib.metadata
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from ..kernels import CFunction, c_array, c_function, c_number, c_type
from ..multibody import joints
from ..simulation.checks import check_inputs, check_state
from ..simulation.options import OptionKeywords, SimulationOptions, resolve_options
from ..simulation.solvers.fixed_step import METHODS, Clock, one_step
from ..simulation.vector_field import Field, Inputs
from ..system.parameters import parameters
from ..system.state import State
from ..system.system import System, prepared
from ..typing import Scalar


Labels = list[tuple[str, str]]  # names and units of numbers
UNITS: dict[type, tuple[str, str]] = {
    joints.Revolute: ("rad", "rad/s"),
    joints.Prismatic: ("m", "m/s"),
    joints.Cylindrical: ("rad m", "rad/s m/s"),
    joints.Cartesian: ("m m m", "m/s m/s m/s"),
    joints.Universal: ("rad rad", "rad/s rad/s"),
    joints.RollPitchYaw: ("rad rad rad", "rad/s rad/s rad/s"),
    joints.Spherical: ("1 1 1 1", "rad/s rad/s rad/s"),
    joints.Planar: ("m m rad", "m/s m/s rad/s"),
    joints.Free: ("m m m 1 1 1 1", "rad/s rad/s rad/s m/s m/s m/s"),
}
HEADER = """\
/* {name}: equations of motion, written by djdyn {version}. Do not edit.

   {name}_step advances the state by {NAME}_DT seconds: {how}.
   {name}_derivative gives the rate of the state{continuous}.
   Both return 0, or 1 if a number of the result is not finite: the state has diverged
   or the arguments were not finite. Nothing else is checked.

   Preconditions
   - `y`, `y_next` and `dy` point to {NAME}_N_STATE numbers, `inputs` to {NAME}_N_INPUT
     (it may be null if that is 0). `y_next` and `dy` may be `y`.
   - Arithmetic is IEEE 754, rounds to nearest and does not trap: no -ffast-math.
   - About {stack} bytes of stack are free.
   The functions allocate nothing, keep nothing between calls and call only <math.h>.
   {bound} fixed lengths.

   State, SI units
{states}

   Inputs
{inputs}
   Inputs that are part of the code: {fixed}

   Parameters are constants of the code. To change one, export again.
{parameters}
*/
#ifndef {NAME}_H
#define {NAME}_H

#define {NAME}_N_STATE {n_state}
#define {NAME}_N_INPUT {n_input}
#define {NAME}_DT {dt}{suffix} /* s */

#ifdef __cplusplus
extern "C" {{
#endif

extern const {real} {name}_initial_state[{n_state}];
{defaults}/* Names, then a null pointer. */
extern const char *const {name}_state_names[{n_state} + 1];
extern const char *const {name}_input_names[{n_input} + 1];

int {name}_step({real} t, const {real} *y, const {real} *inputs, {real} *y_next);
int {name}_derivative({real} t, const {real} *y, const {real} *inputs, {real} *dy);

#ifdef __cplusplus
}}
#endif

#endif
"""
DEFAULTS = "extern const {real} {name}_default_inputs[{n_input}];\n"
SOURCE = """\
/* {name}: equations of motion, written by djdyn {version}. Do not edit. */
#include "{file}.h"

#include <math.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: results that are not finite must be seen"
#endif

{data}
{functions}
static int {name}_finish(const {real} *found, {real} *out)
{{
    int finite = 1;
    for (int i = 0; i < {NAME}_N_STATE; i++) {{
        out[i] = found[i];
        finite = finite && isfinite(found[i]);
    }}
    return !finite;
}}
"""
ENTRY = """
int {name}_{what}({real} t, const {real} *y, const {real} *inputs, {real} *{out})
{{
    {real} found[{NAME}_N_STATE]; /* so that `{out}` may be `y` */
    {name}_{what}_of(&t, y, inputs, found);
    return {name}_finish(found, {out});
}}
"""


def export_c(
    system: System,
    path: str | Path,
    initial_state: State | None = None,
    *,
    inputs: Inputs | None = None,
    precision: Literal["float32", "float64"] | None = None,
    options: SimulationOptions | None = None,
    **changes: Unpack[OptionKeywords],
) -> None:
    """Write `path`, a C99 file, and the header beside it.

    The file has a function that advances the state by a step, one that gives its rate,
    the initial state, and names. Parameters are constants of the code. The functions'
    prefix is the name of the file.

    **Arguments:**

    - `inputs`: values or functions of time that become part of the code. The system's
      other inputs are arguments of the C functions.
    - `precision`: of all numbers; that of the system if not given.
    - `options`: `dt` and `solver` (`"semi_implicit"` if not given) are the fixed steps.
      With a `control_period`, a step samples the controllers, holds their outputs, and
      advances this long in steps of `dt`. These may also be given as keywords.

    !!! example

        ```python
        djdyn.export_c(system, "pendulum.c", dt=1e-3, solver="rk4")
        ```
    """
    path = Path(path)
    ready = prepared(system)
    y0 = system.initial_state() if initial_state is None else initial_state
    changes = {"solver": "semi_implicit", **changes} if options is None else changes
    chosen = resolve_options(options, **changes)
    _check_arguments(path, chosen, precision)
    check_state(system, y0)
    check_inputs(system, inputs)
    flat, unravel = ravel_pytree((y0, jnp.zeros(0)))
    if not flat.size:
        raise ValueError("there is nothing to integrate: the state has no numbers")
    dtype = np.dtype(precision or flat.dtype)
    names = [name for name in system.inputs if name not in (inputs or {})]
    nothing = jnp.zeros(0, flat.dtype)  # gives an empty list a type
    given, shaped = ravel_pytree([*(system.inputs[name] for name in names), nothing])

    def field(u: Array) -> Field:
        now = dict(zip(names, shaped(u), strict=False))
        return Field(ready, {**now, **(inputs or {})}, {}, unravel, False)

    def function(what: str, fn: Callable[..., Array]) -> CFunction:
        closed = jax.make_jaxpr(fn)(jnp.zeros((), flat.dtype), flat, given)
        return c_function(f"{name}_{what}_of", closed, dtype)

    name = prefix(path)
    functions = {
        "step": function("step", _step(field, chosen)),
        "derivative": function("derivative", lambda t, y, u: field(u)(t, y)),
    }
    states = _states(system, y0)
    arguments = [(x, "") for k in names for x in _entries(k, system.inputs[k].shape)]
    text = {
        "name": name,
        "NAME": name.upper(),
        "file": path.stem,
        "states": _listed(states),
        "inputs": _listed(arguments),
        "fixed": _comment(", ".join(inputs or ["none"])).strip(),
        "n_state": flat.size,
        "n_input": given.size,
        "data": "\n".join(_data(name, dtype, flat, given, states, arguments)),
        **_about(system, names, chosen, dtype, functions, flat.size),
    }
    source = SOURCE.format(**text)
    for what, out in (("step", "y_next"), ("derivative", "dy")):
        source += ENTRY.format(**text, what=what, out=out)
    header = HEADER.format(**text, defaults=DEFAULTS.format(**text) * bool(names))
    path.write_text(source)
    path.with_suffix(".h").write_text(header)


def _about(
    system: System,
    inputs: list[str],
    options: SimulationOptions,
    dtype: np.dtype,
    functions: dict[str, CFunction],
    n_state: int,
) -> dict[str, Any]:
    """Return what the file says of the model, its steps and its needs."""
    constants = parameters(system)
    for name in inputs:
        del constants[name]
    how, period = f"{options.solver}, steps of {options.dt} s", options.control_period
    if period is not None:
        how += f", controllers sampled every {period} s"
    bounded = all(f.bounded for f in functions.values())
    stack = max(f.stack for f in functions.values()) + dtype.itemsize * n_state
    return {
        "version": importlib.metadata.version("djdyn"),
        "how": how,
        "continuous": "" if period is None else ", its controllers continuous",
        "bound": "All loops have" if bounded else "Not all loops have",
        "stack": -(-stack // 1024) * 1024,
        "parameters": _comment(str(constants)),
        "dt": repr(period or options.dt),
        "real": c_type(dtype),
        "suffix": "f" if dtype.itemsize == 4 else "",
        "functions": "\n".join(f.text for f in functions.values()),
    }


def _check_arguments(
    path: Path, options: SimulationOptions, precision: str | None
) -> None:
    if path.suffix != ".c":
        raise ValueError(f"a C file's name ends in .c, not {path.name!r}")
    if options.solver not in METHODS:
        there = ", ".join(METHODS)
        raise ValueError(f"fixed steps are {there}, not {options.solver!r}")
    if options.dt is None:
        raise ValueError("exported steps are fixed: give dt, in s")
    for name in ("control_delay", "jumps", "ledger"):
        if getattr(options, name) not in (None, False):
            raise ValueError(f"exported steps have no {name}: leave it out")
    if precision not in (None, "float32", "float64"):
        raise ValueError(f"precision is float32 or float64, not {precision!r}")
    if not math.isfinite(options.dt):
        raise ValueError(f"the step dt must be finite, got {options.dt}")


def prefix(path: Path) -> str:
    """A C identifier from the name of a file."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    return name if name[0].isalpha() else f"model_{name}"


def _step(
    field: Callable[[Array], Field], options: SimulationOptions
) -> Callable[..., Array]:
    """Return `(t, y, inputs) -> y`, one step or one control period on."""
    solver, dt, period = options.solver, options.dt, options.control_period
    assert dt is not None

    def plain(t: Scalar, y: Array, u: Array) -> Array:
        return one_step(field(u), solver, t, y, jnp.asarray(dt, y.dtype))

    def sampled(t: Scalar, y: Array, u: Array) -> Array:
        assert period is not None
        inner = Clock(0.0, float(period), dt)
        y, outputs = field(u).sample(t, y, float(period))
        holding = field(u).hold(outputs)

        def turn(y: Array, k: Array) -> tuple[Array, None]:
            h = jnp.asarray(inner.dt, y.dtype)
            return one_step(holding, solver, t + inner.at(k, y.dtype), y, h), None

        return lax.scan(turn, y, jnp.arange(inner.steps, dtype=jnp.int32))[0]

    return plain if period is None else sampled


# Names --------------------------------------------------------------------------------


def _entries(name: str, shape: tuple[int, ...]) -> Iterator[str]:
    for at in np.ndindex(*shape):
        yield name + "".join(f"[{i}]" for i in at)


def _states(system: System, y: State) -> Labels:
    """Names of states, as signals are called: `joint.q`, `joint.v`, `part.state`."""
    found, m = [], system.mechanism
    for k, letter in enumerate("qv"):
        for joint, body in zip(m.joint_names, m.bodies, strict=True):
            n = getattr(body.joint, f"n{letter}")
            names = _entries(f"{joint}.{letter}", (n,) if n > 1 else ())
            units = UNITS.get(type(body.joint), ("", ""))[k].split() or [""] * n
            found += zip(names if n else (), units, strict=True)
    for path, x in jax.tree_util.tree_leaves_with_path(y.parts):
        keys = [str(getattr(k, "name", getattr(k, "key", k))) for k in path]
        found += [(name, "") for name in _entries(".".join(keys), x.shape)]
    return found


def _comment(text: str) -> str:
    safe = text.replace("*/", "* /").replace("/*", "/ *")
    return "\n".join(f"   {line}".rstrip() for line in safe.splitlines())


def _listed(labels: Labels) -> str:
    wide = max((len(name) for name, _ in labels), default=0)
    rows = [f"{i:>3}  {name:<{wide}}  {unit}" for i, (name, unit) in enumerate(labels)]
    return _comment("\n".join(rows) or "none")


def _string(name: str) -> str:
    """A C string; what might mean something else inside one is written in octal."""
    plain = lambda b: 32 <= b < 127 and chr(b) not in '"\\?'
    text = [chr(b) if plain(b) else f"\\{b:03o}" for b in name.encode()]
    return f'"{"".join(text)}"'


def _data(
    name: str, dtype: np.dtype, y0: Any, u0: Any, states: Labels, inputs: Labels
) -> Iterator[str]:
    for what, values in (("initial_state", y0), ("default_inputs", u0)):
        if values.size:
            items = [c_number(x, dtype) for x in np.asarray(values).tolist()]
            yield c_array(f"const {c_type(dtype)}", f"{name}_{what}", items)
    for what, labels in (("state", states), ("input", inputs)):
        items = [*(_string(label) for label, _ in labels), "0"]
        yield c_array("const char *const", f"{name}_{what}_names", items)
