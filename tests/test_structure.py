"""Rules that a linter cannot see: layers, and classes that are abstract or final."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import equinox as eqx
import pytest


ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "djdyn": set(),
    "controllers": {"djdyn"},
    "estimation": {"djdyn"},
    "experiments": {"djdyn", "controllers", "estimation"},
}


def imported(path: Path) -> set[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
    return {name.split(".")[0] for name in names}


def modules(package: str) -> set[type]:
    top = importlib.import_module(package)
    names = [m.name for m in pkgutil.walk_packages(top.__path__, package + ".")]
    names = [name for name in names if not name.endswith("__main__")]
    found = set()
    for module in [top, *map(importlib.import_module, names)]:
        found |= {c for c in vars(module).values() if inspect.isclass(c)}
    return {c for c in found if issubclass(c, eqx.Module) and c is not eqx.Module}


def breaches(cls: type) -> list[str]:
    """What a class does against the abstract/final pattern."""
    ours = [b for b in cls.__mro__[1:] if b.__module__.split(".")[0] in MAY_IMPORT]
    said = []
    for base in ours:
        if not base.__name__.startswith("Abstract"):
            said.append(f"{cls.__name__} extends the final class {base.__name__}")
        for name, member in vars(base).items():
            concrete = callable(member) and not name.startswith("__")
            abstract = getattr(member, "__isabstractmethod__", False)
            if concrete and not abstract and name in vars(cls):
                said.append(f"{cls.__name__} overrides {base.__name__}.{name}")
    return said


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_dependencies_point_down(package):
    for path in (ROOT / package).rglob("*.py"):
        wrong = (imported(path) & MAY_IMPORT.keys()) - MAY_IMPORT[package] - {package}
        assert not wrong, f"{path} imports {wrong}"


def test_diffrax_has_one_door():
    users = {
        str(path.relative_to(ROOT))
        for package in MAY_IMPORT
        for path in (ROOT / package).rglob("*.py")
        if "diffrax" in imported(path)
    }
    assert users == {
        "djdyn/simulation/solvers/registry.py",
        "djdyn/simulation/solvers/step_times.py",
    }


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_classes_are_abstract_or_final(package):
    assert not [said for cls in modules(package) for said in breaches(cls)]
