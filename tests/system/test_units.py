"""Units of signals: of joints, of parts that declare them, and of those that do not."""

import jax.numpy as jnp

import djdyn
from controllers import JointPID, Reference, WinchPID, multisine
from djdyn.hydraulics import Circuit, Leakage, Oil, Supply, Volume
from djdyn.multibody.time_functions import Constant
from djdyn.parts import FrameSensor, JointSpring
from djdyn.system.units import signal_unit


class Silent(djdyn.AbstractSignalPart):
    """A user's part that declares no units."""

    def initial_state(self):
        return {}

    def __call__(self, t, state, world, signals):
        return djdyn.Response(state, outputs={"said": t})


def machine() -> djdyn.System:
    bodies = (
        djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), 1.0),
        djdyn.Body("arm", "slide", djdyn.Revolute((0, 1, 0)), 1.0, I_BC=jnp.eye(3)),
        djdyn.Body("ball", "arm", djdyn.Spherical(), 1.0, I_BC=jnp.eye(3)),
        djdyn.Body("buoy", "world", djdyn.Free(), 1.0, I_BC=jnp.eye(3)),
    )
    nodes = {
        "P": Supply(1e5),
        "A": Volume(volume=1e-3),
        "leak": Leakage("P", "A", 1e-12),
    }
    parts = {
        "target": Reference(Constant(0.5)),
        "push": JointPID(("slide",), "target.value", 1.0),
        "turn": JointPID(("arm",), "target.value", 1.0, mode="velocity"),
        "both": JointPID(("slide", "arm"), "two", 1.0),
        "spring": JointSpring("arm", 1.0),
        "eye": FrameSensor("arm"),
        "noise": multisine("eye.height", "eye.climb", deviation=0.01),
        "hold": WinchPID("noise.value", "target.value", 1.0),
        "oil": Circuit(Oil(), nodes),
        "silent": Silent(),
    }
    return djdyn.System(djdyn.Mechanism(bodies), parts, {"two": jnp.zeros(2)})


def test_signals_have_units():
    system, units = machine(), {
        "slide.q": "m", "arm.v": "rad/s", "ball.q": "1", "ball.v": "rad/s",
        "push.u": "N", "push.error": "m", "turn.u": "N m", "turn.error": "rad/s",
        "both.u": "", "buoy.q": "", "spring.force": "N m", "eye.climb": "m/s",
        "noise.value": "m", "noise.rate": "m/s", "hold.error": "m", "hold.u": "m/s",
        "oil.A.bar": "bar", "oil.leak.flow": "m^3/s", "silent.said": "", "two": "",
        "target.value": "",
    }  # fmt: skip
    assert {name: signal_unit(system, name) for name in units} == units
