"""Rules that a linter cannot see: layers, private modules, final classes, words."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import equinox as eqx
import pytest


ROOT = Path(__file__).parent.parent
PACKAGES = {
    "djdyn": set(),
    "controllers": {"djdyn"},
    "estimation": {"djdyn"},
    "experiments": {"djdyn", "controllers", "estimation"},
}
BELOW_ALL = {"typing", "smooth", "files"}  # what every room of djdyn may use
PARTS = {"multibody", "parts"}
PHYSICS = PARTS | {"cable", "contact", "hydraulics", "marine"}
ROOMS = {
    "typing": set(),
    "smooth": {"typing"},
    "files": set(),
    "kernels": set(),
    "optimize": set(),
    "multibody": set(),
    "parts": {"multibody"},
    "marine": PARTS,
    "contact": PARTS,
    "hydraulics": PARTS,
    "cable": PARTS | {"marine"},  # lines feel the water
    "system": PHYSICS,
    "simulation": PHYSICS | {"system", "kernels"},
    "export": PHYSICS | {"system", "simulation", "kernels"},
    "view": PHYSICS | {"system", "simulation"},
    "io": PHYSICS | {"system", "simulation", "view"},
}


def imports(path: Path) -> set[str]:
    """Absolute names of all modules that a file imports, also inside functions."""
    here = path.relative_to(ROOT).with_suffix("").parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(here[: len(here) - node.level]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_point_down(package):
    allowed = PACKAGES[package] | {package}
    for path in files(package):
        if path == ROOT / "djdyn" / "__main__.py":  # the command is above
            continue
        used = {name.split(".")[0] for name in imports(path)} & PACKAGES.keys()
        assert used <= allowed, f"{path} imports {used - allowed}"


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_djdyn_point_down(room):
    folder = ROOT / "djdyn" / room
    paths = files(f"djdyn/{room}") if folder.is_dir() else [folder.with_suffix(".py")]
    allowed = ROOMS[room] | {room} | (BELOW_ALL if room != "kernels" else set())
    for path in paths:
        ours = {name.split(".")[1] for name in imports(path) if "djdyn." in name[:6]}
        used = ours & ROOMS.keys()
        assert used <= allowed, f"{path} imports {used - allowed}"


def test_every_room_has_its_place():
    rooms = {p.name for p in (ROOT / "djdyn").iterdir() if (p / "__init__.py").exists()}
    assert rooms <= ROOMS.keys()


def test_kernels_have_one_door():
    for package in PACKAGES:
        for path in files(package):
            if path.is_relative_to(ROOT / "djdyn" / "kernels"):
                continue
            inner = {x for x in imports(path) if x.startswith("djdyn.kernels.")}
            deep = {x for x in inner if x.count(".") > 2}
            assert not deep, f"{path} reaches into {deep}"


def test_nobody_reaches_into_private_modules():
    for package in PACKAGES:
        for path in files(package):
            for name in imports(path):
                parts = name.split(".")
                if parts[0] not in PACKAGES:
                    continue
                for i, part in enumerate(parts[1:], start=1):
                    owner = ROOT.joinpath(*parts[:i])
                    private = part.startswith("_") and not part.startswith("__")
                    if private and owner.is_dir():
                        assert path.is_relative_to(owner), f"{path} imports {name}"


def test_diffrax_has_one_door():
    users = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in files(package)
        if any(name.split(".")[0] == "diffrax" for name in imports(path))
    }
    solvers = "djdyn/simulation/solvers/"
    inside = ("registry.py", "step_times.py", "projected.py")
    assert users == {solvers + name for name in inside}


def test_every_folder_says_what_is_in_it():
    for package in PACKAGES:
        for path in (ROOT / package).rglob("__init__.py"):
            assert ast.get_docstring(ast.parse(path.read_text())), str(path)


FRAGMENTS = ("Of ", "By ", "With ", "As ", "Whose ", "That ", "Themselves")
MAX_LINES, MAX_FUNCTION = 400, 80


@pytest.mark.parametrize("package", PACKAGES)
def test_files_and_functions_are_short_and_documented(package):
    said = []
    for path in files(package):
        text = path.read_text()
        lines = text.count("\n")
        if lines > MAX_LINES:
            said.append(f"{path}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
            if not isinstance(node, kinds):
                continue
            name = getattr(node, "name", "module")
            doc = ast.get_docstring(node) or ""
            if doc.startswith(FRAGMENTS):
                said.append(f"{path}: {name}: {doc.splitlines()[0]!r}")
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > MAX_FUNCTION:
                    said.append(f"{path}: {name} has {length} lines")
    assert not said, "\n".join(said)


def public_names() -> dict[str, object]:
    import djdyn

    own = {k: x for k, x in vars(djdyn).items() if not k.startswith("_")}
    return {k: x for k, x in own.items() if not inspect.ismodule(x)}


def test_public_names_have_docstrings():
    def missing(x: object) -> bool:
        documented = inspect.isclass(x) or inspect.isfunction(x)
        return documented and not (inspect.getdoc(x) or "").strip()

    assert not [name for name, x in public_names().items() if missing(x)]


def test_importing_djdyn_costs_no_pictures():
    import subprocess
    import sys

    heavy = ("xarray", "pandas", "plotly", "matplotlib", "mujoco", "k3d")
    code = f"import sys, djdyn; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


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
    ours = [b for b in cls.__mro__[1:] if b.__module__.split(".")[0] in PACKAGES]
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


@pytest.mark.parametrize("package", PACKAGES)
def test_classes_are_abstract_or_final(package):
    assert not [said for cls in modules(package) for said in breaches(cls)]


@pytest.mark.parametrize("package", ("djdyn", "controllers", "estimation"))
def test_public_methods_have_docstrings(package):
    """A method says what it returns, itself or where a base class declares it."""
    missing = []
    for cls in modules(package):
        if cls.__module__.split(".")[0] != package or cls.__name__.startswith("_"):
            continue
        for name, member in vars(cls).items():
            kinds = inspect.isfunction(member) or isinstance(member, property)
            if name.startswith("_") or not kinds:
                continue
            said = (getattr(vars(k).get(name), "__doc__", None) for k in cls.__mro__)
            if not any(said):
                missing.append(f"{cls.__name__}.{name}")
    assert not missing
