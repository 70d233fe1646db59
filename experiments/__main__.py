"""The `djdyn` command."""

import argparse
import ast
import importlib
import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any

import jax

import djdyn

from . import scenario
from .study import Study


STUDIES = {
    "boom-crane": "experiments.boom_crane",
    "crane": "experiments.crane",
}
BENCHMARKS = {
    "rollout": "experiments.benchmarks.rollout",
    "gradient": "experiments.benchmarks.gradient",
    "compile": "experiments.benchmarks.compile",
    "scaling": "experiments.benchmarks.scaling",
}


def _title(module: str) -> str:
    return (importlib.import_module(module).__doc__ or "").splitlines()[0].rstrip(".")


def _pick(kind: str, name: str, table: dict[str, str]) -> Any:
    if name not in table:
        raise ValueError(f"unknown {kind} {name!r}; there are {', '.join(table)}")
    return importlib.import_module(table[name])


def _setting(text: str) -> tuple[str, Any]:
    """`path=value`; a value that is not a number or list of numbers is a string."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise ValueError(f"--set takes path=value, got {text!r}")
    try:
        return path, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return path, value


def _run(args: argparse.Namespace, kind: str, table: dict[str, str]) -> int:
    module = _pick(kind, args.name, table)
    options, sets = dict(getattr(module, "OPTIONS", {})), {}
    for path, value in map(_setting, args.set):
        if path in options:
            options[path] = value
        else:
            sets[path] = value
    if sets:
        if not hasattr(module, "build"):
            known = f"; it has {', '.join(options)}" if options else ""
            raise ValueError(f"{args.name} has no setting {next(iter(sets))!r}{known}")
        djdyn.put(module.build(), sets)  # an unknown path is said before anything runs
    study = Study(
        module.TITLE,
        _title(table[args.name]),
        args.out or Path("runs") / args.name,
        stages=module.STAGES,
        quick=args.quick,
        sets=sets,
        options=options,
    )
    with study.progress:
        try:
            module.run(study)
        finally:
            study.finish()
    return 0 if study.passed else 1


def _list() -> int:
    for kind, table in (("studies", STUDIES), ("benchmarks", BENCHMARKS)):
        print(f"{kind}:")
        for name, module in table.items():
            print(f"  {name:<14} {_title(module)}")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Parses and obeys; 0 all well, 1 a number outside its tolerance, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="djdyn", description="Differentiable dynamics for control and estimation."
    )
    version = importlib.metadata.version("djdyn")
    parser.add_argument("--version", action="version", version=f"djdyn {version}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list studies and benchmarks")
    for command, what in (("run", "study"), ("bench", "benchmark")):
        sub = commands.add_parser(command, help=f"run a {what}")
        sub.add_argument("name", help=f"the {what}'s name")
        sub.add_argument("--out", type=Path, help="folder for the results")
        sub.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="PATH=VALUE",
            help="a parameter or option",
        )
        sub.add_argument("--quick", action="store_true", help="a shorter run")
    sub = commands.add_parser("simulate", help="simulate a scenario file")
    sub.add_argument("scenario", type=Path, help="a TOML file")
    sub.add_argument("--out", type=Path, help="folder for the results")
    args = parser.parse_args(argv)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "djdyn"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    try:
        match args.command:
            case "list":
                return _list()
            case "run":
                return _run(args, "study", STUDIES)
            case "bench":
                return _run(args, "benchmark", BENCHMARKS)
        return scenario.run(args.scenario, args.out)
    except djdyn.SimulationError as error:
        print(f"djdyn: {error}", file=sys.stderr)
        return 1
    except (ValueError, OSError, ImportError) as error:
        print(f"djdyn: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
