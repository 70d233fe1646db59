"""Thrusters, allocation, reference models and the object of the ROV."""

import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from controllers import SecondOrderReference, linearise
from djdyn.marine.allocation import Allocation
from djdyn.marine.thruster import Thrusters
from djdyn.parts import Grip, Support

from ...harness.study import Study
from .model import FLIP, blades, layout, values


DOWN = np.concatenate([FLIP, FLIP])  # a wrench, between z downwards and z upwards
ALLOCATED = {  # wrench, torque first, and thrusts, N
    (0, 0, 0, 1000, 0, 0): (569.747, 569.747, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 1000): (0, 0, 250, 250, 500, 0),
    (0, 0, 1000, 0, 0, 0): (372.697, -372.697, 0, 0, 0, 357.361),
    (0, 0, 0, 0, 1000, 0): (-111.809, 111.809, 0, 0, 0, 892.792),
}


def run_allocation(study: Study) -> None:
    """Compare the thrusts for pushes along single axes."""
    H, share = np.asarray(layout().matrix()), Allocation(layout())
    study.metric(
        "rov.allocation.determinant", abs(np.linalg.det(H)), 6.7814843, 5e-8,
        note="of the thrusters' matrix",
    )  # fmt: skip
    worst, printed, rows = 0.0, 0.0, []
    for wrench, wanted in ALLOCATED.items():
        given = DOWN * np.array(wrench, float)
        thrusts = np.asarray(share.thrusts(jnp.asarray(given)))
        worst = max(worst, np.abs(H @ thrusts - given).max() / 1000)
        worst = max(worst, np.abs(thrusts - np.linalg.solve(H, given)).max() / 1000)
        printed = max(printed, np.abs(thrusts - wanted).max())
        rows.append((str(wrench), *thrusts))
    study.metric(
        "rov.allocation.error", worst, at_most=1e-9,
        note="wrench of the thrusts, and thrusts against the exact inverse, relative",
    )  # fmt: skip
    study.metric(
        "rov.allocation.value_error", printed, at_most=6e-4, unit="N",
        note="thrusts for 1000 N and 1000 N m against printed ones of six digits",
    )  # fmt: skip
    study.report.table(
        "Thrusts for pushes along single axes (torque first, z downwards), N",
        ("wrench", *(f"T{i}" for i in range(1, 7))),
        rows,
    )


def on_a_bench(mode: str) -> djdyn.System:
    """Return the thrusters on a body that is held."""
    body = djdyn.Body("bench", "world", djdyn.Fixed(), 1.0)
    sled = djdyn.Body("sled", "world", djdyn.Prismatic(), 1.0)
    parts = {"thrusters": Thrusters("bench", layout(), "command", blades(mode))}
    mechanism = djdyn.Mechanism((body, sled), gravity_W=(0.0, 0.0, 0.0))
    return djdyn.System(mechanism, parts, {"command": jnp.full(6, 100.0)})


def run_thruster(study: Study) -> None:
    """Compare a thruster's blades, its bollard pull, and its open and closed loop."""
    one = lambda x: jnp.array([x])
    T, Q, _ = blades().blades(one(20.0), one(0.5))
    rows = [("thrust at 20 rad/s and 0.5 m/s, N", T[0], 252.3906),
            ("torque at 20 rad/s and 0.5 m/s, N m", Q[0], 27.28646),
            ("thrust at 20 rad/s, N", blades().blades(one(20.0), one(0.0))[0][0],
             319.3814)]  # fmt: skip
    exact = djdyn.SimulationOptions(solver="kvaerno5", rtol=1e-9, atol=1e-10)
    run = djdyn.simulate(on_a_bench("torque"), 60.0, saveat=[1.0, 60.0], options=exact)
    shaft = np.asarray(run.y.parts["thrusters"]["shaft"])[:, 0]
    water = np.asarray(run.y.parts["thrusters"]["water"])[:, 0]
    thrust = np.asarray(run.signal("thrusters.blade_thrust"))[:, 0]
    torque = float(blades().blades(one(shaft[1]), one(water[1]))[1][0])
    rows += [
        ("100 N m for 1 s: shaft, rad/s", shaft[0], 8.40615),
        ("100 N m for 60 s: shaft, rad/s", shaft[1], 9.56345),
        ("100 N m for 60 s: thrust, N", thrust[1], 40.3796),
        ("bollard: thrust over shaft speed squared", thrust[1] / shaft[1] ** 2,
         0.4415018),
        ("bollard: torque over shaft speed squared", torque / shaft[1] ** 2,
         0.04773167),
        ("bollard: water speed over shaft speed", water[1] / shaft[1], 0.05519797),
    ]  # fmt: skip
    worst = max(abs(float(x) / y - 1) for _, x, y in rows)
    study.metric(
        "rov.thruster.max_error", worst, at_most=1e-4,
        note="blades, bollard pull and start of a thruster, relative to an independent "
        "computation",
    )  # fmt: skip
    times = [0.02, 0.1, 0.5, 1.0, 20.0]
    loop = djdyn.simulate(on_a_bench("thrust"), 20.0, saveat=times, options=exact)
    found = np.asarray(loop.signal("thrusters.blade_thrust"))[:, 0]
    jet = np.asarray(loop.signal("thrusters.thrust"))[2, 0]
    known = ((found[0], 59.80), (found[1], 93.62), (found[3], 95.00),
             (found[4], 97.30), (jet, 86.96))  # fmt: skip
    study.metric(
        "rov.thruster.loop_error",
        max(abs(x - y) for x, y in known),
        at_most=6e-3,
        unit="N",
        note="step of the thrust loop to 100 N, five values of four digits",
    )
    study.report.table(
        "A thruster: blades, bollard pull and start",
        ("quantity", "this run", "reference"),
        rows,
    )


