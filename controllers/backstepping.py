"""Backstepping control of a hydraulic arm, from joints through pressures to valves."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.hydraulics import Triangle
from djdyn.multibody import dynamics, mass_matrix
from djdyn.multibody.kinematics import World, forward_kinematics
from djdyn.multibody.mechanism import Mechanism
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.parts.units import JointUnit, Unit
from djdyn.typing import Scalar, si

from .model_based import Gain, coriolis, own, wanted


Each = Float[Array, " n"]


def _pairs(names: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Converter of pairs of names, which files give as lists."""
    return tuple((a, b) for a, b in names)


class Errors(eqx.Module):
    """Errors of position, speed and pressure difference, and their ingredients."""

    e1: Each
    e2: Each
    e3: Each
    E: Each
    alpha1: Each
    alpha1_rate: Each
    B: Float[Array, "n n"]
    P_L: Each


class Backstepping(AbstractSignalPart):
    r"""Valve areas that make a hydraulic arm follow a reference.

    With $E$ the torque per pressure difference of each joint's motor or cylinder and
    $e_1 = q - q_d$, $e_2 = \dot q - \dot q_d$, $e_0 = \int e_1$,

    $$\alpha_1 = E^{-1}\bigl(C\dot q_d + \tau_f + g + B\ddot q_d
        - K_p e_1 - K_d e_2 - K_i e_0\bigr),\quad e_3 = P_L - \alpha_1,$$
    $$v_d = \tfrac{2\beta}{V_0}E\dot q + \dot\alpha_1
        - w^2E(e_2 + \varepsilon e_1) - K_3 e_3,\quad
      u = \frac{V_0\sqrt\rho}{2\beta C_d}\,
          \frac{v_d}{\sqrt{P_s - \operatorname{sign}(v_d)P_L}} .$$

    (Rokseth, master's thesis, NTNU, 2014, paper 2, with Christoffel's $C$ and the
    placing of $\varepsilon$ corrected.) $\dot\alpha_1$ is exact, a
    derivative along the motion that the model predicts; with `lever_rate` off $E$ is
    taken as constant in it, as in the source. $w$ is `pressure_scale`: pressure errors
    count in units of it.

    **Arguments:**

    - `pressures`: signals of each joint's two pressures, bar.
    - `displacement`: m3/rad of a motor, mean area in m2 of a cylinder.
    - `triangles`: the linkage of each joint with a cylinder; None for motors.
    - `friction`: the viscous coefficient of $\tau_f$, which is evaluated at the
      `friction_at` rate, `"desired"` or `"measured"`.
    - `model`: the controller's model of the machine; by default the machine itself.
    """

    joints: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    reference: str = eqx.field(static=True)
    pressures: tuple[tuple[str, str], ...] = eqx.field(static=True, converter=_pairs)
    displacement: Each = eqx.field(converter=si("m^3/rad, m^2", above=0.0))
    triangles: tuple[Triangle | None, ...]
    kp: Gain = eqx.field(converter=si("N m/rad", at_least=0.0))
    kd: Gain = eqx.field(converter=si("N m s/rad", at_least=0.0))
    ki: Gain = eqx.field(converter=si("N m/(rad s)", at_least=0.0))
    k3: Gain = eqx.field(converter=si("1/s", at_least=0.0))
    epsilon: Gain = eqx.field(converter=si("1/s", at_least=0.0), default=0.0)
    friction: Gain = eqx.field(converter=si("N m s/rad", at_least=0.0), default=0.0)
    friction_at: Literal["desired", "measured"] = eqx.field(
        static=True, default="desired"
    )
    lever_rate: bool = eqx.field(static=True, default=True)
    supply: Scalar = eqx.field(converter=si("Pa", above=0.0), default=187e5)
    stiffness: Gain = eqx.field(converter=si("Pa/m^3", above=0.0), default=1e11)
    discharge: Scalar = eqx.field(converter=si("1", above=0.0), default=0.9)
    density: Scalar = eqx.field(converter=si("kg/m^3", above=0.0), default=950.0)
    pressure_scale: Scalar = eqx.field(converter=si("Pa", above=0.0), default=1.0)
    model: Mechanism | None = None

    def __check_init__(self):
        n = len(self.joints)
        for what in ("pressures", "triangles", "displacement"):
            if len(getattr(self, what)) != n:
                raise ValueError(f"{n} joints need {n} {what}")
        if self.friction_at not in ("desired", "measured"):
            raise ValueError(
                f"friction_at is desired or measured, not {self.friction_at!r}"
            )

    @property
    def signal_units(self) -> Mapping[str, Unit]:
        """Units of signals: valve areas, and errors of joints and pressures."""
        areas = {f"u.{joint}": "m^2" for joint in self.joints}
        return {
            "u": "m^2",
            "error": JointUnit.COORDINATE,
            "pressure_error": "Pa",
        } | areas

    def initial_state(self) -> dict[str, Array]:
        return {"integral": jnp.zeros(len(self.joints))}

    def torque_per_pressure(self, q: Each) -> Each:
        """Return `E`, the torque per pressure difference of each joint."""
        levers = [
            jnp.ones_like(x) if triangle is None else triangle.lever(x)[1]
            for x, triangle in zip(q, self.triangles, strict=True)
        ]
        return self.displacement * jnp.stack(levers)

    def _alpha1(self, mechanism, t, q, v, q_d, v_d, a_d, e0) -> Each:
        still = forward_kinematics(mechanism, q, t=t)
        tau = dynamics.inverse(still, a_d) + coriolis(mechanism, q, v, v_d, t)
        tau = tau + self.friction * (v_d if self.friction_at == "desired" else v)
        tau = tau - self.kp * (q - q_d) - self.kd * (v - v_d) - self.ki * e0
        E = self.torque_per_pressure(q)
        return tau / (E if self.lever_rate else jax.lax.stop_gradient(E))

    def errors(self, state: dict, world: World, signals: Signals) -> Errors:
        """Return the errors of the loop at a state."""
        here = own(world, self.model)
        mechanism, t, q, v = here.mechanism, here.t, here.q, here.v
        if mechanism.loops:
            raise ValueError(
                "backstepping knows no closed loops: "
                + ", ".join(loop.name for loop in mechanism.loops)
            )
        if mechanism.nv != len(self.joints):
            raise ValueError(
                f"backstepping controls {len(self.joints)} joints, but the machine has "
                f"{mechanism.nv} speeds"
            )
        names = ("value", "rate", "acceleration", "jerk")
        q_d, v_d, a_d, j_d = wanted(signals, self.reference, *names)
        bar = lambda name: signals[name].reshape(())
        P_L = 1e5 * jnp.stack([bar(a) - bar(b) for a, b in self.pressures])
        E, B = self.torque_per_pressure(q), mass_matrix.projected_inertia(here)
        e0, e1, e2 = state["integral"], q - q_d, v - v_d
        along = lambda *x: self._alpha1(mechanism, t, *x)
        point = (q, v, q_d, v_d, a_d, e0)
        # The speed's rate that the model predicts: B e2' = E e3 - C e2 + alpha0.
        alpha1 = along(*point)
        push = -self.kp * e1 - self.kd * e2 - self.ki * e0 + E * (P_L - alpha1)
        push = push - coriolis(mechanism, q, v, e2, t)
        factor = jnp.linalg.cholesky(B)
        v_dot = a_d + jax.scipy.linalg.cho_solve((factor, True), push)
        _, alpha1_rate = jax.jvp(along, point, (v, v_dot, v_d, a_d, j_d, e1))
        return Errors(e1, e2, P_L - alpha1, E, alpha1, alpha1_rate, B, P_L)

    def __call__(self, t, state: Any, world: World, signals: Signals) -> Response:
        del t
        now = self.errors(state, world, signals)
        pull = self.pressure_scale**2 * now.E * (now.e2 + self.epsilon * now.e1)
        v_d = 2 * self.stiffness * now.E * own(world, None).v + now.alpha1_rate - pull
        v_d = v_d - self.k3 * now.e3
        drop = self.supply - jnp.where(v_d > 0, now.P_L, -now.P_L)
        drop = jnp.maximum(drop, 1e-3 * self.supply)  # no area gives more
        u = v_d * jnp.sqrt(self.density / drop) / (2 * self.stiffness * self.discharge)
        each = {f"u.{joint}": u[i] for i, joint in enumerate(self.joints)}
        outputs = {"u": u, "error": now.e1, "pressure_error": now.e3, **each}
        return Response({"integral": now.e1}, outputs=outputs)

    def lyapunov(self, state: dict, world: World, signals: Signals) -> Scalar:
        r"""Return the Lyapunov function of the closed loop.

        It decreases on the control plant model if gains are positive and $K_i$ is zero.

        $$\tfrac12 e_2^\top Be_2 + \tfrac12 e_1^\top K_pe_1
          + \varepsilon e_1^\top Be_2 + \tfrac12|e_3|^2/w^2$$
        """
        now = self.errors(state, world, signals)
        kinetic = (now.e2 / 2 + self.epsilon * now.e1) @ now.B @ now.e2
        spring = jnp.sum(self.kp * now.e1**2) / 2
        return kinetic + spring + jnp.sum((now.e3 / self.pressure_scale) ** 2) / 2
