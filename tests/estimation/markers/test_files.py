"""Marker files: units, axes, gaps, and messages about broken files."""

import numpy as np
import pytest

from estimation import MarkerData, read_markers, write_markers
from tests.machines import DATA


def moving(n: int = 30, rate: float = 100.0) -> MarkerData:
    """Return two markers, each hidden for a while, the second at the start."""
    t = np.arange(n) / rate
    p = np.stack([np.cos(3 * t), np.sin(3 * t), 0.1 + t], -1)
    p = np.stack([p, 0.5 * p + 0.2], 1)
    p[4:9, 0] = p[:3, 1] = np.nan
    return MarkerData.seen(t, ("left hip", "tip"), p)


@pytest.mark.parametrize("ending", ["csv", "trc", "c3d", "xls"])
def test_what_is_written_is_read_again(ending, tmp_path):
    data, path = moving(), tmp_path / f"walk.{ending}"
    write_markers(data, path)
    found = read_markers(path)
    assert found.labels == data.labels
    assert np.array_equal(found.visible, data.visible)
    assert np.allclose(found.times, data.times, atol=1e-12)
    exact = 2e-7 if ending == "c3d" else 1e-11  # C3D holds single precision
    assert np.allclose(found.positions, data.positions, atol=exact)
    assert not np.any(found.positions[~found.visible])


@pytest.mark.parametrize("ending", ["csv", "trc", "c3d", "xls"])
def test_a_record_that_begins_late_keeps_its_times(ending, tmp_path):
    data, path = moving().between(0.095, 0.2), tmp_path / f"late.{ending}"
    write_markers(data, path)
    assert np.allclose(read_markers(path).times, data.times, atol=1e-9)
    odd = MarkerData(data.times**2, data.labels, data.positions, data.visible)
    if ending in ("c3d", "xls"):
        with pytest.raises(ValueError, match="resample first"):
            write_markers(odd, path)


def test_trc_in_the_convention_of_opensim():
    """Files in millimetres with y up; blanks, zeros and short rows hide markers."""
    data = read_markers(DATA / "walk.trc", axes="x -z y")
    assert data.labels == ("R.ASIS", "L.ASIS", "V.Sacral")
    assert np.allclose(data.times, [0, 0.01, 0.02, 0.03]) and np.isclose(data.rate, 100)
    assert np.allclose(data.positions[0, 0], [0.6125, -0.11, 1.02325])
    assert np.array_equal(data.visible.sum(0), [4, 3, 2])
    assert np.array_equal(data.visible[:, 2], [True, True, False, False])


def test_text_of_first_principles():
    data = read_markers(DATA / "rod.xls")
    assert data.labels == ("Marker_1", "Tip")
    assert np.allclose(data.times, np.arange(3) / 157)
    assert np.allclose(data.positions[0, 1], [0.349375, -0.5615, -2.552125])
    assert np.array_equal(data.visible, [[True, True], [True, False], [False, True]])


def test_c3d_written_by_ezc3d(tmp_path):
    """Files in metres and inches, cut at the front, with negative residuals."""
    ezc3d = pytest.importorskip("ezc3d")
    p = np.ones((4, 2, 5))
    p[:3] = np.random.default_rng(0).uniform(1, 2, (3, 2, 5))
    for unit, metres in (("m", 1.0), ("inches", 0.0254), ("mm", 1e-3)):
        file = ezc3d.c3d()
        file["parameters"]["POINT"]["RATE"]["value"] = [157.0]
        file["parameters"]["POINT"]["UNITS"]["value"] = [unit]
        file["parameters"]["POINT"]["LABELS"]["value"] = ["A", "B"]
        file["data"]["points"] = p
        residuals = np.zeros((1, 2, 5))
        residuals[0, 1, 3] = -1
        file["data"]["meta_points"]["residuals"] = residuals
        file["data"]["meta_points"]["camera_masks"] = np.zeros((7, 2, 5), bool)
        file.write(str(tmp_path / "a.c3d"))
        data = read_markers(tmp_path / "a.c3d")
        assert np.allclose(data.positions[:3], metres * p[:3].T[:3], rtol=1e-6)
        assert np.array_equal(np.argwhere(~data.visible), [[3, 1]])
        assert np.isclose(data.rate, 157)
    write_markers(data, tmp_path / "b.c3d")
    theirs = ezc3d.c3d(str(tmp_path / "b.c3d"))
    seen = p[:3].copy()
    seen[:, 1, 3] = np.nan
    assert np.allclose(theirs["data"]["points"][:3], seen, rtol=1e-6, equal_nan=True)
    assert theirs["parameters"]["POINT"]["UNITS"]["value"] == ["mm"]


