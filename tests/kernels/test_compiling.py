"""The way to machine code: the cache on disk, XLA's interface, threads, lanes."""

import os
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.kernels import as_kernel
from djdyn.kernels.cpu import compile as compiling
from djdyn.kernels.cpu.ffi_handler import ASSEMBLY, OFFSETS, VERSION


def fn(x):
    return [jnp.sin(x) / (1 + x * x), jnp.cumsum(x)]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache on disk, and none in memory."""
    monkeypatch.setenv("DJDYN_CACHE", str(tmp_path))
    monkeypatch.setattr(compiling, "_loaded", {})
    monkeypatch.setattr(jax.ffi, "register_ffi_target", lambda *_, **__: None)
    return tmp_path


def closed():
    return jax.make_jaxpr(fn)(jnp.arange(3.0))


def refuse(*_):
    raise AssertionError("compiled again")


def test_the_cache_on_disk(cache, monkeypatch):
    name, first = compiling.compile_kernel(closed(), (True,), 8)
    assert len([*cache.rglob("*.kernel")]) == 1
    monkeypatch.setattr(compiling, "object_code", refuse)
    assert compiling.compile_kernel(closed(), (True,), 8)[1] is first
    compiling._loaded.clear()
    again, second = compiling.compile_kernel(closed(), (True,), 8)
    assert again == name and second is not first
    for other in (((True,), 1), ((False,), 1)):  # each is a kernel of its own
        with pytest.raises(AssertionError, match="compiled again"):
            compiling.compile_kernel(closed(), *other)


SCRIPT = """
import jax.numpy as jnp
from djdyn.kernels import as_kernel
from djdyn.kernels.cpu import compile as compiling
if {again}:
    compiling.object_code = None
print(as_kernel(lambda x: [jnp.exp(x) @ x], jnp.arange(3.0))[0])
"""


def test_another_process_finds_the_kernel(cache):
    env = {**os.environ, "DJDYN_CACHE": str(cache), "JAX_ENABLE_X64": "1"}
    said = []
    for again in (False, True):
        command = [sys.executable, "-c", SCRIPT.format(again=again)]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1] and len(list(cache.rglob("*.kernel"))) == 1


def test_a_digest_tells_functions_apart():
    digest = lambda fn, *x: compiling.fingerprint(jax.make_jaxpr(fn)(*x))
    x, y = jnp.arange(3.0), jnp.arange(4.0)
    loop = lambda x, k: jax.lax.scan(lambda c, x: (c + k * x, c), 0.0, x)
    table = [np.arange(3.0), np.arange(3.0) + 1]
    fns = [
        *(jnp.sin, jnp.cos, lambda x: x + 1.0, lambda x: x + 2.0, lambda x: x[:2]),
        *(lambda x: x[1:], lambda x, c=table[0]: x * c, lambda x, c=table[1]: x * c),
        *(lambda x: x.sum(), lambda x: x - x.sum(), lambda x: x.sum() - x),
        *(lambda x: loop(x, 1.0), lambda x: loop(x, 2.0)),
        *(lambda x: jnp.where(x > 0, x, 0.0), lambda x: jnp.where(x > 0, 0.0, x)),
    ]
    found = [digest(fn, x) for fn in fns] + [digest(jnp.sin, y)]
    assert found == [digest(fn, x) for fn in fns] + [digest(jnp.sin, y)]
    assert len(set(found)) == len(found)


def test_offsets_are_those_of_the_header(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    lines = []
    for name in OFFSETS:
        struct, field = name.split(".", 1)
        lines.append(f'printf("%s %zu\\n", "{name}", offsetof({struct}, {field}));')
    sizes = {"XLA_FFI_ThreadPool_NumThreads_Args": 32}
    sizes["XLA_FFI_ThreadPool_Schedule_Args"] = 40
    lines += [f'printf("%s %zu\\n", "{n}", sizeof({n}));' for n in sizes]
    version = 'printf("version %d\\n", XLA_FFI_API_MAJOR * 1000 + XLA_FFI_API_MINOR);'
    source = tmp_path / "offsets.c"
    heads = ("stddef.h", "stdint.h", "stdio.h", "xla/ffi/api/c_api.h")
    source.write_text(
        "".join(f"#include <{h}>\n" for h in heads)
        + "int main(void) {\n"
        + "\n".join([*lines, version])
        + "\nreturn 0;\n}\n"
    )
    program = tmp_path / "offsets"
    include = f"-I{jax.ffi.include_dir()}"
    subprocess.run([compiler, include, str(source), "-o", str(program)], check=True)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    found = {k: int(v) for k, v in (line.split() for line in said.stdout.splitlines())}
    assert found == {**OFFSETS, **sizes, "version": 1000 * VERSION[0] + VERSION[1]}


def test_the_handler_uses_no_other_offsets():
    used = {
        int(x.split()[-1]) for x in ASSEMBLY.splitlines() if "getelementptr i8" in x
    }
    assert used <= set(OFFSETS.values())


def series(x):
    """Long enough for threads to overlap; lanes take turns of their own number."""
    more = lambda s: s[0] < 20 + 30 * jnp.abs(x[0])
    turn = lambda s: (s[0] + 1, jnp.sin(s[1]) + 0.1 * x)
    return [jax.lax.while_loop(more, turn, (jnp.zeros_like(x[0]), x))[1]]


def run(x):
    return as_kernel(series, x)


def test_threads_and_single_lanes_agree():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1000, 3)))
    (many,) = jax.jit(jax.vmap(run))(x)
    one = jax.jit(run)
    for i in (0, 1, 6, 7, 8, 500, 991, 992, 998, 999):
        np.testing.assert_allclose(many[i], one(x[i])[0], rtol=1e-13)
    for _ in range(20):
        np.testing.assert_array_equal(jax.jit(jax.vmap(run))(x)[0], many)


def test_a_lane_of_nan_stays_alone():
    x = np.random.default_rng(0).normal(size=(19, 3))
    (clean,) = jax.vmap(run)(jnp.asarray(x))
    for lane in (0, 3, 18):
        bad = x.copy()
        bad[lane] = np.nan
        (found,) = jax.vmap(run)(jnp.asarray(bad))
        assert np.all(np.isnan(found[lane]))
        rest = np.arange(len(x)) != lane
        np.testing.assert_array_equal(found[rest], clean[rest])
