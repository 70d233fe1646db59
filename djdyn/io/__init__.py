"""Machines from files: tables of Denavit-Hartenberg parameters, MJCF, URDF, MoorDyn.

Read in this order: `dh`; `mjcf` (the mechanism, with `unsupported`), `mjcf_draft`,
`mjcf_joints`, `mjcf_tendons`, `mjcf_actuators`, `mjcf_sensors`, `mjcf_contacts` and
`mjcf_system`; `urdf_tree`, `urdf_inertia` and `urdf`; `moordyn` (with `moordyn_rows`
and `moordyn_options`), `moordyn_system` (with `moordyn_bodies`, `moordyn_motions` and
`moordyn_water`);
`scenario_kinds`, `scenario_table`, `scenario` (a whole machine and its run as TOML);
`ship_ini` (with `ship_ini_machine`), which writes scenarios.
Files are data: nothing in them is executed.
"""

from .dh import DHLink as DHLink, dh_initial_q as dh_initial_q, from_dh as from_dh
from .mjcf import (
    from_mjcf as from_mjcf,
    from_mujoco as from_mujoco,
)
from .mjcf_system import (
    Keyframe as Keyframe,
    keyframes as keyframes,
    system_from_mjcf as system_from_mjcf,
    system_from_mujoco as system_from_mujoco,
)
from .moordyn import read_moordyn as read_moordyn
from .moordyn_system import from_moordyn as from_moordyn
from .ship_ini import read_ship_ini as read_ship_ini, ship_scenario as ship_scenario
from .urdf import from_urdf as from_urdf, system_from_urdf as system_from_urdf
