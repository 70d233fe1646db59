"""Kinds of joints, loops, parts and functions that a scenario file may name."""

from collections.abc import Callable

from .. import cable, contact, hydraulics, parts
from ..marine import (
    allocation,
    current_grid,
    drag,
    hull,
    inertia_box,
    member,
    sea_bed,
    thruster,
    water,
    wave_field,
    waves,
    wind,
)
from ..multibody import (
    closures,
    curved_surfaces,
    joints,
    loop_joints,
    loop_surfaces,
    loops,
    point_contact_joints,
    time_functions,
)


JOINTS: dict[str, type] = {
    "fixed": joints.Fixed,
    "prescribed": joints.Prescribed,
    "revolute": joints.Revolute,
    "prismatic": joints.Prismatic,
    "cylindrical": joints.Cylindrical,
    "cartesian": joints.Cartesian,
    "universal": joints.Universal,
    "roll_pitch_yaw": joints.RollPitchYaw,
    "spherical": joints.Spherical,
    "planar": joints.Planar,
    "free": joints.Free,
    "point_contact": point_contact_joints.PointContact,
    "planar_point_contact": point_contact_joints.PlanarPointContact,
}


LOOP_JOINTS: dict[str, type] = {  # beside these, for loops alone
    "point_on_line": loop_joints.PointOnLine,
    "point_on_plane": loop_joints.PointOnPlane,
    "point_on_surface": loop_joints.PointOnSurface,
    "distance": loop_joints.Distance,
    "rolling_disc": loop_joints.RollingDisc,
}


COUPLINGS: dict[str, type] = {
    "linear": loops.LinearCoupling,
    "polynomial": loops.PolynomialCoupling,
}


CLOSURES: dict[str, type] = {  # ways to keep loops closed
    "projection": closures.Projection,
    "multipliers": closures.Multipliers,
    "penalty": closures.Penalty,
    "augmented_lagrangian": closures.AugmentedLagrangian,
    "elimination": closures.Elimination,
}


LOOP_SURFACES: dict[str, Callable] = {"Quadric": loop_surfaces.Quadric}


PARTS: tuple[type, ...] = (
    parts.SpringDamper,
    parts.JointSpring,
    parts.JointFriction,
    parts.StribeckFriction,
    parts.GearFriction,
    parts.JointStop,
    parts.JointActuator,
    parts.JointForce,
    parts.ExternalWrench,
    parts.FrameActuator,
    parts.Actuator,
    parts.TendonSpring,
    parts.TendonStop,
    parts.GravityCompensation,
    parts.FrameSensor,
    parts.PoseSensor,
    parts.MotionSensor,
    parts.SignalSensor,
    parts.TransmissionSensor,
    parts.Winch,
    parts.Grip,
    parts.Support,
    parts.PointContactFriction,
    water.Buoyancy,
    water.Drag,
    drag.BodyDamping,
    drag.WaveForce,
    drag.StripDrag,
    hull.Hydrostatics,
    thruster.Thrusters,
    allocation.ThrustAllocation,
    inertia_box.InertiaBoxDrag,
    member.MorisonMember,
    cable.Cable,
    cable.Sheave,
    hydraulics.Circuit,
    contact.Contact,
    contact.VolumeContact,
    contact.ContactGroup,
    contact.RigidContact,
)


FUNCTIONS: dict[str, Callable] = {  # what may stand in a field of a part or joint
    f.__name__: f
    for f in (
        time_functions.Constant,
        time_functions.Harmonic,
        time_functions.HarmonicSum,
        waves.jonswap,
        time_functions.Interpolated,
        time_functions.Moves,
        time_functions.DeckMotion,
        time_functions.SteadyMotion,
        time_functions.Heave,
        time_functions.GuidedMotion,
        water.Fluid,
        current_grid.CurrentGrid,
        wave_field.LinearWaves,
        wave_field.regular_waves,
        wave_field.irregular_waves,
        wave_field.pierson_moskowitz,
        hull.ResponseMotion,
        wind.Wind,
        wind.kaimal_gusts,
        sea_bed.SeaBed,
        allocation.ThrusterLayout,
        allocation.Allocation,
        thruster.ShaftAndDuct,
        thruster.FirstOrderThrust,
        thruster.QuadraticThrust,
        thruster.ThrottleCurve,
        cable.CableProperties,
        cable.FreeEnd,
        cable.FixedEnd,
        cable.DrivenEnd,
        cable.PinnedEnd,
        cable.ClampedEnd,
        cable.PointMass,
        cable.PointForce,
        cable.graded,
    )
}


SURFACES: dict[str, Callable] = {  # what the ball of a point contact touches
    kind.__name__: kind
    for kind in (
        point_contact_joints.HollowSphere,
        point_contact_joints.HollowCircle,
        curved_surfaces.Ellipsoid,
        curved_surfaces.Torus,
        curved_surfaces.HeightSurface,
        curved_surfaces.PolynomialHeight,
    )
}


ACTUATING: dict[str, Callable] = {  # what stands inside of an actuator or a tendon
    kind.__name__: kind
    for kind in (
        parts.JointTransmission,
        parts.FrameTransmission,
        parts.MotorLaw,
        parts.PositionLaw,
        parts.VelocityLaw,
        parts.AffineLaw,
    )
}


HYDRAULIC: dict[str, Callable] = {  # what stands inside of a circuit
    kind.__name__: kind
    for kind in (
        hydraulics.Oil,
        hydraulics.Supply,
        hydraulics.Tank,
        hydraulics.Volume,
        hydraulics.Accumulator,
        hydraulics.Orifice,
        hydraulics.MeteringEdge,
        hydraulics.Leakage,
        hydraulics.CheckValve,
        hydraulics.ReliefValve,
        hydraulics.Counterbalance,
        hydraulics.ServoValve,
        hydraulics.Pump,
        hydraulics.Pipe,
        hydraulics.Motor,
        hydraulics.HydraulicCylinder,
        hydraulics.EndStop,
        hydraulics.BetweenFrames,
        hydraulics.OnJoint,
        hydraulics.Triangle,
        hydraulics.SealStribeck,
        hydraulics.Efficiency,
        hydraulics.SealLuGre,
    )
}


INNER = (
    FUNCTIONS | SURFACES | LOOP_SURFACES | ACTUATING | HYDRAULIC
)  # inside of a part or joint


CONTACTS = {  # parts whose fields hold what is in TOUCHING
    contact.Contact,
    contact.VolumeContact,
    contact.ContactGroup,
    contact.RigidContact,
}


TOUCHING: dict[str, Callable] = {  # what stands inside of a contact
    kind.__name__: kind
    for kind in (
        contact.Sphere,
        contact.Capsule,
        contact.Cylinder,
        contact.Cuboid,
        contact.Polyhedron,
        contact.HalfSpace,
        contact.Bowl,
        contact.HeightField,
        contact.KelvinVoigt,
        contact.HuntCrossley,
        contact.Coulomb,
        contact.Stribeck,
        contact.Karnopp,
        contact.LuGre,
        contact.ElasticFoundation,
    )
}
