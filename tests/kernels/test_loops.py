"""Closed loops in kernels, by every closure and with every kind of joint."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.contact import HalfSpace, RigidContact, Sphere as Ball
from djdyn.multibody.closures import AbstractClosure
from djdyn.multibody.loop_joints import AbstractLoopJoint
from djdyn.parts import SpringDamper

from ..multibody.trees import random_inertia
from ..test_structure import modules
from .test_every_part import assert_near, contents


pytestmark = pytest.mark.filterwarnings("error")  # such as of what kernels do not know

WAYS = (
    djdyn.Projection(),
    djdyn.Multipliers(),
    djdyn.Penalty(1e3),
    djdyn.AugmentedLagrangian(1e3),
    djdyn.Elimination(("crank",)),
)


def slider_crank(closure: AbstractClosure) -> djdyn.System:
    """In space: a crank about a tilted axis, a rod on ball joints, a block that slides,
    drawn by a spring and pressed on the ground.
    """
    rng = np.random.default_rng(4)
    places = {
        "crank": ("world", djdyn.Revolute((0, 0.2, 1)), (0.0, 0.0, 0.6)),
        "rod": ("crank", djdyn.Universal(), (0.5, 0.0, 0.0)),
        "block": ("world", djdyn.Prismatic((0, 1, 0.1)), (1.0, 0.0, 0.1)),
    }
    bodies = tuple(
        djdyn.Body(name, parent, joint, *random_inertia(rng), djdyn.translation(p))
        for name, (parent, joint, p) in places.items()
    )
    frames = (
        djdyn.Frame("end", "rod", djdyn.translation((1.2, 0.0, 0.0))),
        djdyn.Frame("post", "world", djdyn.translation((0.0, 2.0, 0.5))),
    )
    ball = djdyn.Loop("ball", "block", "end", djdyn.Spherical())
    machine = djdyn.Mechanism(bodies, frames, loops=(ball,), closure=closure)
    touch = RigidContact(
        "block", Ball(0.3), "world", HalfSpace(), 0.2, 3.0, width=0.1, slack=0.1
    )
    parts = {"spring": SpringDamper("end", "post", 50.0, 3.0, 0.7), "touch": touch}
    return djdyn.System(machine, parts)


def starts(system: djdyn.System) -> djdyn.State:
    angles = (0.2, 0.5)
    found = [system.initial_state(q={"crank": a}, v={"crank": 1.0}) for a in angles]
    return jax.tree.map(lambda *x: jnp.stack(x), *found)


def rolled(backend: str, system, y0, **how) -> djdyn.State:
    how = {"solver": "semi_implicit", "dt": 0.01, "saveat": [0.02, 0.03], **how}
    run = djdyn.rollout(system, 0.03, y0, backend=backend, **how)
    return run.y


@pytest.mark.parametrize("way", WAYS, ids=lambda w: type(w).__name__)
def test_states(way):
    system = slider_crank(way)
    y0 = starts(system)
    found, wanted = (rolled(b, system, y0) for b in ("kernel", "xla"))
    assert np.all(np.isfinite(wanted.q))
    assert_near(found, wanted, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda w: type(w).__name__)
def test_gradients(way):
    system = slider_crank(way)
    y0 = starts(system)

    def gradient(backend: str):
        def loss(args):
            y = rolled(backend, *args)
            return jnp.sum(jnp.cos(y.q)) + jnp.sum(jnp.sin(y.v))

        return eqx.filter_jit(eqx.filter_grad(loss))((system, y0))

    found, wanted = gradient("kernel"), gradient("xla")
    assert np.any(found[0].mechanism.frame("end").X_BF.p != 0)
    assert_near(found, wanted, 1e-9, "all")


def every_kind() -> djdyn.System:
    """A disc and a puck, tied to the ground and to each other, and geared slides."""
    rng = np.random.default_rng(5)
    joints = {name: djdyn.Free() for name in ("disc", "puck")}
    joints |= {name: djdyn.Prismatic() for name in ("a", "b", "c")}
    bodies = tuple(
        djdyn.Body(name, "world", joint, *random_inertia(rng))
        for name, joint in joints.items()
    )
    tie = lambda name, parent, child, joint: djdyn.Loop(name, parent, child, joint)
    loops = (
        tie("roll", "world", "disc", djdyn.RollingDisc(0.4)),
        tie("rail", "world", "puck", djdyn.PointOnLine((0.2, 1.0, 0.0))),
        tie("ball", "world", "puck", djdyn.PointOnSurface(djdyn.Quadric(np.eye(3)))),
        tie("wall", "world", "disc", djdyn.PointOnPlane((1.0, 0.1, 0.0))),
        tie("rod", "puck", "disc", djdyn.Distance(1.5)),
        djdyn.LinearCoupling(
            "gear", {"a": 2.0, "b": -1.0}, motion=djdyn.Harmonic(0.1, 2.0)
        ),
        djdyn.PolynomialCoupling("cam", "c", "a", [0.1, 0.5, -0.3]),
    )  # fmt: skip
    closure = djdyn.Penalty(0.3, frequency=2.0)
    return djdyn.System(djdyn.Mechanism(bodies, loops=loops, closure=closure))


def test_every_kind_of_loop():
    system = every_kind()
    classes = modules("djdyn")
    for base in (AbstractLoopJoint, djdyn.AbstractCoupling):
        concrete = {
            c for c in classes if issubclass(c, base) and "Abstract" not in c.__name__
        }
        assert contents(system, base) == concrete
    closures = {c for c in classes if issubclass(c, AbstractClosure)}
    assert closures - {AbstractClosure} == {type(way) for way in WAYS}
    turned = [np.cos(0.6), np.sin(0.6) * 0.8, 0.0, np.sin(0.6) * 0.6]
    q = [0, -0.4, 0.4, *turned, 0.2, 1.0, 0.0, 1, 0, 0, 0, 0.1, 0.2, 0.1]
    y = system.initial_state(q=q, v=np.linspace(-0.5, 0.8, system.mechanism.nv))
    y0 = jax.tree.map(lambda x: x[None], y)
    found, wanted = (rolled(b, system, y0) for b in ("kernel", "xla"))
    assert np.all(np.isfinite(wanted.q))
    assert_near(found, wanted, 1e-12)
