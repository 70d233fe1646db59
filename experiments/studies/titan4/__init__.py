"""Titan 4: a hydraulic arm under backstepping control (Rokseth 2014).

Read `study`, then `model` (arm, circuit and controller), `operator_inputs`, `fixtures`
(single states), `rig` (one actuator), `tracking`, `realtime`; for the tuning
`conditions`, `loop`, `tuning` and `validation`; and `scene`.
"""
