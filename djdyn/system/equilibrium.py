r"""Rest: the state in which nothing accelerates, and its derivatives.

Newton's method fails where a line is slack or far from its place, so the way there is
that of an overdamped system, $M\dot z = F(z)$, by implicit Euler with steps that grow
as the residual falls (pseudo-transient continuation; Kelley and Keyes, *Convergence
analysis of pseudo-transient continuation*, 1998). At the end the steps are Newton's.
The last one is differentiated, which gives the derivatives of the implicit function.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike

from ..multibody import dynamics, mass_matrix
from ..multibody.closures import least, repeated_solve
from ..multibody.loops import LoopRows
from ..parts.base import AbstractPlacedPart
from ..typing import known
from .state import State
from .system import System, prepared


MAX_STEPS = 400
FIRST_STEP, LAST_STEP = 1e-3, 1e12  # s^2
GAP_RATE = 100.0  # 1/s^2, at which loops that are open are drawn shut
CLOSE = {  # of the machine's size: a Newton step that short is the last but one
    np.dtype("float64"): 1e-10,
    np.dtype("float32"): 1e-5,
}


class EquilibriumError(RuntimeError):
    """No state of rest was found; `state` is where the search ended."""

    def __init__(self, message: str, state: State):
        super().__init__(message)
        self.state = state


def equilibrium(
    system: System,
    y0: State | None = None,
    *,
    t: ArrayLike = 0.0,
    joints: Sequence[str] | None = None,
    inputs: Mapping[str, Array] | None = None,
) -> State:
    """Return the static state near `y0`: no force moves joints or lines.

    **Arguments:**

    - `y0`: where to look from; by default as `initial_state` puts everything.
    - `joints`: those that may move, all if not given; others are held.

    Where a direction is free of force (a ball that may spin) it stays as it was.
    Differentiable in both modes by all numbers of the system. Raises
    `EquilibriumError` if there is no rest near; inside `jit` or `grad` the result is
    then a state that is not at rest.

    !!! example

        ```python
        y0 = djdyn.equilibrium(system)
        ```
    """
    y0 = system.initial_state() if y0 is None else y0
    names = system.mechanism.joint_names if joints is None else tuple(joints)
    for name in names:
        system.mechanism.joint_index(name)
    state, left = _search(
        prepared(system), y0, jnp.asarray(t, float), names, dict(inputs or {})
    )
    if known(left) and not left < 1.0:
        raise EquilibriumError(
            f"no rest was found in {MAX_STEPS} steps: the last one still moved by "
            f"{float(left):.3g} times what is allowed; is something not held?",
            state,
        )
    return state


def _closing(rows: LoopRows, mobility: Array, v_dot: Array) -> Array:
    """What loops add to accelerations, each alone, and what draws their gaps shut."""
    K = mobility[:, None] * rows.jacobian.T
    S = rows.jacobian @ K
    wanted = -(rows.jacobian @ v_dot + GAP_RATE * rows.gap)
    return K @ repeated_solve(S, wanted, least(S))


@eqx.filter_jit
def _search(system: System, y0: State, t: Array, joints: tuple, inputs: dict) -> Any:
    mechanism = system.mechanism
    speeds = np.concatenate(
        [np.zeros(0, int)]
        + [np.arange(mechanism.nv)[mechanism.v_slice(joint)] for joint in joints]
    )
    moving = np.isin(np.arange(mechanism.nv), speeds).astype(float)
    lines = [k for k, p in system.parts.items() if isinstance(p, AbstractPlacedPart)]
    start = (jnp.zeros(len(speeds)), {k: y0.parts[k]["r"] for k in lines})
    z0, unravel = ravel_pytree(jax.lax.stop_gradient(start))
    if not z0.size:
        return y0, jnp.zeros(())

    def placed(y: State, q: Array, z: Array) -> State:
        """`q` moved by the first entries of `z`, lines at the others."""
        step, r = unravel(z)
        moved = jnp.zeros(mechanism.nv).at[speeds].set(step)
        parts = dict(y.parts)
        for k in lines:
            parts[k] = {**parts[k], "r": r[k], "v": jnp.zeros_like(r[k])}
        return State(q + mechanism.q_dot(q, moved), jnp.zeros(mechanism.nv), parts)

    def push(given: tuple, q: Array, z: Array) -> Array:
        """Accelerations of lines and, each alone, of joints."""
        system, y, t, inputs = given
        now = system.at(t, placed(y, q, z), inputs)
        still = jnp.zeros(mechanism.nv)
        F_WB = now.F_WB if now.loops_W is None else now.F_WB - now.loops_W
        forces = now.tau - dynamics.inverse(now.with_added_inertia, still, F_WB)
        masses = jnp.diagonal(mass_matrix.projected_inertia(now.with_added_inertia))
        pushed = forces / masses
        if now.rows is not None:
            pushed = pushed * moving
            pushed = pushed + _closing(now.rows, moving / masses, pushed)
        rates = {k: now.responses[k].rate["v"] for k in lines}
        return ravel_pytree((pushed[speeds], rates))[0]

    close, tiny = CLOSE[np.dtype(z0.dtype)], float(jnp.finfo(z0.dtype).tiny)
    given = (system, y0, t, inputs)
    numbers, functions = eqx.partition(given, eqx.is_array)
    fixed = eqx.combine(jax.lax.stop_gradient(numbers), functions)
    n, size = len(speeds), jnp.maximum(jnp.max(jnp.abs(z0)), 1.0)
    reach = size / (2 * max([10, *(len(y0.parts[k]["r"]) for k in lines)]))

    def slopes(q: Array, z: Array) -> tuple[Array, Array]:
        """Derivative of the accelerations, and themselves."""
        twice = lambda z: (push(fixed, q, z),) * 2
        return jax.jacfwd(twice, has_aux=True)(z)

    def step(carry: tuple) -> tuple:
        i, q, z, dt, before, _, _ = carry
        J, g = slopes(q, z)
        pushed = jnp.maximum(jnp.linalg.norm(g), tiny)
        dt = jnp.minimum(dt * jnp.clip(2 * before / pushed, 0.1, 4.0), LAST_STEP)
        dz = jnp.linalg.solve(jnp.eye(len(z)) / dt - J, g)
        far = jnp.max(jnp.abs(dz))
        dz = dz * jnp.minimum(1.0, reach / jnp.maximum(far, tiny))
        left = jnp.where(dt > 1.0, far / (close * size), jnp.inf)
        dt = dt * jnp.clip(reach / (2 * far), 0.1, 1.0)
        moved = z + dz
        # Joints' steps go into q.
        return (
            i + 1,
            placed(fixed[1], q, moved).q,
            moved.at[:n].set(0.0),
            dt,
            pushed,
            left,
            J,
        )

    q, z = fixed[1].q, z0
    first = (jnp.array(0), q, z, jnp.array(FIRST_STEP), *(jnp.array(jnp.inf),) * 2)
    going = lambda carry: (carry[0] < MAX_STEPS) & (carry[5] > 1.0)
    last = jax.lax.while_loop(going, step, (*first, jnp.eye(len(z))))
    _, q, z, _, _, left, J = last
    # One more, of the system itself: its derivative is that of the implicit function.
    z = z + jnp.linalg.solve(jnp.eye(len(z)) / LAST_STEP - J, push(given, q, z))
    return placed(y0, q, z), left
