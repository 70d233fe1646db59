"""Text, tables, plots and replays in one HTML file, and the figures for print."""

import html
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ..files import write_text
from . import colors, plots
from ._html import cell, heading, inline, packed, script
from ._inputs import Numbers, numbers
from .checks import Check, check
from .replay import replay
from .scene import Scene


LIMIT = 10e6  # bytes
FOLDED_ROWS = 12  # a table with more rows is folded


class Block(NamedTuple):
    """A piece of the page: a paragraph, or a section with a title."""

    kind: Literal["text", "table", "plot", "scene"]
    title: str
    html: str


class Report:
    """A page that opens with the answer: summary, key picture, then the sections.

    Lines keep their colour by name through all plots, and so does a reference to them.
    """

    def __init__(self, title: str, subtitle: str = ""):
        self.title = title
        self.subtitle = subtitle
        self.checks: list[Check] = []
        self._blocks: list[Block] = []
        self._summary: tuple[str, str, str | None] = ("", "", None)
        self._plots: list[plots.Plot] = []
        self._scenes: list[dict[str, Any]] = []
        self._colors: dict[str, str] = {}
        self._references: dict[str, str] = {}

    def text(self, paragraph: str) -> None:
        """Add a paragraph; `code` between backticks."""
        self._blocks.append(Block("text", "", f"<p>{inline(paragraph)}</p>"))

    def summary(self, asked: str, answer: str, picture: str | None = None) -> None:
        """Set what opens the page: the question, the answer, and one picture.

        **Arguments:**

        - `asked`: what the run was to find out, in a sentence.
        - `answer`: what it found, in two or three sentences with their numbers.
        - `picture`: title of the plot or scene to show there; the first scene, or else
          the first plot, if not given.
        """
        self._summary = (asked, answer, picture)

    def table(
        self, title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Add rows of text and numbers under a header; many rows are folded."""
        body = []
        for row in rows:
            if len(row) != len(header):
                raise ValueError(
                    f"a row of table {title!r} has {len(row)} cells, not {len(header)}"
                )
            body.append("".join(cell(value) for value in row))
        self._table(title, header, body)

    def matrix(self, title: str, names: Sequence[str], values: Numbers) -> None:
        """Add a square table of numbers from -1 to 1, coloured by sign and size."""
        square = numbers(values, "values", title, (len(names), len(names)))
        if not (np.abs(square) < 1 + 1e-9).all():
            raise ValueError(f"values of {title!r} must lie between -1 and 1")
        body = []
        for name, row in zip(names, square, strict=True):
            shades = [
                colors.PALETTE[int(x < 0)] + f"{round(200 * abs(x)):02x}" for x in row
            ]
            cells = "".join(
                f'<td class="number" style="background:{shade}">{x:.2f}</td>'
                for shade, x in zip(shades, row, strict=True)
            )
            body.append(cell(name) + cells)
        self._table(title, ("", *names), body)

    def comparison(
        self, title: str, rows: Iterable[Check | Sequence[Any]]
    ) -> list[Check]:
        """Add a table of values beside their references and bounds, each judged.

        Rows are `(quantity, unit, value, reference, tolerance, note, at_most,
        at_least)`; the last five may be None or left out. NaN fails.
        """
        checks = [check(tuple(row)) for row in rows]
        marks = {
            True: '<td><span class="mark pass">✓ pass</span></td>',
            False: '<td><span class="mark fail">✗ fail</span></td>',
            None: cell(None),
        }
        noted = any(c.note for c in checks)
        body = [
            re.sub(r"([._])", r"\1<wbr>", cell(c.quantity, css="name"))
            + cell(c.unit)
            + cell(c.value)
            + cell(c.reference)
            + cell(c.difference, 3)
            + cell(c.allowed or None, css="number")
            + marks[c.passed]
            + (cell(c.note, css="note") if noted else "")
            for c in checks
        ]
        header = ["quantity", "unit", "this run", "reference", "difference"]
        header += ["allowed", "", "note"] if noted else ["allowed", ""]
        self._table(title, header, body)
        self.checks += checks
        return checks

    def plot(
        self,
        title: str,
        x: tuple[str, str, Numbers],
        y: tuple[str, str],
        lines: Mapping[str, Numbers | tuple[Numbers, Numbers]],
        reference: Mapping[str, Numbers | tuple[Numbers, Numbers]] | None = None,
        *,
        log: Literal["", "x", "y", "xy"] = "",
        equal: bool = False,
    ) -> None:
        """Add curves over `x = (name, unit, values)`, labelled `y = (name, unit)`.

        **Arguments:**

        - `lines`: values by name, or `(x, values)` where a curve has its own abscissae.
        - `reference`: the same, drawn as markers, or dashed where there are many.
        - `log`: the axes that are logarithmic.
        - `equal`: one scale for both axes, for paths in a plane.
        """
        if not lines and not reference:
            raise ValueError(f"plot {title!r} has no lines")
        grid = numbers(x[2], "x", title, (None,))
        series = [self._series(title, grid, *line, False) for line in lines.items()]
        known = (reference or {}).items()
        series += [self._series(title, grid, *line, True) for line in known]
        plot = plots.Plot(title, _label(*x[:2]), _label(*y), tuple(series), log, equal)
        holder = f'<div class="plot" data-plot="{len(self._plots)}"></div>'
        self._blocks.append(Block("plot", title, holder))
        self._plots.append(plot)

    def scene(self, scene: Scene, title: str = "Replay") -> None:
        """Add a 3-D replay to play, scrub and orbit."""
        holder = f'<div class="scene" data-scene="{len(self._scenes)}"></div>'
        self._blocks.append(Block("scene", title, holder))
        self._scenes.append(replay(scene))

    def html(self) -> str:
        """Return the whole page."""
        page = resources.files("djdyn.view").joinpath("page.html").read_text("utf-8")
        key = self._key_picture()
        sections = [block for block in self._blocks if block is not key]
        contents, body, subject = [], [], ""
        for i, block in enumerate(sections):
            if block.kind == "text":
                body.append(block.html)
                continue
            title, before, subject = inline(block.title), subject, heading(block.title)
            if subject != before:  # neighbours with one subject share an entry
                entry = f'<a href="#section-{i}">{inline(subject)}</a>'
                contents.append(f"<li>{entry}</li>")
            body.append(
                f'<section id="section-{i}"><h2>{title}</h2>{block.html}</section>'
            )
        parts = {
            "title": html.escape(self.title),
            "subtitle": inline(self.subtitle),
            "summary": self._opening(key),
            "contents": "\n".join(contents),
            "body": "\n".join(body),
            "plots": script(f"[{','.join(map(plots.to_plotly, self._plots))}]"),
            "scenes": script(json.dumps(self._scenes, ensure_ascii=False)),
            "plotly": packed("plotly", "package_data/plotly.min.js", self._plots),
            "k3d": packed("k3d", "static/standalone.js", self._scenes),
        }
        return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)

    def _key_picture(self) -> Block | None:
        """The picture that opens the page; none without a summary."""
        asked, answer, wanted = self._summary
        if not asked and not answer:
            return None
        pictures = [b for b in self._blocks if b.kind in ("scene", "plot")]
        if wanted is not None:
            for block in pictures:
                if block.title == wanted:
                    return block
            raise ValueError(f"the report has no picture {wanted!r} for its summary")
        scenes = [b for b in pictures if b.kind == "scene"]
        return next(iter([*scenes, *pictures]), None)

    def _opening(self, key: Block | None) -> str:
        """The badge, and the summary if there is one."""
        judged = [c.passed for c in self.checks if c.passed is not None]
        badge = ""
        if judged:
            css = "pass" if all(judged) else "fail"
            counted = f"{sum(judged)} of {len(judged)} checks pass"
            badge = f'<span class="mark {css}">{counted}</span>'
        asked, answer, _ = self._summary
        if not asked and not answer:
            return badge
        parts = [f'<p class="asked">{inline(asked)}</p>'] if asked else []
        parts += [f'<p class="answer">{inline(answer)}</p>'] if answer else []
        if key is not None:
            parts.append(f"<h2>{inline(key.title)}</h2>{key.html}")
        return f'{badge}<section class="summary">{"".join(parts)}</section>'

    def save(self, path: str | os.PathLike[str], *, limit: float | int = LIMIT) -> Path:
        """Write the page; more than `limit` bytes is an error."""
        page = self.html()
        size = len(page.encode())
        if size > limit:
            raise ValueError(
                f"report {self.title!r} takes {size / 1e6:.1f} MB and may take "
                f"{limit / 1e6:.1f}: use coarser meshes, or fewer plots and key frames"
            )
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, page)
        return path

    def figures(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each plot as PDF and PNG, named after its title."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        taken: set[str] = set()
        for plot in self._plots:
            slug = re.sub(r"[^a-z0-9]+", "-", plot.title.lower()).strip("-") or "plot"
            names = (slug, *(f"{slug}-{n}" for n in range(2, len(self._plots) + 1)))
            name = next(name for name in names if name not in taken)
            taken.add(name)
            written += plots.to_files(plot, folder / name)
        return written

    def _table(self, title: str, header: Sequence[str], body: Iterable[str]) -> None:
        heads = "".join(f"<th>{inline(head)}</th>" for head in header)
        rows = [f"<tr>{cells}</tr>" for cells in body]
        table = (
            f'<div class="table"><table><thead><tr>{heads}</tr></thead>'
            f"<tbody>{chr(10).join(rows)}</tbody></table></div>"
        )
        if len(rows) > FOLDED_ROWS:
            table = f"<details><summary>{len(rows)} rows</summary>{table}</details>"
        self._blocks.append(Block("table", title, table))

    def _series(
        self,
        title: str,
        grid: np.ndarray,
        name: str,
        values: Numbers | tuple[Numbers, Numbers],
        reference: bool,
    ) -> plots.Series:
        where = f"{title}: {name}"
        x, y = grid, values
        if isinstance(values, tuple) and len(values) == 2:
            x, y = values
        x, y = numbers(x, "x", where, (None,)), numbers(y, "y", where, (None,))
        if len(x) != len(y):
            raise ValueError(f"{where!r} has {len(y)} values over {len(x)} abscissae")
        if not np.isfinite(x).all():
            raise ValueError(f"{where!r} has abscissae that are not finite")
        if not np.isfinite(y).any():
            raise ValueError(f"{where!r} has no finite value to draw")
        label = f"{name} (reference)" if reference and name in self._colors else name
        if reference and name not in self._colors:
            known, choice = self._references, colors.NEUTRALS
        else:
            known, choice = self._colors, colors.PALETTE
        color = known.setdefault(name, choice[len(known) % len(choice)])
        y = np.where(np.isfinite(y), y, np.nan)
        keep = plots.thin(x, y)
        return plots.Series(label, x[keep], y[keep], color, reference)


def _label(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name
