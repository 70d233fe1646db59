"""A whole report in a headless browser: it draws, it moves, and it stays at home."""

import io
import os
import shutil

import numpy as np
import pytest

from djdyn.view import Report, Scene


FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
FLAGS += ["--enable-unsafe-swiftshader"]


def pendulum() -> Report:
    """Everything a report can show, swinging."""
    t = np.linspace(0.0, 4.0, 401)
    angle = np.cos(3 * t)
    c, s, o = np.cos(angle), np.sin(angle), np.zeros_like(angle)
    rows = [[c, o, -s], [o, o + 1, o], [s, o, c]]
    R = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    tip = np.stack([s, o, -c], axis=-1)
    across = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    scene = Scene(t)
    scene.box("base", (0.3, 0.3, 0.1))
    scene.capsule("rod", 0.03, 1.0, R, offset=(np.eye(3), [0, 0, -0.5]))
    scene.cylinder("shaft", 0.05, 0.4, across)
    scene.sphere("bob", 0.1, p=tip)
    scene.mesh("fin", np.eye(3) / 4, [[0, 1, 2]], across, tip, opacity=0.5)
    scene.frame("tip", R, tip, size=0.3)
    scene.arrow("tension", tip, -tip * (9.81 * c)[:, None], unit="N")
    scene.points("markers", np.stack([tip, tip / 2], axis=1))
    scene.polyline("cable", np.stack([tip, tip * 1.2, 0 * tip], axis=1))
    report = Report("Pendulum", "One rod")
    report.text("It swings.")
    report.comparison("Checks", [("length", "m", 1.0, 1.0, 1e-9)])
    report.scene(scene)
    lines, known = {"x": tip[:, 0]}, {"x": (t[::40], tip[::40, 0])}
    report.plot("Moments", ("time", "s", t), ("moment", "N m"), lines, known)
    return report


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return pendulum().save(tmp_path_factory.mktemp("view") / "report.html")


@pytest.fixture(scope="module")
def opened(path):
    """The page, what it asked for, and what it complained of."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 900, "height": 700})
        requests, errors = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console", lambda m: errors.append(m.text) if m.type == "error" else None
        )
        page.goto(path.as_uri())
        page.wait_for_selector("[data-ready]", timeout=60_000)
        page.wait_for_selector(".plot .main-svg", timeout=60_000)
        yield page, requests, errors
        browser.close()


def picture(page) -> np.ndarray:
    from matplotlib.image import imread

    return imread(io.BytesIO(page.locator(".stage iframe").screenshot()))[..., :3]


def changes(page, before: np.ndarray) -> bool:
    """Whether the picture becomes another one, soon."""
    for _ in range(40):
        if (np.abs(picture(page) - before) > 0.1).any(axis=-1).sum() > 50:
            return True
        page.wait_for_timeout(100)
    return False


def scrub(page, time: float) -> np.ndarray:
    page.locator("input[type=range]").fill(str(time))
    page.wait_for_timeout(300)
    return picture(page)


def test_size(path):
    assert path.stat().st_size < 10e6


def test_scene_draws(opened):
    page, _, _ = opened
    image = scrub(page, 0.0)
    assert (np.abs(image - image[0, 0]) > 0.2).any(axis=-1).mean() > 0.005
    assert len(np.unique((image * 8).astype(int).reshape(-1, 3), axis=0)) > 15


def test_slider_moves_the_scene(opened):
    page, _, _ = opened
    before = scrub(page, 0.0)
    page.locator("input[type=range]").fill("1.05")
    assert changes(page, before)
    assert page.locator(".bar output").text_content() == "1.050 s of 4.000 s"
    assert np.abs(scrub(page, 0.0) - before).mean() < 1e-3  # and back


def test_play_and_pause(opened):
    page, _, _ = opened
    before = scrub(page, 0.0)
    page.locator(".play").click()
    assert changes(page, before)
    page.locator(".play").click()
    page.wait_for_timeout(300)
    time, still = page.locator("input[type=range]").input_value(), picture(page)
    page.wait_for_timeout(300)
    assert float(time) > 0
    assert page.locator("input[type=range]").input_value() == time
    assert np.abs(picture(page) - still).mean() < 1e-3


def test_mouse_orbits_and_reset_returns(opened):
    page, _, _ = opened
    before = scrub(page, 0.0)
    box = page.locator(".stage iframe").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 230, steps=4)
    page.mouse.up()
    assert changes(page, before)
    page.get_by_text("Reset view").click()
    page.wait_for_timeout(500)
    assert np.abs(picture(page) - before).mean() < 1e-3


def test_legend_hides(opened):
    page, _, _ = opened
    before = scrub(page, 0.0)
    entry = page.locator(".legend button", has_text="rod")
    entry.click()
    assert changes(page, before)
    entry.click()
    page.wait_for_timeout(300)
    assert np.abs(picture(page) - before).mean() < 1e-3


def test_plot_has_labelled_axes(opened):
    page, _, _ = opened
    assert page.locator(".xtitle").text_content() == "time [s]"
    assert page.locator(".ytitle").text_content() == "moment [N m]"
    assert page.get_by_label("Download plot as a PNG").count() == 1
    assert page.get_by_label("Share chart").count() == 0  # plotly would send the data
    assert page.locator(".legendtext").all_text_contents() == ["x", "x (reference)"]


def test_nothing_is_fetched_and_nothing_goes_wrong(opened, path):
    _, requests, errors = opened
    inside = ("about:", "data:", "blob:")
    assert [url for url in requests if not url.startswith(inside)] == [path.as_uri()]
    assert not errors


def test_browser_refuses_to_fetch(opened, path):
    page = opened[0].context.browser.new_page()  # a page of its own: an error is wanted
    page.goto(path.as_uri())
    refused = page.evaluate("""new Promise((done) => {
        const told = (event) => done(event.effectiveDirective);
        document.addEventListener("securitypolicyviolation", told);
        fetch("https://example.org").then(() => done("fetched"), () => {});
    })""")
    page.close()
    assert refused == "connect-src"
