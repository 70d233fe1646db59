"""Benchmarks: the engines agree, and what they report has the names it should."""

import json

import jax
import numpy as np
import pytest

import djdyn
from experiments.benchmarks import (
    contact,
    descriptions,
    engines,
    gradient,
    rollout,
    roofline,
    timing,
)
from experiments.benchmarks.problems import PROBLEMS, chain, problem
from experiments.harness.study import Study


LIGHT = ("mujoco", "pinocchio")  # the others take long to compile


@pytest.fixture
def study(tmp_path):
    options = {**rollout.OPTIONS, "engines": ",".join(LIGHT), "steps": 5, "rounds": 1}
    return Study("t", "s", tmp_path, stages=1, quick=True, options=options)


@pytest.mark.parametrize(("name", "batch"), [("arm7", 1), ("arm7", 3), ("tree20", 3)])
def test_engines_agree(name, batch):
    machine, (peers, _) = problem(name), engines.peers(LIGHT)
    ours = [np.asarray(e.ends(machine, batch, 5)()) for e in engines.ours()]
    assert ours[0].shape == (batch, len(machine.q0))
    calls = [e.ends(machine, batch, 5) for e in peers]
    theirs = [call() for call in calls if call]
    assert theirs or not peers
    for found in [*ours[1:], *theirs]:
        np.testing.assert_allclose(found, ours[0], atol=1e-12)


def test_gradients_agree():
    machine, (peers, _) = problem("dpend"), engines.peers(LIGHT)
    q, v, links = engines.own.gradients(machine, 1, 5)()
    assert all(np.isfinite(leaf).all() for leaf in links)
    for engine in peers:
        found = engine.gradients(machine, 1, 5)()
        np.testing.assert_allclose(found[0], q, rtol=1e-6)
        np.testing.assert_allclose(found[1], v, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["mjx", "brax", "jaxsim", "frax"])
def test_peers_in_jax_agree(key):
    found, _ = engines.peers([key])
    if not found:
        pytest.skip(f"{key} is not installed")
    machine = problem("tree20")
    with timing.quiet(), jax.numpy_dtype_promotion("standard"):
        with jax.numpy_rank_promotion("allow"):
            end = np.asarray(found[0].ends(machine, 3, 5)())
    wanted = np.asarray(engines.own.ends(machine, 3, 5)())
    np.testing.assert_allclose(end, wanted, atol=1e-12)


@pytest.mark.parametrize("name", [*PROBLEMS, "chain5"])
def test_problems_fit_their_systems(name):
    machine = problem(name)
    system = machine.build()
    q, v = machine.starts(3)
    assert (q.shape, v.shape) == ((3, system.mechanism.nq), (3, system.mechanism.nv))
    np.testing.assert_array_equal(q[0], machine.q0)
    assert machine.text is None or system.inputs["torque"].shape == v[0].shape


def test_urdf_is_read_back():
    mechanism = chain(4).build().mechanism
    again = djdyn.from_urdf(descriptions.urdf(mechanism))
    moving = [body for body in again.bodies if body.joint.nv]
    for body, copy in zip(mechanism.bodies, moving, strict=True):
        np.testing.assert_allclose(copy.mass, body.mass)
        np.testing.assert_allclose(copy.p_BC, body.p_BC, atol=1e-15)
        np.testing.assert_allclose(copy.X_PJ.p, body.X_PJ.p, atol=1e-15)


def test_missing_peers_are_named(monkeypatch):
    where = "experiments.benchmarks.engines"
    monkeypatch.setattr(f"{where}.brax.PACKAGE", "no_such_package")
    monkeypatch.setattr(f"{where}.mjx.PACKAGE", "no_such.package")
    found, missing = engines.peers(["brax", "mjx"])
    assert not found
    assert missing == ["Brax is not installed.", "MJX is not installed."]


def test_who_fails_or_disagrees_is_reported_and_not_timed(study):
    field = timing.Engines(study)
    good, *_ = field.ours
    bad = engines.Engine("bad", "Bad", "", "nothing", good.ends, good.gradients)
    none = engines.Engine("none", "None", "", "nothing", good.ends, good.gradients)
    field.peers = [bad, none]

    def make(engine):
        if engine is bad:
            raise RuntimeError("no\nluck")
        return None if engine is none else lambda: np.zeros(2)

    calls = field.prepare(make, [good, bad, none], "arm")
    assert list(calls) == ["djdyn"]
    results = {"djdyn": np.zeros(2), "bad": np.full(2, 1e-8)}
    assert list(field.agreed(results, {"": 1e-9}, "arm")) == ["djdyn"]
    said = " ".join(field.notes)
    assert "Bad failed on the arm: no luck" in said
    assert "None supports nothing only." in said
    assert "Bad differs by 1.0e-08 on the arm: not timed." in said
    with pytest.raises(ZeroDivisionError):  # our own trouble is an error
        field.prepare(lambda _: 1 // 0, [good], "arm")


def test_an_unknown_engine_is_refused(study):
    study.options["engines"] = "mujoco,bullet"
    with pytest.raises(ValueError, match="unknown engine bullet"):
        timing.Engines(study)


def test_all_calls_are_timed():
    times = timing.time_calls({"a": lambda: 1, "b": lambda: 2}, rounds=3, budget=1.0)
    assert times.keys() == {"a", "b"}
    assert all(t.best > 0 and t.spread >= 0 for t in times.values())


def test_rollout_metrics(study, monkeypatch):
    monkeypatch.setattr(rollout, "QUICK", (1, 64))
    monkeypatch.setattr(timing, "SAMPLE", 0.0001)
    rollout.one_problem(study, timing.Engines(study), problem("dpend"))
    found = json.loads((study.out / "metrics.json").read_text())
    assert found["rollout.dpend.max_gap"] < 1e-12
    for name in ("rate", "mujoco.rate", "vs_mujoco"):
        assert found[f"rollout.dpend.single.{name}"] > 0
        assert found[f"rollout.dpend.batch64.{name}"] > 0
    assert found["rollout.dpend.single.vs_pinocchio"] > 0
    assert "Throughput: double pendulum" in study.report.html()


def test_gradient_metrics(study, monkeypatch):
    monkeypatch.setattr(gradient, "BATCHES", (0, 2))
    monkeypatch.setattr(timing, "SAMPLE", 0.0001)
    gradient.one_problem(study, timing.Engines(study), problem("dpend"))
    found = json.loads((study.out / "metrics.json").read_text())
    assert found["gradient.dpend.batch2.ratio"] > 0
    assert found["gradient.dpend.batch2.bytes"] > 0


def test_operations_grow_with_bodies():
    few, many = (roofline.operations(chain(n)) for n in (2, 4))
    assert few < many < 4 * few


def test_contact_metrics(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "SAMPLE", 0.0001)
    options = {**contact.OPTIONS, "rounds": 1}
    run = Study("t", "", tmp_path, stages=2, quick=True, options=options)
    contact.run(run)
    assert run.metrics["contact.batch64.rate"] > 0
    pytest.importorskip("mujoco")
    assert run.metrics["contact.height_gap"] < 0.05
    assert run.metrics["contact.batch64.vs_mujoco.by_time"] > 0
