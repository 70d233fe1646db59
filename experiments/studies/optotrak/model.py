"""Model of the rod on a ball in a bowl, with its springs and markers.

World axes are those of the source: the origin in the bowl's centre, x down.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.multibody.kinematics import World
from djdyn.parts import PointContactFriction, SpringDamper
from djdyn.parts.base import AbstractPassivePart, Signals
from djdyn.parts.loads import Load
from djdyn.typing import Scalar, si
from estimation import MarkerSet

from ...harness import tables


G = 9.81  # m/s^2; not stated
INERTIA = {  # kg m^2, about the mass centre: xx, yy, zz; xy, xz, yz
    "tables": ((7.08e-5, 1.45e-3, 1.43e-3), (1.88e-7, -2.34e-5, -2.82e-6)),
    "as printed": ((7.1e-5, 1.4e-3, 1.4e-3), (-1.9e-7, 2.3e-5, 2.8e-6)),
}
SPRING_MASS = 4.37e-3  # kg of each; not stated, implied by a frequency that is
TWIN: dict[str, Any] = {
    "coulomb": 0.09226,
    "turning": 0.0014449,
    "spring_mass": SPRING_MASS,
}
CONSTANTS = {
    row["name"]: float(row["value"]) for row in tables.read("optotrak/constants.csv")
}
SPRINGS = tables.read("optotrak/springs.csv")
MARKERS = tables.columns(
    tables.read("optotrak/markers.csv"), "body_x_m", "body_y_m", "body_z_m"
)
SET = MarkerSet.of({str(i): ("rod", p) for i, p in enumerate(MARKERS, start=1)})
ANGLES = tuple(f"x{i}_deg" for i in range(1, 6))
POSES = {  # joint coordinates, rad
    row["name"]: np.deg2rad([float(row[k]) for k in ANGLES if row[k]])
    for row in tables.read("optotrak/trials.csv")
}


class PointDamper(AbstractPassivePart):
    """Viscous damper between the origin of a frame and the world."""

    frame: str = eqx.field(static=True)
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0))

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> djdyn.Response:
        del t, signals
        p, v = world.point(self.frame)
        on = world.mechanism.frame(self.frame).body
        load = Load(on, "world", p, -self.damping * v, jnp.zeros_like(p))
        return djdyn.Response(state, (load,))

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        v = world.point(self.frame)[1]
        return self.damping * (v @ v)


def rod(inertia: str = "tables") -> dict[str, Any]:
    """Return mass, mass centre from the ball's centre, and inertia of the rod."""
    (xx, yy, zz), (xy, xz, yz) = INERTIA[inertia]
    I_BC = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    p_BC = [-CONSTANTS[f"B({i})"] for i in (1, 2, 3)]
    return {"mass": CONSTANTS["MASS"], "p_BC": p_BC, "I_BC": I_BC}


def build(
    coulomb: float = 0.0,
    turning: float = 0.0,
    *,
    viscous: float = 0.0,
    mu: float | None = None,
    spring_mass: float = 0.0,
    damping: float | None = None,
    inertia: str = "tables",
) -> djdyn.System:
    """Return the rod with its springs and contact.

    Its parameters by path are `contact.coulomb`, `contact.turning`, `contact.viscous`,
    `spring_E.stiffness` to `spring_J.stiffness` (also `rest_length` and `mass`),
    `rod.mass`, `rod.p_BC` (the mass centre) and `rod.I_BC`.
    The pose to start from is `initial_state(q={"rod": POSES[...]})`.

    **Arguments:**

    - `damping`: coefficient of dampers at the springs' ends, N s/m; left out, there are
        none.
    """
    RA, RB = CONSTANTS["RA"], CONSTANTS["RB"]
    joint = djdyn.PointContact(djdyn.HollowSphere(RA), RB)
    frames, parts = [], {}
    for row in SPRINGS:
        name = row["spring"]
        for end, body in (("body", "rod"), ("ground", "world")):
            p = [float(row[f"{end}_{k}_m"]) for k in "xyz"]
            frames.append(djdyn.Frame(f"{end}_{name}", body, djdyn.translation(p)))
        stiffness, rest = row["stiffness_N_per_m"], row["zero_force_length_m"]
        parts[f"spring_{name}"] = SpringDamper(
            f"ground_{name}",
            f"body_{name}",
            float(stiffness),
            rest_length=float(rest),
            mass=spring_mass,
        )
        if damping is not None:
            parts[f"damper_{name}"] = PointDamper(f"body_{name}", damping)
    parts["contact"] = PointContactFriction("rod", coulomb, viscous, turning, mu)
    body = djdyn.Body("rod", "world", joint, **rod(inertia))
    mechanism = djdyn.Mechanism((body,), tuple(frames), gravity_W=(G, 0.0, 0.0))
    return djdyn.System(mechanism, parts)


def twin() -> tuple[djdyn.System, djdyn.State]:
    """Return the system behind the synthetic record, and its initial state."""
    system = build(**TWIN)
    return system, at(system, "trial_5_bias_corrected")


def at(system: djdyn.System, pose: str) -> djdyn.State:
    """Return the state at rest in a named pose."""
    return system.initial_state(q={"rod": POSES[pose]})


@eqx.filter_jit
def places(
    mechanism: djdyn.Mechanism, q: Float[Array, "*n 5"], markers: MarkerSet = SET
) -> Float[Array, "*n m 3"]:
    """Return the positions of the markers, m."""
    seen = jax.vmap(lambda q: markers.at(djdyn.forward_kinematics(mechanism, q)))(
        q.reshape(-1, 5)
    )
    return seen.reshape(*q.shape[:-1], -1, 3)
