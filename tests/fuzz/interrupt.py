"""Work that is killed, interrupted or meets a full disk, and then resumed.

    python -m tests.fuzz.interrupt --count 100

Each case runs a fit, a tuning, the simulation of a scenario or a study in a new process
and disturbs it: by SIGKILL or SIGINT at a random time, or by a limit on the size of
files. Every file that is left must be whole, the command must say one sentence, and
undisturbed work in the same folder must end with the same numbers as if nothing had
happened.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np

import djdyn


PATIENCE = 300.0  # s
SCENARIO = """
[simulation]
t1 = 5.0
saveat = 500
[[body]]
name = "rod"
joint = { type = "revolute", axis = [0, 1, 0] }
mass = 1.0
com = [0, 0, -1]
[initial]
q = { rod = 0.3 }
"""


def pendulum() -> djdyn.System:
    """Return a pendulum with a controller and a bearing."""
    from controllers import JointPID, Reference
    from djdyn.parts import JointActuator, JointFriction

    rod = djdyn.Body("rod", "world", djdyn.Revolute((0, 1, 0)), 1.0, (0, 0, -1.0))
    parts = {
        "bearing": JointFriction("rod", viscous=0.3),
        "target": Reference([0.5]),
        "pid": JointPID("rod", "target.value", kp=[2.0], kd=[1.0]),
        "motor": JointActuator(("rod",), "pid.u"),
    }
    return djdyn.System(djdyn.Mechanism((rod,)), parts)


def angles(system, times, start, adjoint):
    """Predict a record of angles."""
    return djdyn.simulate(system, 2.0, start, saveat=times, adjoint=adjoint).y.q


def keep(folder: Path, x: Any, history: np.ndarray) -> None:
    """Write the unknowns that a search found, and its steps."""
    answer = {"steps": len(history), "cost": float(history[-1].min())}
    answer |= {f"x{i}": float(value) for i, value in enumerate(x)}
    (folder / "answer.json").write_text(json.dumps(answer))


def fit(folder: Path) -> None:
    """Fit a mass and a friction."""
    from estimation import Trial, fit

    system, times = pendulum(), np.linspace(0.0, 2.0, 41)
    start = system.initial_state(q={"rod": 1.0})
    noise = 1e-3 * np.random.default_rng(0).normal(size=(41, 1))
    record = np.asarray(angles(system, times, start, "forward")) + noise
    trial = Trial(times, record, angles, sigma=1e-3, start=start)
    far = djdyn.with_parameters(system, {"rod.mass": 1.6, "bearing.viscous": 0.6})
    how = dict(method="adam", max_steps=60, save=folder / "fit", progress=False)
    found = fit(far, trial, ["rod.mass", "bearing.viscous"], **how)
    keep(folder, found.x, found.history)


def tuning(folder: Path) -> None:
    """Tune two gains."""
    from controllers import MeanSquare, SearchOptions, tune

    cost = {"error": MeanSquare("pid.error"), "effort": MeanSquare("pid.u", 10.0)}
    search = SearchOptions(method="adam", max_steps=60)
    how: Any = dict(save=folder / "tuning", progress=False, solver="rk4", dt=0.02)
    free = [djdyn.FreeParameter(f"pid.{k}", djdyn.Positive()) for k in ("kp", "kd")]
    found = tune(pendulum(), 2.0, free=free, cost=cost, search=search, **how)
    keep(folder, found.x, found.history)


def simulation(folder: Path) -> int:
    """Simulate a scenario by the command."""
    from experiments.__main__ import main

    scenario = folder.parent / "rod.toml"
    scenario.write_text(SCENARIO)
    return main(["simulate", str(scenario), "--out", str(folder)])


def study(folder: Path) -> int:
    """Run a study by the command."""
    from experiments.__main__ import main

    return main(["run", "bounce-id", "--quick", "--out", str(folder)])


WORK = {"fit": fit, "tuning": tuning, "simulation": simulation, "study": study}
HOW = ("kill", "Ctrl-C", "full disk")


def _child(name: str, folder: Path, cache: str, most: int | None) -> None:
    os.setpgrp()
    os.environ["DJDYN_CACHE"] = cache
    with open(folder.with_suffix(".log"), "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    warnings.simplefilter("ignore")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    if most is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    folder.mkdir(exist_ok=True)
    sys.exit(WORK[name](folder))


CONTEXT = multiprocessing.get_context("spawn")


def do(
    name: str, folder: Path, cache: Path, end: tuple | None = None, most=None
) -> int | None:
    """Do the work in a new process; return its exit status, None if it hangs.

    `end` is a signal and the time to send it at, s.
    """
    process = CONTEXT.Process(target=_child, args=(name, folder, str(cache), most))
    process.start()
    if end is not None:
        what, when = end
        process.join(when)
        if process.exitcode is None:
            os.kill(process.pid or 0, what)
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def answer(folder: Path) -> dict[str, float] | None:
    """Return the numbers that work ended with, if it ended."""
    for name in ("answer.json", "metrics.json"):
        if (folder / name).exists():
            return json.loads((folder / name).read_text())
    return None


def broken_files(folder: Path) -> list[str]:
    """Return the names of files that are not whole; unfinished ones have `.part`."""
    from djdyn.files import read_arrays

    found = []
    for path in sorted(folder.iterdir()):
        try:
            if ".part" in path.name:
                continue
            if path.suffix == ".npz":
                read_arrays(path, "the state of a search")
            elif path.suffix == ".json" and path.name != "answer.json":
                json.loads(path.read_text())
            elif path.suffix == ".nc":
                _open_series(path)
            elif path.suffix == ".html" and "</html>" not in path.read_text()[-200:]:
                raise ValueError("cut off")
        except (ValueError, OSError) as error:
            found.append(f"{path.name}: {error}")
    return found


def _open_series(path: Path) -> None:
    import h5py

    with h5py.File(path) as file:
        file.visititems(lambda name, x: None)


def same(found: dict | None, expected: dict) -> bool:
    """Whether two answers are equal, but for times that were measured."""
    if found is None or found.keys() != expected.keys():
        return False
    timed = lambda k: k.endswith(("_s", "seconds", "time", "per_second"))
    return all(
        timed(k) or np.allclose(found[k], x, rtol=1e-9, equal_nan=True)
        for k, x in expected.items()
    )


def disturb(name: str, number: int, folder: Path, sound: tuple) -> str:
    """Run one case; return how it ended, `well` or what is wrong."""
    expected, took, largest = sound
    rng, cache, out = random.Random(number), folder / "cache", folder / "case"
    shutil.rmtree(out, ignore_errors=True)
    how = HOW[number % len(HOW)]
    if how == "full disk":
        status = do(name, out, cache, most=int(largest * rng.random() ** 2))
    else:
        what = {"kill": signal.SIGKILL, "Ctrl-C": signal.SIGINT}[how]
        status = do(name, out, cache, end=(what, took * rng.random()))
    said = out.with_suffix(".log").read_text()
    if status is None:
        return "hangs"
    if status in (-11, -6, -7):
        return f"crashes ({status})"
    if broken := (broken_files(out) if out.exists() else []):
        return f"left {broken[0]}"
    command = name in ("simulation", "study")
    if command and status and "Traceback" in said:  # a Ctrl-C may come to nothing
        return f"raw traceback ({status}): {said[said.index('Traceback') :][:3000]}"
    status = do(name, out, cache)
    if not same(answer(out), expected):
        said = out.with_suffix(".log").read_text()[-300:]
        return f"resumes to {answer(out)}, not {expected} ({status}): {said}"
    return "well"


def reference(name: str, folder: Path) -> tuple[dict, float, int]:
    """Return the answer of undisturbed work, its duration and its largest file."""
    for _ in range(2):  # the second finds all programs compiled
        out = folder / "sound"
        shutil.rmtree(out, ignore_errors=True)
        start = time.perf_counter()
        status = do(name, out, folder / "cache")
        took = time.perf_counter() - start
    found = answer(out)
    if found is None:
        said = out.with_suffix(".log").read_text()
        raise RuntimeError(f"{name} ends with {status}: {said[-1000:]}")
    return found, took, max(p.stat().st_size for p in out.iterdir())


def attack(names: tuple[str, ...], numbers: range, folder: Path) -> tuple:
    """Run the cases; return how many of each sort ended well, and the others."""
    done: Counter[str] = Counter()
    bad = []
    for name in names:
        sound = reference(name, folder)
        for number in numbers:
            found = disturb(name, number, folder, sound)
            if found == "well":
                done[f"{name}, {HOW[number % len(HOW)]}"] += 1
            else:
                bad.append(f"{name} {number}, {HOW[number % len(HOW)]}: {found}")
    return done, bad


def main(argv: list[str] | None = None) -> int:
    """Run the cases that the arguments ask for; return 1 if any ends badly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=9, help="cases of each work")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--work", choices=tuple(WORK), action="append")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(args.first, args.first + args.count)
        done, bad = attack(tuple(args.work or WORK), numbers, Path(folder))
    for what, count in sorted(done.items()):
        print(f"{what:<24}{count:>7} resumed to the same numbers")
    print("\n".join([*bad, f"{len(bad)} of {sum(done.values()) + len(bad)} end badly"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
