"""Differentiable dynamics for control and estimation."""

from .dynamics import (
    bias_force as bias_force,
    forward_dynamics as forward_dynamics,
    inverse_dynamics as inverse_dynamics,
    mass_matrix as mass_matrix,
)
from .joints import (
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
from .kinematics import (
    World as World,
    frame_jacobian as frame_jacobian,
    frame_pose as frame_pose,
    look as look,
)
from .mechanism import Body as Body, Frame as Frame, Mechanism as Mechanism
from .spatial import Pose as Pose
