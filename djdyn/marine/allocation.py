r"""Layouts of thrusters, and allocation of a wrench to them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..parts.base import AbstractSignalPart, Response, Signals
from ..smooth import clip, step
from ..typing import Scalar, Vec6, check_values, known, si


AXES = ("roll", "pitch", "yaw", "surge", "sway", "heave")
SINGULAR = 1e-9  # relative, of singular values
SOFTNESS = 1e-6  # relative; keeps shares finite where few thrusters are free
HELD = 1e-3  # share that a thruster at its limit has in what is missing


def _axes(names: object) -> tuple[str, ...]:
    """Converter of names of axes."""
    return (names,) if isinstance(names, str) else tuple(names)  # pyright: ignore


class ThrusterLayout(eqx.Module):
    r"""Where thrusters are and where they push, in the axes of a frame.

    `directions` are normalised. The wrench of thrusts $T$ about the frame's origin is
    $\tau = H\,T$ with columns $[r\times d;\ d]$.
    """

    positions: Float[Array, "n 3"] = eqx.field(converter=si("m"))
    directions: Float[Array, "n 3"] = eqx.field(converter=si("1"))

    def __check_init__(self):
        check_values(self)
        if self.positions.shape != self.directions.shape:
            raise ValueError(
                f"{len(self.positions)} thrusters have positions, "
                f"{len(self.directions)} have directions"
            )
        if known(self.directions):
            lengths = np.linalg.norm(np.asarray(self.directions), axis=1)
            if not np.all(lengths > 0):
                raise ValueError(
                    f"thruster {int(np.argmin(lengths)) + 1} has no direction"
                )

    @property
    def count(self) -> int:
        """Number of thrusters."""
        return len(self.positions)

    @property
    def axes(self) -> Float[Array, "n 3"]:
        """Unit vectors of the thrusts."""
        square = jnp.sum(self.directions**2, 1, keepdims=True)
        return self.directions / jnp.sqrt(square)

    def matrix(self) -> Float[Array, "6 n"]:
        """Return $H$: wrench, torque first, per unit of each thrust."""
        d = self.axes
        return jnp.concatenate([cross(self.positions, d), d], 1).T


class Allocation(eqx.Module):
    r"""Thrusts for a wrench, by a weighted pseudo-inverse with limits.

    Of all thrusts with $HT = \tau$ those of least $\sum w_i T_i^2$ are

    $$T = W^{-1}H^\top(HW^{-1}H^\top)^{-1}\tau .$$

    Thrusts beyond their limits are clipped, with corners rounded within `width`; what
    is then missing is shared by the others, `rounds` times.

    **Arguments:**

    - `layout`: of the thrusters.
    - `weights`: $w$, one number or one a thruster.
    - `lower`, `upper`: limits of the thrusts.
    - `axes`: those of the wrench that are allocated, of roll, pitch, yaw, surge, sway
      and heave. The thrusters must be able to push along all of them.
    """

    layout: ThrusterLayout
    weights: Float[Array, "*#n"] = eqx.field(converter=si("1", above=0.0), default=1.0)
    lower: Float[Array, "*#n"] = eqx.field(converter=si("N"), default=-1e12)
    upper: Float[Array, "*#n"] = eqx.field(converter=si("N"), default=1e12)
    axes: tuple[str, ...] = eqx.field(static=True, converter=_axes, default=AXES)
    rounds: int = eqx.field(static=True, default=0)
    width: Scalar = eqx.field(converter=si("N", above=0.0), default=1e-3)

    def __check_init__(self):
        check_values(self)
        for axis in self.axes:
            if axis not in AXES:
                raise ValueError(f"unknown axis {axis!r}; there are {', '.join(AXES)}")
        if known(self.lower, self.upper) and np.any(
            np.asarray(self.lower) >= np.asarray(self.upper)
        ):
            raise ValueError(f"thrusts between {self.lower} and {self.upper}")
        layout = (self.layout.positions, self.layout.directions)
        if known(*layout):
            self._check_layout()

    def _check_layout(self) -> None:
        """Raise where the thrusters cannot push along every axis."""
        rows = np.asarray(self.layout.matrix())[self.rows]
        torques = np.array([axis in AXES[:3] for axis in self.axes])
        arm = max(np.abs(np.asarray(self.layout.positions)).max(), 1e-12)
        rows = np.where(torques[:, None], rows / arm, rows)
        left, sizes, _ = np.linalg.svd(rows)
        sizes = np.append(sizes, np.zeros(len(rows) - len(sizes)))
        if sizes[-1] > SINGULAR * sizes[0]:
            return
        missing = np.abs(left[:, sizes <= SINGULAR * sizes[0]]).max(1)
        named = [a for a, x in zip(self.axes, missing, strict=True) if x > 0.1]
        raise ValueError(
            f"these {self.layout.count} thrusters cannot push in {' and '.join(named)} "
            "as asked: their layout is singular"
        )

    @property
    def rows(self) -> np.ndarray:
        """Rows of the wrench that are allocated."""
        return np.array([AXES.index(axis) for axis in self.axes])

    def _share(self, wrench: Array, free: Array) -> Array:
        """The thrusts of least weight, of those that are free."""
        H = self.layout.matrix()[self.rows]
        inverse = free / (self.weights * jnp.ones(self.layout.count, H.dtype))
        G = H * inverse[None] @ H.T
        if self.rounds:
            eye = jnp.eye(len(G), dtype=G.dtype)
            G = G + SOFTNESS * jnp.sum(G * eye) / len(G) * eye
        low = jnp.linalg.cholesky(G)
        y = cho_solve((low, True), wrench)
        return inverse * (H.T @ y)

    def thrusts(self, wrench: Vec6) -> Float[Array, " n"]:
        """Return the thrusts for a wrench, torque first, in the layout's axes."""
        wanted = wrench[self.rows]
        T = self._share(wanted, jnp.ones(self.layout.count, wrench.dtype))
        limited = clip(T, self.lower, self.upper, self.width)
        for _ in range(self.rounds):
            w = self.width
            free = step(T - self.lower + w, 2 * w) * step(self.upper - T + w, 2 * w)
            free = HELD + (1 - HELD) * free
            missing = wanted - (self.layout.matrix() @ limited)[self.rows]
            T = limited + self._share(missing, free)
            limited = clip(T, self.lower, self.upper, self.width)
        return limited

    def delivered(self, thrusts: Float[Array, " n"]) -> Vec6:
        """Return the wrench of thrusts."""
        return self.layout.matrix() @ thrusts


class ThrustAllocation(AbstractSignalPart):
    """Shares the wrench of signal `command` among thrusters.

    Outputs: `thrust`, and `shortfall`, the part of the wrench that limits keep back.
    """

    command: str = eqx.field(static=True)
    allocation: Allocation

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t, world
        wrench = signals[self.command]
        thrust = self.allocation.thrusts(wrench)
        shortfall = wrench - self.allocation.delivered(thrust)
        return Response(state, outputs={"thrust": thrust, "shortfall": shortfall})
