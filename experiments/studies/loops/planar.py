"""Planar mechanisms in the xy plane, hinged about z."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

import djdyn
from djdyn import Body, Frame, Loop, Mechanism, PointOnLine, Revolute, translation
from djdyn.multibody.reactions import kinetic_energy
from djdyn.parts import ExternalWrench, JointForce, SpringDamper


G = (0.0, -9.81, 0.0)
PIN = PointOnLine((0.0, 0.0, 1.0))  # two equations, all that a planar pin needs


def about_z(inertia: float) -> Float[Array, "3 3"]:
    """Inertia of a thin bar along x that only turns about z."""
    return jnp.diag(jnp.array([0.0, inertia, inertia]))


def bar(name: str, parent: str, at: tuple, length: float = 1.0) -> Body:
    """A thin bar of 1 kg along x, hinged at its end."""
    I = about_z(length**2 / 12)
    return Body(name, parent, Revolute(), 1.0, (length / 2, 0, 0), I, translation(at))


def simple_pendulum() -> djdyn.System:
    """A point mass of 1 kg on a massless rod of 1 m, as a loop."""
    ball = Body("ball", "world", djdyn.Cartesian(), 1.0)
    rod = Loop("rod", "pivot", "ball", djdyn.Distance(1.0))
    stay = Loop("plane", "pivot", "ball", djdyn.PointOnPlane((0.0, 0.0, 1.0)))
    return djdyn.System(Mechanism((ball,), (Frame("pivot", "world"),), G, (rod, stay)))


def four_bars(windows: int, closure: djdyn.AbstractClosure | None = None) -> Mechanism:
    """A row of windows: bars of 1 m and 1 kg, standing, joined along their tops.

    Schiehlen's N four-bar mechanism, benchmark A02 of the IFToMM library. It passes a
    singular position, all bars in one line, every half turn.
    """
    bodies, frames, loops = [], [], []
    for k in range(windows + 1):
        bodies.append(bar(f"post{k}", "world", (k, 0, 0)))
        frames.append(Frame(f"top{k}", f"post{k}", translation((1, 0, 0))))
    for k in range(windows):
        bodies.append(bar(f"beam{k}", f"post{k}", (1, 0, 0)))
        frames.append(Frame(f"end{k}", f"beam{k}", translation((1, 0, 0))))
        loops.append(Loop(f"pin{k}", f"top{k + 1}", f"end{k}", PIN))
    closure = djdyn.Projection() if closure is None else closure
    return Mechanism(tuple(bodies), tuple(frames), G, tuple(loops), closure)


def standing(mechanism: Mechanism) -> djdyn.State:
    """Posts upright and beams level, the tops moving at 1 m/s along x."""
    posts = [b.name for b in mechanism.bodies if b.name.startswith("post")]
    q = {name: jnp.pi / 2 for name in posts}
    v = {name: -1.0 for name in posts}
    for b in mechanism.bodies:
        if b.name not in posts:
            q[b.name], v[b.name] = -jnp.pi / 2, 1.0
    return djdyn.System(mechanism).initial_state(q, v)


ANDREWS_START = (
    -0.0617138900142764496,
    0.0,
    0.455279819163070380,
    0.487364979543842550,
    0.222668390165885885,
    1.23054744454982119,
    -0.222668390165885885,
)  # beta, Theta, gamma, delta, Phi, epsilon, Omega: parents before children


def andrews(
    moment: float = 0.033, stiffness: float = 4530.0, free_length: float = 0.07785
) -> djdyn.System:
    """Andrews' squeezer: seven bodies, three loops, and a motion of 30 ms.

    Data of the IVP test set (Mazzia and Magherini, 2008) and of benchmark A03 of the
    IFToMM library, whose table prints one sign and one digit wrong.
    """
    A, B, C = (-0.06934, -0.00227, 0), (-0.03635, 0.03273, 0), (0.014, 0.072, 0)
    z = lambda I: jnp.diag(jnp.array([I, I, I]))
    hang = lambda name, parent, m, c, I, at: Body(
        name, parent, Revolute(), m, (*c, 0), z(I), translation(at)
    )
    rr, d, ss, e, zt, zf, u = 0.007, 0.028, 0.035, 0.02, 0.04, 0.02, 0.04
    bodies = (
        hang("crank", "world", 0.04325, (0.00092, 0), 2.194e-6, (0, 0, 0)),
        hang("rod", "crank", 0.00365, (-0.0115, 0), 4.410e-7, (rr, 0, 0)),
        hang("lever", "world", 0.02373, (0.01043, -0.01874), 5.255e-6, B),
        hang("lower", "world", 0.07050, (0.00916, -0.02308), 1.169e-5, A),
        hang("lower_tip", "lower", 0.00706, (0, -(e - 0.01421)), 5.667e-7, (zt, 0, 0)),
        hang("upper", "world", 0.05498, (-0.00449, -0.01228), 1.912e-5, A),
        hang("upper_tip", "upper", 0.00706, (zf - 0.01421, 0), 5.667e-7, (0, -u, 0)),
    )
    frames = (
        Frame("joint", "rod", translation((-d, 0, 0))),
        Frame("lever_end", "lever", translation((0, -ss, 0))),
        Frame("lower_end", "lower_tip", translation((0, -e, 0))),
        Frame("upper_end", "upper_tip", translation((zf, 0, 0))),
        Frame("spring_end", "lever", translation((0.02, -0.018, 0))),
        Frame("spring_base", "world", translation(C)),
    )
    ends = ("lever_end", "lower_end", "upper_end")
    loops = tuple(Loop(end.split("_")[0] + "_pin", "joint", end, PIN) for end in ends)
    parts = {
        "motor": JointForce("crank", moment),
        "spring": SpringDamper(
            "spring_base", "spring_end", stiffness, 0.0, free_length
        ),
    }
    mechanism = Mechanism(bodies, frames, (0.0, 0.0, 0.0), loops)
    return djdyn.System(mechanism, parts)


class KineticEnergyIntegral(djdyn.AbstractSignalPart):
    """The integral of the kinetic energy over time."""

    signal_units: ClassVar[Mapping[str, str]] = {"value": "J s"}

    def initial_state(self) -> dict:
        return {"value": jnp.zeros(())}

    def __call__(
        self, t: djdyn.Scalar, state: Any, world: djdyn.World, signals: djdyn.Signals
    ) -> djdyn.Response:
        del t, signals
        return djdyn.Response({"value": kinetic_energy(world)}, outputs={})


def slider_crank(stiffness: float = 1.0, damping: float = 1.0) -> djdyn.System:
    """The slider crank of the SUNDIALS example idasSlCrank.

    A crank of 0.5 m and a rod of 2 m whose middle, with its mass, slides along x. A
    spring and damper join the middle of the crank to the rod's first quarter, and a
    constant force pulls along x at the rod's end.
    """
    crank = Body("crank", "world", Revolute(), 1.0, I_BC=about_z(1.0))
    rod = Body(
        "rod",
        "crank",
        Revolute(),
        1.0,
        (1, 0, 0),
        about_z(2.0),
        translation((0.5, 0, 0)),
    )
    frames = (
        Frame("rail", "world"),
        Frame("slider", "rod", translation((1, 0, 0))),
        Frame("rod_tip", "rod", translation((2, 0, 0))),
        Frame("crank_middle", "crank", translation((0.25, 0, 0))),
        Frame("rod_middle", "rod", translation((0.5, 0, 0))),
    )
    guide = Loop("guide", "rail", "slider", djdyn.PointOnPlane((0.0, 1.0, 0.0)))
    mechanism = Mechanism((crank, rod), frames, (0.0, 0.0, 0.0), (guide,))
    parts = {
        "spring": SpringDamper("crank_middle", "rod_middle", stiffness, damping, 1.0),
        "push": ExternalWrench("rod_tip", (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)),
        "G": KineticEnergyIntegral(),
    }
    return djdyn.System(mechanism, parts)


def crank_upright(system: djdyn.System) -> djdyn.State:
    """The slider crank at rest with its crank upright."""
    rod = -jnp.arcsin(0.5) - jnp.pi / 2
    return system.initial_state(q=jnp.stack([jnp.asarray(jnp.pi / 2), rod]))
