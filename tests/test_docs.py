"""The pages are true: the reference is complete, examples run, lists match the code."""

import ast
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

import jax
import pytest

from djdyn.contact import shapes
from djdyn.io import scenario, scenario_kinds
from djdyn.optimize.multistart import METHODS
from djdyn.simulation.solvers.registry import SOLVERS
from experiments.__main__ import BENCHMARKS, STUDIES
from experiments.machine.kinds import KINDS


ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
SLOW = {"README.md", "cable.md", "control.md", "estimation.md", "extending.md"}
SLOW |= {"filters.md", "gradients.md", "hydraulics.md", "robots.md", "titan4.md"}
PACKAGES = ("djdyn", "controllers", "estimation")
ROOMS = ("djdyn.parts", "djdyn.cable", "djdyn.contact", "djdyn.hydraulics")
MODULES = tuple(
    f"djdyn.marine.{name}"
    for name in ("water", "waves", "wave_field", "wind", "drag", "hull", "thruster")
)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")


def fences(page: Path, language: str) -> list[tuple[int, str, bool]]:
    """Return line, text and whether to run it of each fenced block of a language."""
    lines, found, start = page.read_text().splitlines(), [], None
    for i, line in enumerate(lines):
        if start is None and line.strip().startswith("```"):
            start, kind = i, line.strip().removeprefix("```")
        elif start is not None and line.strip() == "```":
            if kind == language:
                before = next((x for x in reversed(lines[:start]) if x.strip()), "")
                run = not NOT_RUN.fullmatch(before.strip())
                found.append((start + 1, "\n".join(lines[start + 1 : i]) + "\n", run))
            start = None
    return found


def page_parameters() -> list:
    pages = [page for page in PAGES if fences(page, "python")]
    marked = lambda page: [pytest.mark.slow] if page.name in SLOW else []
    return [pytest.param(page, id=page.name, marks=marked(page)) for page in pages]


@pytest.mark.parametrize("page", page_parameters())
def test_examples_run(page, tmp_path, monkeypatch):
    """Blocks of a page share one namespace, as if typed one after the other."""
    module = types.ModuleType(f"docs_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    usual = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with usual[0], usual[1]:
        for line, text, run in fences(page, "python"):
            # Blank lines put the right line number into a traceback.
            code = compile("\n" * line + text, str(page), "exec")
            if run:
                exec(code, vars(module))


@pytest.mark.parametrize("name", ["scenarios.md", "contact.md"])
def test_scenarios_on_pages_are_read(name, tmp_path):
    whole = [
        text for _, text, _ in fences(DOCS / name, "toml") if "[simulation]" in text
    ]
    assert whole, f"{name} shows no whole scenario"
    for text in whole:
        path = tmp_path / "machine.toml"
        path.write_text(text)
        scenario.read_scenario(path, kinds=KINDS)


# The reference ------------------------------------------------------------------------


def listed_modules() -> list[str]:
    return re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text(), re.MULTILINE)


