"""How far a loop is from its edge: margins of gain and phase, where it is opened."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Bool, Complex, Float

from djdyn import State, System

from .linear import matrices, signal_of


FREQUENCIES = np.logspace(-3, 4, 4001)  # rad/s
NEUTRAL = 1e-6  # 1/s: poles that grow no faster stand still
TINY = 1e-12  # of a distance from minus one, where its slope has no direction
Matrices = tuple[Array, Array, Array, Array]  # A, B, C, D
COARSE = np.logspace(-1, 3.5, 91)  # rad/s, to begin with


@dataclasses.dataclass(frozen=True)
class Margins:
    """What a loop bears at most, for every entry of the signal where it is opened.

    - `gain`: the factor closest to one by which the gain may change, or infinity.
    - `phase`: the smallest change of phase, deg, that brings it to its edge.
    - `modulus`: the least distance of its response from minus one.
    - `delay`: s that it may be later still; below zero, a loop that is stable without
      its delay is not so with it.
    """

    gain: np.ndarray
    phase: np.ndarray
    modulus: np.ndarray
    delay: np.ndarray

    def __str__(self) -> str:
        said = [
            f"gain {20 * np.log10(g):+.1f} dB, phase {p:.1f} deg, modulus {m:.2f}, "
            f"delay {1e3 * d:.4g} ms"
            for g, p, m, d in zip(
                self.gain, self.phase, self.modulus, self.delay, strict=True
            )
        ]
        return "\n".join(said)


def margins(
    system: System, y: State, signal: str | Sequence[str], delay: float = 0.0
) -> Margins:
    """Margins about a state of rest, the loop opened at a signal such as `"pid.u"`.

    One entry of the signal, or of several in alphabetical order, is opened at a time;
    the others stay closed. About a state in motion they are those of the loop frozen
    there, which tell of what is fast beside the motion. `delay`, s, is what the loop
    has besides: half a period where samples are held, and one more where commands are
    a sample late.
    """
    import control  # takes long, and few need it

    found = []
    signals = (signal,) if isinstance(signal, str) else tuple(sorted(signal))
    for prompt in _open_loops(system, y, signals):
        L = prompt * np.exp(-1j * FREQUENCIES * delay)
        data = np.abs(L), np.angle(L, deg=True), FREQUENCIES
        gains, phases, _, _, at, _ = control.stability_margins(data, returnall=True)
        gain = min(gains, key=lambda g: abs(np.log(g)), default=np.inf)
        phase = min(np.abs(phases), default=np.inf)
        # From the prompt loop on, delay turns what has the gain of one clockwise.
        borne = (np.radians(phases) + at * delay) % (2 * np.pi) / at
        least = np.min(borne, initial=np.inf) - delay
        found.append((gain, phase, np.min(np.abs(1 + L)), least))
    return Margins(*np.array(found).T)


def moduli(
    system: System, y: State, signals: tuple[str, ...], delay: float
) -> Float[Array, " m"]:
    """Least distances from minus one as in `margins`, with derivatives.

    Of a loop that is unstable without its delay, minus the largest growth, 1/s: so a
    search is led back.
    """
    return _moduli(_opened(system, y, signals), jnp.asarray(delay))


def _opened(system: System, y: State, signals: tuple[str, ...]) -> Matrices:
    """`A`, `B`, `C` and `D` from signals that are given to those that are sent."""
    t = jnp.zeros((), y.v.dtype)
    # A signal that is given is read in place of what its part sends: an open loop.
    given = _sent(system, y, t, signals)
    (A, B), (C, D) = matrices(system, y, given, t, signals)
    return A, B, C, D


def _open_loops(
    system: System, y: State, signals: tuple[str, ...]
) -> list[Complex[np.ndarray, " f"]]:
    """Responses of the loop opened at each entry of signals, the others closed."""
    A, B, C, D = (np.asarray(x) for x in _opened(system, y, signals))
    on = _reached(A, B)
    G, _ = _response(A[on][:, on], B[on], C[:, on], D, FREQUENCIES)
    return [-_closed(G, i)[0] for i in range(len(D))]


def _response(A: Any, B: Any, C: Any, D: Any, at: np.ndarray) -> tuple[Any, Any]:
    r"""$G = C \Phi B + D$ with $\Phi = (j\omega - A)^{-1}$, and $\Phi B$."""
    s = 1j * at[:, None, None] * np.eye(len(A)) - A
    states = np.linalg.solve(s, np.broadcast_to(B, (len(s), *B.shape)))
    return C @ states + D, states


def _closed(G: Complex[np.ndarray, "f m m"], i: int) -> tuple[Any, Any, Any]:
    """From entry `i` to itself, u = G u closed in the others: l G r, and l and r."""
    n = G.shape[1]
    o = np.arange(n) != i
    inner = np.eye(n - 1) - G[:, o][:, :, o]
    r, left = np.zeros((len(G), n), complex), np.zeros((len(G), n), complex)
    r[:, i] = left[:, i] = 1
    r[:, o] = np.linalg.solve(inner, G[:, o, i, None])[..., 0]
    turned = np.swapaxes(inner, 1, 2)
    left[:, o] = np.linalg.solve(turned, G[:, i, o, None])[..., 0]
    return G[:, i, i] + np.sum(G[:, i, o] * r[:, o], 1), left, r


def _nearest(A: Any, B: Any, C: Any, D: Any, delay: Any) -> tuple[np.ndarray, ...]:
    r"""Least $|1 + L_i|$ over frequencies, and its derivatives by all four matrices.

    At the frequency where it is least, $dL_i = -l\,(dC\,\Phi B + C\Phi\,dA\,\Phi B +
    C\Phi\,dB + dD)\,r$; of a pole with eigenvectors $y$ and $x$ of the closed loop the
    same holds with $\Phi B r = x$ and $l C \Phi = y^*/y^* x$.
    """
    A, B, C, D, delay = (np.asarray(x) for x in (A, B, C, D, delay))
    if not all(np.all(np.isfinite(x)) for x in (A, B, C, D)):
        none = [np.zeros((len(D), *x.shape), x.dtype) for x in (A, B, C, D)]
        return np.full(len(D), np.nan, A.dtype), *none
    on = _reached(A, B)
    a, b, c = A[on][:, on], B[on], C[:, on]
    back = np.linalg.inv(np.eye(len(D)) - D)
    turned: Any = scipy.linalg.eig(a + b @ back @ c, left=True)
    poles, left, right = turned
    worst = np.argmax(poles.real)
    if poles[worst].real > NEUTRAL:
        x, y = right[:, worst], left[:, worst].conj()
        y = y / (y @ x)
        one = (-poles[worst].real, -1.0, y @ b @ back, back @ c @ x, y, x)
        found = [_spread(one, on)] * len(D)
        return tuple(np.stack(x).astype(A.dtype) for x in zip(*found, strict=True))
    at = np.union1d(COARSE, np.abs(poles.imag[poles.imag != 0]))  # sharp resonances
    there = _response(a, b, c, D, at)
    each = [_least((a, b, c, D), delay, i, at, there) for i in range(len(D))]
    found = [_spread(one, on) for one in each]
    return tuple(np.stack(x).astype(A.dtype) for x in zip(*found, strict=True))


def _least(
    matrices: tuple[Any, Any, Any, Any],
    delay: Any,
    i: int,
    at: np.ndarray,
    there: tuple[Any, Any],
    closer: int = 3,
) -> tuple[Any, ...]:
    """What `_spread` takes, where a loop comes nearest to minus one.

    Looked at closer and closer, or it would jump from sample to sample.
    """
    (a, _, c, _), (G, states) = matrices, there
    loop, l, r = _closed(G, i)
    late = np.exp(-1j * at * delay)
    away = 1 - loop * late
    k = np.argmin(np.abs(away))
    if closer:
        near = np.linspace(at[max(k - 1, 0)], at[min(k + 1, len(at) - 1)], 17)
        there = _response(*matrices, near)
        return _least(matrices, delay, i, near, there, closer - 1)
    size = np.abs(away[k])
    weight = -np.conj(away[k]) / max(size, TINY) * late[k]
    lC = np.linalg.solve(1j * at[k] * np.eye(len(a)) - a.T, c.T @ l[k])
    return size, weight, l[k], r[k], lC, states[k] @ r[k]


def _spread(one: tuple[Any, ...], on: np.ndarray) -> tuple[Any, ...]:
    """A value, and its slopes by `A`, `B`, `C` and `D` with all their states."""
    value, weight, l, r, lC, Br = one
    full = np.zeros((2, len(on)), complex)
    full[:, on] = lC, Br
    pairs = ((full[0], full[1]), (full[0], r), (l, full[1]), (l, r))
    return (value, *(np.real(weight * np.outer(*p)) for p in pairs))


def _looked(matrices: Matrices, delay: Array) -> tuple[Array, Matrices]:
    """By LAPACK on the host: XLA's batches of complex equations take minutes."""
    m = len(matrices[3])
    like = lambda x: jax.ShapeDtypeStruct((m, *x.shape), x.dtype)
    shapes = (jax.ShapeDtypeStruct((m,), matrices[0].dtype), *map(like, matrices))
    found = jax.pure_callback(
        _nearest, shapes, *matrices, delay, vmap_method="sequential"
    )
    return found[0], (found[1], found[2], found[3], found[4])


@jax.custom_jvp
def _moduli(matrices: Matrices, delay: Array) -> Float[Array, " m"]:
    return _looked(matrices, delay)[0]


@_moduli.defjvp
def _(primals, tangents):
    found, slopes = _looked(*primals)
    changes = [jnp.tensordot(x, d, 2) for x, d in zip(slopes, tangents[0], strict=True)]
    return found, jnp.sum(jnp.stack(changes), 0)


@eqx.filter_jit
def _sent(system: System, y: State, t: Array, signals: tuple[str, ...]) -> dict:
    now = system.at(t, y).signals
    return {name: signal_of(now, name) for name in signals}


def _reached(
    A: Float[np.ndarray, "n n"], B: Float[np.ndarray, "n m"]
) -> Bool[np.ndarray, " n"]:
    """States that inputs move; others, such as those of references, are in no loop."""
    on = np.any(B != 0, 1)
    for _ in A:
        on |= np.any(A[:, on] != 0, 1)
    return on