def test_columns_of_a_table_name_their_units(tmp_path):
    """Tables of other programs have units in headings, and other columns."""
    path = tmp_path / "a.csv"
    path.write_text(
        "# made up\nt_ms,x_deg,max_v,m1x_mm,m1y_mm,m1z_mm\n\n0,1,0,1,2,3\n10,1,0,4,,6"
    )
    data = read_markers(path)
    assert data.labels == ("m1",) and np.allclose(data.times, [0, 0.01])
    assert np.allclose(data.positions[0, 0], [1e-3, 2e-3, 3e-3])
    assert np.array_equal(data.visible[:, 0], [True, False])


def trc(change) -> str:
    lines = (DATA / "walk.trc").read_text().splitlines()
    return "\n".join(change(lines)) + "\n"


def with_parameters(line: int, old: str, new: str):
    return lambda x: [*x[: line - 1], x[line - 1].replace(old, new), *x[line:]]


@pytest.mark.parametrize(
    "change, said",
    [
        (with_parameters(8, "431.50", "431.5O"), "line 8: '431.5O' is not a number"),
        (with_parameters(9, "110.50\t", ""), "line 9: 10 cells where 11 are expected"),
        (
            with_parameters(9, "\t0.020", "\t0.020\t1\t2\t3"),
            "line 9: 14 cells where 11",
        ),
        (lambda x: x[:-1], "3 frames, but line 3 says 4"),
        (with_parameters(3, "\t3\t", "\t2\t"), "line 4: 3 labels, but line 3 says 2"),
        (with_parameters(3, "mm", "furlong"), "line 3: unknown unit 'furlong'"),
        (
            with_parameters(3, "100.00", "400.00"),
            "line 3 says 400 Hz, but times are 0.01 s apart",
        ),
        (with_parameters(1, "Path", ""), "line 1: a TRC file begins"),
        (lambda x: x[:3], "line 3: the file ends in its header"),
        (lambda x: x[:6], "no samples"),
    ],
)
def test_a_broken_trc_names_its_line(change, said, tmp_path):
    (tmp_path / "walk.trc").write_text(trc(change))
    with pytest.raises(ValueError, match=said):
        read_markers(tmp_path / "walk.trc")


FRAMES, TABLE = "Number of frames", "Frame\tA x\tA y\tA z\n1\t1\t1\t1\n"


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("a.csv", "", "the file is empty"),
        ("a.csv", "time,tip.x,tip.y\n0,1,2\n", "line 1: no column is z of marker"),
        ("a.csv", "time,a.x,a.y,a.z\n0,1,2,3\n", "line 1: marker 'a' needs one unit"),
        ("a.csv", "a.x mm,a.y mm,a.z mm\n1,2,3\n", "give the rate"),
        ("a.csv", "time,b\n0,1\n", "line 1: no columns such as"),
        ("a.csv", "t,ax_m,ay_m,az_m\n0,1,2,3\n1,2\n", "line 3: 2 cells where 4"),
        ("a.csv", "t,ax_m,ay_m,az_m\n,1,2,3\n", "line 2: the first cell is empty"),
        ("a.xls", "PK", "neither .csv, .trc, .c3d nor an export"),
        ("a.xls", f"{FRAMES}: 2\nFrequency: 1\n{TABLE}", "1 frames, but line 1 says 2"),
        ("a.xls", f"{FRAMES}: 1\n{TABLE}", "line 2: no 'frequency' above the table"),
        ("a.xls", f"{FRAMES}: 1\n{TABLE.replace('A y', 'B y')}", "line 2: columns"),
        ("a.xls", f"{FRAMES}: 1\n", "no line begins with 'Frame'"),
        ("a.c3d", "hello", "a.c3d: .*valid c3d"),
    ],
)
def test_a_broken_file_is_named(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=said):
        read_markers(tmp_path / name)


def test_axes_must_be_a_turn():
    for axes, said in (
        ("x z y", "reflection"),
        ("x y", "such as"),
        ("x x y", "such as"),
        (np.ones((3, 3)), "not those of a rotation"),
    ):
        with pytest.raises(ValueError, match=said):
            read_markers(DATA / "walk.trc", axes=axes)
    with pytest.raises(ValueError, match="there is no file"):
        read_markers("nowhere.trc")
    with pytest.raises(ValueError, match=r"not 'a\.mat'"):
        write_markers(moving(), "a.mat")
