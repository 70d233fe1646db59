"""Single components beside closed forms: volumes, valves, friction, stable steps.

After the hydraulic models of Baharudin 2016.
"""

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.hydraulics import (
    Circuit,
    Efficiency,
    EndStop,
    HydraulicCylinder,
    Oil,
    OnJoint,
    Orifice,
    ServoValve,
    Supply,
    Tank,
    Volume,
)
from djdyn.simulation.solvers.registry import TABLEAUS

from ...harness import tables
from ...harness.study import Study
from .model import BAR, GAIN, slider
from .valve import jacobian


LITRE_PER_MINUTE = 1e-3 / 60  # m3/s
OIL = Oil(870.0, 1.6e9, conserves="volume")


def run_volumes(study: Study) -> None:
    """Compare the pressure rate of a volume and the effective modulus of a hose."""
    ram = HydraulicCylinder("A", "T", OnJoint("mass"), 1e-3, 1e-3, 9.0, follow=False)
    system = slider(Circuit(OIL, {"A": Volume(volume=1e-3), "T": Tank(), "ram": ram}))
    y = system.initial_state(v={"mass": -LITRE_PER_MINUTE / 1e-3})
    rate = system.derivative(0.0, y).parts["oil"]["A.bar"] * BAR
    study.metric(
        "hydraulic_boom.v13.rate",
        rate,
        2.66667e7,
        50.0,
        unit="Pa/s",
        note="1 l/min into 1 l",
    )
    node, p = (
        Volume(volume=1e-3, hose_volume=1e-3, hose_modulus=2e8),
        jnp.array(50 * BAR),
    )
    soft = node.dead_volume() / (
        node.dead_volume() / OIL.stiffness(p) + node.wall_compliance(p, OIL)[0]
    )
    note = "effective modulus of 2 l, of them 1 l in a hose of 2e8 Pa"
    study.metric("hydraulic_boom.v13.modulus", soft, 3.2e8, 1.0, unit="Pa", note=note)


def run_valves(study: Study) -> None:
    """Compare the lag of a spool, and the flows of a servo valve and an orifice."""
    parts = {
        "P": Supply(35 * BAR),
        "T": Tank(),
        "A": Volume(volume=1.0),
        "B": Volume(volume=1.0),
        "valve": ServoValve("P", "T", "A", "B", "U", GAIN, 10.0, spool="lag", lag=0.1),
        "hole": Orifice("C", "T", 1e-5, 0.6),
        "C": Volume(1.0, 10 * BAR),
    }
    system = slider(Circuit(OIL, parts), U=10.0)
    run = djdyn.simulate(system, 0.3, saveat=4, solver="tsit5")
    lag = np.asarray(run.y.parts["oil"]["valve.spool"])[1:]
    worst = np.abs(10 * lag - [6.3212, 8.6466, 9.5021]).max()
    note = "largest error of the opening after one, two and three time constants"
    study.metric("hydraulic_boom.v14.spool_error", worst, at_most=6e-5, note=note)
    y = system.initial_state()
    y.parts["oil"]["valve.spool"] = jnp.array(0.5)
    flows = system.at(0.0, y).signals
    for name, q, known, within, note in (
        (
            "valve_flow",
            flows["oil.valve.flow_a"],
            30.0,
            1e-6,
            "servo valve half open at 35 bar",
        ),
        (
            "orifice_flow",
            flows["oil.hole.flow"],
            17.26068,
            6e-6,
            "orifice of 10 mm² at 10 bar",
        ),
    ):
        metric, value = f"hydraulic_boom.v14.{name}", q / LITRE_PER_MINUTE
        study.metric(metric, value, known, within, unit="l/min", note=note)


def run_friction(study: Study) -> None:
    """Compare cylinder friction by efficiency, and the end stop."""
    act = lambda v, push: Efficiency(0.9).act(jnp.array(v), jnp.array(push), {})[:2]
    for v, known in ((0.1, 39.2e3), (-0.1, 40.8e3)):
        study.metric(
            f"hydraulic_boom.v16.force_{'out' if v > 0 else 'in'}",
            40e3 - act(v, 40e3)[0],
            known,
            1.0,
            unit="N",
            note="pressure force of 40 kN less friction, at 0.1 m/s",
        )
    least = min(act(v, push)[1] for v in (0.1, -0.1) for push in (40e3, -40e3))
    note = "least power lost, of all four combinations of signs"
    study.metric("hydraulic_boom.v16.loss", least, 80.0, 0.1, unit="W", note=note)
    for v, known in ((0.1, 2000.0), (-0.1, 1000.0)):
        study.metric(
            f"hydraulic_boom.v16.stop_{'in' if v > 0 else 'back'}",
            EndStop(1e6, 1e4).force(jnp.array(1e-3), jnp.array(v))[0],
            known,
            1e-6,
            unit="N",
            note="1 mm into the end stop at 0.1 m/s",
        )


def amplified(z: np.ndarray | complex) -> np.ndarray:
    """Return the amplification of a step of RK4, from the solver's tableau."""
    A, b, _ = TABLEAUS["rk4"]
    stages = lambda z: np.linalg.solve(np.eye(len(b)) - z * A, np.ones(len(b)))
    return np.array([abs(1 + z * b @ stages(z)) for z in np.atleast_1d(z)])


def run_limits(study: Study) -> None:
    """Compare the longest stable steps of RK4 for stiff oil."""
    worst, growth = 0.0, 0.0
    for row in tables.read("hydraulic_boom/rk4_limits.csv"):
        h, real, swing, hertz, gain = (float(x) for x in row.values())
        slow = amplified(1e-3 * h * np.array([-real, 1j * swing, 2j * np.pi * hertz]))
        worst = max(worst, np.abs(slow - 1).max())
        growth = max(growth, abs(amplified(0.3j * np.pi * h)[0] / gain - 1))
    note = "largest deviation from 1 of the amplification at the stability limit"
    study.metric("hydraulic_boom.v22.rk4_limit_error", worst, at_most=1e-5, note=note)
    note = "largest relative error of the amplification of 150 Hz, five steps"
    study.metric("hydraulic_boom.v22.rk4_growth_error", growth, at_most=1e-5, note=note)
    rows = []
    for litres, known in ((1.63, 1.12), (0.5, 0.343), (0.05, 0.034)):
        parts = {
            "P": Supply(80 * BAR),
            "T": Tank(),
            "A": Volume(1e-3 * litres, 80 * BAR),
            "B": Volume(volume=1.0),
            "valve": ServoValve("P", "T", "A", "B", "u", GAIN),
        }
        system = slider(Circuit(OIL, parts), u=1.0)
        found = np.linalg.eigvals(jacobian(system, system.initial_state())).real.min()
        rows.append((litres, -found, 2.785294 / -found * 1e3, known))
    note = "pole of 1.63 l behind a fully open valve without pressure drop"
    study.metric(
        "hydraulic_boom.v22.pole", rows[0][1], 2489.0, 0.6, unit="1/s", note=note
    )
    study.metric(
        "hydraulic_boom.v22.step_error",
        max(abs(step / known - 1) for *_, step, known in rows),
        at_most=1.5e-2,
        note="largest relative error of the longest stable step, three volumes",
    )
    study.report.table(
        "Longest stable steps of RK4 (Baharudin 2016)",
        ("volume, l", "pole, 1/s", "longest step, ms", "reference, ms"),
        rows,
    )


def run_components(study: Study) -> None:
    """Run all comparisons of single components."""
    for part in (run_volumes, run_valves, run_friction, run_limits):
        part(study)
