"""Stability margins of a loop opened at a signal: gain, phase, modulus, delay."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Complex, Float

from djdyn import State, System
from djdyn.smooth import norm
from djdyn.typing import Scalar

from .closed_loops import allowed_motion
from .linearise import matrices, signal_of


FREQUENCIES = np.logspace(-3, 4, 4001)  # rad/s
# The third-order Padé approximation of e^-s as C (s - A)^-1 B + D; its error is below
# 0.0011 up to s = 2j and below 0.015 up to 3j.
PADE = (
    ((-12.0, -60.0, -120.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    ((1.0,), (0.0,), (0.0,)),
    ((24.0, 0.0, 240.0),),
    -1.0,
)
STABILITY_TOLERANCE = 1e-6  # 1/s: a smaller spectral abscissa counts as stable
COARSE_FREQUENCIES = np.logspace(-1, 3.5, 91)  # rad/s
REFINEMENTS, REFINED_POINTS = 5, 17  # of the frequency of least distance


@dataclasses.dataclass(frozen=True)
class Margins:
    """Stability margins, for every entry of the signal where the loop is opened.

    - `gain`: the factor closest to one by which the gain may change, or infinity.
    - `phase`: the smallest change of phase, deg, that makes the loop marginally stable.
    - `modulus`: the least distance of the open-loop response from minus one.
    - `delay`: additional delay, s, that the loop tolerates; negative where a loop is
      stable without its delay but not with it.
    - `spectral_abscissa`: the largest real part of a pole with all loops closed, 1/s.
      Where it is positive the loop is unstable, and the margins mean little.
    """

    gain: np.ndarray
    phase: np.ndarray
    modulus: np.ndarray
    delay: np.ndarray
    spectral_abscissa: float

    def __str__(self) -> str:
        said = [
            f"gain {20 * np.log10(g):+.1f} dB, phase {p:.1f} deg, modulus {m:.2f}, "
            f"delay {1e3 * d:.4g} ms"
            for g, p, m, d in zip(
                self.gain, self.phase, self.modulus, self.delay, strict=True
            )
        ]
        return "\n".join(said)


class Opened(eqx.Module):
    r"""Open loops, $\dot x = Ax + Bu$ and $z = Cx + Du$, from signals to signals."""

    A: Float[Array, "n n"]
    B: Float[Array, "n m"]
    C: Float[Array, "m n"]
    D: Float[Array, "m m"]

    def with_delay(self, delay: float) -> "Opened":
        """Return the loops with a delay, s, by a third-order Padé approximation."""
        if delay == 0:
            return self
        m, dtype = len(self.D), self.D.dtype
        each = lambda x: jnp.kron(jnp.eye(m, dtype=dtype), jnp.asarray(x, dtype))
        lag, kick = each(PADE[0]) / delay, each(PADE[1]) / delay
        seen, sign = each(PADE[2]), PADE[3]
        A = jnp.block([[self.A, self.B @ seen], [jnp.zeros((3 * m, len(self.A))), lag]])
        B = jnp.concatenate([sign * self.B, kick])
        C = jnp.concatenate([self.C, self.D @ seen], 1)
        return Opened(A, B, C, sign * self.D)

    def closed(self) -> Float[Array, "n n"]:
        """Return `A` with all loops closed, $u = z$."""
        inner = jnp.eye(len(self.D), dtype=self.D.dtype) - self.D
        return self.A + self.B @ _solved(inner, self.C)

    def alone(self, e: Float[Array, " m"]) -> "_Loop":
        """Return the loop of the entry where `e` is one, with the others closed."""
        inner = jnp.eye(len(e), dtype=e.dtype) - (1 - e)[:, None] * self.D
        given = jnp.concatenate([(1 - e)[:, None] * self.C, e[:, None]], 1)
        back = _solved(inner, given)
        K, k = back[:, :-1], back[:, -1]
        seen = e @ self.D
        return _Loop(self.A + self.B @ K, self.B @ k, e @ self.C + seen @ K, seen @ k)


class _Loop(eqx.Module):
    """An open loop with one input and one output."""

    A: Float[Array, "n n"]
    b: Float[Array, " n"]
    c: Float[Array, " n"]
    d: Float[Array, ""]


def margins(
    system: System,
    y: State,
    signal: str | Sequence[str],
    delay: float = 0.0,
    t: float = 0.0,
) -> Margins:
    """Return the stability margins of a loop opened at a signal such as `"pid.u"`.

    One entry of the signal is opened at a time, the others stay closed. The system is
    linearised about `y`, which should be an equilibrium. About a state in motion the
    margins are those of the loop frozen at `t`, s; they hold for dynamics that are fast
    compared with the motion.

    **Arguments:**

    - `signal`: one name or several, whose entries are taken in alphabetical order.
    - `delay`: additional delay of every loop, s: half a period for a zero-order hold,
      and one period more where commands are applied a sample late.

    **Returns:** one margin of each kind for every entry.
    """
    import control  # slow to import, and rarely needed

    found = []
    signals = (signal,) if isinstance(signal, str) else tuple(sorted(signal))
    responses, spectral_abscissa = _responses(
        opened(system, y, signals, t).with_delay(delay)
    )
    for response in np.asarray(responses):
        L = -response
        data = np.abs(L), np.angle(L, deg=True), FREQUENCIES
        gains, phases, _, _, at, _ = control.stability_margins(data, returnall=True)
        gain = min(gains, key=lambda g: abs(np.log(g)), default=np.inf)
        phase = min(np.abs(phases), default=np.inf)
        # Delay turns the points of unit gain clockwise, from the loop without it on.
        borne = (np.radians(phases) + at * delay) % (2 * np.pi) / at
        least = np.min(borne, initial=np.inf) - delay
        found.append((gain, phase, np.min(np.abs(1 + L)), least))
    gain, phase, modulus, borne = np.array(found).T
    return Margins(gain, phase, modulus, borne, float(spectral_abscissa))


def opened(
    system: System, y: State, signals: tuple[str, ...], t: float = 0.0
) -> Opened:
    """Return the loops opened at signals; states that are in no loop are held fixed."""
    now = jnp.asarray(t, y.v.dtype)
    # A signal that is given replaces what its part sends, which opens the loop.
    given = _sent(system, y, now, signals)
    (A, B), (C, D) = matrices(system, y, given, now, signals)
    if system.mechanism.loops:
        P = allowed_motion(system, y, now)
        A, B, C = P @ A @ P - (jnp.eye(len(P), dtype=P.dtype) - P), P @ B, C @ P
    on = _reached(A, B)
    both = on[:, None] & on[None, :]
    still = jnp.diag(jnp.where(on, 0.0, -1.0).astype(A.dtype))
    return Opened(jnp.where(both, A, still), B, jnp.where(on[None], C, 0.0), D)


def moduli(some: Opened) -> tuple[Float[Array, " m"], Scalar]:
    """Return the modulus margins and the spectral abscissa, both differentiable.

    Modulus margins are positive for stable and unstable loops; the spectral abscissa
    tells them apart.
    """
    spectral_abscissa, poles = _spectral_abscissa(some.closed())
    each = jnp.eye(len(some.D), dtype=some.D.dtype)
    # One after the other, and after the poles: see `_solved`.
    return lax.map(lambda e: _modulus(some.alone(e), poles), each), spectral_abscissa


def _spectral_abscissa(A: Float[Array, "n n"]) -> tuple[Scalar, Complex[Array, " n"]]:
    r"""Return the largest real part of a pole, and all poles.

    With constant eigenvectors $y$ and $x$, $y^*Ax/y^*x$ has the pole's derivative.
    """
    poles, left, right = lax.linalg.eig(lax.stop_gradient(A))
    worst = jnp.argmax(poles.real)
    y, x = left[:, worst].conj(), right[:, worst]
    return ((y @ (_complex(A) @ x)) / (y @ x)).real, poles


def _modulus(loop: _Loop, poles: Complex[Array, " n"]) -> Scalar:
    r"""Return the least of $|1 - G|$ over frequencies.

    At that frequency, with constant $x = (j\omega - A)^{-1} b$ and
    $l = c\,(j\omega - A)^{-1}$, $G = d + cx + l\,(b - (j\omega - A)x)$ has its
    derivatives.
    """
    schur = _SchurForm(lax.stop_gradient(loop))
    away = lambda at: jnp.abs(1 - schur.response(at))
    sharp = jnp.maximum(jnp.abs(poles.imag), COARSE_FREQUENCIES[0])  # resonances
    at = jnp.concatenate([jnp.asarray(COARSE_FREQUENCIES, loop.d.dtype), sharp])
    closer = lambda _, at: _around(at, away(at))  # or it would jump between samples
    at = lax.fori_loop(0, REFINEMENTS, closer, _around(at, away(at)))
    here = at[jnp.argmin(away(at))]
    x, l = schur.states(here[None])[0], schur.costates(here[None])[0]
    A, b, c, d = map(_complex, (loop.A, loop.b, loop.c, loop.d))
    nearest = 1 - (d + c @ x + l @ (b + A @ x - _imaginary(here) * x))
    return norm(jnp.stack([nearest.real, nearest.imag]))


def _around(at: Float[Array, " f"], far: Float[Array, " f"]) -> Float[Array, " g"]:
    """Return frequencies between the neighbours of the one of least distance."""
    here = at[jnp.argmin(far)]
    low = jnp.max(jnp.where(at < here, at, jnp.min(at)))
    high = jnp.min(jnp.where(at > here, at, jnp.max(at)))
    return jnp.linspace(low, high, REFINED_POINTS)


class _SchurForm:
    """A loop in Schur form, whose response takes one back substitution a frequency."""

    def __init__(self, loop: _Loop):
        self.T, self.Z = jax.scipy.linalg.schur(loop.A, output="complex")
        self.b = self.Z.conj().T @ _complex(loop.b)
        self.c, self.d = _complex(loop.c) @ self.Z, _complex(loop.d)

    def response(self, at: Float[Array, " f"]) -> Complex[Array, " f"]:
        return _back_substitute(self.T, self.b, at) @ self.c + self.d

    def states(self, at: Float[Array, " f"]) -> Complex[Array, "f n"]:
        return _back_substitute(self.T, self.b, at) @ self.Z.T

    def costates(self, at: Float[Array, " f"]) -> Complex[Array, "f n"]:
        turned = self.T.T[::-1, ::-1]
        return _back_substitute(turned, self.c[::-1], at)[:, ::-1] @ self.Z.conj().T


def _back_substitute(
    T: Complex[Array, "n n"], b: Complex[Array, " n"], at: Float[Array, " f"]
) -> Complex[Array, "f n"]:
    r"""Return $(j\omega - T)^{-1} b$ of an upper triangular matrix $T$."""
    n, s = len(b), _imaginary(at)
    tiny = _complex(jnp.finfo(at.dtype).tiny * jnp.ones_like(at))

    def row(i: Array, x: Array) -> Array:
        k = n - 1 - i
        below = s - T[k, k]
        below = jnp.where(below == 0, tiny, below)  # on a pole
        return x.at[:, k].set((b[k] + x @ T[k]) / below)

    return lax.fori_loop(0, n, row, jnp.zeros((len(at), n), T.dtype))


def _solved(M: Float[Array, "m m"], X: Float[Array, "m n"]) -> Float[Array, "m n"]:
    """Solve a few equations by Gauss-Jordan elimination with pivots.

    Batched LAPACK calls of XLA can deadlock: two at once on two threads wait for each
    other.
    """
    rows = jnp.concatenate([M, X], 1)
    for k in range(len(M)):
        p = k + jnp.argmax(jnp.abs(rows[k:, k]))
        first, pivot = rows[k], rows[p]
        rows = rows.at[p].set(first).at[k].set(pivot)
        row = rows[k] / rows[k, k]
        rows = (rows - rows[:, k, None] * row[None]).at[k].set(row)
    return rows[:, len(M) :]


def _complex(x: Array) -> Array:
    return lax.complex(x, jnp.zeros_like(x))


def _imaginary(x: Array) -> Array:
    return lax.complex(jnp.zeros_like(x), x)


@eqx.filter_jit
def _responses(some: Opened) -> tuple[Complex[Array, "m f"], Scalar]:
    """Return the frequency response of each loop, and the spectral abscissa."""
    each = jnp.eye(len(some.D), dtype=some.D.dtype)
    at = jnp.asarray(FREQUENCIES, each.dtype)
    of = lambda e: _SchurForm(some.alone(e)).response(at)
    return lax.map(of, each), _spectral_abscissa(some.closed())[0]


@eqx.filter_jit
def _sent(system: System, y: State, t: Array, signals: tuple[str, ...]) -> dict:
    now = system.at(t, y).signals
    return {name: signal_of(now, name) for name in signals}


def _reached(A: Float[Array, "n n"], B: Float[Array, "n m"]) -> Bool[Array, " n"]:
    """Return which states inputs move; others, such as references', are in no loop."""
    more = lambda _, on: on | jnp.any((A != 0) & on[None, :], 1)
    return lax.fori_loop(0, len(A), more, jnp.any(B != 0, 1))
