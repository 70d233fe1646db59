"""Mutated files end in a result or in one sentence; `readers.py` runs thousands."""

import os

import pytest

from . import cases
from .watch import Watch


# The first compiles; the others trace, or start a process each.
FEW = {"simulate": 0, "scenario": 12, "identify": 8, "c3d": 2, "series-nc": 2}
COUNT = 40
SEED = 1


@pytest.mark.parametrize("kind", [k for k in cases.READERS if FEW.get(k, 1)])
def test_mutated_files_end_in_a_result_or_a_sentence(kind, tmp_path, monkeypatch):
    if kind in ("mjcf", "urdf", "scenario"):
        pytest.importorskip("mujoco")
    if kind == "c3d":
        pytest.importorskip("ezc3d")
    cases.prepare(tmp_path)
    monkeypatch.chdir(tmp_path / "empty")
    watch, bad = Watch(tmp_path / "outside"), []
    for number in range(FEW.get(kind, COUNT)):
        path = cases.write(tmp_path, kind, SEED, number)
        found, said = cases.outcome(cases.READERS[kind].read, path)
        if found == "raw" or watch.opened():
            bad.append((number, found, said[:300]))
    assert not bad
    assert not os.listdir(tmp_path / "empty")


@pytest.mark.parametrize(
    "kind", ["mjcf", "urdf", "moordyn", "csv", "trc", "gains", "table"]
)
def test_what_is_mutated_is_sound(kind, tmp_path):
    reader = cases.READERS[kind]
    for data in reader.sound():
        path = tmp_path / f"sound{reader.suffix}"
        path.write_bytes(data)
        reader.read(path)


def test_a_watch_sees_who_opens_a_file(tmp_path):
    (tmp_path / "a").write_text("x")
    watch = Watch(tmp_path)
    assert not watch.opened()
    (tmp_path / "a").read_text()
    assert watch.opened() or watch.blind
