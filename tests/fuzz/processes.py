"""Threads, forks, one core and little memory: results or a sentence.

    python -m tests.fuzz.processes --count 20

Each case simulates, runs a batch and takes gradients: from several threads at once, in
a process that was forked, in several processes at once, on one core, or with a limit on
memory that shrinks from case to case. It ends with the numbers of an undisturbed
process, or in one sentence, within a minute or two.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path


ROOT = Path(__file__).parents[2]
PATIENCE = 300.0  # s
WORK = """
import json, os, resource, sys, threading
LIMIT = {limit}
if LIMIT:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
CORES = {cores}
if CORES:
    os.sched_setaffinity(0, CORES)
import warnings
warnings.simplefilter("ignore")
import jax
import jax.numpy as jnp
import djdyn
from djdyn.parts import JointFriction, JointSpring

jax.config.update("jax_enable_x64", True)
hinge = djdyn.Revolute((0, 1, 0))
BODIES = [
    djdyn.Body(f"b{{i}}", f"b{{i - 1}}" if i else "world", hinge, 1.0, (0, 0, -0.5),
               0.1 * jnp.eye(3), djdyn.translation((0, 0, -float(bool(i)))))
    for i in range({links})
]

def work(_=None):
    bearing = JointFriction("b1", viscous=0.2)
    parts = {{"spring": JointSpring("b0", 5.0), "bearing": bearing}}
    system = djdyn.System(djdyn.Mechanism(tuple(BODIES)), parts)
    y = system.initial_state(q={{"b0": 1.0}})

    def end(mass):
        heavy = djdyn.with_parameters(system, {{"b1.mass": mass}})
        return djdyn.simulate(heavy, 1.0, y, saveat=2, **{how}).y.q[-1, 0]

    masses = {{"b1.mass": jnp.linspace(1.0, 2.0, {lanes})}}
    runs = djdyn.rollout(system, 1.0, y, parameters=masses, saveat=[1.0], **{how})
    numbers = (end(1.0), jax.grad(end)(1.0), runs.y.q[0, -1, 0], runs.y.q[-1, -1, 0])
    return [float(x) for x in numbers]

"""
ONCE = "print('ANSWER', json.dumps(work()))"
THREADS = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor({threads}) as pool:
    found = list(pool.map(work, range({threads})))
assert all(x == found[0] for x in found), found
print("ANSWER", json.dumps(found[0]))
"""
FORKED = """
expected = work()
child = os.fork()
if not child:  # leaves as processes of multiprocessing do
    try:
        work()
    except RuntimeError as error:
        print(error, file=sys.stderr)
    finally:
        os._exit(0)
print("ANSWER", json.dumps(expected))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
HOW = ({"solver": "rk4", "dt": 0.02}, {"solver": "rodas4", "dt": 0.02}, {})
KINDS = ("threads", "fork", "processes", "one core", "memory")
GIGABYTE = 1 << 30


def script(kind: str, number: int) -> str:
    """Return the program of a case; `alone` is undisturbed."""
    round_ = number // len(KINDS)
    settings = {"limit": 0, "cores": [], "links": 3, "how": HOW[round_ % len(HOW)]}
    settings["lanes"] = (8, 3000)[round_ % 2]
    end = ONCE
    match kind:
        case "threads":
            end = THREADS.format(threads=2 + 2 * (round_ % 4))
        case "fork":
            end = FORKED
        case "one core":
            settings["cores"] = [min(os.sched_getaffinity(0))]
        case "memory":
            settings["limit"] = int((6 - 0.5 * (round_ % 12)) * GIGABYTE)
    return WORK.format(**settings) + end


def start(text: str) -> subprocess.Popen:
    """Start a process that runs a program."""
    out = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, **out)


def ended(process: subprocess.Popen) -> tuple[list[float] | None, int, str]:
    """Return the numbers of a process, its status and what it said last."""
    try:
        said, error = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None, 0, "hangs"
    answers = [x for x in said.splitlines() if x.startswith("ANSWER ")]
    numbers = json.loads(answers[-1].removeprefix("ANSWER ")) if answers else None
    lines = [x for x in error.splitlines() if x.strip()]
    return numbers, process.returncode, lines[-1] if lines else ""


SENTENCES = ("MemoryError", "RESOURCE_EXHAUSTED", "Out of memory", "cannot allocate")
FORK_SENTENCE = "this process was forked from one in which JAX runs"


def case(kind: str, number: int, expected: list[float]) -> str:
    """Run one case; return `result`, `sentence`, or what is wrong."""
    count = 3 if kind == "processes" else 1
    running = [start(script(kind, number)) for _ in range(count)]
    for numbers, status, said in map(ended, running):
        if kind == "fork" and numbers == expected:
            return "sentence" if FORK_SENTENCE in said else f"{status}: {said[:300]}"
        if numbers == expected and not status:
            continue
        if kind == "memory" and numbers is None and status:
            known = any(x.lower() in said.lower() for x in SENTENCES)
            return "sentence" if known else f"{status}: {said[:300]}"
        return f"{numbers} instead of {expected}, {status}: {said[:300]}"
    return "result"


def attack(numbers: range, kinds: tuple[str, ...] = KINDS) -> tuple:
    """Run the cases; return how many of each kind ended well, and the others."""
    done: Counter[str] = Counter()
    bad, sound = [], {}
    for number in numbers:
        kind, round_ = KINDS[number % len(KINDS)], number // len(KINDS)
        if kind not in kinds:
            continue
        if round_ % 6 not in sound:
            sound[round_ % 6] = ended(start(script("alone", number)))[0]
        found = case(kind, number, sound[round_ % 6])
        if found in ("result", "sentence"):
            done[f"{kind}: {found}"] += 1
        else:
            bad.append(f"case {number}, {kind}: {found}")
    return done, bad


def main(argv: list[str] | None = None) -> int:
    """Run the cases that the arguments ask for; return 1 if any ends badly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=len(KINDS))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    args = parser.parse_args(argv)
    numbers = range(args.first, args.first + args.count)
    done, bad = attack(numbers, tuple(args.kind or KINDS))
    for what, count in sorted(done.items()):
        print(f"{what:<24}{count:>7}")
    print("\n".join([*bad, f"{len(bad)} of {sum(done.values()) + len(bad)} end badly"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
