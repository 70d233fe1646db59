"""The study `optotrak` on a user's own records, here made by another program."""

import json

import numpy as np
import pytest

from estimation import MarkerData, write_markers
from experiments.__main__ import main
from experiments.studies.optotrak import identification as twin, model as rig
from experiments.studies.optotrak.own_record import read_motion, read_rig
from experiments.studies.optotrak.statics import static_state


OPTIONS = {"labels": "1 2 3 4", "axes": ""}
HELD = 157  # samples before the release


def records(folder, noise=1e-4, seed=3):
    """Write a static trial and one in motion, as a measuring system has them."""
    rng = np.random.default_rng(seed)
    shake = lambda p: p + noise * rng.normal(size=p.shape)
    moving = twin.clean()
    whole = np.concatenate([np.repeat(moving[:1], HELD, 0), moving])
    times = np.arange(len(whole)) / twin.RATE
    seen = shake(whole)
    seen[300:320, 1] = np.nan
    seen[400, 2] += 0.02  # a reflection
    seen[np.ix_(range(500, 520), [0, 2])] = seen[np.ix_(range(500, 520), [2, 0])]
    write_markers(MarkerData.seen(times, rig.SET.labels, seen), folder / "motion.trc")
    system, _ = rig.twin()
    rest = np.asarray(rig.places(system.mechanism, static_state(system).q))
    still = shake(np.repeat(rest[None], HELD, 0))
    still = MarkerData.seen(times[:HELD], rig.SET.labels, still)
    write_markers(still, folder / "static.csv")


def test_faults_are_repaired_and_the_release_is_found(tmp_path):
    records(tmp_path)
    record = read_motion(str(tmp_path / "motion.trc"), OPTIONS)
    said = " ".join(record.faults)
    assert "'1' and '3' are swapped" in said
    assert "marker '3' is out of place in 1 samples" in said
    assert 0 <= record.release - HELD / twin.RATE < 0.05
    np.testing.assert_allclose(record.noise, 1e-4, rtol=0.2)
    assert record.data.times[-1] - record.data.times[0] < 5.2


def test_records_that_are_not_of_the_rig_are_refused_in_a_sentence(tmp_path, capsys):
    records(tmp_path)
    path, other = str(tmp_path / "motion.trc"), str(tmp_path / "static.csv")

    def run(*sets):
        given = [word for one in sets for word in ("--set", one)]
        return main(["run", "optotrak", "--out", str(tmp_path / "out"), *given])

    for sets, said in (
        ((f"data={other}",), "the rod never moves"),
        ((f"static={other}",), "give data=FILE"),
        ((f"data={path}", f"static={path}"), "this is no static trial"),
        ((f"data={path}", "labels=1,2,3"), "four markers"),
        ((f"data={path}", "labels=3,4,1,2"), "do not have the shape"),
        ((f"data={path}", "labels=1,2,3,9"), "no marker '9'"),
        ((f"data={path}x",), "there is no file"),
    ):
        assert run(*sets) == 2, sets
        assert said in capsys.readouterr().err
    assert len(read_rig(path, OPTIONS)) > 900


@pytest.mark.study
@pytest.mark.validation
def test_own_records_are_identified(tmp_path):
    records(tmp_path)
    sets = [f"{k}={tmp_path / v}" for k, v in (
        ("data", "motion.trc"), ("static", "static.csv"))]  # fmt: skip
    out = tmp_path / "out"
    given = ["run", "optotrak", "--out", str(out), "--set", sets[0], "--set", sets[1]]
    assert main(given) == 0
    found = json.loads((out / "metrics.json").read_text())
    of = lambda path: found[f"optotrak.own.{path}"]
    assert of("contact.coulomb") == pytest.approx(rig.TWIN["coulomb"], rel=0.01)
    assert of("contact.turning") == pytest.approx(rig.TWIN["turning"], rel=0.01)
    assert of("chi2") == pytest.approx(1.0, abs=0.06)
    assert of("held_out") == pytest.approx(1.0, abs=0.1)
    assert (out / "report.html").stat().st_size > 1e5
