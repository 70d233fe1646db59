"""One plot, drawn twice: by plotly for the screen and by matplotlib for print."""

import dataclasses
import html
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from . import colors


POINTS = 4000  # a line keeps about so many
MARKERS = 80  # a reference of more points becomes a dashed line
DECADES = 3  # a logarithmic axis of fewer has ticks between its powers of ten


@dataclasses.dataclass(frozen=True)
class Series:
    """One curve; a reference is drawn as markers or dashes."""

    name: str
    x: Float[np.ndarray, " N"]
    y: Float[np.ndarray, " N"]
    color: str
    reference: bool

    @property
    def marked(self) -> bool:
        """Whether points are all there is to draw; two are taken for a level."""
        return self.reference and len(self.x) <= MARKERS and len(self.x) != 2


@dataclasses.dataclass(frozen=True)
class Plot:
    """Curves over labelled axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log: Literal["", "x", "y", "xy"]
    equal: bool


def thin(
    x: Float[np.ndarray, " N"], y: Float[np.ndarray, " N"], points: int = POINTS
) -> Int[np.ndarray, " M"]:
    """Indices of about `points` samples that keep every peak, both ends and the gaps.

    Each bucket of neighbours keeps its lowest and its highest y; a curve that runs back
    and forth keeps its leftmost and rightmost x as well.
    """
    if len(x) <= points:
        return np.arange(len(x))
    forth = bool((np.diff(x) >= 0).all())
    keep = [np.array([0, len(x) - 1])]
    for bucket in np.array_split(np.arange(len(x)), points // (2 if forth else 4)):
        for values in (y[bucket],) if forth else (x[bucket], y[bucket]):
            gaps = np.isnan(values)
            if gaps.any():
                keep.append(bucket[gaps][:1])
            if not gaps.all():
                keep.append(bucket[[np.nanargmin(values), np.nanargmax(values)]])
    return np.unique(np.concatenate(keep))


def to_plotly(plot: Plot) -> str:
    """The figure as JSON for plotly's script."""
    import plotly.graph_objects as go

    axis: dict[str, Any] = {
        "gridcolor": "#eceff3",
        "linecolor": "#b8c1cc",
        "showline": True,
        "ticks": "outside",
        "tickcolor": "#b8c1cc",
        "ticklen": 4,
        "zeroline": False,
        "exponentformat": "power",
        "hoverformat": ".6~g",
        "title": {"standoff": 10},
        "automargin": True,
    }
    figure = go.Figure()
    for series in plot.series:
        look: dict[str, Any] = {"mode": "lines", "line": {"width": 1.8}}
        if series.marked:
            look = {"mode": "markers", "marker": {"size": 7, "symbol": "circle-open"}}
            look["marker"]["line"] = {"width": 1.6}
        elif series.reference:
            look["line"]["dash"] = "dash"
        look["marker" if series.marked else "line"]["color"] = series.color
        figure.add_scatter(
            x=_compact(series.x),
            y=_compact(series.y),
            name=html.escape(series.name, quote=False),
            hovertemplate=_hover(plot, series),
            **look,
        )
    figure.update_layout(
        template="none",
        height=400,
        margin={"l": 70, "r": 16, "t": 8, "b": 56},
        font={"family": "system-ui, sans-serif", "size": 13, "color": colors.INK},
        hovermode="closest" if plot.equal else "x unified",
        hoverlabel={"font": {"size": 12.5}, "bordercolor": colors.RULE},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        showlegend=True,
        xaxis=axis | _scale("x" in plot.log, [s.x for s in plot.series]),
        yaxis=axis | _scale("y" in plot.log, [s.y for s in plot.series]),
    )
    figure.update_xaxes(title_text=html.escape(plot.x_label, quote=False))
    figure.update_xaxes(spikecolor=colors.MUTED, spikethickness=1)
    figure.update_yaxes(title_text=html.escape(plot.y_label, quote=False))
    if plot.equal:
        figure.update_yaxes(scaleanchor="x")
    return str(figure.to_json())


def to_files(plot: Plot, stem: Path) -> list[Path]:
    """The figure for print, 160 mm wide, as PDF and PNG."""
    import matplotlib
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": colors.MUTED,
        "axes.grid": True,
        "grid.color": "#e6eaef",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(6.3, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for series in plot.series:
            look: dict[str, Any] = {"linewidth": 1.3}
            if series.marked:
                look = {"linestyle": "", "marker": "o", "fillstyle": "none"}
                look["markersize"] = 4.5
            elif series.reference:
                look["linestyle"] = "--"
            axes.plot(
                series.x,
                series.y,
                color=series.color,
                label=_plain(series.name),
                **look,
            )
        axes.set_xlabel(_plain(plot.x_label))
        axes.set_ylabel(_plain(plot.y_label))
        axes.set_xscale("log" if "x" in plot.log else "linear")
        axes.set_yscale("log" if "y" in plot.log else "linear")
        if plot.equal:
            axes.set_aspect("equal", adjustable="datalim")
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(4, len(plot.series)),
            borderaxespad=0.2,
        )
        pdf, png = (
            stem.with_name(f"{stem.name}.pdf"),
            stem.with_name(f"{stem.name}.png"),
        )
        figure.savefig(pdf, metadata={"CreationDate": None})  # same data, same file
        figure.savefig(png, dpi=200)
    return [pdf, png]


def _scale(log: bool, values: list[Float[np.ndarray, " N"]]) -> dict[str, Any]:
    """The type of an axis, and its ticks if it is logarithmic."""
    if not log:
        return {"type": "linear"}
    # Without this format, plotly writes 2 for 0.2.
    axis: dict[str, Any] = {"type": "log", "tickformat": "~g"}
    every = np.concatenate(values)
    every = every[every > 0]
    decades = np.ptp(np.log10(every)) if every.size else 0.0
    return axis | {"dtick": "D2" if decades < DECADES else max(1, round(decades / 8))}


def _hover(plot: Plot, series: Series) -> str:
    """Values, and where they are unless that is where the mouse is."""
    if plot.equal:
        return "%{x:.6~g}, %{y:.6~g}"
    return "%{y:.6~g} at %{x:.6~g}" if series.marked else "%{y:.6~g}"


def _compact(values: Float[np.ndarray, " N"]) -> np.ndarray:
    """In single precision where no zoom of a thousand could tell."""
    single = values.astype(np.float32)
    finite = values[np.isfinite(values)]
    error = np.abs(single.astype(float) - values)[np.isfinite(values)]
    return single if error.max() <= 1e-6 * np.ptp(finite) else values


def _plain(text: str) -> str:
    """Keep matplotlib from reading mathematics, or hiding what starts with `_`."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