def run_reference(study: Study) -> None:
    """Compare frequencies and damping ratios of the reference models."""
    of = values()
    get = lambda kind, *keys: [of[f"refmodel_{kind}.{k}"] for k in keys]
    for name, numbers, wanted in (
        ("linear", get("vehicle", "m_ref", "d_lin", "k_ref"), (0.28284, 0.88388)),
        ("angular", get("vehicle", "Ix_ref", "d_ang", "k_ref"), (0.36515, 0.91287)),
        ("arm", get("manipulator", "m_ref", "d_1", "k_ref"), (1.0, 0.5)),
    ):
        path = SecondOrderReference("target", jnp.zeros(1), *numbers)
        body = djdyn.Body("still", "world", djdyn.Prismatic(), 1.0)
        flat = djdyn.Mechanism((body,), gravity_W=(0.0, 0.0, 0.0))
        system = djdyn.System(flat, {"path": path}, {"target": jnp.zeros(1)})
        poles = np.asarray(linearise(system).poles())
        pole = poles[np.argmax(np.abs(poles))]
        for what, value, known in (
            ("frequency", abs(pole), wanted[0]),
            ("damping", -pole.real / abs(pole), wanted[1]),
        ):
            study.metric(
                f"rov.reference.{name}_{what}", value, known, 6e-6,
                unit="rad/s" if what == "frequency" else "",
            )  # fmt: skip


def run_object(study: Study) -> None:
    """Compare the modes of the object in the grip and on its support."""
    of = values()
    get = lambda *keys: [of[f"object.{k}"] for k in keys]
    body = djdyn.Body("object", "world", djdyn.Cartesian(), of["object.m_o"])
    for name, part, height, wanted in (
        ("grip", Grip("world", "object", "closed", of["object.kg_v"],
                      of["object.dg_v"], start=1.0),
         0.0, (84.515, 0.845)),
        ("support", Support("object", 1.0, *get("ko_v", "do_v")), 1 - 1.3734e-3,
         (84.515, 0.0845)),
    ):  # fmt: skip
        system = djdyn.System(
            djdyn.Mechanism((body,)), {name: part}, {"closed": jnp.ones(())}
        )
        y = system.initial_state({"object": [0.0, 0.0, height]})
        rate = jax.jit(
            lambda z, w, system=system, y=y: system.derivative(
                0.0,
                djdyn.State(y.q.at[2].set(z), y.v.at[2].set(w), y.parts),
            ).v[2]
        )
        k, c = jax.grad(rate, (0, 1))(height, 0.0)
        frequency = np.sqrt(-float(k))
        study.metric(
            f"rov.object.{name}_frequency", frequency, wanted[0], 1e-3, unit="rad/s"
        )
        study.metric(
            f"rov.object.{name}_damping", -float(c) / 2 / frequency, wanted[1], 5e-4
        )
        if name == "support":
            study.metric(
                "rov.object.support_sink", abs(float(rate(height, 0.0))), at_most=1e-3,
                unit="m/s^2", note="acceleration of the object 1.3734 mm below the top",
            )  # fmt: skip
