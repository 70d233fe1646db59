"""The winch's cases with the line as one spring: two masses of equations by hand."""

import numpy as np
from scipy.integrate import solve_ivp

from .model import DENSITY, EA, GRAVITY, LENGTH, PAYLOAD, SAMPLE, SWING


LINE = DENSITY * LENGTH  # kg
FILTER, GAIN = 0.05, 50.0  # s, 1/s, of the controller's derivative and of the drive


def bounce(damping: float, t: np.ndarray, with_line: bool = True) -> np.ndarray:
    """Speed of the payload (V8) under a drum at sin(wt) m/s.

    A third of the line moves with the payload, or none.
    """
    mass = PAYLOAD + with_line * LINE / 3

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
    """Error of the tension (V6, V7) at the drum, from rest.

    `order` is the mean and the amplitude of the set point, `push` that of the load.
    The line's other masses hang on the drum.
    """
    mass, carried = PAYLOAD + LINE / 3, LINE * 2 / 3 * GRAVITY

    def error(t, y):
        z, v, length, u = y[:4]
        strain_rate = -v / length + z * u / length**2
        pull = EA * (-z / length - 1) + damping * strain_rate
        hung = carried * length / LENGTH  # what is reeled in hangs no more
        wanted = order[0] + order[1] * np.sin(SWING * t)
        return pull, pull + hung - wanted

    def rate(t: float, y: np.ndarray) -> list[float]:
        pull, e = error(t, y)
        slope = (e - y[5]) / FILTER
        set_rate = SAMPLE["kp"] * e + y[4] + SAMPLE["kd"] * slope
        a = np.clip(GAIN * (set_rate - y[3]), -3.0, 3.0)
        force = pull + push * np.sin(SWING * t)
        return [y[1], force / mass - GRAVITY, y[3], a, SAMPLE["ki"] * e, slope]

    start = [-LENGTH * (1 + mass * GRAVITY / EA), 0.0, LENGTH, 0.0, 0.0, 0.0]
    y = _solve(rate, start, t)
    return error(t, y)[1]


def runaway(kp: float, ki: float, kd: float) -> float:
    r"""Growth, 1/s, of a winch that holds the tension of a line with weight.

    What is let out weighs more, and asks for more: $s\,\delta L$ is the drive's answer
    to $\delta T = (\rho g - M s^2)\,\delta L$, with $M$ the payload and its line as one
    mass. So no gains have a real root above $\sqrt{\rho g/M}$.
    """
    lag, late = np.array([1 / GAIN, 1.0]), np.array([FILTER, 1.0])
    pid = np.polyadd(np.polymul([kp, ki], late), [kd, 0.0, 0.0])
    weight = [-(PAYLOAD + LINE), 0.0, DENSITY * GRAVITY]
    left = np.polymul(np.polymul([1.0, 0.0, 0.0], lag), late)
    roots = np.roots(np.polysub(left, np.polymul(pid, weight)))
    return float(np.max(np.real(roots)))


def _solve(rate, start: list[float], t: np.ndarray) -> np.ndarray:
    how = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-10, "t_eval": t}
    return solve_ivp(rate, (t[0], t[-1]), start, **how).y
