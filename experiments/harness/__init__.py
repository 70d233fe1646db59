"""Harness of studies and benchmarks.

Read `study` first (stages, metrics and files of a run), then `energy` (energy residual
as a metric), `tables` (reference data), `tuning_report` (shared by tuning studies),
`tosses` and `toss_report` (shared by studies of tossed bodies), and `exudyn_peer` and
`moordyn_peer` (other programs).
"""
