"""Entries of the cache on disk: nothing runs unless it is whole, ours and asked for."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from djdyn.kernels.cpu import cache


CODE = bytes(range(256)) * 20
KEY, OTHER = b"what it was made from", b"something else"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DJDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", set())
    cache.save_entry(KEY, CODE)
    return tmp_path / "cache"


def entry(folder):
    (file,) = (folder / "kernels").iterdir()
    return file


def corruptions(data: bytes):
    rng = np.random.default_rng(0)
    for n in (0, 1, 14, 40, 79, 100, len(data) - 1):
        yield data[:n]
    for at in rng.integers(0, len(data), 20):
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(8))
        yield bytes(flipped)
    yield data + b"\0"
    yield CODE
    yield data.replace(b"kernel 1", b"kernel 2")
    yield bytes(len(data))


def test_an_entry_comes_back(folder):
    assert cache.load_entry(KEY) == CODE
    assert cache.load_entry(OTHER) is None
    assert (folder / "kernels").stat().st_mode & 0o777 == 0o700


def test_no_corrupt_entry_is_loaded(folder):
    data = entry(folder).read_bytes()
    for corrupt in corruptions(data):
        entry(folder).write_bytes(corrupt)
        assert cache.load_entry(KEY) is None
    cache.save_entry(KEY, CODE)
    assert cache.load_entry(KEY) == CODE


def test_swapped_entries_are_not_loaded(folder):
    first = entry(folder)
    cache.save_entry(OTHER, CODE)
    (second,) = {*(folder / "kernels").iterdir()} - {first}
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)
    assert cache.load_entry(KEY) is None and cache.load_entry(OTHER) is None


@pytest.mark.parametrize("where", [".", "kernels"])
def test_a_folder_that_others_may_write_is_not_used(folder, where):
    (folder / where).chmod(0o777)
    with pytest.warns(UserWarning, match="others may write to it"):
        assert cache.load_entry(KEY) is None
    with warnings.catch_warnings():  # said once
        warnings.simplefilter("error")
        cache.save_entry(OTHER, CODE)
    assert len([*(folder / "kernels").iterdir()]) == 1


def test_an_entry_that_others_may_write_is_not_loaded(folder):
    entry(folder).chmod(0o666)
    assert cache.load_entry(KEY) is None


def test_a_folder_of_somebody_else_is_not_used(folder, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.warns(UserWarning, match="belongs to somebody else"):
        assert cache.load_entry(KEY) is None


def disk_is_full(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("how", ["a file in the way", "no home", "a full disk"])
def test_a_disk_that_refuses_is_no_error(tmp_path, monkeypatch, how):
    monkeypatch.setenv("DJDYN_CACHE", str(tmp_path))
    if how == "a file in the way":
        (tmp_path / "kernels").write_text("")
    elif how == "no home":
        for name in ("DJDYN_CACHE", "XDG_CACHE_HOME", "HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(cache.Path, "home", disk_is_full)
    else:
        monkeypatch.setattr(cache.os, "replace", disk_is_full)
    cache.save_entry(KEY, CODE)
    assert cache.load_entry(KEY) is None
    left = tmp_path / "kernels"
    assert left.is_file() or not left.exists() or not [*left.iterdir()]


SCRIPT = """
import jax.numpy as jnp
from djdyn.kernels import as_kernel
print(as_kernel(lambda x: [jnp.exp(x) @ x], jnp.arange(3.0))[0])
"""


def test_corrupt_kernels_are_compiled_anew(tmp_path):
    """Two processes at once, then one on the corrupt entry that they left."""
    env = {**os.environ, "DJDYN_CACHE": str(tmp_path), "JAX_ENABLE_X64": "1"}
    command = [sys.executable, "-c", SCRIPT]
    how = dict(env=env, stdout=subprocess.PIPE, text=True)
    both = [subprocess.Popen(command, **how) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    file = entry(tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[:200] + bytes([data[200] ^ 4]) + data[201:])
    said.append(subprocess.run(command, **how).stdout)
    assert said[0] and said[0] == said[1] == said[2]
    assert file.read_bytes() == data
