"""Test rig of one actuator: frequency response, steps of motor and piston.

After Rokseth 2014, paper 2, figures 4, 6 and 7.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.hydraulics import (
    Circuit,
    HydraulicCylinder,
    Motor,
    Oil,
    OnJoint,
    ServoValve,
    Supply,
    Tank,
    Volume,
)
from djdyn.parts import JointSpring

from ...harness import tables
from ...harness.study import Study


SUPPLY, VOLUME, DISPLACEMENT = 307e5, 1e-3, 1e-4  # Pa, m3, m3/rad
INERTIA, GAIN = 150.0, 0.9 * 1e-6 * np.sqrt(2 / 950)  # kg m2, m3/(s Pa^0.5)
AREAS, MEAN_AREA = (3e-4, 1.5e-4), 2.25e-4  # m2, of the piston
LAG = 1e-4  # s, valve
STEP_TIME, SPRING, DAMPING = 0.5, 1500.0, 150.0  # s, N m/rad, N m s/rad
STATIC_AMPLITUDE = 4.485137e6  # Pa, load pressure at frequency zero
STIFFNESSES: tuple[str, ...] = (
    "1e11",
    "1e12",
    "1e13",
)  # Pa/m3, each side


def rig(piston: bool = False, spool: str = "lag") -> djdyn.System:
    """Return a valve, two volumes and an actuator on an inertia with a spring."""
    joint = djdyn.Prismatic((1, 0, 0)) if piston else djdyn.Revolute()
    load = djdyn.Body("load", "world", joint, INERTIA, I_BC=INERTIA * np.eye(3))
    acting = (
        HydraulicCylinder("A", "B", OnJoint("load"), *AREAS, 20.0, -10.0, follow=False)
        if piston
        else Motor("A", "B", "load", DISPLACEMENT)
    )
    parts = {
        "P": Supply(SUPPLY),
        "T": Tank(),
        "A": Volume(VOLUME, SUPPLY / 2),
        "B": Volume(VOLUME, SUPPLY / 2),
        "valve": ServoValve(
            "P", "T", "A", "B", "u", GAIN,
            spool=spool, lag=LAG, transition=100.0,  # pyright: ignore
        ),
        "actuator": acting,
    }  # fmt: skip
    oil = Circuit(Oil(950.0, 1e11 * VOLUME, conserves="volume"), parts)
    spring = JointSpring("load", SPRING, DAMPING)
    arm = djdyn.Mechanism((load,), gravity_W=(0.0, 0.0, 0.0))
    return djdyn.System(arm, {"oil": oil, "spring": spring}, {"u": 0.0})


class _Opens(eqx.Module):
    """Valve command that steps from 0 to 1."""

    def __call__(self, t: Array) -> Array:
        return jnp.where(t >= STEP_TIME, 1.0, 0.0)


def steps(
    names: list[str], t: np.ndarray, piston: bool
) -> tuple[Float[np.ndarray, "k n"], Float[np.ndarray, "k n"]]:
    """Return positions and load pressures (bar) of steps, one for each column name.

    If the pressures of both sides add up to the supply pressure, the areas are equal
    and the valve has no lag, the simulation plant model (`spm`) equals the control
    plant model (`cpm`).
    """
    system = rig(piston)
    control = np.array([name.startswith("cpm") for name in names])
    full = np.array([0.0 if "zero" in name else SUPPLY / 2 for name in names])
    lanes = {
        "oil.oil.bulk_modulus": [float(name[-4:]) * VOLUME for name in names],
        "oil.valve.lag": np.where(control, 1e-6, LAG),
    }
    if piston:
        for side, area in zip("ab", AREAS, strict=True):
            path = f"oil.actuator.area_{side}"
            lanes[path] = np.where(control, MEAN_AREA, area)
    y0 = system.initial_state()
    y0.parts["oil"] |= {
        "A.bar": jnp.asarray(full / 1e5),
        "B.bar": jnp.asarray(full / 1e5),
    }
    run = djdyn.rollout(
        system, t[-1], y0, parameters=lanes, saveat=t, solver="rodas4", rtol=1e-7,
        atol=1e-7, inputs={"u": _Opens()}, jumps=[STEP_TIME],
    )  # fmt: skip
    oil = run.y.parts["oil"]
    return np.asarray(run.y.q[..., 0]), np.asarray(oil["A.bar"] - oil["B.bar"])


def run_steps(study: Study) -> None:
    """Compare the response to a step of the valve, of a motor and of a piston."""
    for actuator, unit in (("motor", "rad"), ("piston", "m")):
        rows = tables.read(f"titan4/ref_step_{actuator}.csv")
        names = [k[2 : -len(unit) - 1] for k in rows[0] if k.startswith("q_")]
        t = tables.columns(rows, "t_s")[:, 0]
        q, load = steps(names, t, actuator == "piston")
        known = tables.columns(rows, *(f"q_{name}_{unit}" for name in names)).T
        study.metric(
            f"titan4.step.{actuator}_max_error",
            np.abs(q - known).max(),
            at_most=1e-3,
            unit=unit,
            note=f"largest error of both plant models, {len(names)} runs of 12 s",
        )
        bars = tables.columns(rows, *(f"PL_{name}_bar" for name in names)).T
        study.metric(
            f"titan4.step.{actuator}_pressure_error",
            np.abs(load - bars).max(),
            at_most=0.01,
            unit="bar",
            note="largest error of the load pressure",
        )
        shown = {"control": names.index("cpm_r1e11")}
        shown["simulation"] = names.index("spm_P0zero_r1e11")
        study.report.plot(
            f"Valve step, {actuator} (Rokseth 2014): control plant model, and "
            "simulation plant model from zero pressure, 1e11 Pa/m3",
            ("time", "s", t),
            ("position", unit),
            {name: q[i] for name, i in shown.items()},
            {name: (t[::3], known[i][::3]) for name, i in shown.items()},
        )


class _Sine(eqx.Module):
    """Sine with some cycles per unit of time."""

    cycles: Array

    def __call__(self, t: Array) -> Array:
        return jnp.sin(2 * jnp.pi * self.cycles * t)


@jax.jit
@jax.vmap
def swing(frequency: Array, stiffness: Array) -> Array:
    """Return half the range of the load pressure over the last two cycles, Pa.

    A run lasts six cycles or four seconds, as those of the reference do; at 1.5 Hz and
    1e11 Pa/m3 the initial transient still contributes 3 %. Time is scaled by the length
    T of the run, so that all frequencies are one batch: inertia is divided by T^2,
    damping by T, and the gain of the valve is multiplied by T.
    """
    cycles = jnp.maximum(6.0, jnp.ceil(4.0 * frequency))
    T = cycles / frequency
    values = {
        "oil.oil.bulk_modulus": stiffness * VOLUME,
        "oil.valve.gain": GAIN * T,
        "oil.valve.transition": 1e4,
        "load.I_BC": INERTIA / T**2 * jnp.eye(3),
        "spring.stiffness": 0.0,
        "spring.damping": 300.0 / T,
    }
    last = 1 - 2 / cycles * jnp.linspace(1.0, 0.0, 1025)
    driven = djdyn.with_parameters(rig(spool="instant"), values)
    run = djdyn.simulate(
        driven, 1.0, saveat=last, solver="tsit5",
        rtol=1e-7, atol=1e-7, inputs={"u": _Sine(cycles)}, max_steps=2**17,
    )  # fmt: skip
    load = 1e5 * (run.y.parts["oil"]["A.bar"] - run.y.parts["oil"]["B.bar"])
    return (load.max() - load.min()) / 2


def run_frequencies(study: Study) -> None:
    """Compare the frequency response of the load pressure."""
    rows = tables.read("titan4/ref_frequency_response.csv")[:: 4 if study.quick else 1]
    f = tables.columns(rows, "f_Hz")[:, 0]
    known = tables.columns(rows, *(f"eta_r{k}" for k in STIFFNESSES))
    grid = np.meshgrid(f, [float(k) for k in STIFFNESSES], indexing="ij")
    found = swing(*(jnp.asarray(x.ravel()) for x in grid))
    found = np.asarray(found).reshape(known.shape) / STATIC_AMPLITUDE
    study.metric(
        "titan4.frequency_response.max_error",
        np.abs(found / known - 1).max(),
        at_most=0.01,
        note=f"largest relative error, {known.size} frequencies and stiffnesses",
    )
    valve = -10 * np.log10(1 + (2 * np.pi * f * LAG) ** 2)
    decibel = lambda x: dict(zip(STIFFNESSES, 20 * np.log10(x).T, strict=True))
    study.report.plot(
        "Frequency response of the load pressure (Rokseth 2014), by stiffness, Pa/m3",
        ("frequency", "Hz", f),
        ("response", "dB"),
        decibel(found) | {"valve": valve},
        decibel(known),
        log="x",
    )
