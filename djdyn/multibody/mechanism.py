"""Bodies and joints: the tree, as a pytree.

Topology is NumPy, worked out while tracing; numbers are JAX.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Mat3, Mat6, Scalar, Vec3, known, optional, si
from .closures import AbstractClosure, Elimination, Projection
from .flexible.body import FlexibleBody, FlexibleRow, with_rows
from .joints import AbstractJoint
from .loops import AbstractLoop, check_loops
from .spatial import Pose, identity_pose, spatial_inertia


WORLD = "world"


class Frame(eqx.Module):
    """A named place F on a body B."""

    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)
    X_BF: Pose = eqx.field(default_factory=identity_pose)


class Body(eqx.Module):
    """A rigid body B and the joint that hangs it, at `X_PJ`, on its parent P.

    The body's frame is the joint's moving frame. C is the centre of mass and `I_BC` the
    inertia about it, in the body's axes. `A_B`, if given, is a further 6x6 inertia
    about B's origin (added mass of the surrounding fluid); it resists acceleration but
    has no weight. It is exact in still water (see `djdyn.fluid` for a current).
    The joint goes by its own name, or by the body's. `armature`, if given, is the
    inertia of rotors and gears that turn with the joint, one number for each of its
    speeds: it resists their change and turns with nothing else. `any_inertia` takes
    an inertia that no distribution of mass has, as files in circulation have some.
    """

    name: str = eqx.field(static=True)
    parent: str = eqx.field(static=True)
    joint: AbstractJoint
    mass: Scalar = eqx.field(converter=si("kg", at_least=0.0))
    p_BC: Vec3 = eqx.field(converter=si("m"), default=(0.0, 0.0, 0.0))
    I_BC: Mat3 = eqx.field(converter=si("kg m^2"), default=((0.0,) * 3,) * 3)
    X_PJ: Pose = eqx.field(default_factory=identity_pose)
    A_B: Mat6 | None = eqx.field(
        converter=optional(si("kg, kg m, kg m^2")), default=None
    )
    joint_name: str = eqx.field(static=True, default="")
    armature: Float[Array, " nv"] | None = eqx.field(
        converter=optional(si("kg m^2, kg", at_least=0.0)), default=None
    )
    any_inertia: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        for field, shape in (
            ("mass", ()),
            ("p_BC", (3,)),
            ("I_BC", (3, 3)),
            ("A_B", (6, 6)),
            ("armature", (self.joint.nv,)),
        ):
            value = getattr(self, field)
            if value is not None and value.shape != shape:
                raise ValueError(
                    f"body {self.name!r}: {field} has shape {value.shape}, expected "
                    f"{shape}"
                )
        armature = np.zeros(0) if self.armature is None else self.armature
        if known(armature) and not np.all(np.asarray(armature) >= 0):
            raise ValueError(
                f"body {self.name!r}: armature must be at least 0, got {armature}"
            )
        A_B = jnp.zeros((6, 6)) if self.A_B is None else self.A_B
        values = (self.mass, self.p_BC, self.I_BC, A_B)
        if known(*values) and not self.any_inertia:
            check_inertia(self.name, *map(np.asarray, values))

    @property
    def J_B(self) -> Mat3:
        """Inertia about B's origin, in B's axes, without added mass.

        Symmetric whatever its entries, so that each of them has a true derivative.
        """
        c = self.p_BC
        square = (c @ c) * jnp.eye(3, dtype=c.dtype) - c[:, None] * c[None]
        return 0.5 * (self.I_BC + self.I_BC.T) + self.mass * square

    @property
    def inertia_B(self) -> Mat6:
        """6x6 inertia about B's origin, in B's axes, added mass included."""
        M_B = spatial_inertia(self.mass, self.p_BC, self.I_BC)
        if self.A_B is not None:
            M_B = M_B + self.A_B
        return 0.5 * (M_B + M_B.T)


def check_inertia(name: str, mass, p_BC, I_BC, A_B) -> None:
    """Raises unless some distribution of positive mass has this inertia.

    A body of no mass and no inertia may stand between two joints.
    """
    if not all(np.all(np.isfinite(x)) for x in (mass, p_BC, I_BC, A_B)):
        raise ValueError(f"body {name!r}: mass, centre and inertia must be finite")
    if mass < 0:
        raise ValueError(f"body {name!r}: mass must be positive, got {mass:g} kg")
    single = max(np.finfo(x.dtype).eps for x in (I_BC, A_B)) > 1e-9
    rounding = 1e-5 if single else 1e-9  # relative, of what was computed before
    if np.abs(I_BC - I_BC.T).max() > rounding * np.abs(I_BC).max():
        raise ValueError(f"body {name!r}: inertia must be symmetric")
    moments = np.linalg.eigvalsh(I_BC)
    slack = max(1e-6, rounding) * np.abs(moments).max()  # printed ones are rounded
    if mass == 0 and moments.any():
        raise ValueError(f"body {name!r}: mass is zero but its inertia is not")
    if moments[0] < -slack:
        raise ValueError(
            f"body {name!r}: a principal moment is negative, {moments[0]:g} kg m^2"
        )
    if moments[2] > moments[0] + moments[1] + slack:
        raise ValueError(
            f"body {name!r}: principal moments {moments[0]:g}, {moments[1]:g}, "
            f"{moments[2]:g} kg m^2 break the triangle inequality: no body has them"
        )
    if (
        not np.allclose(A_B, A_B.T)
        or np.linalg.eigvalsh(A_B)[0] < -rounding * np.abs(A_B).max()
    ):
        raise ValueError(
            f"body {name!r}: added mass must be symmetric and positive semidefinite"
        )


AnyBody = Body | FlexibleBody | FlexibleRow


class Mechanism(eqx.Module):
    """Bodies, parents before children. Body 0 of every stacked array is the world.

    `loops` tie the tree's bodies to each other, and `closure` is how they are kept
    closed: `Projection`, `Multipliers`, `Penalty`, `AugmentedLagrangian` or
    `Elimination`.
    A flexible body is followed by rows of its own, for its modes and its nodes.
    """

    bodies: tuple[AnyBody, ...] = eqx.field(converter=with_rows)
    frames: tuple[Frame, ...] = ()
    gravity_W: Vec3 = eqx.field(converter=si("m/s^2"), default=(0.0, 0.0, -9.81))
    loops: tuple[AbstractLoop, ...] = eqx.field(converter=tuple, default=())
    closure: AbstractClosure = eqx.field(default_factory=Projection)

    def __check_init__(self):
        if self.gravity_W.shape != (3,):
            raise ValueError(
                f"gravity_W has shape {self.gravity_W.shape}, expected (3,)"
            )
        if not self.bodies:
            raise ValueError("a mechanism needs at least one body")
        seen = {WORLD}
        for body in self.bodies:
            if body.name in seen:
                raise ValueError(f"two bodies are called {body.name!r}")
            if body.parent not in seen:
                raise ValueError(
                    f"body {body.name!r} hangs on unknown body {body.parent!r}"
                    " (parents come before children)"
                )
            seen.add(body.name)
        joints = [body.joint_name or body.name for body in self.bodies]
        for name in joints:
            if joints.count(name) > 1:
                raise ValueError(f"two joints are called {name!r}")
        for frame in self.frames:
            if frame.body not in seen:
                raise ValueError(
                    f"frame {frame.name!r} is on unknown body {frame.body!r}"
                )
        names = [*seen, *(frame.name for frame in self.frames)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two frames are called {name!r}")
        places = {f.name: f.body for f in self.frames} | {name: name for name in seen}
        hung = dict(zip(joints, (b.joint for b in self.bodies), strict=True))
        check_loops(self.loops, places, hung)
        if isinstance(self.closure, Elimination):
            for name in self.closure.independent:
                self.joint_index(name)
        if all(known(body.mass, body.armature) for body in self.bodies):
            some = [bool(b.mass > 0) or b.any_inertia for b in self.bodies]
            heavy = np.array([False, *some])
            for body, carried in zip(self.bodies, self.supports.T[1:], strict=True):
                geared = body.armature is not None and np.all(body.armature > 0)
                geared = geared or isinstance(body, FlexibleRow)
                if body.joint.nv and not geared and not np.any(heavy & carried):
                    raise ValueError(
                        f"body {body.name!r}: the last of a chain needs mass"
                    )

    def __str__(self) -> str:
        from .describe import body_rows, summary, text_table

        return f"{summary(self)}\n{text_table(*body_rows(self))}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .describe import body_rows, html_table, summary

        return html_table(summary(self), *body_rows(self))

    # Names -------------------------------------------------------------------------

    def index(self, body: str) -> int:
        """Row of a body in stacked arrays; the world is 0."""
        names = [WORLD, *(b.name for b in self.bodies)]
        if body not in names:
            raise ValueError(f"unknown body {body!r}; there are {', '.join(names)}")
        return names.index(body)

    def frame(self, name: str) -> Frame:
        """The frame of that name; every body is a frame too."""
        for frame in self.frames:
            if frame.name == name:
                return frame
        if name == WORLD or any(b.name == name for b in self.bodies):
            return Frame(name, name)
        known = [WORLD, *(b.name for b in self.bodies), *(f.name for f in self.frames)]
        raise ValueError(f"unknown frame {name!r}; there are {', '.join(known)}")

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all joints, in the order of their bodies."""
        return tuple(b.joint_name or b.name for b in self.bodies)

    def joint_index(self, joint: str) -> int:
        """Row of the body that the joint hangs."""
        if joint not in self.joint_names:
            raise ValueError(
                f"unknown joint {joint!r}; there are {', '.join(self.joint_names)}"
            )
        return 1 + self.joint_names.index(joint)

    def q_slice(self, joint: str) -> slice:
        """Where the joint's coordinates are in `q`."""
        row = self.joint_index(joint)
        return slice(self.q_starts[row - 1], self.q_starts[row])

    def v_slice(self, joint: str) -> slice:
        """Where the joint's speeds are in `v`."""
        row = self.joint_index(joint)
        return slice(self.v_starts[row - 1], self.v_starts[row])

    # Topology ----------------------------------------------------------------------

    @property
    def q_starts(self) -> np.ndarray:
        """Index of each joint's first coordinate in `q`, and the length of `q`."""
        return np.cumsum([0, *(b.joint.nq for b in self.bodies)])

    @property
    def v_starts(self) -> np.ndarray:
        """Index of each joint's first speed in `v`, and the length of `v`."""
        return np.cumsum([0, *(b.joint.nv for b in self.bodies)])

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return int(self.q_starts[-1])

    @property
    def nv(self) -> int:
        """Number of speeds."""
        return int(self.v_starts[-1])

    @property
    def parents(self) -> np.ndarray:
        """Row of each body's parent; the world is its own."""
        return np.array([0, *(self.index(b.parent) for b in self.bodies)])

    @property
    def supports(self) -> np.ndarray:
        """`[body, other]`: true where `other` is the body itself or carries it."""
        n = len(self.bodies) + 1
        table = np.eye(n, dtype=bool)
        for row, parent in enumerate(self.parents[1:], start=1):
            table[row] |= table[parent]
        return table

    @property
    def speed_rows(self) -> np.ndarray:
        """Row of the body whose joint has each speed."""
        return np.repeat(np.arange(len(self.bodies)), np.diff(self.v_starts)) + 1

    @property
    def moves(self) -> np.ndarray:
        """`[body, speed]`: true where the speed moves the body."""
        return self.supports[:, self.speed_rows]

    # States ------------------------------------------------------------------------

    def q0(self) -> Float[Array, " nq"]:
        """Coordinates of the undisplaced mechanism."""
        return jnp.concatenate([jnp.zeros(0), *(b.joint.q0() for b in self.bodies)])

    def q_dot(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " nq"]:
        """The kinematic differential equations of all joints."""
        parts = [jnp.zeros(0, q.dtype)]
        for body, name in zip(self.bodies, self.joint_names, strict=True):
            parts.append(body.joint.q_dot(q[self.q_slice(name)], v[self.v_slice(name)]))
        return jnp.concatenate(parts)

    def check_state(self, q: Array, v: Array) -> None:
        """Raises unless `q` and `v` have the mechanism's shapes."""
        for name, x, n in (("q", q, self.nq), ("v", v, self.nv)):
            if x.shape != (n,):
                raise ValueError(
                    f"{name} has shape {x.shape}, but the mechanism needs ({n},): "
                    + ", ".join(
                        f"{joint} {getattr(body.joint, 'n' + name)}"
                        for joint, body in zip(
                            self.joint_names, self.bodies, strict=True
                        )
                    )
                )
