"""A run of a study: progress, metrics with references and bounds, and files."""

import contextlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import djdyn
from djdyn.files import one_line, replacing, write_text
from djdyn.view import Check, Report


Case = tuple[str, Callable[["Study"], None]]  # name of a stage, and what it runs


class Study:
    """A run of a study; its results are written to disk as they arrive.

    **Arguments:**

    - `sets`: parameters to replace, by path. Metrics are then not judged.
    - `options`: settings of the study, with those of the user.
    """

    def __init__(
        self,
        title: str,
        subtitle: str,
        out: Path,
        *,
        stages: int,
        quick: bool = False,
        sets: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        self.out, self.quick = Path(out), quick
        self.sets, self.options = dict(sets or {}), dict(options or {})
        self.metrics: dict[str, float] = {}
        self.checks: list[Check] = []
        self.report = Report(title)
        self._asked, self._answer, self._picture = subtitle, "", None
        self.console = Console(width=max(Console().width, 110))
        self.out.mkdir(parents=True, exist_ok=True)
        for stale in ("metrics.json", "series.nc", "report.html"):
            (self.out / stale).unlink(missing_ok=True)
        columns = (
            TextColumn("{task.description:<34}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
        )
        self.progress = Progress(*columns, console=self.console)
        self.task = self.progress.add_task(_plain(title), total=stages)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show a stage of the study in the progress bar, and time it."""
        self.progress.update(self.task, description=_plain(name))
        start = time.perf_counter()
        yield
        self.progress.advance(self.task)
        taken = time.perf_counter() - start
        self.progress.console.print(f"  {_plain(name)} [dim]{taken:.1f} s[/dim]")

    def run_cases(self, quick: Sequence[Case], slow: Sequence[Case] = ()) -> None:
        """Run all cases, each as a stage; a quick run leaves out the slow ones."""
        cases = quick if self.quick else (*quick, *slow)
        self.progress.update(self.task, total=len(cases))
        for name, case in cases:
            with self.stage(name):
                case(self)

    def customise(self, system: djdyn.System) -> djdyn.System:
        """Return the system with the parameters of the user."""
        return djdyn.with_parameters(system, self.sets)

    def metric(
        self,
        name: str,
        value: Any,
        reference: float | None = None,
        tolerance: float | None = None,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        unit: str = "",
        note: str = "",
    ) -> None:
        """Record a number of the run and what it is judged by.

        **Arguments:**

        - `reference`, `tolerance`: the value is this, give or take that. A reference
            without a tolerance is shown but not judged.
        - `at_most`, `at_least`: bounds. A value that is never negative and should be
            small, such as the size of an error, has a bound and no reference.
        """
        self.metrics[name] = float(value)
        if self.sets:
            tolerance = at_most = at_least = None
        check = Check(
            name, unit, float(value), reference, tolerance, note, at_most, at_least
        )
        self.checks.append(check)
        text = {k: v if math.isfinite(v) else None for k, v in self.metrics.items()}
        write_text(self.out / "metrics.json", json.dumps(text, indent=2) + "\n")

    def series(self, name: str, data: xr.Dataset | djdyn.Trajectory) -> None:
        """Write labelled time series as a group of `series.nc`."""
        data = data.to_xarray() if isinstance(data, djdyn.Trajectory) else data
        path = self.out / "series.nc"
        with replacing(path) as new:  # earlier groups outlive a kill
            if path.exists():
                shutil.copyfile(path, new)
            data.to_netcdf(new, group=name, mode="a", engine="h5netcdf")

    def answer(self, text: str, picture: str | None = None) -> None:
        """Say what the study found, in two or three sentences with their numbers.

        The report opens with it, and with the picture of that title.
        """
        self._answer, self._picture = text.strip(), picture

    def _verdict(self) -> str:
        """Return how many numbers keep their reference or bound, and which do not."""
        judged = [c for c in self.checks if c.passed is not None]
        if not judged:
            return f"{len(self.checks)} numbers were computed; none is judged."
        failed = [c.quantity for c in judged if not c.passed]
        if failed:
            named = ", ".join(f"`{name}`" for name in failed[:3])
            more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
            return f"{len(failed)} of {len(judged)} numbers are off: {named}{more}."
        return f"All {len(judged)} numbers that have a reference or a bound keep it."

    @property
    def passed(self) -> bool:
        """Whether no check has failed."""
        return all(check.passed is not False for check in self.checks)

    def finish(self) -> None:
        """Write the report with all checks at its end, and print them."""
        self.progress.stop()
        if self.checks:
            self.report.comparison("All metrics of this run", self.checks)
        answer = f"{self._answer} {self._verdict()}".strip()
        self.report.summary(f"{self._asked}.", answer, self._picture)
        path = self.report.save(self.out / "report.html")
        self.console.print(self.table())
        if self.sets:
            self.console.print("Parameters were changed: metrics are not judged.")
        self.console.print(f"report: {escape(str(path))}")

    def table(self) -> Table:
        """Return all metrics with their references and bounds, for the console."""
        title = _plain(self.report.title)
        table = Table(title=title, title_justify="left", box=box.SIMPLE)
        for column in ("quantity", "this run", "reference", "difference", "allowed"):
            side = "left" if column == "quantity" else "right"
            table.add_column(column, justify=side, no_wrap=True)
        table.add_column("")
        number = lambda x: "" if x is None else f"{x:.5g}"
        for c in self.checks:
            mark = {True: "[green]ok[/green]", False: "[red]off[/red]", None: ""}
            name = f"{_plain(c.quantity)} [dim]{_plain(c.unit)}[/dim]".strip()
            cells = map(number, (c.value, c.reference, c.difference))
            table.add_row(name, *cells, c.allowed, mark[c.passed])
        return table


def _plain(text: object) -> str:
    """Return text of the user without what a terminal would take for commands."""
    return escape(one_line(text, 200))
