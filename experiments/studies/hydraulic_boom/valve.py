"""Trapped oil, valve step, zero flow and water hammer, beside closed forms."""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import scipy.integrate

import djdyn

from ...harness.study import Study
from .model import BAR, pipe, valve_step


FREQUENCIES = {1e-3: 7.118, 1e-4: 22.508, 1e-5: 71.176, 1e-6: 225.079}  # m3: Hz
ENDS = {  # m3: position (m), both pressures, largest first pressure (bar)
    1e-3: (0.156673, 101.2896, 99.7104, 131.235),
    1e-4: (0.156686, 101.2855, 99.7145, 171.336),
    1e-6: (0.156664, 101.2855, 99.7145, 199.986),
}
TIMES = np.union1d(np.linspace(0, 0.02, 801), np.linspace(0, 1, 1001))
TOLERANCE = 1e-5
PRESSURE_TOLERANCE = 0.01  # bar


@eqx.filter_jit
def jacobian(system: djdyn.System, y: djdyn.State) -> jax.Array:
    """Return the Jacobian of the equations of motion on a flat state."""
    flat, unravel = jax.flatten_util.ravel_pytree(y)
    rate = lambda x: jax.flatten_util.ravel_pytree(system.derivative(0.0, unravel(x)))
    return jax.jacfwd(lambda x: rate(x)[0])(flat)


def run_trapped(study: Study) -> None:
    """Compare the frequency of a mass between two closed chambers."""
    worst = 0.0
    for V, hertz in FREQUENCIES.items():
        system = djdyn.with_parameters(
            valve_step(V, area=1e-3, damping=0.0), {"u": 0.0}
        )
        found = np.linalg.eigvals(jacobian(system, system.initial_state()))
        worst = max(worst, abs(np.abs(found.imag).max() / (2 * np.pi) / hertz - 1))
    study.metric(
        "hydraulic_boom.hyd0.max_frequency_error",
        worst,
        at_most=1e-4,
        note="trapped oil: largest relative error, four volumes",
    )


@eqx.filter_jit
def step_run(system: djdyn.System, times: np.ndarray = TIMES) -> djdyn.Trajectory:
    """Simulate one second of the valve step."""
    how = {"solver": "rodas4", "rtol": TOLERANCE, "atol": TOLERANCE}
    return djdyn.simulate(system, 1.0, saveat=times, max_steps=2048, **how)


def by_radau(V: float) -> np.ndarray:
    """Return both pressures of the valve step at `TIMES`, bar, by SciPy's Radau."""

    def rate(_: float, y: np.ndarray) -> list[float]:
        v, a, b = y[1], y[2] * BAR, y[3] * BAR
        root = lambda drop: 1e-7 * np.sign(drop) * np.sqrt(abs(drop))
        q_a, q_b = root(200 * BAR - a), root(b - BAR)
        stiff = 1e9 / V / BAR
        pull = (2e-3 * (a - b) - 2000 * v) / 1000
        return [v, pull, stiff * (q_a - 2e-3 * v), stiff * (2e-3 * v - q_b)]

    found = scipy.integrate.solve_ivp(
        rate, (0.0, 1.0), [0.0, 0.0, 100.5, 100.5], "Radau", TIMES, rtol=1e-9, atol=1e-9
    )
    return found.y[2:]


