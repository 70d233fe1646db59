"""Slide on a turning arm (Roy, Steinke and Nicoll 2014, sections 4.4.4 to 4.4.6)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.integrate
from jaxtyping import Array, Float

import djdyn
from djdyn.multibody import dynamics
from djdyn.multibody.spatial import Pose, rotation_z
from djdyn.parts import JointForce
from djdyn.typing import Scalar, si

from ...harness.study import Study
from .joints import CLOSED_FORM_TOLERANCE, TIGHT, ledger, states
from .model import TURNING_SLIDE, crane, links


class Turning(eqx.Module):
    """Rotation about z at a constant rate."""

    rate: Scalar = eqx.field(converter=si("rad/s"))
    angle: Scalar = eqx.field(converter=si("rad"))

    def __call__(self, t: Scalar) -> Pose:
        return Pose(rotation_z(self.angle + self.rate * t), jnp.zeros(3))


def driven_slide() -> djdyn.System:
    """Return the arm turning at 1 rad/s, with a force that holds the slide."""
    mechanism, q0 = crane(TURNING_SLIDE)
    held = djdyn.Prescribed(Turning(1.0, q0[0]))
    mechanism = eqx.tree_at(lambda m: m.bodies[0].joint, mechanism, held)
    return djdyn.System(mechanism, {"push": JointForce("link2", -10.0)})


def slide_loads(now: djdyn.Instant) -> tuple[Array, Array, Array, Array]:
    """Return arm torque, lateral force, acceleration and holding force of the slide."""
    hold = dynamics.inverse(now.world, jnp.zeros_like(now.y.v))
    return now.reaction("link1")[2], now.reaction("link2")[3], now.v_dot[0], hold[0]


def run_driven_slide(study: Study) -> None:
    """Compare the force that holds the slide, and the motion of the free slide.

    Centripetal and Coriolis acceleration, sections 4.4.4 and 4.4.5.
    """
    slow = np.arcsinh(0.009901)  # s, time of the slide rate in the report
    t = np.sort([slow, *np.linspace(0.0, 2.0, 81)])
    held = driven_slide()
    free = djdyn.with_parameters(held, {"push.force.value": 0.0})
    still = djdyn.simulate(held, 2.0, saveat=t, **TIGHT)
    trajectory = djdyn.simulate(free, 2.0, saveat=t, **TIGHT)
    loads = map(np.asarray, trajectory.map(slide_loads))
    torque, across, acceleration, hold = loads
    rounding = 1e-12  # relative: nothing is integrated
    study.metric(
        "boom_crane.v19.holding_force",
        hold[0],
        -10.0,
        10 * rounding,
        unit="N",
        note="-m r ω², by inverse dynamics",
    )
    study.metric(
        "boom_crane.v19.free_acceleration",
        acceleration[0],
        1.0,
        rounding,
        unit="m/s^2",
        note="r ω², by forward dynamics",
    )
    study.metric(
        "boom_crane.v19.drift",
        np.abs(states(still)[0]).max(),
        at_most=CLOSED_FORM_TOLERANCE,
        unit="m",
        note="largest displacement in 2 s under -10 N",
    )
    study.metric(
        "boom_crane.v20.coriolis_acceleration",
        across[np.searchsorted(t, slow)] / 10.0,
        2 * 0.009901,
        CLOSED_FORM_TOLERANCE * 2 * 0.009901,
        unit="m/s^2",
        note="2 ω r', from the lateral force on the slide",
    )
    study.metric(
        "boom_crane.v20.slide_rate",
        states(trajectory)[1][-1, 0],
        np.sinh(2.0),
        CLOSED_FORM_TOLERANCE * np.sinh(2.0),
        unit="m/s",
        note="sinh t at 2 s",
    )
    study.metric(
        "boom_crane.v20.holding_torque",
        torque[-1],
        10 * np.sinh(4.0),
        CLOSED_FORM_TOLERANCE * 10 * np.sinh(4.0),
        unit="N m",
        note="torque of joint 1: 10 sinh 2t at 2 s",
    )
    ledger(study, "v20", trajectory, 5 * (np.cosh(4.0) - 1))
    study.series("v20", trajectory.to_xarray(holding_torque=torque, across=across))


def slide_alone(
    still: float, mass: float, t: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return the rate of the slide from one equation with constant angular momentum.

    `still` is the inertia of all but the slide; the arm starts at 1 rad/s.
    """

    def rate(t, y):
        del t
        turn = (still + mass) / (still + mass * y[0] ** 2)
        return y[1], y[0] * turn**2

    how = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}
    return scipy.integrate.solve_ivp(rate, t[[0, -1]], (1.0, 0.0), t_eval=t, **how).y[1]


def run_energy(study: Study) -> None:
    """Compare the rates of both free joints until the arm nearly stops (4.4.6)."""
    mechanism, q0 = crane(TURNING_SLIDE)
    system = djdyn.System(mechanism)
    slides, turns, known = {}, {}, {}
    arm, slider = links(TURNING_SLIDE)
    for tail, centre, rate, where in (
        ("", 0.0, 1.156500, "on the axis"),
        ("_offset", 1.0, 1.528495, "1 m off"),
    ):
        machine = djdyn.with_parameters(system, {"link1.p_BC": (centre, 0.0, 0.0)})
        start = machine.initial_state(q0, v={"link1": 1.0})
        t = np.linspace(0.0, 30.0, 301)
        trajectory = djdyn.simulate(machine, 30.0, start, saveat=t, **TIGHT)
        q, v = states(trajectory)
        turn, out = v.T
        still = arm.inertia[2] + arm.mass * centre**2 + slider.inertia[1]
        whole = still + slider.mass  # kg m^2, at the start
        study.metric(
            f"boom_crane.v21.rate{tail}",
            out[-1],
            rate,
            1e-6,
            unit="m/s",
            note=f"slide rate after 30 s, mass centre of link 1 {where}",
        )
        about = still / slider.mass + (1 + q[-1, 1]) ** 2  # m^2
        limit = np.sqrt(whole / slider.mass)
        study.metric(
            f"boom_crane.v21.asymptote{tail}",
            np.sqrt(out[-1] ** 2 + about * turn[-1] ** 2),
            limit,
            CLOSED_FORM_TOLERANCE * limit,
            unit="m/s",
            note="limit with all energy in the slide: ω √(I/m)",
        )
        ledger(study, "v21", trajectory, whole / 2, tail)
        study.series(f"v21{tail}", trajectory)
        name = "1 m off" if tail else "on the axis"
        slides[name], turns[name] = out, turn
        known[name] = (t[::10], slide_alone(still, slider.mass, t)[::10])
        if not tail:
            for what, value, digits, unit in (
                ("turn_rate", turn[-1], (0.001126, 1e-6), "rad/s"),
                ("slide", q[-1, 1], (33.478, 1e-3), "m"),
            ):
                study.metric(
                    f"boom_crane.v21.{what}",
                    value,
                    *digits,
                    unit=unit,
                    note="after 30 s, mass centre on the axis",
                )
    title = "Free slide, mass centre of the arm on its axis or 1 m off"
    time = ("time", "s", t)
    study.report.plot(f"{title}: the slide", time, ("rate", "m/s"), slides, known)
    study.report.plot(f"{title}: the arm", time, ("rate", "rad/s"), turns)
