"""Differentiable dynamics for control and estimation.

Build a machine
    `Mechanism`, `Body`, `Frame`, joints (`Revolute`, `Prismatic`, ..., `PointContact`),
    `translation`, `pose_rpy`; or read one: `system_from_mjcf`, `system_from_urdf`,
    `from_mjcf`, `from_urdf`, `from_dh`, `from_moordyn`. `System` joins it with parts
    from `djdyn.parts`, `djdyn.cable`, `djdyn.contact`, `djdyn.hydraulics`,
    `djdyn.marine`.
Close its loops
    `Loop`, `LinearCoupling`, `PolynomialCoupling`; `PointOnLine`, `PointOnPlane`,
    `PointOnSurface`, `Distance`, `RollingDisc`; kept closed by `Projection`,
    `Multipliers`, `Penalty`, `AugmentedLagrangian`, `Elimination`; `assemble`,
    `degrees_of_freedom`.
Move it by functions of time
    `Constant`, `Harmonic`, `HarmonicSum`, `Interpolated`, `Moves`; motions of a
    `Prescribed` joint: `DeckMotion`, `SteadyMotion`, `Heave`, `GuidedMotion`.
Ask it something
    `forward_dynamics`, `inverse_dynamics`, `mass_matrix`, `bias_force`,
    `forward_kinematics`, `frame_pose`, `frame_jacobian`, `equilibrium`.
Let it run
    `simulate`, `rollout`, `SimulationOptions`, `Trajectory`, `energy_balance`,
    `save_state`, `load_state`, `CoSimulation`, `export_c`.
Differentiate it
    `parameters`, `get_parameters`, `with_parameters`, `FreeParameter` and its
    transforms, `gradient`, `check_gradient`.
Extend it
    `AbstractPart` and its kin, `Response`, `Load`, `JointLoad`, `BodyLoads`, `Inertia`,
    `AbstractConstraint`, `AbstractJoint`, `Signals`, `Instant`, `si`, `optional`,
    `Scalar`, `Vec3`, ...

Importing this package sets the environment variable `PJRT_NPROC` if it is not set, and
has no other effect: see below.
"""

import importlib.metadata
import os


# A batch that XLA hands to LAPACK holds a thread while others work on it. With as many
# threads as cores, a few such batches at once can wait for each other for ever.
os.environ.setdefault("PJRT_NPROC", str(max(32, os.cpu_count() or 1)))

from .export.c_source import export_c as export_c
from .io import (
    DHLink as DHLink,
    dh_initial_q as dh_initial_q,
    from_dh as from_dh,
    from_mjcf as from_mjcf,
    from_moordyn as from_moordyn,
    from_urdf as from_urdf,
    keyframes as keyframes,
    read_moordyn as read_moordyn,
    system_from_mjcf as system_from_mjcf,
    system_from_urdf as system_from_urdf,
)
from .multibody.assembly import (
    AssemblyError as AssemblyError,
    assemble as assemble,
    degrees_of_freedom as degrees_of_freedom,
)
from .multibody.closures import (
    AbstractClosure as AbstractClosure,
    AugmentedLagrangian as AugmentedLagrangian,
    Elimination as Elimination,
    Multipliers as Multipliers,
    Penalty as Penalty,
    Projection as Projection,
)
from .multibody.constraints import AbstractConstraint as AbstractConstraint
from .multibody.curved_surfaces import (
    Ellipsoid as Ellipsoid,
    HeightSurface as HeightSurface,
    PolynomialHeight as PolynomialHeight,
    Torus as Torus,
)
from .multibody.dynamics import (
    bias_force as bias_force,
    forward_dynamics as forward_dynamics,
    inverse_dynamics as inverse_dynamics,
    mass_matrix as mass_matrix,
)
from .multibody.joints import (
    AbstractJoint as AbstractJoint,
    AbstractVectorJoint as AbstractVectorJoint,
    Cartesian as Cartesian,
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
from .multibody.loop_joints import (
    AbstractLoopJoint as AbstractLoopJoint,
    Distance as Distance,
    PointOnLine as PointOnLine,
    PointOnPlane as PointOnPlane,
    PointOnSurface as PointOnSurface,
    RollingDisc as RollingDisc,
)
from .multibody.loop_surfaces import Quadric as Quadric
from .multibody.loops import (
    AbstractCoupling as AbstractCoupling,
    LinearCoupling as LinearCoupling,
    Loop as Loop,
    PolynomialCoupling as PolynomialCoupling,
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
from .multibody.time_functions import (
    Constant as Constant,
    DeckMotion as DeckMotion,
    GuidedMotion as GuidedMotion,
    Harmonic as Harmonic,
    HarmonicSum as HarmonicSum,
    Heave as Heave,
    Interpolated as Interpolated,
    Moves as Moves,
    SteadyMotion as SteadyMotion,
)
from .parts.base import (
    AbstractDrive as AbstractDrive,
    AbstractIdealPart as AbstractIdealPart,
    AbstractPart as AbstractPart,
    AbstractPassivePart as AbstractPassivePart,
    AbstractPlacedPart as AbstractPlacedPart,
    AbstractSignalPart as AbstractSignalPart,
    Response as Response,
    Signals as Signals,
)
from .parts.loads import (
    BodyLoads as BodyLoads,
    Inertia as Inertia,
    JointLoad as JointLoad,
    Load as Load,
)
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
from .simulation.saved_state import load_state as load_state, save_state as save_state
from .simulation.series import load_dataset as load_dataset
from .simulation.simulate import (
    SimulationError as SimulationError,
    simulate as simulate,
)
from .simulation.trajectory import (
    Trajectory as Trajectory,
    energy_balance as energy_balance,
)
from .system.equilibrium import (
    EquilibriumError as EquilibriumError,
    equilibrium as equilibrium,
)
from .system.instant import Instant as Instant
from .system.parameters import (
    FreeParameter as FreeParameter,
    get_parameters as get_parameters,
    parameters as parameters,
    with_parameters as with_parameters,
)
from .system.signals import SignalError as SignalError
from .system.state import State as State
from .system.system import System as System
from .system.transforms import (
    AbstractTransform as AbstractTransform,
    Box as Box,
    Direction as Direction,
    PhysicalInertia as PhysicalInertia,
    Positive as Positive,
    PositiveDefinite as PositiveDefinite,
    Sigmoid as Sigmoid,
)
from .typing import (
    Mat3 as Mat3,
    Mat6 as Mat6,
    Quat as Quat,
    Scalar as Scalar,
    Vec3 as Vec3,
    Vec6 as Vec6,
    optional as optional,
    si as si,
)


__version__ = importlib.metadata.version("djdyn")
