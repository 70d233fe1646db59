r"""A line between two ends, as a part.

Nodes ride at fixed fractions $x_i$ of the length $L$ paid out. When winches at head and
tail feed line at rates $U_h$ and $U_t$, material passes node $i$ at $\dot s_i = x_i U_h
- (1-x_i) U_t$. States are positions $r_i$ and velocities $v_i$ of the material there:

$$\dot r_i = v_i + \dot s_i\,r'_i,\qquad
\frac{d}{dt}(M_i v_i) = Q_i -\frac{\partial V}{\partial r_i}
- \sum_j \dot s_j \Bigl(\frac{\partial r'_j}{\partial r_i}\Bigr)^{\!\top} M_j v_j,$$

Hamilton's equations of $T = \tfrac12\sum_i |\dot r_i - \dot s_i r'_i|^2_{M_i}$ and the
potential $V(r, L)$. So line enters at the drums and nowhere else, momentum moves along
the line with it, and the balances of energy and momentum close.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..marine.sea_bed import SeaBed
from ..marine.water import Fluid
from ..multibody.kinematics import World
from ..parts.base import InstantView, Response, Signals
from ..parts.loads import Inertia, Load
from ..smooth import norm
from ..typing import Scalar, Vec3, known, optional, si
from .attached import PointForce, PointMass
from .chain import spring_chain
from .ends import AbstractEnd, ClampedEnd, FreeEnd
from .implicit_chain import AbstractLinePart, Chain
from .properties import CableProperties
from .snapshot import CableSnapshot
from .spline import Mesh, graded
from .start import sagging


def _fractions(mesh: Any) -> tuple[float, ...]:
    return graded(mesh) if isinstance(mesh, int) else tuple(float(x) for x in mesh)


class Cable(AbstractLinePart):
    r"""A line of `rope`, from its `tail` at $s = 0$ to its `head` at $s = L$.

    **Arguments:**

    - `length`: without stretch, before any line is paid out.
    - `mesh`: how many elements, or the nodes' fractions of the length from 0 to 1.
    - `fluid`: what surrounds the line; nothing if not given.
    - `masses`, `forces`: at points of the line.
    - `min_length`: where a winch that pulls in stops the simulation; by default a
      hundredth of `length`.
    - `lumping`: `"spline"` gives nodes the integrals of their splines, `"half"` half of
      each neighbouring element.
    - `ground`: the sea bed that the nodes may touch, by the line's diameter.

    Outputs: `length`, `payout` (rate of both winches), the tensions `tail_tension` and
    `head_tension`, which are the forces in the line where it is held (the inertia of
    the end node is left out where the speeds of a body accelerate it: `end_loads` has
    it), and `head_slope`, along the line.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "r": "m",
        "v": "m/s",
        "paid": "m",
        "twist": "rad",
        "length": "m",
        "payout": "m/s",
        "tail_tension": "N",
        "head_tension": "N",
        "head_slope": "1",
    }
    rope: CableProperties
    length: Scalar = eqx.field(converter=si("m", above=0.0))
    tail: AbstractEnd
    head: AbstractEnd
    mesh: tuple[float, ...] = eqx.field(static=True, converter=_fractions, default=20)
    fluid: Fluid | None = None
    masses: tuple[PointMass, ...] = ()
    forces: tuple[PointForce, ...] = ()
    min_length: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )
    lumping: str = eqx.field(static=True, default="spline")
    ground: SeaBed | None = None

    def __check_init__(self):
        x = np.array(self.mesh)
        if len(x) < 3:
            raise ValueError(f"a line needs at least two elements, got {len(x) - 1}")
        if x[0] != 0 or x[-1] != 1:
            raise ValueError(
                f"the fractions of a mesh run from 0 to 1, not from {x[0]:g} to "
                f"{x[-1]:g}"
            )
        if np.any(np.diff(x) <= 0):
            bad = int(np.argmin(np.diff(x)))
            raise ValueError(
                f"element {bad + 1} of the mesh has no length: fractions {x[bad]:g} "
                f"and {x[bad + 1]:g}"
            )
        if self.lumping not in ("spline", "half"):
            raise ValueError(f"lumping is spline or half, not {self.lumping!r}")
        for what in (*self.masses, *self.forces):
            if not known(what.position, self.length):
                continue
            if float(what.position) > float(self.length):
                raise ValueError(
                    f"a {type(what).__name__} at {float(what.position):g} m is beyond "
                    f"the line of {float(self.length):g} m"
                )
        if self.ground is not None and known(self.rope.diameter):
            if not float(self.rope.diameter) > 0:
                raise ValueError("a line on the sea bed needs a diameter")

    # Structure ----------------------------------------------------------------------

    @property
    def ends(self) -> tuple[AbstractEnd, AbstractEnd]:
        """Both ends, the tail first."""
        return self.tail, self.head

    @property
    def spline(self) -> Mesh:
        """The mesh of the cable, with its clamped ends."""
        tail, head = (isinstance(end, ClampedEnd) for end in self.ends)
        return Mesh(self.mesh, (tail, head))

    @property
    def free(self) -> slice:
        """Nodes that no end holds."""
        tail, head = (isinstance(end, FreeEnd) for end in self.ends)
        return slice(0 if tail else 1, len(self.mesh) - (0 if head else 1))

    @property
    def pays(self) -> bool:
        """Whether an end pays out line."""
        return any(end.payout for end in self.ends)

    @property
    def twists(self) -> bool:
        """Whether the cable can twist: both ends are clamped."""
        return all(self.spline.clamped)

    # States -------------------------------------------------------------------------

    def initial_state(self) -> dict[str, Array]:
        n = self.free.stop - self.free.start
        state = {"r": jnp.zeros((n, 3)), "v": jnp.zeros((n, 3))}
        if self.pays:
            state["paid"] = jnp.zeros(2)
        return state | ({"twist": jnp.zeros(())} if self.twists else {})

    @eqx.filter_jit
    def start(self, world: World) -> dict[str, Array]:
        """Between its ends: straight, or sagging if they are closer than its length."""
        places = [end.place(world.t, world) for end in self.ends]
        down = world.gravity_W / jnp.maximum(norm(world.gravity_W), 1e-12)
        tail, head = (None if p is None else p.p for p in places)
        if tail is None and head is None:
            tail = jnp.zeros(3, down.dtype)
        head = tail + self.length * down if head is None else head  # pyright: ignore
        tail = head + self.length * down if tail is None else tail
        x = jnp.asarray(self.mesh, down.dtype)
        r = sagging(tail, head, self.length, down, x, self.ground)
        still = jax.tree.map(jnp.zeros_like, self.initial_state())
        return {**still, "r": r[self.free]}

    def failure_reason(self, state: dict[str, Array]) -> str:
        """Why a simulation stopped in this state, if the line knows."""
        length, least = float(self.length_out(state)), float(self._least())
        if not self.pays or length > 1.02 * least:
            return ""
        return f"only {length:.4g} m of line are out, the least is {least:.4g} m"

    def _least(self) -> Scalar:
        return self.length / 100 if self.min_length is None else self.min_length

    def length_out(self, state: dict[str, Array]) -> Scalar:
        """Return the unstretched length between the ends, m."""
        return self.length + jnp.sum(state["paid"]) if self.pays else self.length

    def snapshot(
        self, t: Scalar, state: dict, world: World, rates: Float[Array, "2"]
    ) -> "CableSnapshot":
        """The line at an instant, with winches at `rates`."""
        line = _snapshot(self, t, state, world, rates)
        return eqx.tree_at(lambda x: (x.cable, x.world), line, (self, world))

    def rates(self, signals: Signals) -> Float[Array, "2"]:
        """At which the winches at tail and head feed line."""
        rates = [jnp.zeros(()), jnp.zeros(())]
        for i, end in enumerate(self.ends):
            if end.payout:
                rate = signals[end.payout.removeprefix("-")].reshape(())
                rates[i] = -rate if end.payout.startswith("-") else rate
        return jnp.stack(rates)

    def stable_step(self) -> Scalar:
        """About the longest step that keeps explicit Runge-Kutta methods stable, s.

        By the highest waves that the mesh carries, in stretch and in bending, and by
        internal damping.
        """
        h = self.length * float(np.min(self.spline.h))
        mass, rope = self.rope.linear_density, self.rope
        stretch = 4 * rope.EA / (mass * h**2)  # squares of frequencies
        bend = np.pi**4 * rope.EI / (mass * h**4)
        fast = jnp.sqrt(2 * (stretch + bend))
        slow = rope.damping(self.spline, self.length) / rope.EA * stretch * 2
        slow = slow + rope.bending_damping * np.pi**4 / (mass * h**4) * 2
        return 2.5 / (fast + slow)

    # The contract -------------------------------------------------------------------

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        line = self.snapshot(t, state, world, self.rates(signals))
        loads, inertias = [], []
        for node, place in line.held():
            if place.body is not None:
                f, tau = line.load[node], line.torque[node]
                loads.append(Load(place.body, "world", place.p, f, tau))
                inertias.append(Inertia(place.body, place.p, line.mass[node]))
        rate = {"r": line.r_dot[self.free], "v": line.accelerations()[self.free]}
        if self.pays:
            enough = line.length > self._least()
            rate["paid"] = jnp.where(enough, line.rates, jnp.inf)
        if self.twists:
            rate["twist"] = line.rate.twist
        ends = [jnp.zeros_like(line.load[0]), jnp.zeros_like(line.load[0])]
        for node, place in line.held():
            ends[node] = line.load[node] - line.mass[node] @ place.a
        outputs = {
            "length": line.length,
            "payout": jnp.sum(line.rates),
            "tail_tension": norm(ends[0]),
            "head_tension": norm(ends[1]),
            "head_slope": line.measures.slope[-1],
        }
        return Response(rate, tuple(loads), outputs, tuple(inertias))

    def energy(self, state: dict, world: World) -> Scalar:
        line = self.snapshot(world.t, state, world, jnp.zeros(2))
        through = jnp.einsum("nij,nj->ni", line.mass, line.w)
        return jnp.sum(line.w * through) / 2 + line.potential(
            line.r, line.length, line.offset
        )

    def power_loss(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        line = self.snapshot(t, state, world, self.rates(signals))
        slip = line.w - line.current
        rubbed = jnp.sum(line.rubbing * line.w)
        return line.damping_loss - jnp.sum(line.drag * slip) - rubbed

    def power_in(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        """Power of winches, driven ends, forces from outside, current and waves."""
        line = self.snapshot(t, state, world, self.rates(signals))
        power = line.winch_power() if self.pays else jnp.zeros(())
        power += jnp.sum(line.pushes * line.motion.points)
        power += jnp.sum(line.drag * line.current)
        if self.fluid is not None and self.fluid.waves is not None:
            power += line.wave_power()
        for node, place in line.held():
            if place.body is None:
                power += (line.mass[node] @ place.a - line.load[node]) @ place.v
        return power

    def chain(
        self, t: Scalar, state: dict, world: World, signals: Signals, h: Scalar
    ) -> Chain:
        """Its elements as springs, for implicit steps."""
        line = self.snapshot(t, state, world, self.rates(signals))
        return spring_chain(line, self.ends, h)

    # Queries ------------------------------------------------------------------------

    def at(self, now: InstantView, name: str, s: Any) -> dict[str, Array]:
        """What the line is and does at arclength `s` from its tail, without stretch.

        Position, velocity and acceleration of the material, unit tangent, tension,
        curvature $r''$ and twist per length.

        **Arguments:**

        - `now`: as `System.at` gives it, or in `Trajectory.map`.
        - `name`: of this part in the system.
        """
        line = self.snapshot(
            now.world.t, now.y.parts[name], now.world, self.rates(now.signals)
        )
        return line.at(jnp.asarray(s, float), self._end_accelerations(now))

    def _end_accelerations(self, now: InstantView) -> list[Vec3]:
        """Accelerations of both ends, with those of the bodies they are on."""
        moved = eqx.tree_at(lambda w: w.A_bias_WB, now.world, now.A_WB)
        places = [end.place(now.world.t, moved) for end in self.ends]
        return [jnp.zeros(3) if p is None else p.a for p in places]

    def end_loads(self, now: InstantView, name: str) -> Float[Array, "2 6"]:
        """Wrenches of the line on what holds its tail and head, at these points."""
        line = self.snapshot(
            now.world.t, now.y.parts[name], now.world, self.rates(now.signals)
        )
        found = [jnp.zeros(6), jnp.zeros(6)]
        a = self._end_accelerations(now)
        for node, _ in line.held():
            f = line.load[node] - line.mass[node] @ a[node]
            found[node] = jnp.concatenate([line.torque[node], f])
        return jnp.stack(found)


@eqx.filter_jit  # traced once for loads, energy and powers
def _snapshot(
    cable: Cable, t: Scalar, state: dict, world: World, rates: Float[Array, "2"]
) -> CableSnapshot:
    return CableSnapshot.of(cable, t, state, world, rates)
