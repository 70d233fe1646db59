"""Damping from how fast the peaks of a free vibration decay."""

import math


def damping_from_peaks(first: float, later: float, cycles: int) -> tuple[float, float]:
    r"""Return the logarithmic decrement and the damping ratio from two peaks.

    With amplitudes $x_0$ and $x_n$ that are $n$ cycles apart,

    $$\delta = \frac1n\ln\frac{x_0}{x_n},\qquad
      \zeta = \frac{\delta}{\sqrt{4\pi^2 + \delta^2}} .$$

    Amplitudes are measured from the mean, not from zero.
    """
    if not (first > 0 and later > 0):
        raise ValueError(f"amplitudes are positive, got {first:g} and {later:g}")
    if cycles < 1:
        raise ValueError(f"peaks are one cycle apart or more, not {cycles}")
    decrement = math.log(first / later) / cycles
    return decrement, decrement / math.hypot(2 * math.pi, decrement)
