"""The report's numbers, words and errors; `test_browser.py` looks at the page."""

import html.parser
import json
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.view import Check, Report, Scene, plots, replay, shapes


T = np.linspace(0.0, 2.0, 50)


def turning(angle):
    c, s, o = np.cos(angle), np.sin(angle), np.zeros_like(angle)
    rows = [[c, -s, o], [s, c, o], [o, o, o + 1]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def test_import_draws_in_no_plotting_library():
    code = "import sys, djdyn.view; print(*sys.modules)"
    root = Path(__file__).parents[2]
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=root)
    assert not {"plotly", "k3d", "matplotlib"} & {*loaded.split()}


def test_text_is_escaped():
    nasty = "</script><script>alert('x')</script>"
    report = Report(nasty, nasty)
    report.text(f"{nasty} and `a < b`")
    report.table(nasty, [nasty], [[nasty]])
    report.comparison(nasty, [(nasty, nasty, 1.0, None, None, nasty)])
    report.plot(nasty, (nasty, nasty, T), (nasty, nasty), {nasty: T})
    scene = Scene(T)
    scene.sphere(nasty, 1.0)
    report.scene(scene, nasty)
    page = report.html()
    assert "<script>alert" not in page
    assert page.count("</script>") == 5  # those of the template
    assert "<code>a &lt; b</code>" in page


HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "]]>",
    "{{scenes}}",
    '" onclick=alert(1) x="',
    "' ; ${7*7} `code` \\u003c/script>",
    "\u2028\u202e\x1b[31m",
)


