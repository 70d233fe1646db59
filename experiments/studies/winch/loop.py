"""Independent models of the winch cases, with the line as one spring."""

import numpy as np
from scipy.integrate import solve_ivp

from .model import DENSITY, EA, GRAVITY, LENGTH, PAYLOAD, REPORT_GAINS, SWING


LINE_MASS = DENSITY * LENGTH  # kg
FILTER, GAIN = 0.05, 50.0  # s, derivative filter of the controller; 1/s, drive


def bounce(damping: float, t: np.ndarray, with_line: bool = True) -> np.ndarray:
    """Return the speed of a payload under a drum that pays out at sin(wt) m/s.

    A third of the line's mass is added to the payload, or none.
    """
    mass = PAYLOAD + with_line * LINE_MASS / 3

    def rate(t: float, y: np.ndarray) -> list[float]:
        far, fed = -y[0], np.sin(SWING * t)
        length = LENGTH + (1 - np.cos(SWING * t)) / SWING
        strain_rate = -y[1] / length - far * fed / length**2
        tension = EA * (far / length - 1) + damping * strain_rate
        return [y[1], tension / mass - GRAVITY]

    start = [-LENGTH * (1 + mass * GRAVITY / EA), 0.0]
    return _solve(rate, start, t)[1]


def tension_error(
    order: tuple[float, float], push: float, damping: float, t: np.ndarray
) -> np.ndarray:
    """Return the error of the tension at the drum, from rest.

    `order` is the mean and the amplitude of the set point, `push` the amplitude of the
    load. The drum carries the remaining mass of the line.
    """
    mass, carried = PAYLOAD + LINE_MASS / 3, LINE_MASS * 2 / 3 * GRAVITY

    def error(t, y):
        z, v, length, u = y[:4]
        strain_rate = -v / length + z * u / length**2
        pull = EA * (-z / length - 1) + damping * strain_rate
        hung = carried * length / LENGTH  # line on the drum no longer hangs
        wanted = order[0] + order[1] * np.sin(SWING * t)
        return pull, pull + hung - wanted

    def rate(t: float, y: np.ndarray) -> list[float]:
        pull, e = error(t, y)
        slope = (e - y[5]) / FILTER
        set_rate = REPORT_GAINS["kp"] * e + y[4] + REPORT_GAINS["kd"] * slope
        a = np.clip(GAIN * (set_rate - y[3]), -3.0, 3.0)
        force = pull + push * np.sin(SWING * t)
        return [y[1], force / mass - GRAVITY, y[3], a, REPORT_GAINS["ki"] * e, slope]

    start = [-LENGTH * (1 + mass * GRAVITY / EA), 0.0, LENGTH, 0.0, 0.0, 0.0]
    y = _solve(rate, start, t)
    return error(t, y)[1]


def unstable_root(kp: float, ki: float, kd: float) -> float:
    r"""Return the unstable root, 1/s, of a winch that holds a tension.

    More line weighs more, so the controller pays out more: the drive makes
    $s\,\delta L$ of $\delta T = (\rho g - M s^2)\,\delta L$, with $M$ the mass of
    payload and line. For any gains, no real root lies above $\sqrt{\rho g/M}$.
    """
    lag, late = np.array([1 / GAIN, 1.0]), np.array([FILTER, 1.0])
    pid = np.polyadd(np.polymul([kp, ki], late), [kd, 0.0, 0.0])
    weight = [-(PAYLOAD + LINE_MASS), 0.0, DENSITY * GRAVITY]
    left = np.polymul(np.polymul([1.0, 0.0, 0.0], lag), late)
    roots = np.roots(np.polysub(left, np.polymul(pid, weight)))
    return float(np.max(np.real(roots)))


def _solve(rate, start: list[float], t: np.ndarray) -> np.ndarray:
    how = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-10, "t_eval": t}
    return solve_ivp(rate, (t[0], t[-1]), start, **how).y
