"""Tables, plots and a replay of the study `cube-toss`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import djdyn
from djdyn.multibody.spatial import quat_to_rotation
from djdyn.view import Scene

from ...harness.study import Study
from .model import Unknowns, errors, physical, predict
from .records import HALF, Tosses


SCENE = "Toss with the median error, measured and simulated"


def numbers(system: djdyn.System, x: Unknowns) -> dict[str, float]:
    """Return the fitted parameters in common units."""
    found = physical(system, x)
    axes = (("x", 0), ("y", 1), ("z", 2))
    one = lambda path, *at: float(found[path][at])
    corners = djdyn.get_parameters(system, "floor.shape.vertices")
    moved = jnp.linalg.norm(found["floor.shape.vertices"] - corners, axis=1)
    return {
        "friction": one("floor.friction.mu"),
        "dissipation, s/m": one("floor.normal.dissipation"),
        "stiffness, N/m": one("floor.normal.stiffness"),
        **{f"mass centre {k}, mm": 1e3 * one("cube.p_BC", i) for k, i in axes},
        **{f"inertia {k}, g m2": 1e3 * one("cube.I_BC", i, i) for k, i in axes},
        "ground, mm": 1e3 * one("ground.X_BF.p", 2),
        "gravity, m/s2": -one("gravity_W", 2),
        "age of velocities, frames": 0.5 + float(x.lag),
        "corners moved by, mm": 1e3 * float(jnp.mean(moved)),
    }


def report_parameters(
    study: Study, system: djdyn.System, x: Unknowns, fits: list[Unknowns]
) -> None:
    """Tabulate the parameters fitted to all tosses, and the scatter of small fits."""
    first, best = numbers(system, Unknowns.zeros()), numbers(system, x)
    all_fits = [numbers(system, y) for y in fits]
    scatter = {k: np.std([y[k] for y in all_fits]) if fits else np.nan for k in best}
    rows = [(k, first[k], value, scatter[k]) for k, value in best.items()]
    header = ("quantity", "first guess", "fitted", f"scatter of {len(fits)} small fits")
    study.report.table("Identified parameters", header, rows)
    for name, value in best.items():
        plain, _, unit = name.partition(", ")
        study.metric(
            f"cube_toss.fitted.{plain.replace(' ', '_')}",
            value,
            unit=unit,
            note=f"scatter of small fits {scatter[name]:.3g}" if fits else "",
        )


def report_errors(study: Study, before: Any, found: Any) -> None:
    """Plot the distribution of errors over held-out tosses."""
    units = ("position error", "% of width"), ("rotation error", "deg")
    for axis, old, new in zip(units, before, found, strict=True):
        part = (np.arange(len(new)) + 0.5) / len(new)
        study.report.plot(
            f"Held-out tosses: mean {axis[0]} of a toss",
            (*axis, np.sort(new)),
            ("share of tosses below", "1"),
            {"first guess": (np.sort(old), part), "fitted": (np.sort(new), part)},
        )


def report_learning(
    study: Study,
    system: djdyn.System,
    fits: dict[int, list[Unknowns]],
    validation: Tosses,
) -> None:
    """Plot errors on held-out tosses over the number of fitted tosses."""
    count = np.array(list(fits))
    scores = [[errors(system, x, validation) for x in some] for some in fits.values()]
    for i, (kind, unit) in enumerate((("position", "percent"), ("rotation", "deg"))):
        means = [np.array([np.mean(e[i]) for e in some]) for some in scores]
        axis = (f"{kind} error", "% of width" if i == 0 else "deg")
        each = np.repeat(count, [len(m) for m in means])
        study.report.plot(
            f"Learning curve: {kind} error on held-out tosses",
            ("tosses fitted", "1", count),
            axis,
            {"mean of fits": np.array([m.mean() for m in means])},
            {"single fits": (each, np.concatenate(means))},
            log="x",
        )
        for n, m in zip(count, means, strict=True):
            note = f"on held-out tosses; mean of {len(m)} fits"
            name = f"cube_toss.learning.{n}.{kind}_{unit}"
            study.metric(name, m.mean(), unit=axis[1], note=note)


def report_toss(
    study: Study, system: djdyn.System, x: Unknowns, tosses: Tosses
) -> None:
    """Plot the toss with the median error, measured and simulated."""
    position, _ = errors(system, x, tosses)
    k = int(np.argsort(position)[len(position) // 2])
    one = tosses.lanes(np.array([k]))
    frames = int(jnp.sum(one.there))
    q = np.asarray(predict(system, x, one.start, frames, one.dt))[0]
    seen, t = np.asarray(one.poses)[0, :frames], np.arange(frames) * one.dt
    columns = ["x", "y", "z", "qw", "qx", "qy", "qz"]
    both = {
        "measured": (("time", "column"), seen),
        "simulated": (("time", "column"), q),
    }
    study.series("toss", xr.Dataset(both, {"time": t, "column": columns}))
    for what, columns in (("position", "xyz"), ("quaternion", "wxyz")):
        i = 0 if what == "position" else 3
        pick = lambda a, i=i, columns=columns: {
            c: a[:, i + j] for j, c in enumerate(columns)
        }
        study.report.plot(
            f"Held-out toss with the median error: {what} (reference: measured)",
            ("time", "s", t),
            (what, "m" if i == 0 else "1"),
            pick(q),
            pick(seen),
        )
    scene = Scene(t, ground=0.0)
    for name, path, opacity in (("measured", seen, 0.4), ("simulated", q, 1.0)):
        R = np.asarray(jax.vmap(quat_to_rotation)(jnp.asarray(path[:, 3:])))
        scene.box(name, [2 * HALF] * 3, R, path[:, :3], opacity=opacity)
    study.report.scene(scene, SCENE)