def run_valve(study: Study) -> None:
    """Compare a valve step on chambers of three sizes."""
    errors, along, peaks, speeds = [], [], [], []
    shown, known = {}, {}
    for V, (x, a, b, most) in ENDS.items():
        run = step_run(valve_step(V))
        p = np.stack([run.y.parts["oil"][k] for k in ("A.bar", "B.bar")])
        errors.append(np.abs(p[:, -1] - [a, b]).max())
        peaks.append(abs(p[0].max() - most))
        speeds.append(run.y.v[-1, 0])
        exact = by_radau(V)
        along.append(np.abs(p - exact).max())
        name = f"{1e6 * V:g} ml"
        shown[name], known[name] = p[0], exact[0]
        study.metric(
            f"hydraulic_boom.hyd1.position_{V:g}",
            run.y.q[-1, 0],
            x,
            2e-6,
            unit="m",
            note=f"valve step: chambers of {name}, after 1 s in {int(run.steps)} steps",
        )
    most = PRESSURE_TOLERANCE
    for name, found, note in (
        ("max_error_bar", errors, "pressures after 1 s, three volumes"),
        ("max_peak_error_bar", peaks, "largest saved pressure"),
        ("max_series_error_bar", along, "whole run, beside SciPy's Radau"),
    ):
        metric = f"hydraulic_boom.hyd1.{name}"
        note = f"valve step: {note}"
        study.metric(metric, max(found), at_most=most, unit="bar", note=note)
    speed = np.roots([2 * (2e-3 / 1e-7) ** 2, 2000 / 2e-3, -199 * BAR]).max()
    study.metric(
        "hydraulic_boom.hyd1.speed",
        speeds[-1],
        speed,
        1e-7,
        unit="m/s",
        note="valve step: steady speed, from the pressure drops of valve and damper",
    )
    early, near = TIMES <= 0.02, known.values()
    some = 1e3 * TIMES[early][::40]
    study.report.plot(
        "Valve step: pressure of the filling chamber",
        ("time", "ms", 1e3 * TIMES[early]),
        ("pressure", "bar"),
        {k: p[early] for k, p in shown.items()},
        {"Radau": (np.tile(some, 3), np.concatenate([p[early][::40] for p in near]))},
    )


def run_zero_flow(study: Study) -> None:
    """Compare a large valve with nearly zero pressure drop."""
    rig = valve_step(1e-3, 1e-3, 2e4, 2e-5, 1 * BAR, 100 * BAR, 0.0)
    system, times = djdyn.with_parameters(rig, {"u": 0.5}), np.linspace(0.0, 4.0, 401)
    how = {"solver": "rodas4", "rtol": 1e-5, "atol": 1e-5}
    run = djdyn.simulate(system, 4.0, saveat=times, **how)
    v = np.roots([2 * (1e-3 / 1e-5) ** 2, 2e4 / 1e-3, -100 * BAR]).max()
    drop = 100 - np.asarray(run.y.parts["oil"]["A.bar"])
    for name, value, known, within, most, unit, note in (
        ("speed", run.v("mass")[-1, 0], v, 1e-5 * v, None, "m/s",
         "reference: exact steady speed"),
        ("drop", drop[-1] * BAR, (100 * v) ** 2, 9.0, None, "Pa",
         "pressure drop over the valve; reference: exact steady drop"),
        ("chatter", np.ptp(drop[-100:]) * BAR, None, None, 1.0, "Pa",
         "range of the pressure drop in the last second"),
        ("steps", run.steps, None, None, 500, "", "steps taken for 4 s"),
    ):  # fmt: skip
        metric = f"hydraulic_boom.hyd2.{name}"
        study.metric(metric, value, known, within, at_most=most, unit=unit, note=note)
    study.report.plot(
        "Zero flow: pressure drop over an open valve",
        ("time", "s", times[1:]),
        ("pressure drop", "bar"),
        {"supply to chamber": np.abs(drop[1:])},
        {"exact, steady": (times[[1, -1]], np.full(2, (100 * v) ** 2 / BAR))},
        log="y",
    )


def run_hammer(study: Study) -> None:
    """Compare the pressure rise in a suddenly closed pipe with Joukowsky's."""
    n, length, speed, start = 40, 24.0, 0.5, 50.0
    system = pipe(n, length, speed, start * BAR)
    a = np.sqrt(1.4e9 / 870.0)
    t = np.linspace(0.0, 3.6 * length / a, 361)
    run = djdyn.simulate(system, t[-1], saveat=t, rtol=1e-6, atol=1e-6)
    rise = np.asarray(run.y.parts["oil"][f"n{n - 1}.bar"]) - start
    exact, returns = 870 * a * speed / BAR, 2 * length / a
    first = (t > 0.2 * returns) & (t < 0.8 * returns)
    study.metric(
        "hydraulic_boom.hyd3.rise",
        rise[first].mean(),
        exact,
        0.01 * exact,
        unit="bar",
        note=f"mean before the wave returns, {n} elements; reference: rho a dv",
    )
    wave = np.where(t < returns, exact, -exact)
    study.report.plot(
        "Water hammer: pressure at the closed end",
        ("time", "ms", 1e3 * t),
        ("pressure rise", "bar"),
        {f"{n} elements": rise},
        {"Joukowsky": jnp.asarray(wave)},
    )
