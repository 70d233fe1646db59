"""Damaged entries of the cache of compiled programs: no crash, no other number.

    python -m tests.fuzz.cache --count 1000

A run leaves compiled kernels and XLA's programs in a folder, as the `djdyn` command
does. Each case damages one of these files, runs again in a new process and compares
every bit of the result.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import djdyn


TIME = 300.0  # s a case


def run(folder: str) -> bytes:
    """Return the last states of a batch, from a kernel kept in `folder`."""
    import jax
    import jax.numpy as jnp

    warnings.simplefilter("ignore")
    os.environ["DJDYN_CACHE"] = folder
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    rod = djdyn.Body("rod", "world", djdyn.Revolute((0, 1, 0)), 1.0, (0, 0, -1.0))
    system = djdyn.System(djdyn.Mechanism((rod,)))
    y = system.initial_state(q={"rod": 1.0})
    masses = {"rod.mass": jnp.linspace(1.0, 2.0, 8)}
    how: Any = {"saveat": [0.5], "solver": "rk4", "dt": 0.05, "backend": "kernel"}
    runs = djdyn.rollout(system, 0.5, y, parameters=masses, **how)
    return np.asarray(runs.y.q).tobytes() + np.asarray(runs.y.v).tobytes()


def _child(folder: str, log: str, pipe: Any) -> None:
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    pipe.send(run(folder))


CONTEXT = multiprocessing.get_context("spawn")


def result(folder: Path) -> bytes | str:
    """Return what a new process finds with a cache, or how it ends."""
    pipe, other = CONTEXT.Pipe()
    log = str(folder.with_suffix(".log"))
    process = CONTEXT.Process(target=_child, args=(str(folder), log, other))
    process.start()
    other.close()
    try:
        if not pipe.poll(TIME):
            return "time-out"
        return pipe.recv()
    except EOFError:
        process.join()
        return f"crash ({process.exitcode})"
    finally:
        process.kill()
        process.join()


def truncated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return the first part of an entry."""
    del other
    return data[: rng.randrange(len(data))]


def flipped(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return an entry with one to eight bits of another value."""
    del other
    new = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
    return bytes(new)


def overwritten(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return an entry with a block of zeros, ones or noise, as a bad disk leaves it."""
    del other
    start, length = rng.randrange(len(data)), rng.choice((1, 16, 512, 4096))
    block = rng.choice((bytes(length), b"\xff" * length, rng.randbytes(length)))
    return (data[:start] + block + data[start + length :])[: len(data)]


def swapped(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return the entry of another program, whole or behind this one's head."""
    cut = rng.choice((0, 15, 47, 79))
    return data[:cut] + other[cut:]


def lengthened(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return an entry with more behind it."""
    del other
    return data + rng.randbytes(rng.choice((1, 100, 10_000)))


DAMAGE: tuple[Callable[[random.Random, bytes, bytes], bytes], ...] = (
    truncated,
    flipped,
    overwritten,
    swapped,
    lengthened,
)


def entries(folder: Path) -> dict[str, list[Path]]:
    """Return the files of a cache by kind."""
    xla = [p for p in sorted(folder.iterdir()) if p.name.endswith("-cache")]
    return {"kernel": sorted((folder / "kernels").iterdir()), "XLA": xla}


def damage(cache: Path, number: int) -> tuple[str, str]:
    """Damage a file of a cache; return its kind and the damage."""
    rng = random.Random(number)
    kind = ("kernel", "kernel", "XLA")[number % 3]
    file, other = rng.sample(entries(cache)[kind], 2)
    how = DAMAGE[number // 3 % len(DAMAGE)]
    file.write_bytes(how(rng, file.read_bytes(), other.read_bytes()))
    return kind, how.__name__


def attack(numbers: range, folder: Path) -> tuple[Counter[str], list[str]]:
    """Run the cases; return how many ended well by kind and damage, and the others."""
    sound = folder / "sound"
    expected = result(sound)
    if not isinstance(expected, bytes) or result(sound) != expected:
        raise RuntimeError(f"the sound cache gives {expected!r}")
    done: Counter[str] = Counter()
    bad = []
    for number in numbers:
        cache = folder / "case"
        shutil.copytree(sound, cache)
        kind, how = damage(cache, number)
        found = result(cache)
        if found == expected:
            done[f"{kind} {how}"] += 1
        else:
            said = found if isinstance(found, str) else "another number"
            bad.append(f"case {number}, {kind} {how}: {said}")
        shutil.rmtree(cache)
    return done, bad


def main(argv: list[str] | None = None) -> int:
    """Run the cases that the arguments ask for; return 1 if any ends badly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=32, help="damaged files")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(args.first, args.first + args.count)
        done, bad = attack(numbers, Path(folder))
    for what, count in sorted(done.items()):
        print(f"{what:<24}{count:>7} compiled anew, same bits")
    print("\n".join([*bad, f"{len(bad)} of {args.count} end badly"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
