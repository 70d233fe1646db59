"""Machines from files: tables of Denavit-Hartenberg parameters, MJCF, URDF, MoorDyn.

Read in this order: `dh`, `mjcf` (with `unsupported`), `moordyn` and `moordyn_system`,
`scenario_kinds`, `scenario_table`, `scenario` (a whole machine and its run as TOML).
Files are data: nothing in them is executed.
"""

from .dh import DHLink as DHLink, dh_initial_q as dh_initial_q, from_dh as from_dh
from .mjcf import (
    from_mjcf as from_mjcf,
    from_mujoco as from_mujoco,
    from_urdf as from_urdf,
)
from .moordyn import read_moordyn as read_moordyn
from .moordyn_system import from_moordyn as from_moordyn
