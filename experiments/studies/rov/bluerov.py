"""The BlueROV2 Heavy, a small vehicle of eight thrusters, with its tether.

After von Benzon, Sørensen, Uth, Jouffroy, Liniger and Pedersen, *An open-source
benchmark simulator: control of a BlueROV2 underwater robot* (2022). Its z is downwards,
here it is upwards.
"""

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.cable import Cable, CableProperties, FixedEnd, PinnedEnd
from djdyn.marine.allocation import ThrusterLayout
from djdyn.marine.drag import BodyDamping
from djdyn.marine.thruster import AbstractThrusterLaw, ThrottleCurve, Thrusters
from djdyn.marine.water import Buoyancy, Fluid
from djdyn.multibody.joints import AbstractJoint
from djdyn.multibody.spatial import translation
from djdyn.parts.base import AbstractPart

from ...harness.study import Study


MASS, VOLUME, DENSITY, GRAVITY = 13.5, 0.0134, 1000.0, 9.82  # kg, m3, kg/m3, m/s2
INERTIA = np.diag([0.26, 0.23, 0.37])  # kg m2
ADDED = np.diag([0.1858, 0.1348, 0.2215, 6.3567, 7.1206, 18.6863])  # torques first
LINEAR = np.array([0.0, 0.8, 0.0, 13.7, 0.0, 33.0])
QUADRATIC = np.array([1.19, 0.47, 1.5, 141.0, 217.0, 190.0])
FULL = 30.4  # N, of a thruster at full throttle
LAG = 0.1  # s, of the throttle; not in the source
TETHER = {"length": 35.0, "diameter": 7.5e-3, "mass": 0.043, "modulus": 6.437e10}
DAMPING = 100.0  # N s, of the tether
SPEEDS = {"surge": 0.734, "up": 0.715, "down": 0.721}  # m/s, to three digits


def layout() -> ThrusterLayout:
    """Return four level thrusters at the corners and four upright ones."""
    turn = lambda a: np.array(
        [[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]
    )
    flip = np.array([1.0, -1.0, -1.0])
    places = [turn(a) @ [0.156, 0.111, 0.085] for a in (0.0, 5.05, 1.91, np.pi)]
    ways = [
        turn(a) @ [np.sqrt(0.5), -np.sqrt(0.5), 0]
        for a in (0.0, np.pi / 2, 3 * np.pi / 2, np.pi)
    ]
    places += [turn(a) @ [0.12, 0.218, 0.0] for a in (0.0, 4.15, 1.01, np.pi)]
    ways += [np.array([0.0, 0.0, -1.0])] * 4
    return ThrusterLayout(flip * np.array(places), flip * np.array(ways))


def mechanism(joint: AbstractJoint | None = None) -> djdyn.Mechanism:
    """Return the vehicle, free or on another joint."""
    body = djdyn.Body(
        "vehicle", "world", joint or djdyn.Free(), MASS, I_BC=INERTIA, A_B=ADDED
    )
    frames = (
        djdyn.Frame("buoyancy", "vehicle", translation((0.0, 0.0, 0.01))),
        djdyn.Frame("shackle", "vehicle", translation((-0.2, 0.0, 0.1))),
    )
    return djdyn.Mechanism((body,), frames, (0.0, 0.0, -GRAVITY))


def tether(water: Fluid, top: tuple[float, float, float], elements: int = 12) -> Cable:
    """Return the tether from the vehicle up to a place that is held."""
    area = np.pi / 4 * TETHER["diameter"] ** 2
    rope = CableProperties(
        TETHER["mass"], TETHER["modulus"] * area, axial_damping=DAMPING,
        diameter=TETHER["diameter"], normal_drag=1.2, tangential_drag=0.01,
    )  # fmt: skip
    ends = PinnedEnd(frame="shackle"), FixedEnd(point=jnp.asarray(top))
    return Cable(rope, TETHER["length"], *ends, mesh=elements, fluid=water)


def build(
    joint: AbstractJoint | None = None,
    water: Fluid | None = None,
    law: AbstractThrusterLaw | None = None,
    top: tuple[float, float, float] | None = None,
) -> djdyn.System:
    """Return the vehicle with throttles as inputs; with a `top`, it has a tether."""
    water = Fluid(DENSITY) if water is None else water
    law = ThrottleCurve(LAG) if law is None else law
    parts: dict[str, AbstractPart] = {
        "lift": Buoyancy("buoyancy", VOLUME, water),
        "damping": BodyDamping("vehicle", LINEAR, QUADRATIC, water),
        "thrusters": Thrusters("vehicle", layout(), "throttle", law, water),
    }
    if top is not None:
        parts["tether"] = tether(water, top)
    return djdyn.System(mechanism(joint), parts, {"throttle": jnp.zeros(8)})


def steady(throttle: np.ndarray, joint: AbstractJoint) -> float:
    """Return the speed that the vehicle reaches along a line."""
    run = djdyn.simulate(
        build(joint), 30.0, saveat=[30.0], inputs={"throttle": jnp.asarray(throttle)},
        rtol=1e-9, atol=1e-10,
    )  # fmt: skip
    return float(run.y.v[-1, 0])


def run(study: Study) -> None:
    """Compare steady speeds with the balance of thrust and drag."""
    level, upright = np.repeat([1.0, 0.0], 4), np.repeat([0.0, 1.0], 4)
    axes = np.asarray(layout().axes)
    surge, heave = djdyn.Prismatic((1, 0, 0)), djdyn.Prismatic((0, 0, 1))
    ahead = level * np.sign(axes[:, 0])
    net = GRAVITY * (MASS - DENSITY * VOLUME)
    thrust = FULL * np.abs(axes[:4, 0]).sum()
    worst, rows = 0.0, []
    for name, throttle, joint, push, (b, c) in (
        ("surge", ahead, surge, thrust, (13.7, 141.0)),
        ("up", upright, heave, 4 * FULL - net, (33.0, 190.0)),
        ("down", -upright, heave, 4 * FULL + net, (33.0, 190.0)),
    ):
        exact = (np.sqrt(b * b + 4 * c * push) - b) / (2 * c)
        speed = abs(steady(throttle, joint))
        worst = max(worst, abs(speed / exact - 1))
        rows.append((name, speed, exact, SPEEDS[name]))
        study.metric(
            f"rov.bluerov.{name}_speed", speed, SPEEDS[name], 5.1e-4, unit="m/s"
        )
    study.metric(
        "rov.bluerov.speed_error", worst, at_most=1e-3,
        note="steady speeds at full throttle ahead, up and down, relative to the "
        "balance of thrust and drag; the vehicle is kept on a line, because thrust "
        "ahead acts below its centre and would turn it over",
    )  # fmt: skip
    study.report.table(
        "BlueROV2 Heavy: steady speeds at full throttle, m/s",
        ("way", "this run", "balance of thrust and drag", "published coefficients"),
        rows,
    )
