"""Thousands of mutated files, each read in a process with limits on time and memory.

    python -m tests.fuzz.readers --count 1000 --kind scenario

prints how many ended in a result, in one sentence, or otherwise, and keeps the files of
the last sort.
"""

import argparse
import collections
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


TIME = 10.0  # s a case
MEMORY = 4e9  # bytes beyond what a process has once the library is imported
START = 300.0  # s to import and compile


def _worker(pipe: Any, root: str, kind: str, seed: int) -> None:
    """Read the cases whose numbers come in; send what became of them."""
    home = Path(root)
    with open(home / "native.log", "w") as log:  # what compiled libraries print
        os.dup2(log.fileno(), 2)
        os.dup2(log.fileno(), 1)
    from . import cases
    from .watch import Watch

    cases.prepare(home)
    os.chdir(home / "empty")
    reader = cases.READERS[kind]
    for data in reader.sound():  # imports and compilations
        sound = home / "case" / f"case{reader.suffix}"
        sound.write_bytes(data)
        pipe.send(cases.outcome(reader.read, sound))
    watch = Watch(home / "outside")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = int(pages * os.sysconf("SC_PAGE_SIZE") + MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    pipe.send(("ready", ""))
    while True:
        number = pipe.recv()
        path = cases.write(home, kind, seed, number)
        watch.opened()
        found, said = cases.outcome(reader.read, path)
        if watch.opened():
            found, said = "outside", f"a file outside was opened; {said}"
        if left := list((home / "empty").iterdir()):
            found, said = "wrote", f"wrote {left[0].name}; {said}"
            for file in left:
                file.unlink()
        pipe.send((found, said))


class Worker:
    """A process that reads cases one after the other; a new one if it dies."""

    def __init__(self, kind: str, seed: int):
        self.root = Path(tempfile.mkdtemp(prefix="fuzz"))
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        arguments = (other, str(self.root / "root"), kind, seed)
        (self.root / "root").mkdir()
        self.process = context.Process(target=_worker, args=arguments, daemon=True)
        self.process.start()
        other.close()
        while (answer := self.answer(START)) != ("ready", ""):
            if answer != ("result", ""):
                raise RuntimeError(f"a sound {kind} file ends in {answer}")

    def answer(self, limit: float) -> tuple[str, str]:
        """Return what became of the case, or of the process."""
        try:
            if self.pipe.poll(limit):
                return self.pipe.recv()
            return "time-out", f"no answer within {limit:g} s"
        except (EOFError, OSError):
            self.process.join(5.0)
            return "crash", f"the process ended with {self.process.exitcode}"

    def close(self) -> None:
        """End the process and remove its folder."""
        self.process.kill()
        self.process.join()
        shutil.rmtree(self.root, ignore_errors=True)


GOOD = ("result", "sentence")


def run(kind: str, numbers: range, seed: int, keep: Path) -> dict[str, Any]:
    """Read all cases of a kind; return counts and keep the files of failures."""
    counts: collections.Counter[str] = collections.Counter()
    failures, slowest, worker = [], 0.0, Worker(kind, seed)
    for number in numbers:
        start = time.perf_counter()
        worker.pipe.send(number)
        found, said = worker.answer(TIME)
        slowest = max(slowest, time.perf_counter() - start)
        counts[found] += 1
        if found not in GOOD:
            failures.append((number, found, said))
            keep.mkdir(parents=True, exist_ok=True)
            for file in (worker.root / "root" / "case").glob("case.*"):
                shutil.copy(file, keep / f"{kind}-{seed}-{number}{file.suffix}")
        if found in ("time-out", "crash"):
            worker.close()
            worker = Worker(kind, seed)
    worker.close()
    return {"counts": counts, "failures": failures, "slowest": slowest}


def main(argv: list[str] | None = None) -> int:
    """Run the cases that the arguments ask for; return 1 if any ends badly."""
    from . import cases

    parser = argparse.ArgumentParser(description=__doc__)
    kinds = tuple(cases.READERS)
    parser.add_argument("--count", type=int, default=100, help="cases of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--kind", choices=kinds, action="append", help="kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("runs/fuzz"))
    args = parser.parse_args(argv)
    columns = ("result", "sentence", "raw", "crash", "time-out", "outside", "wrote")
    print(f"{'kind':<12}{'cases':>7}", *(f"{c:>9}" for c in columns), "  slowest")
    bad = 0
    for kind in args.kind or kinds:
        numbers = range(args.first, args.first + args.count)
        done = run(kind, numbers, args.seed, args.keep)
        counts = done["counts"]
        row = "".join(f"{counts[c]:>10}" for c in columns)
        print(f"{kind:<12}{args.count:>7}{row}{done['slowest']:>8.1f} s", flush=True)
        for number, found, said in done["failures"]:
            print(f"    {kind} {number} {found}: {said[:300]!r}", flush=True)
        bad += len(done["failures"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
