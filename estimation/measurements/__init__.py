"""Measurements of any kind: tables from files, in SI units, checked and resampled.

Read `table` (measured columns over time) and `readers` (files into tables), then
`units` and `faults` (spikes, stuck sensors, gaps and clocks); `damping` is what peaks
tell.
"""

from .damping import damping_from_peaks as damping_from_peaks
from .faults import (
    find_spikes as find_spikes,
    find_stuck as find_stuck,
    table_faults as table_faults,
)
from .readers import read_table as read_table
from .table import MeasurementTable as MeasurementTable
from .units import to_si as to_si
