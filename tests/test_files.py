"""Files survive kills and full disks, and damaged ones are refused in a sentence."""

import os
import pickle

import numpy as np
import pytest

from djdyn.files import read_arrays, replacing, write_arrays, write_text


ARRAYS = {"a": np.arange(500.0), "names": np.array(["x", "y"])}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "state.npz"
    write_arrays(path, ARRAYS)
    return path


def test_arrays_come_back(saved):
    found = read_arrays(saved, "a state")
    assert found.keys() == ARRAYS.keys()
    assert all(np.array_equal(found[k], ARRAYS[k]) for k in ARRAYS)
    assert os.listdir(saved.parent) == ["state.npz"]


def corruptions(data: bytes):
    rng = np.random.default_rng(1)
    for n in (0, 1, 3, 30, 100, len(data) // 2, len(data) - 1):
        yield data[:n]
    for at in rng.integers(0, len(data), 60):
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(8))
        yield bytes(flipped)
    yield b"PK\x03\x04" + bytes(100)
    yield pickle.dumps(ARRAYS)
    yield b"\x93NUMPY"


def test_damage_is_refused_or_harmless(saved):
    """Bits that no checksum covers (dates, names) may flip; numbers may not."""
    for corrupt in corruptions(saved.read_bytes()):
        saved.write_bytes(corrupt)
        try:
            found = read_arrays(saved, "a state")
        except ValueError as error:
            assert str(error).startswith(f"{saved} is not a state")
            assert "\n" not in str(error)
        else:
            for name, value in found.items():
                assert name not in ARRAYS or np.array_equal(value, ARRAYS[name])


def test_objects_are_not_unpickled(tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="not a state"):
        read_arrays(path, "a state")
    np.save(tmp_path / "one.npy", np.arange(3))
    with pytest.raises(ValueError, match="single array"):
        read_arrays(tmp_path / "one.npy", "a state")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "metrics.json"
    write_text(path, "old")
    with pytest.raises(OSError, match="No space"), replacing(path) as new:
        new.write_text("ne")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["metrics.json"]
