"""Measurements of any kind: tables from files, in SI units, checked and resampled.

Read `table` (measured columns over time) and `readers` (files into tables), then
`units`, `faults` (spikes, stuck sensors and gaps) and `clocks` (delays, and files of
several recorders); `damping` is what peaks tell.
"""

from .clocks import (
    Alignment as Alignment,
    choose_lag as choose_lag,
    find_lag as find_lag,
    merge_tables as merge_tables,
)
from .damping import damping_from_peaks as damping_from_peaks
from .faults import (
    find_spikes as find_spikes,
    find_stuck as find_stuck,
    table_faults as table_faults,
)
from .readers import read_table as read_table
from .table import MeasurementTable as MeasurementTable
from .units import to_si as to_si
