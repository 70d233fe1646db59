"""A few cases of each script that does damage; the scripts run thousands."""

import pytest

from . import batches, cache, interrupt, processes


@pytest.mark.slow
def test_damaged_caches_neither_crash_nor_change_a_number(tmp_path):
    done, bad = cache.attack(range(4), tmp_path)
    assert not bad and done.total() == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit", "simulation"])
def test_disturbed_work_resumes_to_the_same_numbers(name, tmp_path):
    done, bad = interrupt.attack((name,), range(2), tmp_path)
    assert not bad and done.total() == 2


@pytest.mark.slow
@pytest.mark.parametrize("way", batches.WAYS)
def test_bad_lanes_touch_no_others(way):
    """Nor does one make the gradient of a shared parameter NaN."""
    newton = way.startswith("kvaerno")  # lanes that run on move the others a little
    found = batches.attack(way, 16 if newton else 64, 1)
    assert found["gradient difference"] < (1e-3 if newton else 1e-10), found
    assert found["value difference"] < (1e-5 if newton else 1e-300), found
    counts = [*found.values()][int(newton) : batches.COUNTS]
    assert not any(counts), found


@pytest.mark.slow
def test_one_core_is_enough():
    """Threads and forks have tests of their own."""
    done, bad = processes.attack(range(5), ("one core",))
    assert not bad and done.total() == 1
