"""The `djdyn` command."""

import argparse
import ast
import importlib
import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any


os.environ.setdefault(  # XLA's older emitters compile in half the time
    "XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false"
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # its loader cries wolf on CPUs

import jax

import controllers
import djdyn
import estimation
from djdyn.export.c_source import export_c
from djdyn.files import one_line
from djdyn.io.scenario import read_scenario
from djdyn.kernels import UnsupportedError, user_cache

from .harness.study import Study
from .machine import identify, new, simulate, tune
from .machine.kinds import KINDS


STUDIES = {
    "arm-id": "experiments.studies.arm_id.study",
    "boom-crane": "experiments.studies.boom_crane.study",
    "bounce-id": "experiments.studies.bounce_id.study",
    "cable": "experiments.studies.cable.study",
    "contact": "experiments.studies.contact.study",
    "crane": "experiments.studies.crane.study",
    "cube-toss": "experiments.studies.cube_toss.study",
    "double-pendulum": "experiments.studies.double_pendulum.study",
    "elbow-toss": "experiments.studies.elbow_toss.study",
    "flexible": "experiments.studies.flexible.study",
    "hydraulic-boom": "experiments.studies.hydraulic_boom.study",
    "launch": "experiments.studies.launch.study",
    "loops": "experiments.studies.loops.study",
    "optotrak": "experiments.studies.optotrak.study",
    "rov": "experiments.studies.rov.study",
    "swing-up": "experiments.studies.swing_up.study",
    "titan4": "experiments.studies.titan4.study",
    "tow": "experiments.studies.tow.study",
    "tune-boom": "experiments.studies.tune_boom.study",
    "tune-crane": "experiments.studies.tune_crane.study",
    "winch": "experiments.studies.winch.study",
}
BENCHMARKS = {
    "rollout": "experiments.benchmarks.rollout",
    "gradient": "experiments.benchmarks.gradient",
    "compile": "experiments.benchmarks.compile",
    "scaling": "experiments.benchmarks.scaling",
    "gpu": "experiments.benchmarks.gpu",
    "cable": "experiments.benchmarks.cable",
    "contact": "experiments.benchmarks.contact",
    "hydraulic-boom": "experiments.benchmarks.hydraulic_boom",
    "loops": "experiments.benchmarks.loops",
    "rov": "experiments.benchmarks.rov",
    "titan4": "experiments.benchmarks.titan4",
}

LONGEST_MESSAGE = 2000  # letters
INTERRUPTED = 130  # the shell's status of a command that was ended by Ctrl-C


def _title(module: str) -> str:
    """Return the first line of a module's docstring."""
    return (importlib.import_module(module).__doc__ or "").splitlines()[0].rstrip(".")


def _pick(kind: str, name: str, table: dict[str, str]) -> Any:
    """Import the module of a study or benchmark."""
    if name not in table:
        raise ValueError(f"unknown {kind} {name!r}; there are {', '.join(table)}")
    return importlib.import_module(table[name])


def _setting(text: str) -> tuple[str, Any]:
    """Parse `path=value`; a value that is not a Python literal is a string."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise ValueError(f"--set takes path=value, got {text!r}")
    try:
        return path, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return path, value


def _run(args: argparse.Namespace, kind: str, table: dict[str, str]) -> int:
    """Run a study or benchmark; return the exit status."""
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
        djdyn.with_parameters(module.build(), sets)  # reports unknown paths early
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


def _export(args: argparse.Namespace) -> int:
    """Write the system of a scenario as C."""
    outside = args.allow_outside
    found = read_scenario(args.scenario, KINDS, allow_outside=outside)
    how = found.simulation
    dt = how.get("dt") if args.dt is None else args.dt
    if dt is None:
        raise ValueError(f"{args.scenario.name} has no fixed steps: give --dt, in s")
    if how.get("control_delay"):
        raise ValueError(
            f"{args.scenario.name} has a control_delay, which the caller of the C code "
            "must provide: leave it out"
        )
    solver = how.get("solver", "tsit5") if "dt" in how else "semi_implicit"
    export_c(
        found.system,
        args.c,
        found.initial_state,
        inputs=found.inputs,
        precision=args.precision,
        dt=dt,
        solver=args.solver or solver,
        control_period=how.get("control_period"),
    )
    print(f"{args.c} and {args.c.with_suffix('.h')}")
    return 0


def _check_neighbours() -> None:
    """Refuse packages of the same names that are somebody else's."""
    home = Path(djdyn.__file__).parents[1]
    for package in (controllers, estimation):
        where = Path(str(package.__file__)).parents[1]
        if where != home:
            name = package.__name__
            raise ImportError(f"{name!r} in {where} is not djdyn's, which is in {home}")


def _list() -> int:
    """Print all studies and benchmarks."""
    for kind, table in (("studies", STUDIES), ("benchmarks", BENCHMARKS)):
        print(f"{kind}:")
        for name, module in table.items():
            print(f"  {name:<14} {_title(module)}")
    return 0


def _add_allow_outside(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets a scenario read files outside of its folder."""
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="let the scenario read files outside of its folder",
    )


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a simulation."""
    parser.add_argument("scenario", type=Path, help="a TOML file")
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument(
        "--from", dest="start", type=Path, help="state.npz of a run that goes on"
    )
    _add_allow_outside(parser)


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0, 1 if a metric fails its check, or 2 on bad input."""
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
    sub = commands.add_parser("new", help="write a starter scenario with measurements")
    sub.add_argument("name", nargs="?", help="the starter's name; none lists them")
    sub.add_argument("--out", type=Path, help="folder for it, by default of its name")
    _add_simulate(commands.add_parser("simulate", help="simulate a scenario file"))
    sub = commands.add_parser("identify", help="identify a machine from measurements")
    sub.add_argument("scenario", type=Path, help="a TOML file with a section identify")
    sub.add_argument(
        "--data", type=Path, nargs="+", default=[], help="records in place of its own"
    )
    sub.add_argument("--out", type=Path, help="folder for the results")
    _add_allow_outside(sub)
    sub = commands.add_parser("tune", help="tune the gains of a scenario file")
    sub.add_argument("scenario", type=Path, help="a TOML file with a table [tune]")
    sub.add_argument("--out", type=Path, help="folder for the results")
    _add_allow_outside(sub)
    sub = commands.add_parser("export", help="write the system of a scenario as C")
    sub.add_argument("scenario", type=Path, help="a TOML file")
    sub.add_argument("--c", type=Path, required=True, help="the C file to write")
    sub.add_argument("--solver", help="semi_implicit, rk4 or tsit5")
    sub.add_argument("--dt", type=float, help="length of the steps, s")
    sub.add_argument("--precision", choices=("float64", "float32"))
    _add_allow_outside(sub)
    args = parser.parse_args(argv)
    cache = user_cache()
    jax.config.update("jax_compilation_cache_dir", str(cache) if cache else None)
    try:
        _check_neighbours()
        match args.command:
            case "list":
                return _list()
            case "run":
                return _run(args, "study", STUDIES)
            case "bench":
                return _run(args, "benchmark", BENCHMARKS)
            case "new":
                return new.run(args.name, args.out)
            case "export":
                return _export(args)
            case "identify":
                outside = args.allow_outside
                return identify.run(args.scenario, args.data, args.out, outside)
            case "tune":
                return tune.run(args.scenario, args.out, args.allow_outside)
        return simulate.run(args.scenario, args.out, args.allow_outside, args.start)
    except djdyn.SimulationError as error:
        print(f"djdyn: {one_line(error, LONGEST_MESSAGE)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("djdyn: interrupted; the results so far are on disk", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        print("djdyn: this needs more memory than there is", file=sys.stderr)
        return 2
    except (ValueError, OSError, ImportError, UnsupportedError) as error:
        print(f"djdyn: {one_line(error, LONGEST_MESSAGE)}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
