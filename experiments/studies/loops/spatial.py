"""Spatial mechanisms with loops: Bricard's linkage, a slider crank, a harvester."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import djdyn
from djdyn import Body, Frame, Free, Loop, Mechanism, Revolute, Universal, translation
from djdyn.multibody.spatial import quat_from_rotation


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def bricard() -> djdyn.System:
    """Bricard's overconstrained linkage: six hinges at right angles, one freedom.

    Rods of 1 m and 1 kg with a square section of 0.1 m; benchmark A04 of the IFToMM
    library. Five relative angles and five closing equations, always of rank four.
    """
    points = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), Z])
    axes = (Y, Z, X, Y, Z)
    bodies, frames = [], [Frame("ground", "world", translation(points[5]))]
    for k, axis in enumerate(axes):
        step = points[k + 1] - points[k]
        along = np.abs(step)
        I = np.diag(along / 600 + (1 - along) * 1.01 / 12)
        before = points[k] - points[k - 1] if k else points[0]
        parent = bodies[-1].name if bodies else "world"
        bodies.append(
            Body(
                f"rod{k + 1}",
                parent,
                Revolute(axis),
                1.0,
                step / 2,
                I,
                translation(before),
            )
        )
        frames.append(Frame(f"P{k + 1}", f"rod{k + 1}", translation(step)))
    loop = Loop("closure", "ground", "P5", Revolute(X))
    return djdyn.System(Mechanism(tuple(bodies), tuple(frames), (0, -9.81, 0), (loop,)))


def slider_crank() -> djdyn.System:
    """The spatial slider crank of the IFToMM library, 6 rad/s at the start.

    A crank of 0.08 m about x at (0, 0.1, 0.12) m, a rod of 0.3 m on a ball joint at the
    crank and a universal joint at the slider of 2 kg, which slides along x.
    """
    crank = Body("crank", "world", Revolute(X), 0.12, (0, 0, 0.04),
                 np.diag([1e-4, 1e-4, 1e-5]), translation((0, 0.1, 0.12)))  # fmt: skip
    slider = Body("slider", "world", djdyn.Prismatic(X), 2.0)
    rod = Body(
        "rod",
        "slider",
        Universal(Z, Y),
        0.5,
        (-0.15, 0, 0),
        np.diag([4e-4, 4e-3, 4e-3]),
    )
    frames = (
        Frame("pin", "crank", translation((0, 0, 0.08))),
        Frame("rod_end", "rod", translation((-0.3, 0, 0))),
    )
    ball = Loop("ball", "pin", "rod_end", djdyn.Spherical())
    return djdyn.System(Mechanism((crank, slider, rod), frames, loops=(ball,)))


def crank_angles(times: np.ndarray) -> np.ndarray:
    r"""Return the crank's angle, from the energy and geometry of its one freedom.

    With the pin at $(0, y, z)$ the rod's angles about z and y follow, and with them all
    speeds per unit of the crank's: $\dot\theta^2 = 2(E - V)/m(\theta)$.
    """
    pin = lambda a: jnp.stack([0.1 - 0.08 * jnp.sin(a), 0.12 + 0.08 * jnp.cos(a)])

    def shape(a):  # yaw and pitch of the rod, place of the slider, middle of the rod
        y, z = pin(a)
        pitch = jnp.arcsin(z / 0.3)
        yaw = jnp.arcsin(-y / (0.3 * jnp.cos(pitch)))
        x = 0.3 * jnp.cos(yaw) * jnp.cos(pitch)
        return jnp.stack([yaw, pitch, x, x / 2, y / 2, z / 2])

    @jax.jit
    def mass_and_height(a):
        at, rate = jax.jvp(shape, (a,), (jnp.ones_like(a),))
        spin = rate[0] * jnp.stack([-jnp.sin(at[1]), 0.0 * a, jnp.cos(at[1])])
        spin = spin.at[1].set(rate[1])
        m = 1e-4 + 0.12 * 0.04**2 + 2 * rate[2] ** 2 + 0.5 * rate[3:] @ rate[3:]
        m += spin**2 @ jnp.array([4e-4, 4e-3, 4e-3])
        weight = 9.81 * (0.12 * 0.04 * jnp.cos(a) + 0.5 * at[5])
        return m, weight

    m0, V0 = mass_and_height(0.0)
    total = m0 * 6.0**2 / 2 + V0

    def rate(t, a):
        m, V = mass_and_height(a[0])
        return [np.sqrt(2 * (total - V) / m)]

    how = {"rtol": 1e-11, "atol": 1e-12, "method": "DOP853", "t_eval": times}
    return solve_ivp(rate, (0.0, times[-1]), [0.0], **how).y[0]


HARVESTER = (  # body, axis, joint in parent, mass, centre, inertia: proposed values
    ("pillar", Z, (0, 0, 1.5), 400.0, (0, 0, 0.4), (40, 40, 20)),
    ("boom", Y, (0, 0, 0.8), 500.0, (2, 0, 0), (10, 680, 680)),
    ("outer", Y, (4, 0, 0), 300.0, (1.75, 0, 0), (5, 310, 310)),
    ("link", None, (3.5, 0, 0), 50.0, (0, 0, -0.25), (2, 2, 1)),
    ("head", Y, (0, 0, -0.5), 900.0, (0, 0, -0.6), (150, 120, 100)),
)
HARVESTER_Q = (0.0, -0.6, 1.0, -0.4, 0.0, 0.0)
HARVESTER_V = (0.3, 0.0, 0.0, 0.0, 0.2, 0.1)


def harvester() -> Mechanism:
    """The manipulator of a tree harvester in joint coordinates: a tree."""
    bodies, parent = [], "world"
    for name, axis, at, m, c, I in HARVESTER:
        joint = Universal(Y, Z) if axis is None else Revolute(axis)
        bodies.append(Body(name, parent, joint, m, c, np.diag(I), translation(at)))
        parent = name
    return Mechanism(tuple(bodies))


def harvester_in_global_coordinates(stiffness: float, iterations: int) -> Mechanism:
    """The same with 30 coordinates and 24 constraints: every joint is a loop."""
    bodies, frames, loops, parent = [], [], [], "world"
    offset = np.zeros(3)
    for name, axis, at, m, c, I in HARVESTER:
        joint = Universal(Y, Z) if axis is None else Revolute(axis)
        bodies.append(Body(name, "world", Free(), m, I_BC=np.diag(I)))
        frames.append(Frame(f"{name}_base", parent, translation(np.array(at) - offset)))
        frames.append(Frame(f"{name}_joint", name, translation(-np.array(c))))
        loops.append(Loop(f"{name}_hinge", f"{name}_base", f"{name}_joint", joint))
        parent, offset = name, np.array(c)
    way = djdyn.AugmentedLagrangian(stiffness, iterations=iterations)
    return Mechanism(tuple(bodies), tuple(frames), loops=tuple(loops), closure=way)


def in_global_coordinates(
    q: jnp.ndarray, v: jnp.ndarray
) -> tuple[jnp.ndarray, jnp.ndarray]:
    """Coordinates and speeds of the free bodies at their centres of mass."""
    world = djdyn.forward_kinematics(harvester(), q, v)
    places, speeds = [], []
    for k, (_, _, _, _, c, _) in enumerate(HARVESTER, start=1):
        R, arm = world.X_WB.R[k], world.X_WB.R[k] @ jnp.array(c, float)
        w = world.V_WB[k, :3]
        places += [world.X_WB.p[k] + arm, quat_from_rotation(R)]
        speeds += [R.T @ w, world.V_WB[k, 3:] + jnp.cross(w, arm)]
    return jnp.concatenate(places), jnp.concatenate(speeds)
