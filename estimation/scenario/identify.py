"""Identification of a scenario's machine from files of measurements."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import numpy as np

from djdyn.io.scenario import Scenario
from djdyn.io.scenario_write import write_scenario

from ..identification.diagnostics import Residuals, residuals
from ..identification.fit import fit, random_starts, rms
from ..identification.problem import Problem
from ..identification.result import FitResult
from ..identification.trial import Trial
from .alignment import align
from .measured import MeasuredMachine, Prediction
from .plausibility import doubts
from .records import Record, read_record
from .specification import LOSSES, Specification
from .trials import make_prediction, make_trials, measured_machine
from .verdict import Verdict, judge


START_SHARE = 0.2  # of a held-out record, from which its unknown start is found


@dataclasses.dataclass(frozen=True)
class Identification:
    """What was found from measurements; prints as a table with a verdict.

    - `fit`: the estimates; `verdict`: what they are worth, in words.
    - `residuals`: tests of what the model leaves, by record.
    - `before`, `after`: root mean square errors on data not fitted, in standard
      deviations of the noise, with the first guess and with the estimates; None where
      nothing was held out.
    - `held`: records held out as a whole, as trials with their starts found.
    - `aligned`: delays from which the fit started, a sentence each.
    """

    scenario: Scenario
    spec: Specification
    records: tuple[Record, ...]
    predict: Prediction
    fit: FitResult
    residuals: tuple[Residuals, ...]
    before: float | None
    after: float | None
    held: tuple[Trial, ...]
    verdict: Verdict
    aligned: tuple[str, ...] = ()

    @property
    def machine(self) -> MeasuredMachine:
        """The machine with the estimates, and its sensors."""
        return self.fit.model

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the estimates of the machine's parameters by path."""
        return {
            name.removeprefix("system."): value
            for name, value in self.fit.values.items()
            if name.startswith("system.")
        }

    def readable(self, text: str) -> str:
        """Return text with the names of unknowns as the scenario has them."""
        return readable(self.scenario, self.spec, text)

    def __str__(self) -> str:
        return f"{self.fit.told(self.readable)}\n{self.readable(str(self.verdict))}"

    def save_scenario(self, path: str | Path) -> None:
        """Write the scenario with the estimates in its section `parameters`."""
        write_scenario(
            self.scenario.path, path, self.parameters(),
            f"identified from {', '.join(r.file.path.name for r in self.records)}",
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Task:
    """An identification before its fit: its records, read and checked."""

    scenario: Scenario
    spec: Specification
    records: tuple[Record, ...]
    predict: Prediction
    machine: MeasuredMachine

    def readable(self, text: str) -> str:
        """Return text with the names of unknowns as the scenario has them."""
        return readable(self.scenario, self.spec, text)

    @property
    def faults(self) -> list[str]:
        """What is odd about the records, a sentence each."""
        return [said for one in self.records for said in one.faults]

    def check_columns(self) -> None:
        """Raise if columns seem to be in another unit, turned round, or exchanged."""
        if not self.spec.plausibility:
            return
        for record in self.records:
            if said := doubts(
                self.scenario, self.spec, record, self.machine, self.predict
            ):
                raise ValueError(
                    f"{'; or '.join(said[:3])}. The first guess fits them far better. "
                    "Correct the column, or set identify.plausibility = false"
                )

    def fit(
        self, save: str | Path | None = None, progress: bool = True
    ) -> Identification:
        """Fit the unknowns, and judge the result.

        **Arguments:**

        - `save`: a file that keeps the last step. If it exists, the fit resumes there.
        """
        fitted = [r for r in self.records if not r.file.hold_out]
        spec, said = align(self.scenario, self.spec, fitted, self.predict)
        machine = measured_machine(self.scenario, spec)
        task = dataclasses.replace(self, spec=spec, machine=machine)
        return task._fit(save, progress, tuple(said))

    def _fit(
        self, save: str | Path | None, progress: bool, said: tuple[str, ...]
    ) -> Identification:
        """Fit the unknowns from the first values of the sensors."""
        spec, how = self.spec, dict(self.spec.settings)
        trials = make_trials(self.scenario, spec, self.records, self.predict)
        kept = [
            t for t, r in zip(trials, self.records, strict=True) if not r.file.hold_out
        ]
        whole = [
            t for t, r in zip(trials, self.records, strict=True) if r.file.hold_out
        ]
        lengths = [len(r.t) for r in self.records if not r.file.hold_out]
        share = 0.0 if whole else spec.hold_out
        fitted, rest = _split(kept, lengths, share)
        count, decades, seed = (how.pop(k) for k in ("starts", "decades", "seed"))
        loss = LOSSES[how.pop("loss")]()
        if count > 1:
            how["starts"] = random_starts(
                self.machine, spec.free, count, decades=decades, seed=seed
            )
        found = fit(
            self.machine, fitted, spec.free, priors=spec.priors, loss=loss,
            hold_out=rest, save=save, progress=progress, **how,
        )  # fmt: skip
        before, after = None, found.hold_out_error
        if rest:
            blind = Problem(self.machine, rest, spec.free, dict(spec.priors), loss)
            before = rms(blind, found.x0)
        if whole:
            whole, before, after = self._held_out(whole, found.model)
        tests = tuple(residuals(found))
        verdict = judge(found, tests, before, after)
        return Identification(
            self.scenario, spec, self.records, self.predict, found, tests, before,
            after, tuple(whole), verdict, said,
        )  # fmt: skip

    def _held_out(
        self, trials: list[Trial], model: MeasuredMachine
    ) -> tuple[list[Trial], float, float]:
        """Return records held out with their starts found, and errors of two models.

        The unknown start of such a record is found from its first fifth, and the error
        is that of the others.
        """
        lengths = [len(r.t) for r in self.records if r.file.hold_out]
        first, late = _split(trials, lengths, 1 - START_SHARE)
        errors, placed = [], trials
        for machine in (self.machine, model):
            if trials[0].free:
                own = fit(
                    machine, first, (), hold_out=0.0, allow_unidentifiable=True,
                    progress=False,
                )  # fmt: skip
                at = [eqx.tree_at(lambda t: t.start, t, s) for t, s in zip(
                    late, own.trial_starts, strict=True)]  # fmt: skip
                placed = [eqx.tree_at(lambda t: t.start, t, s) for t, s in zip(
                    trials, own.trial_starts, strict=True)]  # fmt: skip
            else:
                at = late
            blind = Problem(machine, at, self.spec.free)
            errors.append(rms(blind, blind.x))
        return placed, errors[0], errors[1]


def readable(scenario: Scenario, spec: Specification, text: str) -> str:
    """Return text with the names of unknowns as the scenario has them."""
    m = scenario.system.mechanism
    for joint in spec.start:
        entries = np.arange(m.nv)[m.v_slice(joint)]
        for k, i in enumerate(entries):
            label = joint if len(entries) == 1 else f"{joint}[{k}]"
            text = text.replace(f"start.turn[{i}]", f"start.{label}.q")
            text = text.replace(f"start.speed[{i}]", f"start.{label}.v")
    return text.replace("system.", "")


def _split(
    trials: Sequence[Trial], lengths: Sequence[int], share: float
) -> tuple[list[Trial], list[Trial]]:
    """Return the first rows of trials, and the last `share` of their lengths."""
    if not share:
        return list(trials), []
    ends = [round((1 - share) * n) for n in lengths]
    rows = [np.arange(len(t)) < n for t, n in zip(trials, ends, strict=True)]
    pairs = list(zip(trials, rows, strict=True))
    return [t.keep(r) for t, r in pairs], [t.keep(~r) for t, r in pairs]


def prepare(scenario: Scenario, spec: Specification) -> Task:
    """Return the identification that a scenario asks for, with its records read."""
    with spec.place.guard():
        records = tuple(read_record(scenario, spec, file) for file in spec.records)
        fitted = [r for r in records if not r.file.hold_out]
        predict = make_prediction(scenario, spec, [*fitted, *records])
        begun = lambda: scenario.system.at(predict.t0, scenario.initial_state)
        eqx.filter_eval_shape(lambda: predict.query(begun()))  # are there all signals?
    return Task(scenario, spec, records, predict, measured_machine(scenario, spec))
