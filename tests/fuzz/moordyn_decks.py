"""Reads every MoorDyn deck of a folder, and compares tensions at rest with MoorDyn's.

    python tests/fuzz/moordyn_decks.py FOLDER [--compare] [--only NAME ...]

A deck is a text file with a heading of lines, points, rods, bodies or their types. With
`--compare` each line's tension in the middle of its last segment (that at its end less
the weight between, in water) is put beside MoorDyn's, both at rest. MoorDyn's search
for rest is as the deck says, and 100 s long where the deck has none. Paths in decks are
relative to the folder above `Mooring`.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np


sys.path.insert(0, str(Path(__file__).parents[2]))

HEADING = re.compile(
    r"^-+\s*(LINES?|POINTS?|NODE|CONNECTION|BOD(Y|IES)|RODS?)\b", re.I | re.M
)
PATIENCE = 240.0  # s, for MoorDyn's search for rest
AGREES = 0.01
SLACK = 1e-6  # strain below which a line counts as slack


def decks(folder: Path) -> list[Path]:
    """Return the files of a folder that are decks."""
    files = (f for f in sorted(folder.rglob("*")) if f.is_file())
    return [f for f in files if HEADING.search(f.read_text(errors="replace"))]


def run_moordyn(file: Path) -> dict[str, float]:
    """Return MoorDyn's fairlead tensions of a deck at rest, by line."""
    import moordyn

    from djdyn.io.moordyn import KINDS, read_moordyn

    deck = read_moordyn(file, ignore=KINDS)
    x: list[float] = []
    for body in deck.bodies.values():
        if "coupled" in body.kind:
            pinned = body.kind == "coupled pinned"
            x += [*body.position, *(() if pinned else body.roll_pitch_yaw)]
    for point in deck.points.values():
        x += point.position if point.kind == "coupled" else ()
    if not deck.start_time > 0:
        text = file.read_text(errors="replace")
        found = [r"^\s*\S+(\s+(TmaxIC|ICTmax)\b)", r"^\s*\S+(\s+(dtIC|ICdt)\b)"]
        for pattern, value in zip(found, ("100", "1.0"), strict=True):
            text = re.sub(pattern, rf"{value}\1", text, flags=re.I | re.M)
        file.write_text(text)
    system = moordyn.Create(str(file))
    if system is None or moordyn.Init(system, x, [0.0] * len(x)) != 0:
        raise RuntimeError("MoorDyn does not take the deck")
    numbers = range(1, moordyn.GetNumberLines(system) + 1)
    lines = {n: moordyn.GetLine(system, n) for n in numbers}
    first = {n: moordyn.GetLineFairTen(line) for n, line in lines.items()}
    moordyn.Step(system, x, [0.0] * len(x), 0.0, 1.0)
    drift = {n: abs(moordyn.GetLineFairTen(x) - first[n]) for n, x in lines.items()}
    if any(drift[n] > AGREES * abs(first[n]) for n in first):
        raise RuntimeError("MoorDyn is not at rest")
    return {str(n): tension for n, tension in first.items()}


def peer(file: Path, folder: Path) -> dict[str, float] | str:
    """Return MoorDyn's answer from a process of its own, or why there is none."""
    with tempfile.TemporaryDirectory() as copy:
        top = Path(copy) / folder.name
        shutil.copytree(folder, top)
        one = top / file.relative_to(folder)
        command = [sys.executable, __file__, str(one), "--moordyn"]
        try:
            done = subprocess.run(
                command, cwd=copy, capture_output=True, text=True, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return f"MoorDyn is not done after {PATIENCE:g} s"
    if "not at rest" in done.stderr:
        return "MoorDyn is not at rest after its search"
    answers = [x for x in done.stdout.splitlines() if x.startswith("ANSWER ")]
    if not answers:
        return "MoorDyn does not start"
    return json.loads(answers[-1].removeprefix("ANSWER "))


def ours(file: Path, elements: int) -> dict[str, float] | str:
    """Return our tensions in the middle of the last segment, or why there are none."""
    from djdyn.io import from_moordyn, read_moordyn

    deck = read_moordyn(file)
    counts = {number: elements for number in deck.lines}
    try:
        system, y0 = from_moordyn(deck, elements=counts, start="rest")
    except RuntimeError as error:
        return str(error).split(":")[0]
    now = system.at(0.0, y0)
    found = {}
    for n, line in deck.lines.items():
        part: Any = system.parts[f"line{n}"]
        kind, half = deck.line_types[line.type], line.length / line.segments / 2
        wet = kind.mass - deck.density * np.pi / 4 * kind.diameter**2
        pull = -np.asarray(part.end_loads(now, f"line{n}")[1, 3:])
        tension = float(np.linalg.norm(pull - [0, 0, wet * deck.gravity * half]))
        slack = abs(tension) < SLACK * deck.line_types[line.type].EA
        found[str(n)] = 0.0 if slack else tension
    return found


def row(file: Path, folder: Path, compare: bool, elements: int) -> tuple[str, str]:
    """Return whether a deck is read (or why not), and how it compares."""
    from djdyn.io import from_moordyn

    try:
        from_moordyn(file, start="rough")
    except ValueError as error:
        return "no", str(error)
    if not compare:
        return "yes", ""
    began = time.perf_counter()
    mine, wanted = ours(file, elements), peer(file, folder)
    took = f" ({time.perf_counter() - began:.0f} s)"
    if isinstance(mine, str) or isinstance(wanted, str):
        said = [x for x in (mine, wanted) if isinstance(x, str)]
        return "yes", "; ".join(said) + took
    if not mine:
        return "yes", "no lines"
    error = {n: mine[n] / wanted[n] - 1 for n in mine if mine[n] and wanted[n]}
    if not error:
        return "yes", "all lines are slack" + took
    worst = max(error, key=lambda n: abs(error[n]))
    verdict = "agrees" if abs(error[worst]) < AGREES else "DIFFERS"
    said = f"line {worst}: {mine[worst]:.6g} N, MoorDyn {wanted[worst]:.6g} N"
    return "yes", f"{verdict}, {100 * error[worst]:+.2f} % ({said}){took}"


def main() -> None:
    """Print a table of decks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--elements", type=int, default=20, help="of each line")
    parser.add_argument("--only", nargs="*", default=(), help="parts of names")
    parser.add_argument("--moordyn", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.moordyn:
        print("ANSWER " + json.dumps(run_moordyn(given.folder)))
        return
    import jax

    jax.config.update("jax_enable_x64", True)
    read, count = 0, 0
    for file in decks(given.folder):
        name = str(file.relative_to(given.folder))
        if given.only and not any(part in name for part in given.only):
            continue
        try:
            answer, more = row(file, given.folder, given.compare, given.elements)
        except Exception as error:  # a crash is a finding too
            answer, more = "CRASH", f"{type(error).__name__}: {error}"
        read, count = read + (answer == "yes"), count + 1
        print(f"{name:42} {answer:6} {more}", flush=True)
    print(f"{read} of {count} read")


if __name__ == "__main__":
    main()
