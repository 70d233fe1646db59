"""The table `tune` of a scenario file: what is free, what it costs, and where."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import controllers
import djdyn
from controllers import (
    AbstractTerm,
    Limit,
    RobustnessMargins,
    Scenarios,
    SearchOptions,
    TuningResult,
)
from controllers.tuning.loop_limit import MODULUS_MARGIN, SPECTRAL_ABSCISSA
from djdyn import FreeParameter
from djdyn.io.scenario import COUNTED, Scenario
from djdyn.io.scenario_limits import MAX_SAVES
from djdyn.io.scenario_table import TablePlace

from .tune_scenarios import DRAWN, check_distinct, read_conditions, whole_number
from .tune_search import read_free, read_loop, read_search
from .tune_terms import read_limit, read_term


TABLES = ("free", "cost", "limit", "scenarios", "hold_out", "loop", "search")
RESERVED = {"cost", "diverged", MODULUS_MARGIN, SPECTRAL_ABSCISSA}  # names
DEFAULT_SAVES = 101


@dataclasses.dataclass(frozen=True)
class TuningTask:
    """What a table `tune` asks for, as arguments of `controllers.tune`.

    `units` are those of the quantities that terms and limits look at, by name.
    """

    scenario: Scenario
    system: djdyn.System
    t1: float
    saves: int
    free: tuple[FreeParameter, ...]
    cost: dict[str, AbstractTerm]
    limits: dict[str, Limit]
    scenarios: Scenarios
    hold_out: Scenarios | None
    search: SearchOptions
    robustness: RobustnessMargins | None
    options: dict[str, Any]
    units: dict[str, str]

    def run(self, save: Path | None = None, progress: bool = True) -> TuningResult:
        """Search for the gains."""
        try:
            found = controllers.tune(
                self.system, self.t1, free=self.free, cost=self.cost,
                scenarios=self.scenarios, hold_out=self.hold_out,
                constraints=self.limits, search=self.search,
                robustness=self.robustness, saves=self.saves, save=save,
                progress=progress, **self.options,
            )  # fmt: skip
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.scenario.path.name}: tune: {error}") from error
        if any(numbers["cost"][0] == 0 for numbers in found.summary().values()):
            place, _ = self.scenario.tables["tune"]
            raise (place / "cost").error("it is zero before tuning, and cannot fall")
        return found


def read_task(scenario: Scenario) -> TuningTask:
    """Return what the table `tune` of a scenario asks for."""
    if "tune" not in scenario.tables:
        raise TablePlace(scenario.path.name).error("there is no table [tune]")
    place, table = scenario.tables["tune"]
    place.keys_of(table, ("t1", "saves", *TABLES), ("free", "cost"))
    for key in TABLES:
        (place / key).keys_of(table.get(key, {}), table.get(key, {}))
    options, t1, saves = _read_run(place, table, scenario)
    robustness = read_loop(place / "loop", table.get("loop"), scenario, t1)
    system = _with_inputs_at(scenario, robustness.time if robustness else 0.0)
    signals = eqx.filter_eval_shape(
        lambda: system.at(0.0, scenario.initial_state).signals
    )
    cost, limits, units = {}, {}, {}
    for name, given in table["cost"].items():
        here = place / "cost" / name
        cost[name], units[name] = read_term(here, given, system, signals)
    for name, given in table.get("limit", {}).items():
        here = place / "limit" / name
        if name in cost:
            raise here.error("there is a term of the cost of this name")
        limits[name], units[name] = read_limit(here, given, system, signals)
    for name in RESERVED & {*cost, *limits}:
        key = "cost" if name in cost else "limit"
        raise (place / key / name).error("reports give this name to another number")
    if not cost:
        raise (place / "cost").error("the cost has no terms")
    kept = bool(limits) or (robustness is not None and robustness.modulus is not None)
    search = read_search(place / "search", table.get("search", {}), cost, kept)
    free = read_free(place / "free", table["free"], system, search)
    scenarios, hold_out = _read_scenarios(place, table, scenario)
    paths = [f.path for f in free]
    for key, some in (("scenarios", scenarios), ("hold_out", hold_out)):
        drawn = some.parameters if some else {}
        here = place / key / "parameters"
        check_distinct(here, system, drawn, paths, "it is free, and is not drawn")
    return TuningTask(
        scenario, system, t1, saves, free, cost, limits, scenarios, hold_out, search,
        robustness, options, units,
    )  # fmt: skip


def _read_run(
    place: TablePlace, table: Mapping[str, Any], scenario: Scenario
) -> tuple[dict[str, Any], float, int]:
    """Return options of the runs, their end, s, and how often they are evaluated."""
    options = dict(scenario.simulation)
    t1 = float((place / "t1").numbers(table.get("t1", options.pop("t1")), ()))
    options.pop("t1", None)
    options.pop("saveat", None)
    if options.pop("t0", 0.0) != 0:
        at = TablePlace(place.file, "simulation", "t0")
        raise at.error("runs of a tuning start at 0 s")
    if not t1 > 0:
        raise (place / "t1").error(f"must be above 0 s, got {t1:g}")
    for key, most in COUNTED.items():
        if t1 / options.get(key, t1) > most:
            raise (place / "t1").error(f"at most {most} times {key} are possible")
    period, default = options.get("control_period"), DEFAULT_SAVES
    if period is not None:
        samples = round(t1 / period)
        if samples < 1 or abs(samples * period - t1) > 1e-9 * t1:
            raise (place / "t1").error(
                f"{t1:g} s is no whole number of control periods of {period:g} s"
            )
        default = samples + 1
    most = MAX_SAVES if period is None else default
    saves = whole_number(place / "saves", table.get("saves", default), 2, most)
    if period is not None and (default - 1) % (saves - 1):
        raise (place / "saves").error(
            f"{default - 1} control periods are not divided into {saves - 1} equal "
            "steps"
        )
    if scenario.inputs:
        options["inputs"] = scenario.inputs
    return options, t1, saves


def _with_inputs_at(scenario: Scenario, t: float) -> djdyn.System:
    """Return the system with its inputs as they are at a time, s, to linearise it."""
    if not scenario.inputs:
        return scenario.system
    now = {k: jnp.asarray(f(jnp.asarray(t))) for k, f in scenario.inputs.items()}
    at = lambda system: [system.inputs[k] for k in now]
    return eqx.tree_at(at, scenario.system, list(now.values()))


def _read_scenarios(
    place: TablePlace, table: Mapping[str, Any], scenario: Scenario
) -> tuple[Scenarios, Scenarios | None]:
    """Return the scenarios to tune on, and those to validate on."""
    given, others = table.get("scenarios"), table.get("hold_out")
    alone = jax.tree.map(lambda x: jnp.asarray(x)[None], scenario.initial_state)
    scenarios = Scenarios({}, alone)
    if given is not None:
        scenarios = read_conditions(place / "scenarios", given, scenario, 0)
    if others is None:
        return scenarios, None
    here = place / "hold_out"
    same = {k: given[k] for k in DRAWN if given and k in given}
    whole = same | {**others}
    if given is not None and {"seed": 0} | {**given} == {"seed": 1} | whole:
        raise (here / "seed").error("these are the scenarios that are tuned on")
    return scenarios, read_conditions(here, whole, scenario, 1)
