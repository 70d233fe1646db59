"""What a scenario file may name beside the parts of djdyn."""

import controllers


KINDS = (
    controllers.JointPID,
    controllers.Reference,
    controllers.WinchPID,
    controllers.Joystick,
    controllers.ReferenceModel,
    controllers.PDGravity,
    controllers.ComputedTorque,
    controllers.Backstepping,
    controllers.SecondOrderReference,
    controllers.VehiclePID,
    controllers.ArmPID,
    controllers.EndEffectorControl,
    controllers.multisine,
)
