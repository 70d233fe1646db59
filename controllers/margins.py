"""How far a loop is from its edge: margins of gain and phase, where it is opened."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float

from djdyn import State, System

from .linear import matrices, signal_of


FREQUENCIES = np.logspace(-3, 4, 4001)  # rad/s


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


def _open_loops(
    system: System, y: State, signals: tuple[str, ...]
) -> list[Complex[np.ndarray, " f"]]:
    """Responses of the loop opened at each entry of signals, the others closed."""
    t = jnp.zeros((), y.v.dtype)
    # A signal that is given is read in place of what its part sends: an open loop.
    given = _sent(system, y, t, signals)
    (A, B), (C, D) = matrices(system, y, given, t, signals)
    A, B, C, D = (np.asarray(x) for x in (A, B, C, D))
    on = _reached(A, B)
    A, B, C = A[on][:, on], B[on], C[:, on]
    s = 1j * FREQUENCIES[:, None, None] * np.eye(len(A)) - A
    G = C @ np.linalg.solve(s, np.broadcast_to(B, (len(s), *B.shape))) + D
    return [-_closed(G, i) for i in range(len(D))]


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


def _closed(G: Complex[np.ndarray, "f m m"], i: int) -> Complex[np.ndarray, " f"]:
    """From entry `i` to itself, u = G u closed in the others."""
    o = np.arange(G.shape[1]) != i
    back = np.linalg.solve(np.eye(o.sum()) - G[:, o][:, :, o], G[:, o, i, None])
    return G[:, i, i] + (G[:, None, i, o] @ back)[:, 0, 0]
