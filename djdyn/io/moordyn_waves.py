"""Waves of a MoorDyn deck, from the files that its option `WaveKin` stands for.

MoorDyn sums linear waves with Wheeler's stretching, as `LinearWaves` does. On grids
(`WaveKin` 2 and 3) it interpolates between points and instants; here nothing is.
"""

import numpy as np
from jaxtyping import Complex, Float

from ..marine.wave_field import LinearWaves
from .moordyn import Deck
from .moordyn_files import find_file, read_rows


SPECTRUM, ELEVATION = "wave_frequencies.txt", "wave_elevation.txt"
WAVE_MODES = {2: SPECTRUM, 3: ELEVATION, 7: SPECTRUM}
HIGHEST = 2 * np.pi * 0.5  # rad/s: MoorDyn leaves out what is faster in a record
NEGLIGIBLE = 1e-9  # share of the largest amplitude
MAX_COMPONENTS = 100_000


def deck_waves(deck: Deck) -> tuple[LinearWaves | None, float]:
    """Return the waves of a deck, if it has any, and the mean height of its surface."""
    if deck.waves not in WAVE_MODES:
        return None, 0.0
    if deck.waves == 3:
        frequency, amplitude = _of_elevation(deck)
        direction = np.zeros(len(frequency))
    else:
        frequency, amplitude, direction = _of_spectrum(deck)
        if deck.waves == 7:  # a sum of sines, not of cosines
            amplitude = amplitude * np.exp(-0.5j * np.pi)
    mean = float(amplitude[0].real)  # the first frequency is zero
    size = np.abs(amplitude)
    kept = (frequency > 0) & (size > NEGLIGIBLE * size.max(initial=0.0))
    if not kept.any():
        return None, mean
    waves = LinearWaves(
        size[kept], frequency[kept], np.angle(amplitude[kept]), direction[kept],
        deck.depth, deck.gravity,
    )  # fmt: skip
    return waves, mean


def _of_spectrum(
    deck: Deck,
) -> tuple[Float[np.ndarray, " k"], Complex[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return frequencies, complex amplitudes and directions of a file of components."""
    file = find_file(deck, SPECTRUM)
    rows = read_rows(file, 0)
    if any(len(row) not in (3, 4) for row in rows) or len(rows) < 2:
        raise ValueError(
            f"{SPECTRUM}: two rows or more have a frequency, the real and the "
            "imaginary part of an amplitude, and perhaps a direction"
        )
    table = np.array([[*row, 0.0][:4] for row in rows])
    frequency, amplitude = table[:, 0], table[:, 1] + 1j * table[:, 2]
    if np.any(np.diff(frequency) <= 0) or frequency[0] != 0:
        raise ValueError(f"{SPECTRUM}: frequencies must increase, from zero")
    if np.any(np.abs(table[:, 3]) > 2 * np.pi):
        raise ValueError(f"{SPECTRUM}: directions are in radians, within two pi")
    if deck.waves == 7:
        return frequency, amplitude, table[:, 3]
    step = float(np.min(np.diff(frequency)))
    count = int(np.floor(frequency[-1] / step + 1e-9)) + 1
    if count > MAX_COMPONENTS:
        raise ValueError(f"{SPECTRUM}: {count} components are too many")
    even = step * np.arange(count)
    between = lambda x: np.interp(even, frequency, x)
    complex_ = between(amplitude.real) + 1j * between(amplitude.imag)
    complex_[[0, -1]] /= 2  # the ends of a Fourier transform count once
    return even, complex_, between(table[:, 3])


def _of_elevation(
    deck: Deck,
) -> tuple[Float[np.ndarray, " k"], Complex[np.ndarray, " k"]]:
    """Return frequencies and complex amplitudes of a record; the first is its mean."""
    rows = read_rows(find_file(deck, ELEVATION), 0)
    if any(len(row) < 2 for row in rows) or len(rows) < 4:
        raise ValueError(f"{ELEVATION}: four rows or more have a time and a height")
    t, height = np.array([row[:2] for row in rows]).T
    if np.any(np.diff(t) <= 0) or t[0] != 0:
        raise ValueError(f"{ELEVATION}: times must increase, from zero")
    count = int(np.floor(t[-1] / deck.wave_step)) + 1
    count -= count % 2
    if not 4 <= count <= 2 * MAX_COMPONENTS:
        raise ValueError(
            f"{ELEVATION}: {t[-1]:g} s are {count} steps of dtWave, "
            f"{deck.wave_step:g} s; from 4 to {2 * MAX_COMPONENTS} are possible"
        )
    times = deck.wave_step * np.arange(count)
    found = np.fft.rfft(np.interp(times, t, height)) / (count / 2)
    found[0] /= 2
    found[-1] /= 2
    frequency = 2 * np.pi / (count * deck.wave_step) * np.arange(len(found))
    found[frequency > HIGHEST] = 0.0
    return frequency, found