def assigned_names(module: str) -> set[str]:
    """Return the names that a module assigns at its top level."""
    source = inspect.getsource(importlib.import_module(module))
    targets: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            targets |= {x.id for x in node.targets if isinstance(x, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            targets.add(node.target.id)
    return targets


def public_names(package: str) -> dict[str, str | None]:
    """Return each public name and the module that defines it; none for constants."""
    found = {}
    for name, value in vars(importlib.import_module(package)).items():
        if name.startswith("_") or inspect.ismodule(value):
            continue
        home = getattr(value, "__module__", None) or ""
        found[name] = home if home.split(".")[0] in PACKAGES else None
    if package in MODULES:  # what a module imports is not its own
        return {name: home for name, home in found.items() if home == package}
    return found


@pytest.mark.parametrize("package", [*PACKAGES, *ROOMS, *MODULES])
def test_reference_has_every_public_name(package):
    modules = listed_modules()
    constants = set().union(*map(assigned_names, modules))
    missing = {
        name: home
        for name, home in public_names(package).items()
        if (home not in modules if home else name not in constants)
    }
    assert not missing


def test_reference_lists_modules_once():
    modules = listed_modules()
    assert len(modules) == len(set(modules))
    for name in modules:
        importlib.import_module(name)


# Lists --------------------------------------------------------------------------------


def section(page: str, start: str, end: str = "\n\n") -> str:
    """Return the text of a page from `start` to the next `end`."""
    text = (ROOT / page).read_text()
    assert start in text, f"{page} has no {start!r}"
    return text.split(start, 1)[1].split(end, 1)[0]


def names_of(kinds) -> set[str]:
    return {kind.__name__ for kind in kinds}


def code_words(text: str) -> set[str]:
    return {word.strip('"') for word in re.findall(r"`([^`]+)`", text)}


def test_solvers_are_listed():
    assert code_words(section("docs/gradients.md", "Solvers:")) == set(SOLVERS)


def test_scenario_types_are_listed():
    page = "docs/scenarios.md"
    listed = lambda start: code_words(section(page, start))
    assert listed("- Joints:") == set(scenario_kinds.JOINTS)
    assert listed("- Parts:") == names_of(scenario_kinds.PARTS)
    assert listed("- Controllers:") == names_of(KINDS)
    assert listed("- Inside parts:") == set(scenario_kinds.FUNCTIONS)
    beside = listed("- Joints of loops beside these:") - {"Quadric"}
    assert beside == set(scenario_kinds.LOOP_JOINTS)
    assert listed("- Couplings:") == set(scenario_kinds.COUPLINGS)
    assert listed("- Closures:") == set(scenario_kinds.CLOSURES)
    assert listed("- Surfaces of the point contacts:") == set(scenario_kinds.SURFACES)
    assert listed("- Inside hydraulic circuits:") == set(scenario_kinds.HYDRAULIC)
    assert listed("- Inside actuators and tendons:") == set(scenario_kinds.ACTUATING)
    assert listed("- Inside contacts:") == set(scenario_kinds.TOUCHING)
    assert listed("- Drawn shapes:") == set(scenario.SHAPES)


def first_column(text: str) -> set[str]:
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return set().union(*map(code_words, rows))


def test_methods_of_fit_and_tune_are_listed():
    fit = section("docs/estimation.md", "## Methods", "\n## ").split("\n\n`loss")[0]
    assert first_column(fit) - {"method"} == set(METHODS)
    tune = section("docs/control.md", "| `method` |", "\n\n")
    assert first_column(tune) - {"method"} == set(METHODS)


def test_baseline_searches_are_named():
    from controllers import BASELINE_METHODS

    text = " ".join((DOCS / "control.md").read_text().split())
    assert not [name for name in BASELINE_METHODS if name not in text]


def test_terms_are_listed():
    import controllers
    from controllers import AbstractSquares, AbstractTerm

    abstract = (AbstractTerm, AbstractSquares)
    kinds = [x for x in vars(controllers).values() if inspect.isclass(x)]
    terms = {k.__name__ for k in kinds if issubclass(k, AbstractTerm)}
    terms -= names_of(abstract)
    assert first_column(section("docs/control.md", "| term |", "\n\n")) == terms


def test_joints_are_listed():
    import djdyn

    kinds = [x for x in vars(djdyn).values() if inspect.isclass(x)]
    joints = names_of(k for k in kinds if issubclass(k, djdyn.AbstractJoint))
    joints = {name for name in joints if not name.startswith("Abstract")}
    words = first_column(section("docs/concepts.md", "| joint |", "\n\n"))
    assert {word.split("(")[0] for word in words} == joints


def test_shapes_are_listed():
    kinds = [x for x in vars(shapes).values() if inspect.isclass(x)]
    solid = names_of(k for k in kinds if issubclass(k, shapes.AbstractShape))
    solid = {name for name in solid if not name.startswith(("Abstract", "_"))}
    assert code_words(section("docs/contact.md", "Shapes:")) == solid


def test_hydraulic_components_are_listed():
    from djdyn import hydraulics

    text = (DOCS / "hydraulics.md").read_text()
    public = [n for n, x in vars(hydraulics).items() if inspect.isclass(x)]
    assert not [n for n in public if n not in text and not n.startswith("Abstract")]


def test_studies_and_benchmarks_are_listed():
    studies = section("README.md", "## Studies", "\n## ")
    items = re.findall(r"^- (.+?):", studies, re.MULTILINE)
    assert set().union(*map(code_words, items)) == set(STUDIES)
    benchmarks = section("docs/speed.md", "Benchmarks:")
    assert code_words(benchmarks) == set(BENCHMARKS)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text()
    assert not [p.name for p in DOCS.glob("*.md") if p.name not in nav]