class Elements(html.parser.HTMLParser):
    """Tags and attributes of a page, and the text of its data."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.data = [], set(), {}
        self.inside = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.inside = dict(attrs).get("id", "") if tag == "script" else ""

    def handle_data(self, data):
        self.data[self.inside] = self.data.get(self.inside, "") + data


def page_of(name: str) -> Elements:
    report = Report(name, name)
    report.text(name)
    report.table(name, [name], [[name]])
    report.matrix(name, [name], [[1.0]])
    report.comparison(name, [(name, name, 1.0, None, None, name)])
    report.plot(name, (name, name, T), (name, name), {name: T})
    scene = Scene(T)
    scene.sphere(name, 1.0)
    scene.arrow(f"{name} arrow", np.zeros(3), np.ones(3), unit=name)
    report.scene(scene, name)
    report.summary(name, name, name)
    found = Elements()
    found.feed(report.html())
    return found


def test_hostile_names_add_nothing_to_the_page():
    plain = page_of("plain")
    for name in HOSTILE:
        found = page_of(name)
        tags = [tag for tag in found.tags if tag != "code"]  # of backticks, and breaks
        assert [t for t in tags if t != "wbr"] == [t for t in plain.tags if t != "wbr"]
        assert found.attributes == plain.attributes
        legend = json.loads(found.data["scenes"])[0]["legend"]
        assert legend[0]["name"] == name
        json.loads(found.data["plots"])


@pytest.mark.parametrize(
    "row, passed",
    [
        (("a", "m", 1.0), None),
        (("a", "m", 1.0, 1.5), None),
        (("a", "m", 1.0, 1.5, 0.5), True),
        (("a", "m", 2.0, 1.5, 0.5, "edge"), True),
        (("a", "m", 2.1, 1.5, 0.5), False),
        (("a", "m", 1.5, 1.5, 0.0), True),
        (("a", "m", np.nan, 1.5, 0.5), False),
        (("a", "m", np.nan), False),
        (("a", "m", np.nan, 1.5), False),
        (("a", "m", 1.0, np.nan, 0.5), False),
        (("a", "m", 1.0, 1.0, np.nan), False),
        (("a", "m", np.inf, np.inf, 1.0), False),
        (Check("a", "m", 1.0, 1.0, 0.1), True),
        (Check("a", "m", 1.0, at_most=1.0), True),
        (Check("a", "m", 1.1, at_most=1.0), False),
        (Check("a", "m", -9.0, at_most=1.0), True),
        (Check("a", "m", 1.0, at_least=1.0), True),
        (Check("a", "m", 0.9, at_least=1.0), False),
        (Check("a", "m", 0.9, at_least=0.5, at_most=1.0), True),
        (Check("a", "m", 0.9, 1.0, at_most=1.0), True),
        (Check("a", "m", 0.9, 1.0, 0.2, at_least=0.95), False),
        (Check("a", "m", np.nan, at_most=1.0), False),
        (Check("a", "m", 1.0, at_most=np.nan), False),
        (("a", "m", jnp.ones(()), np.float32(1), 1), True),
    ],
)
def test_comparison_passes_inside_its_tolerance(row, passed):
    report = Report("r")
    (checked,) = report.comparison("Checks", [row])
    assert checked.passed is passed
    page = report.html()
    assert ("✓ pass" in page, "✗ fail" in page) == (passed is True, passed is False)
    assert ("1 of 1 checks pass" in page) == (passed is True)


def test_comparison_shows_the_difference():
    report = Report("r")
    report.comparison("Checks", [("mass", "kg", 2.5, 3.0, 0.1)])
    page = report.html()
    for cell in ("mass", "kg", "2.5", "3", "−0.5", "± 0.1"):
        assert f">{cell}</td>" in page


def test_comparison_shows_bounds():
    report = Report("r")
    bounds = [("a", "", 1.0, None, None, "", 2.0), ("b", "", 1.0, *[None] * 4, 0.5)]
    report.comparison("Checks", bounds)
    page = report.html()
    for cell in ("&lt;= 2", "&gt;= 0.5"):
        assert f">{cell}</td>" in page


@pytest.mark.parametrize(
    "row, words",
    [
        (("a", "m"), "a comparison row is"),
        (("a", "m", 1.0, None, 0.1), "'a' has a tolerance but no reference"),
        (("a", "m", 1.0, 1.0, -0.1), "'a' has a negative tolerance"),
        (("a", "m", "one"), "'a' holds what is no number"),
        (("a", "m", None), "'a' has no value"),
        (("a", "m", 1.0, *[None] * 3, 1.0, 2.0), "'a' has bounds no value can meet"),
    ],
)
def test_comparison_refuses(row, words):
    with pytest.raises(ValueError, match=words):
        Report("r").comparison("Checks", [row])


def test_size_limit_is_an_error(tmp_path):
    report = Report("Large one")
    report.text("x" * 30000)
    with pytest.raises(ValueError, match=r"'Large one' takes .* MB and may take 0\.0"):
        report.save(tmp_path / "report.html", limit=20_000)
    assert not (tmp_path / "report.html").exists()


def test_page_holds_only_the_scripts_it_needs():
    report = Report("r")
    report.text("words")
    assert len(report.html()) < 2e4


def test_same_data_same_file():
    def page():
        scene = Scene(T)
        scene.box("box", (1, 1, 1), turning(T))
        scene.arrow("force", np.zeros(3), np.stack([T, T, T], axis=-1))
        report = Report("r")
        report.plot("p", ("time", "s", T), ("y", "m"), {"a": T**2})
        report.scene(scene)
        return report.html()

    assert page() == page()


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"lines": {}}, "plot 'Moments' has no lines"),
        ({"lines": {"a": T[:-1]}}, "'Moments: a' has 49 values over 50 abscissae"),
        ({"lines": {"a": np.zeros((50, 2))}}, "y of 'Moments: a' must have shape"),
        ({"lines": {"a": np.full(50, np.nan)}}, "'Moments: a' has no finite value"),
        ({"lines": {"a": []}}, "'Moments: a' has 0 values"),
        ({"lines": {"a": ([np.nan], [1.0])}}, "'Moments: a' has abscissae"),
        ({"lines": {"a": ["x"] * 50}}, "'Moments: a' is not an array of numbers"),
    ],
)
def test_plot_refuses(arguments, words):
    with pytest.raises(ValueError, match=words):
        Report("r").plot("Moments", ("time", "s", T), ("moment", "N m"), **arguments)


def test_table_refuses_a_short_row():
    with pytest.raises(ValueError, match="row of table 'Masses' has 1 cells, not 2"):
        Report("r").table("Masses", ["a", "b"], [[1]])


def test_matrix_shades_by_sign_and_size():
    report = Report("r")
    report.matrix("Alike", ["a", "b"], [[1.0, -0.5], [-0.5, 1.0]])
    assert report.html().count('style="background:#e1782f64">-0.50</td>') == 2
    for wrong in ([[2.0]], [[np.nan]]):
        with pytest.raises(ValueError, match="'Alike' must lie between -1 and 1"):
            report.matrix("Alike", ["a"], wrong)


def nan_at(index, shape):
    array = np.zeros(shape)
    array[index] = np.nan
    return array


@pytest.mark.parametrize(
    "draw, words",
    [
        (
            lambda s: s.box("b", (1, 1, 1), p=nan_at(3, (50, 3))),
            "p of 'b' .* 0.122449 s",
        ),
        (
            lambda s: s.box("b", (1, 1, 1), p=np.zeros((49, 3))),
            r"\[50, 3\] or \[3\], not",
        ),
        (lambda s: s.box("b", (1, 0, 1)), "size of 'b' must be positive, not 0"),
        (lambda s: s.box("b", (1, 1)), "size of 'b' must have shape"),
        (
            lambda s: s.box("b", (1, 1, 1), np.zeros((3, 3))),
            "R of 'b' is not a rotation",
        ),
        (lambda s: s.box("b", (1, 1, 1), -np.eye(3)), "R of 'b' is not a rotation"),
        (lambda s: s.box("b", (1, 1, 1), color="red"), "colour 'red' of 'b'"),
        (lambda s: s.cylinder("c", np.nan, 1), "radius of 'c'"),
        (lambda s: s.sphere("s", [1, 2]), "radius of 's' must have shape"),
        (lambda s: s.arrow("f", [0, 0, 0], [0, 0, 0], scale=-1), "scale of 'f'"),
        (lambda s: s.mesh("m", np.zeros((3, 3)), [[0, 1, 3]]), "beyond its 3 vertices"),
        (lambda s: s.mesh("m", np.zeros((3, 3)), np.zeros((0, 3))), "'m' must have"),
        (lambda s: s.arrow("f", [0, 0, 0], nan_at(0, (50, 3))), "vector of 'f'"),
        (lambda s: s.points("p", np.zeros((50, 3, 2))), "p of 'p' must have shape"),
        (lambda s: s.points("p", [[0], [0, 1]]), "p of 'p' is not an array of numbers"),
        (lambda s: s.polyline("l", np.zeros((50, 1, 3))), "at least two points"),
        (lambda s: Report("r").scene(s), "scene has nothing in it"),
        (lambda s: Scene([0.0, 0.0]), "strictly increasing"),
        (lambda s: Scene([]), "strictly increasing"),
    ],
)
def test_scene_refuses(draw, words):
    with pytest.raises(ValueError, match=words):
        draw(Scene(T))


def test_scene_keeps_samples_and_both_ends():
    t = np.sort(np.random.default_rng(0).uniform(0, 9, 5000))
    scene = Scene(t)
    scene.points("p", t[:, None, None] * np.ones(3))
    assert 250 < len(scene.t) <= 300
    assert scene.t[0] == t[0] and scene.t[-1] == t[-1]
    assert np.isin(scene.t, t).all()
    assert (scene.items[0].p_W[:, 0, 0] == scene.t).all()


def test_offset_is_a_pose_in_the_body():
    R = turning(T)
    scene = Scene(T)
    scene.box("b", (1, 1, 1), R, jnp.ones(3), offset=(turning(np.pi / 2), [1, 0, 0]))
    (solid,) = scene.items
    assert np.allclose(solid.p_WG, np.stack([np.cos(T), np.sin(T), 0 * T], axis=-1) + 1)
    assert np.allclose(solid.R_WG, turning(T + np.pi / 2))


def volume(mesh):
    a, b, c = np.moveaxis(mesh[0][mesh[1]], 1, 0)
    return (np.cross(a, b) * c).sum() / 6


@pytest.mark.parametrize(
    "mesh, expected",
    [
        (shapes.box(np.array([1.0, 2, 3])), 6),
        (shapes.cylinder(2.0, 3.0), np.pi * 4 * 3),
        (shapes.cone(2.0, 3.0), np.pi * 4),
        (shapes.sphere(2.0), np.pi * 32 / 3),
        (shapes.capsule(2.0, 3.0), np.pi * 4 * 3 + np.pi * 32 / 3),
    ],
)
def test_shapes_are_closed_and_face_outwards(mesh, expected):
    moved = mesh[0] + [5, 6, 7], mesh[1]
    assert np.isclose(volume(mesh), expected, rtol=0.03)
    assert np.isclose(volume(moved), volume(mesh))


def test_arrows_point_along_their_vectors():
    vectors = np.array([[0, 0, 1.0], [0, 0, -2], [1, 2, 3], [0, 0, 0], [-1e-9, 0, -1]])
    e, R = replay._along(vectors)
    wanted = vectors[[0, 1, 2, 2, 4]]
    assert np.allclose(e, wanted / np.linalg.norm(wanted, axis=-1, keepdims=True))
    assert np.allclose(R[:, :, 2], e) and np.allclose(np.linalg.det(R), 1)
    assert np.allclose(R @ R.swapaxes(1, 2), np.eye(3))


def test_arrows_of_one_unit_share_a_scale():
    scene = Scene(T)
    scene.box("box", (8, 1, 1), offset=None, color=None)
    for name, unit, size in [("a", "N", 10.0), ("b", "N", 1000.0), ("c", "m/s", 2.0)]:
        scene.arrow(name, np.zeros(3), [0, 0, size], unit=unit)
    _, a, b, c = replay.replay(scene)["legend"]
    assert a["note"] == b["note"] == "1 m = 500 N" and c["note"] == "1 m = 1 m/s"


def test_thinning_keeps_peaks_ends_and_gaps():
    x = np.linspace(0, 1, 100_001)
    y = np.sin(40 * x)
    y[31_234], y[77_777], y[50_000:50_020] = 9.0, -9.0, np.nan
    keep = plots.thin(x, y)
    assert len(keep) < 4100 and (np.diff(keep) > 0).all()
    assert {0, 31_234, 77_777, 100_000} <= {*keep.tolist()}
    assert np.isnan(y[keep]).any()
    loop = np.cos(50 * x)
    loop[41_111] = 5.0
    assert 41_111 in plots.thin(loop, np.sin(50 * x))


def test_line_keeps_its_colour_through_plots():
    report = Report("r")
    x, y = ("time", "s", T), ("y", "m")
    report.plot("one", x, y, {"a": T, "b": T})
    report.plot("two", x, y, {"b": T, "c": T}, {"b": (T[:3], T[:3]), "digest": T})
    (a, b), (again, c, known, other) = (plot.series for plot in report._plots)
    assert b.color == again.color == known.color
    assert len({a.color, b.color, c.color, other.color}) == 4
    assert known.name == "b (reference)" and known.marked


def test_figures_are_written(tmp_path):
    report = Report("r")
    for log in ("", "xy"):
        x, y = ("cost, $", "s", T + 1), ("moment", "N m")
        report.plot("Moments at foot", x, y, {"_a $": T + 1}, {"ref": T + 1}, log=log)
    report.plot("Path", ("x", "m", np.cos(T)), ("y", "m"), {"p": np.sin(T)}, equal=True)
    written = report.figures(tmp_path / "figures")
    names = ["moments-at-foot", "moments-at-foot-2", "path"]
    assert [path.name for path in written] == [
        f"{name}.{kind}" for name in names for kind in ("pdf", "png")
    ]
    for path in written:
        head = path.read_bytes()[:8]
        assert head.startswith(b"%PDF" if path.suffix == ".pdf" else b"\x89PNG")


def test_contents_are_short():
    """Neighbours with one subject share an entry, and details are left out."""
    report = Report("page")
    for title in (
        "Lift: angle",
        "Lift: pressures",
        "Parameters identified from twelve channels; coverage is a share of draws",
        "Double pendulum (Roy, Steinke and Nicoll 2014, section 4.4.3): angles",
    ):
        report.plot(title, ("time", "s", [0.0, 1.0]), ("q", "m"), {"q": [0.0, 1.0]})
    contents = report.html().split("<nav", 1)[1].split("</nav>", 1)[0]
    entries = re.findall(r">([^<>]+)</a>", contents)
    assert entries == [
        "Lift", "Parameters identified from twelve …", "Double pendulum"
    ]  # fmt: skip
