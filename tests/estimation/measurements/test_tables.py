"""Tables of measurements: formats, units, faults, and what is refused."""

import numpy as np
import pytest

import djdyn
from estimation.measurements import (
    MeasurementTable,
    find_spikes,
    find_stuck,
    read_table,
    table_faults,
    to_si,
)


T = np.arange(0.0, 2.0, 0.01)
ANGLE = np.sin(3 * T)


def written(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("values", "unit", "like", "si"),
    [
        (180.0, "deg", "rad", np.pi), (60.0, "rpm", "rad/s", 2 * np.pi),
        (1.0, "mm", "m", 1e-3), (2.0, "kN m", "N m", 2000.0), (3.0, "bar", "Pa", 3e5),
        (50.0, "%", "1", 0.5), (1.0, "deg/s^2", "rad/s^2", np.pi / 180),
        (20.0, "degC", "K", 293.15),
    ],
)  # fmt: skip
def test_units(values, unit, like, si):
    assert to_si(np.array(values), unit, like) == pytest.approx(si, rel=1e-12)


def test_units_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="'mm' is no unit of what is measured in rad"):
        to_si(T, "mm", "rad/s")
    with pytest.raises(ValueError, match="unknown unit 'blorb'"):
        to_si(T, "blorb")


def test_text_with_units_missing_cells_and_commas(tmp_path):
    rows = ["# of a rig", "t [ms],angle (deg),torque"]
    rows += [
        f"{1e3 * t:.6f},{np.rad2deg(a):.9f},{2 * a}"
        for t, a in zip(T, ANGLE, strict=True)
    ]
    rows[5] = rows[5].split(",")[0] + ",,1.0"
    table = read_table(written(tmp_path, "\n".join(rows)))
    assert np.allclose(table.times, T)
    assert table.units == {"t": "ms", "angle": "deg", "torque": ""}
    assert np.isnan(table["angle"][3]) and np.isfinite(table["torque"]).all()
    german = [line.replace(",", ";").replace(".", ",") for line in rows]
    other = read_table(written(tmp_path, "\n".join(german)))
    assert np.allclose(other["angle"], table["angle"], equal_nan=True)


def test_other_formats(tmp_path):
    frame = {"time": T, "angle": ANGLE}
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    pd.DataFrame(frame).to_parquet(tmp_path / "a.parquet")
    series = ("time", ANGLE, {"units": "rad"})
    data = xr.Dataset({"angle": series}, coords={"time": T})
    data.to_netcdf(tmp_path / "a.nc", group="run", engine="h5netcdf")
    for name, group in (("a.parquet", ""), ("a.nc", "run")):
        table = read_table(tmp_path / name, group=group)
        assert np.allclose(table["angle"], ANGLE) and np.allclose(table.times, T)
    with pytest.raises(ValueError, match="no series over time; name its group"):
        read_table(tmp_path / "a.nc")
    djdyn.load_dataset(tmp_path / "a.nc", "run")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("t,x\n", "has 0 rows"),
        ("x,y\n1,2\n", "has no column called time or t: name it of x, y"),
        ("t,x\n0,1\n1,2\n1,3\n2,4\n", "does not run forward in 1 of 4 rows.*row 3"),
        ("t,x\n0,1\n1,2\n2,off\n3,4\n", "'x' has 'off' in row 4, no number"),
        ("0.0,1.0\n0.1,2.0\n", "has no row of names"),
        ("t,x,x.1\n0,1\n1,2,3,4,5\n", "is no table"),
    ],
)
def test_text_that_is_no_table(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        read_table(written(tmp_path, text))


def test_spikes_are_found_alone():
    rng = np.random.default_rng(0)
    x = ANGLE + 1e-3 * rng.normal(size=len(T))
    assert not find_spikes(x).any()
    x[[30, 31, 90]] += [0.5, -0.3, 0.05]
    assert np.flatnonzero(find_spikes(x)).tolist() == [30, 31, 90]


def test_stuck_sensors_are_found_also_among_quantised_values():
    rng = np.random.default_rng(0)
    for x in (ANGLE + 1e-3 * rng.normal(size=len(T)), np.round(ANGLE, 2)):
        x = x.copy()
        assert not find_stuck(x).any()
        x[100:160] = x[100]
        assert find_stuck(x)[100:160].all() and find_stuck(x).sum() < 70
    table = MeasurementTable(T, {"x": x, "y": 0 * x}, {}, "a.csv")
    said = " ".join(table_faults(table))
    assert "'x' is stuck" in said and "'y' is 0 throughout" in said


def test_resampling_and_filtering():
    rng = np.random.default_rng(0)
    table = MeasurementTable(T, {"x": ANGLE}, {}, "a.csv")
    again = table.resample(50.0)
    assert np.allclose(again["x"], np.sin(3 * again.times), atol=1e-12)
    gappy = MeasurementTable(
        T, {"x": np.where((T > 0.5) & (T < 0.7), np.nan, ANGLE)}, {}
    )
    missing = np.isnan(gappy.resample(70.0)["x"])
    times = gappy.resample(70.0).times
    assert (missing == ((times > 0.501) & (times < 0.699))).all()
    noisy = MeasurementTable(T, {"x": ANGLE + 0.1 * rng.normal(size=len(T))}, {})
    smooth = noisy.low_pass(5.0)["x"]
    assert np.std((smooth - ANGLE)[20:-20]) < 0.045
    with pytest.raises(ValueError, match="less than 50 Hz, not 80 Hz"):
        table.low_pass(80.0)
