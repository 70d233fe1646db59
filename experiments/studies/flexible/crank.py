r"""The flexible slider-crank of the test set for initial value problem solvers.

Simeon, *Modelling a flexible slider crank mechanism by a mixed system of DAEs and
PDEs* (1996). The connecting rod bends in two sine modes and stretches by two quadratic
nodes; its matrices are those of the test set as they stand. The crank turns at 150
rad/s and the slider is a mass at the end of the rod that stays on the x axis.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.multibody import mass_matrix
from djdyn.multibody.constraints import AbstractConstraint
from djdyn.multibody.flexible import Beam, FlexibleBody, Piece, Rectangle
from djdyn.multibody.flexible.attachment import Nodes
from djdyn.multibody.flexible.body import Reduced
from djdyn.multibody.flexible.shape_integrals import ShapeIntegrals
from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractPassivePart, Response


M2, J2, M3 = 0.151104, 0.0045339259, 0.075552  # kg, kg m^2, kg
L1, L2, SIDE, E, RHO = 0.15, 0.30, 0.008, 2e11, 7870.0  # m, m, m, Pa, kg/m^3
OMEGA, SPAN = 150.0, 0.1  # rad/s, s
PHI2 = -0.3311734987910881  # rad, at the end of the span
X3 = 0.1697373326718410  # m
Q = np.array([1.893192460247178e-4, 2.375751865617931e-5,
              -5.323907988763734e-6, -8.363283141616840e-6])  # fmt: skip
START_Q = np.array([0.0, 0.0, 1.03339863e-5, 1.69327969e-5])
START_V = np.array([0.444896105, 4.63434311e-3, -1.78591076e-6, -2.68938672e-6])
START_TURN = -74.995767  # rad/s


class Crank(eqx.Module):
    """A turn about z at constant speed."""

    def __call__(self, t: Array) -> djdyn.Pose:
        c, s = jnp.cos(OMEGA * t), jnp.sin(OMEGA * t)
        o, one = jnp.zeros_like(t), jnp.ones_like(t)
        rows = [jnp.stack([c, -s, o]), jnp.stack([s, c, o]), jnp.stack([o, o, one])]
        return djdyn.Pose(jnp.stack(rows), jnp.zeros(3))


class OnAxis(AbstractConstraint):
    """Keeps the acceleration of a point across the axis at nothing."""

    load: djdyn.Load
    slope: Float[Array, " nv"]
    rest: Float[Array, ""]
    drag: None = None
    one_sided: bool = eqx.field(static=True, default=False)
    slack: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1.0)

    def residual(
        self, world: World, v_dot: Array, F_WB: Array, size: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Acceleration across the axis."""
        del world, F_WB, size
        return self.slope @ v_dot + self.rest


class Slider(AbstractPassivePart):
    """A mass at the end of the rod that slides along x, without friction."""

    def initial_state(self) -> dict:
        return {}

    def __call__(self, t, state, world, signals) -> Response:
        del t, signals
        body = "rod.tip"
        b, p = world.mechanism.index(body), world.pose(body).p
        up = jnp.array([0.0, 1.0, 0.0])
        load = djdyn.Load(body, "world", p, up, jnp.zeros(3))
        slope = mass_matrix.project_wrenches(world, load.wrenches(world))
        rest = world.A_bias_WB[b, 4]
        mass = djdyn.Inertia(body, p, jnp.diag(jnp.array([M3, 0.0, 0.0])))
        return Response(
            state,
            inertias=(mass,),
            constraints=(OnAxis(load=load, slope=slope, rest=rest),),
        )

    def power_loss(self, t, state, world, signals) -> Array:
        del t, state, world, signals
        return jnp.zeros(())

    def energy(self, state, world) -> Array:
        """Kinetic energy of the slider."""
        del state
        return 0.5 * M3 * world.point("rod.tip")[1][0] ** 2


