"""Differentiable dynamics for control and estimation."""

import os


# A batch that XLA hands to LAPACK holds a thread while others work on it. With as many
# threads as cores, a few such batches at once can wait for each other for ever.
os.environ.setdefault("PJRT_NPROC", str(max(32, os.cpu_count() or 1)))

from .export.c_source import export_c as export_c
from .io import (
    dh_initial_q as dh_initial_q,
    from_dh as from_dh,
    from_mjcf as from_mjcf,
    from_urdf as from_urdf,
    read_moordyn as read_moordyn,
)
from .multibody.dynamics import (
    bias_force as bias_force,
    forward_dynamics as forward_dynamics,
    inverse_dynamics as inverse_dynamics,
    mass_matrix as mass_matrix,
)
from .multibody.joints import (
    Cylindrical as Cylindrical,
    Fixed as Fixed,
    Free as Free,
    Planar as Planar,
    Prescribed as Prescribed,
    Prismatic as Prismatic,
    Revolute as Revolute,
    RollPitchYaw as RollPitchYaw,
    Spherical as Spherical,
    Universal as Universal,
)
from .multibody.kinematics import (
    World as World,
    forward_kinematics as forward_kinematics,
    frame_jacobian as frame_jacobian,
    frame_pose as frame_pose,
)
from .multibody.mechanism import Body as Body, Frame as Frame, Mechanism as Mechanism
from .multibody.point_contact_joints import (
    HollowCircle as HollowCircle,
    HollowSphere as HollowSphere,
    PlanarPointContact as PlanarPointContact,
    PointContact as PointContact,
)
from .multibody.spatial import (
    Pose as Pose,
    pose_rpy as pose_rpy,
    translation as translation,
)
from .parts.base import (
    AbstractPart as AbstractPart,
    AbstractSignalPart as AbstractSignalPart,
    Response as Response,
)
from .parts.loads import BodyLoads as BodyLoads, JointLoad as JointLoad, Load as Load
from .simulation.cosimulation import (
    CoSimulation as CoSimulation,
    CoSimulationState as CoSimulationState,
)
from .simulation.gradient_check import (
    check_gradient as check_gradient,
    gradient as gradient,
)
from .simulation.options import SimulationOptions as SimulationOptions
from .simulation.rollout import rollout as rollout
from .simulation.simulate import (
    SimulationError as SimulationError,
    simulate as simulate,
)
from .simulation.trajectory import (
    Trajectory as Trajectory,
    energy_balance as energy_balance,
    load_dataset as load_dataset,
)
from .system.equilibrium import (
    EquilibriumError as EquilibriumError,
    equilibrium as equilibrium,
)
from .system.instant import Instant as Instant, State as State
from .system.parameters import (
    FreeParameter as FreeParameter,
    get_parameters as get_parameters,
    parameters as parameters,
    with_parameters as with_parameters,
)
from .system.system import System as System
from .system.transforms import (
    Box as Box,
    Direction as Direction,
    PhysicalInertia as PhysicalInertia,
    Positive as Positive,
    PositiveDefinite as PositiveDefinite,
    Sigmoid as Sigmoid,
)
