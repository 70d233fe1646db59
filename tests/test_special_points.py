"""Right derivatives where laws have their edges: at rest, touching, slack, coincident.

Every joint, part and law stands at its edge at once, and the derivative of the whole
system is differentiated forward, in reverse, and by differences.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, CableProperties, FreeEnd, PinnedEnd
from djdyn.contact import (
    Contact,
    Coulomb,
    Cuboid,
    HalfSpace,
    HuntCrossley,
    KelvinVoigt,
    LuGre,
    RigidContact,
    Sphere,
    Stribeck,
)
from djdyn.hydraulics import Circuit, Oil, Orifice, ServoValve, Tank, Volume
from djdyn.marine.water import Buoyancy, Drag, Fluid
from djdyn.parts import (
    JointFriction,
    JointSpring,
    JointStop,
    PointContactFriction,
    SpringDamper,
)

from .gradients import quick_jit
from .kernels.test_every_part import MACHINES


INERTIA = 0.1 * np.eye(3)
CALM = Fluid(1000.0, surface=0.0)
EDGES = {
    "spring of no length": SpringDamper("world", "buoy", 50.0),  # its damper has a kink
    "spring at rest": SpringDamper("post", "buoy", 50.0, 3.0, 1.0),
    "soft spring at rest": SpringDamper("post", "buoy", 50.0, 3.0, 1.0, exponent=1.5),
    "joint spring, 2": JointSpring("slide", 5.0, exponent=2),
    "friction": JointFriction("hinge", coulomb=2.0, width=0.1),
    "stop": JointStop("hinge", 0.0, 1.0, 300.0, 20.0, 0.1),
    "upper stop": JointStop("slide", -1.0, 0.0, 300.0, 20.0, 0.1),
    "float": Buoyancy("buoy", 0.001, CALM, 0.1),
    "drag": Drag("buoy", [0.1, 0.2, 0.3], 0.2, CALM, 0.1),
    "touch": Contact(
        "ball", Sphere(0.3), "world", HalfSpace(),
        HuntCrossley(1e3, 0.5, width=0.05), Coulomb(0.4, width=0.1),
    ),
    "press": Contact(
        "ball", Sphere(0.3), "world", HalfSpace(),
        KelvinVoigt(1e3, 10.0, width=0.05), Stribeck(0.4, 0.5, 0.3, width=0.1),
    ),
    "rub": Contact(
        "ball", Cuboid([0.6, 0.6, 0.6]), "world", HalfSpace(),
        HuntCrossley(1e3, 0.5, width=0.05),
        LuGre(0.4, 0.5, 50.0, 1.0, width=0.1, full=1.0),
    ),
    "land": RigidContact(
        "lift", Sphere(0.3), "world", HalfSpace(), 0.2, 3.0, width=0.1, slack=0.1
    ),
    "rest": RigidContact(  # held in any case
        "puck", Sphere(0.3), "world", HalfSpace(), 0.2, 3.0, width=0.1, slack=0.1
    ),
    "roll": PointContactFriction("stylus", 0.4, 0.3, 0.2, 0.3, width=0.1, slack=0.1),
    "line": Cable(
        CableProperties(0.3, 50.0, EI=0.1, diameter=0.02, normal_drag=1.0),
        1.0, PinnedEnd("post"), FreeEnd(), mesh=2, fluid=Fluid(1000.0, surface=9.0),
    ),
    "oil": Circuit(
        Oil(bulk_modulus=1e7),
        {
            "P": Volume(1e-2, 1e5), "T": Tank(1e5), "A": Volume(1e-2, 1e5),
            "B": Volume(1e-2, 1e5), "leak": Orifice("A", "B", 1e-6),
            "valve": ServoValve("P", "T", "A", "B", "spool", 1e-7, 5.0),
        },
    ),
}  # fmt: skip


def edges() -> djdyn.System:
    """Bodies at rest where their parts have kinks."""
    up = djdyn.translation((0.0, 0.0, 0.3))
    stylus = djdyn.PointContact(djdyn.HollowSphere(0.9), 0.2)
    bodies = (
        djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), 1.0, I_BC=INERTIA),
        djdyn.Body("hinge", "slide", djdyn.Revolute(), 1.0, (0.1, 0, 0), INERTIA),
        djdyn.Body("knuckle", "hinge", djdyn.Universal(), 1.0, (0.1, 0, 0), INERTIA),
        djdyn.Body("head", "knuckle", djdyn.Spherical(), 1.0, (0.1, 0, 0), INERTIA),
        djdyn.Body("buoy", "world", djdyn.Free(), 1.0, I_BC=INERTIA),
        djdyn.Body("ball", "world", djdyn.Spherical(), 1.0, (0, 0, 0.1), INERTIA, up),
        djdyn.Body("lift", "world", djdyn.Prismatic(), 1.0, X_PJ=up),
        djdyn.Body("puck", "world", djdyn.Planar(), 1.0, (0, 0, 0), INERTIA, up),
        djdyn.Body("stylus", "world", stylus, 1.0, (0, 0, 0.1), INERTIA),
    )
    post = djdyn.Frame("post", "world", djdyn.translation((1.0, 0.0, 0.0)))
    machine = djdyn.Mechanism(bodies, (post,))
    return djdyn.System(machine, EDGES, {"spool": 0.0})


def loops() -> djdyn.System:
    """A four-bar with all bars in line, a door on two hinges, a rod, a slack gear."""
    rod = lambda name, parent, length, X_PJ: djdyn.Body(
        name, parent, djdyn.Revolute((0, -1, 0)), length, (length / 2, 0, 0), INERTIA,
        X_PJ,
    )  # fmt: skip
    back = djdyn.pose_rpy((3.0, 0.0, 0.0), (0.0, np.pi, 0.0))
    bodies = (
        rod("crank", "world", 1.0, djdyn.translation((0, 0, 0))),
        rod("coupler", "crank", 3.0, djdyn.translation((1, 0, 0))),
        rod("rocker", "coupler", 2.5, back),
        djdyn.Body("door", "world", djdyn.Free(), 1.0, (0.4, 0, 0), INERTIA),
        djdyn.Body("bob", "world", djdyn.Cartesian(), 1.0),
        djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), 1.0),
    )
    at = lambda name, body, *p: djdyn.Frame(name, body, djdyn.translation(p))
    frames = (
        at("end", "rocker", 2.5, 0, 0), at("pivot", "world", 1.5, 0, 0),
        at("low", "door", 0, 0, 0.1), at("high", "door", 0, 0, 0.9),
        at("low post", "world", 0, 0, 0.1), at("high post", "world", 0, 0, 0.9),
        at("nail", "world", 0, 0, 1.3),
    )  # fmt: skip
    ties = (
        djdyn.Loop("pin", "pivot", "end", djdyn.Revolute((0, 1, 0))),
        djdyn.Loop("lower hinge", "low post", "low", djdyn.Revolute()),
        djdyn.Loop("upper hinge", "high post", "high", djdyn.Revolute()),
        djdyn.Loop("string", "nail", "bob", djdyn.Distance(1.3)),
        djdyn.PolynomialCoupling("cam", "slide", "crank", (0.0, 0.0, 0.5)),
    )
    return djdyn.System(djdyn.Mechanism(bodies, frames, loops=ties))


SYSTEMS = {"touching": MACHINES["touching"], "edges": edges, "loops": loops}


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives_at_special_points(name):
    """In reverse, forward, and by differences, along one random direction."""
    system = SYSTEMS[name]()
    theta, rest = eqx.partition((system, system.initial_state()), eqx.is_inexact_array)
    rng = np.random.default_rng(0)
    draw = lambda x: jnp.asarray(rng.normal(size=x.shape))
    d, w = jax.tree.map(draw, theta), jax.tree.map(draw, theta[1])

    @jax.jit
    def rate(theta):
        system, y = eqx.combine(theta, rest)
        return system.derivative(0.0, y)

    weigh = lambda rate: sum(jax.tree.leaves(jax.tree.map(jnp.vdot, w, rate)))
    gradient = quick_jit(jax.grad(lambda theta: weigh(rate(theta))))(theta)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(gradient))
    forward = quick_jit(lambda theta: jax.jvp(rate, (theta,), (d,))[1])(theta)
    reverse = sum(jax.tree.leaves(jax.tree.map(jnp.vdot, gradient, d)))
    np.testing.assert_allclose(weigh(forward), reverse, rtol=1e-9)
    h, move = 1e-8, lambda s: jax.tree.map(lambda x, dx: x + s * dx, theta, d)
    up, down = rate(move(h)), rate(move(-h))
    for x, a, b in zip(*map(jax.tree.leaves, (forward, up, down)), strict=True):
        slope = np.asarray(a - b) / (2 * h)
        np.testing.assert_allclose(
            slope, x, rtol=1e-4, atol=1e-4 * np.max(np.abs(x), initial=1.0)
        )
