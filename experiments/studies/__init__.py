"""Studies: each runs with `djdyn run NAME` and writes metrics, series and a report.

A study is a folder whose `study.py` has `TITLE`, `STAGES` and `run(study)`; where the
user can set parameters, it also has `build()`. Start with `crane` (a small one) or
`boom_crane`. Published cases: `boom_crane`, `cable`, `contact`, `crane`, `flexible`,
`hydraulic_boom`, `launch`, `optotrak`, `titan4`, `winch`. Tuning and planning:
`swing_up`, `tune_boom`, `tune_crane`, `titan4`, `winch`. Identification: `arm_id`,
`bounce_id`, `cube_toss`, `flexible`, `hydraulic_boom`, `optotrak`.
"""
