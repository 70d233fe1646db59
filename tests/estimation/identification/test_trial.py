"""Records that cannot be measurements are refused in one sentence."""

import numpy as np
import pytest

from estimation import Trial
from estimation.identification.trial import measurement_noise

from ..models import TIMES, decay, record


def spoil(how: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t, y = TIMES.copy(), np.stack([record(0), record(1)], 1)
    there = np.ones(y.shape, bool)
    match how:
        case "nan":
            y[7, 1] = np.nan
        case "backwards":
            t[10] = t[8]
        case "constant":
            y[:, 0] = 0.25
        case "absent":
            there[20:50] = False
        case "never":
            there[:, 1] = False
    return t, y, there


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("nan", "y is nan at 0.35 s but marked as present"),
        ("backwards", "time does not run forward at row 10: 0.4 s after 0.45 s"),
        ("constant", "x has the same value 0.25 throughout"),
        ("absent", "all channels are absent from 0.95 to 2.5 s"),
        ("never", "y was never measured"),
    ],
)
def test_bad_data_are_named(how, said):
    t, y, there = spoil(how)
    with pytest.raises(ValueError, match=f"trial 'run': .*{said}"):
        Trial(t, y, decay, present=there, labels=("x", "y"), name="run")


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="do not fit"):
        Trial(TIMES, record()[1:], decay)
    with pytest.raises(ValueError, match="2 labels, 1 channels"):
        Trial(TIMES, record(), decay, labels=("x", "y"))
    with pytest.raises(ValueError, match="sigma must be positive"):
        Trial(TIMES, record(), decay, sigma=0.0)


def test_gaps_are_what_is_not_a_number_unless_said_otherwise():
    y = record()
    y[3] = np.nan
    trial = Trial(TIMES, y, decay)
    assert not trial.present[3, 0] and trial.present.sum() == 80
    assert np.all(np.isfinite(trial.values))


def test_noise_is_estimated_from_roughness():
    found = [
        measurement_noise(record(k)[:, None], np.ones((81, 1), bool))[0]
        for k in range(40)
    ]
    assert np.isclose(np.median(found), 0.02, rtol=0.1)