def rod() -> Reduced:
    """Return the rod's tensors, from the matrices of the test set."""
    area, pi = SIDE * SIDE, np.pi
    mass, stiff, moment = RHO * area * L2, E * area / L2, RHO * area * L2
    M = mass * np.diag([0.5, 0.5, 8.0, 2.0])
    M[2, 3] = M[3, 2] = mass
    K = np.zeros((4, 4))
    K[0, 0] = stiff * pi**4 / 24 * (SIDE / L2) ** 2
    K[1, 1] = stiff * pi**4 * 2 / 3 * (SIDE / L2) ** 2
    K[2:, 2:] = stiff * np.array([[16, -8], [-8, 7]]) / 3
    c1 = moment * np.array([0.0, 0.0, 2 / 3, 1 / 6])
    c2 = moment * np.array([2 / pi, 0.0, 0.0, 0.0])
    c12 = moment * L2 * np.array([0.0, 0.0, 1 / 3, 1 / 6])
    c21 = moment * L2 * np.array([1 / pi, -1 / (2 * pi), 0.0, 0.0])
    B = np.zeros((4, 4))
    B[0, 2], B[0, 3], B[1, 3] = -16 / pi**3, 8 / pi**3 - 1 / pi, 1 / (2 * pi)
    B = moment * (B - B.T)
    z = np.array([0.0, 0.0, 1.0])
    about = lambda x: jnp.asarray(x[..., None] * z)
    spin = lambda x: jnp.asarray(x[..., None, None] * np.diag(z))
    integrals = ShapeIntegrals(
        mass=jnp.asarray(M2),
        h0=jnp.array([M2 * L2 / 2, 0.0, 0.0]),
        S=jnp.asarray(np.stack([c1, c2, 0 * c1], 1)),
        H=jnp.zeros((4, 4)),
        J0=jnp.diag(jnp.asarray(J2 * z)),
        J1=spin(2 * c12),
        J2=spin(2 * M),
        Q0=about(c21),
        Q1=about(B),
        M_ff=jnp.asarray(M),
    )
    end = jnp.zeros((1, 4, 3)).at[0, 3, 0].set(1.0)
    nodes = Nodes(
        jnp.array([[L2, 0.0, 0.0]]), end, jnp.zeros((1, 4, 3)), jnp.zeros((1, 4, 4))
    )
    return Reduced(integrals, jnp.asarray(K), jnp.zeros((4, 4)), nodes)


def build() -> djdyn.System:
    """Return crank, rod and slider."""
    crank = djdyn.Body("crank", "world", djdyn.Prescribed(Crank()), 0.36)
    bar = Beam((Piece(L2, Rectangle(SIDE, SIDE)),), E, E / 2.6, RHO)
    bent = FlexibleBody(
        "rod", "crank", djdyn.Revolute((0, 0, 1)), bar, {"xy": 4},
        method="vibration", X_PJ=djdyn.translation((L1, 0.0, 0.0)),
    )  # fmt: skip
    bent = eqx.tree_at(lambda b: b.reduced, bent, rod(), is_leaf=lambda x: x is None)
    mechanism = djdyn.Mechanism((crank, bent), gravity_W=(0.0, 0.0, 0.0))
    return djdyn.System(mechanism, {"slider": Slider()})


def simulate(dt: float) -> djdyn.Trajectory:
    """Return the motion over the span; the rod's angle is measured from the crank."""
    system = build()
    y0 = system.initial_state(
        q={"rod.modes": START_Q},
        v={"rod": START_TURN - OMEGA, "rod.modes": START_V},
    )
    return djdyn.simulate(system, SPAN, y0, solver="rk4", dt=dt, saveat=501)


def errors(run: djdyn.Trajectory) -> dict[str, float]:
    """Return errors at the end: of the angle, of the slider, and of the deformation
    relative to its largest entry.
    """
    angle = float(run.q("rod")[-1, 0]) + OMEGA * SPAN
    place = float(run.pose("rod.tip").p[-1, 0])
    bent = np.asarray(run.q("rod.modes")[-1])
    return {
        "phi2": abs(angle - PHI2),
        "x3": abs(place - X3),
        "q": float(np.max(np.abs(bent - Q)) / np.max(np.abs(Q))),
    }
