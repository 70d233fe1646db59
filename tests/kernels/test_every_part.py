"""Every joint, part, controller and function of time: kernels against XLA."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import (
    ArmPID,
    Backstepping,
    ComputedTorque,
    EndEffectorControl,
    JointPID,
    Joystick,
    Noisy,
    PDGravity,
    Reference,
    ReferenceModel,
    SecondOrderReference,
    VehiclePID,
    WinchPID,
)
from djdyn.cable import Cable, CableProperties, ClampedEnd, FreeEnd, PinnedEnd, Sheave
from djdyn.contact import (
    Contact,
    ContactGroup,
    Coulomb as Surface,
    Cuboid,
    ElasticFoundation,
    HalfSpace,
    KelvinVoigt,
    LuGre as Bristles,
    Polyhedron,
    RigidContact,
    Sphere as Ball,
    VolumeContact,
)
from djdyn.hydraulics import (
    Circuit,
    EndStop,
    HydraulicCylinder,
    Motor,
    Oil,
    OnJoint,
    SealLuGre,
    ServoValve,
    Supply,
    Tank,
    Triangle,
    Volume,
)
from djdyn.marine.allocation import Allocation, ThrustAllocation, ThrusterLayout
from djdyn.marine.drag import BodyDamping, StripDrag, WaveForce
from djdyn.marine.hull import Hydrostatics
from djdyn.marine.inertia_box import InertiaBoxDrag
from djdyn.marine.member import MorisonMember
from djdyn.marine.sea_bed import SeaBed
from djdyn.marine.thruster import (
    FirstOrderThrust,
    QuadraticThrust,
    ShaftAndDuct,
    ThrottleCurve,
    Thrusters,
)
from djdyn.marine.water import Buoyancy, Drag, Fluid
from djdyn.marine.wave_field import irregular_waves
from djdyn.marine.waves import jonswap
from djdyn.marine.wind import Wind, kaimal_gusts
from djdyn.multibody.flexible import Beam, FlexibleBody, Piece, Rectangle
from djdyn.multibody.joints import AbstractJoint
from djdyn.multibody.time_functions import (
    AbstractTimeFunction,
    Constant,
    DeckMotion,
    Harmonic,
    Interpolated,
    Moves,
)
from djdyn.parts import (
    Actuator,
    ExternalWrench,
    FrameActuator,
    FrameSensor,
    FrameTransmission,
    GearFriction,
    GravityCompensation,
    Grip,
    JointActuator,
    JointForce,
    JointFriction,
    JointSpring,
    JointStop,
    JointTransmission,
    MotionSensor,
    MotorLaw,
    PointContactFriction,
    PoseSensor,
    PositionLaw,
    SignalSensor,
    SpringDamper,
    StribeckFriction,
    Support,
    TendonSpring,
    TendonStop,
    TransmissionSensor,
    Winch,
)
from djdyn.parts.base import AbstractPart

from ..multibody.trees import random_inertia, random_pose, random_q
from ..test_structure import modules


pytestmark = pytest.mark.filterwarnings("error")  # such as of what kernels do not know

DECK = DeckMotion([0.1, 0.2, 0.3, 0.1, 0.2, 0.3], [1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
JOINTS = {  # each on its parent
    "deck": ("world", djdyn.Prescribed(DECK)),
    "cart": ("deck", djdyn.Prismatic((1, 0, 0))),
    "arm": ("cart", djdyn.Revolute((0, 1, 0))),
    "tool": ("arm", djdyn.Fixed()),
    "screw": ("arm", djdyn.Cylindrical((0, 1, 1))),
    "ball": ("screw", djdyn.Spherical()),
    "cross": ("cart", djdyn.Universal()),
    "gimbal": ("deck", djdyn.RollPitchYaw()),
    "puck": ("world", djdyn.Planar()),
    "stylus": ("world", djdyn.PointContact(djdyn.HollowSphere(0.9), 0.2)),
    "disc": ("deck", djdyn.PlanarPointContact(djdyn.HollowCircle(0.9), 0.2)),
    "buoy": ("world", djdyn.Free()),
    "knot": ("world", djdyn.Cartesian()),
}
WATER = Fluid(2.0, [-1.0, 2.0], [[0.2, 0, 0], [0.5, 0.1, 0]], surface=0.1)
TETHER = CableProperties(
    0.3, 50.0, EI=0.1, diameter=0.02, normal_drag=1.0, added_mass=1.0
)
SOFT = Circuit(  # so soft that explicit steps will do
    Oil(bulk_modulus=1e7, air=0.01, exponent=1.2),
    {
        "P": Supply(4e5),
        "T": Tank(),
        "A": Volume(1e-2, 2e5, 1e-2, 1e7),
        "B": Volume(1e-2, 1e5),
        "valve": ServoValve("P", "T", "A", "B", "pid.u", 1e-7, 5.0, spool="lag"),
        "motor": Motor("A", "B", "arm", 1e-5),
        "ram": HydraulicCylinder(
            "A", "B", OnJoint("cart"), 1e-4, 1e-4, 9.0, -4.0,
            SealLuGre(1e3, 2.0, 3.0, 4.0, 1.0, width=1e-2), EndStop(1e3, 10.0),
        ),
    },
)  # fmt: skip
BAND = JointTransmission(("cart", "arm"), (0.3, 0.4))
PARTS = {
    "oil": SOFT,
    "guide": Joystick("noise.value", 0.3, [0.1], -1.0, 1.0),
    "model": ReferenceModel("guide.target", [0.1], 9.0, 1.0, 0.2),
    "path": Reference(Moves([0.0], [[0.4], [-0.2]], [0.0, 0.1], [0.1, 0.3])),
    "pid": JointPID("arm", "path.value", 9.0, 3.0, 4.0, rate="path.rate", limit=2.0),
    "noise": Noisy("path.value", "path.rate", 0.01, [3.0, 50.0], [[0.1], [2.0]]),
    "speed": Reference(Interpolated([0.0, 0.05, 0.3], [[0.1], [0.4], [0.2]])),
    "drive": JointPID("cart", "speed.value", 9.0, 0.3, 4.0, mode="velocity"),
    "servo": Actuator(
        BAND, "wire.value", PositionLaw(2.0, 0.3), (-1.0, 1.0), (-3.0, 3.0)
    ),
    "rotor": Actuator(
        FrameTransmission("tool", [0.1, 0, 0.2, 0, 0, 1]),
        "length.length",
        MotorLaw(0.3),
        integrates=True,
        state_range=(-1.0, 1.0),
    ),
    "band": TendonSpring(BAND, 3.0, 0.2, 0.1, 0.1, 0.1, 0.5, corner=0.01),
    "end": TendonStop(BAND, -0.1, 0.1, 3.0, 0.2, 0.1),
    "length": TransmissionSensor(BAND),
    "wire": SignalSensor("sensor.climb"),
    "pose": PoseSensor("tool", "gyro"),
    "shake": MotionSensor("tool", "accelerometer"),
    "float": GravityCompensation(("arm", "ball"), 0.4),
    "box": InertiaBoxDrag("buoy", [0.1, 0.2, 0.3], 3.0, 0.2, [0.4, 0.3, 0.1]),
    "motors": JointActuator(("arm",), "pid.u"),
    "winch": JointActuator(("cart",), "drive.u"),
    "line": SpringDamper("tool", "buoy", 50.0, 3.0, 0.7),
    "cubic": SpringDamper("world", "ball", 50.0, 3.0, 0.2, exponent=3, mass=0.3),
    "spring": JointSpring("cart", 20.0, 0.5, 0.1, exponent=3),
    "friction": JointFriction("cross", 0.4, 2.0, 0.5),
    "stiction": StribeckFriction("screw", 3.0, 2.0, 0.6, 0.4, 0.5),
    "gear": GearFriction("arm", "pid.u", 0.2, 0.3, 0, 0.5, 0.1),
    "stop": JointStop("screw", -0.1, 0.1, 300.0, 20.0, 0.01),
    "wrench": ExternalWrench("gimbal", Harmonic([1.0, 2, 3, 4, 5, 6], 2.0, 0.3)),
    "follower": ExternalWrench("puck", Constant([1.0, 2, 3, 4, 5, 6]), follows=True),
    "force": JointForce("puck", Harmonic([0.7, 0.5, 0.3], 2.0, 0.3)),
    "sea": Reference(jonswap(1.0, 8.0, components=5)),
    "sensor": FrameSensor("tool"),
    "tension": WinchPID(
        "line.tension", "sea.value", 0.1, 0.2, 0.01, 0.5, "sensor.climb", "sea.rate"
    ),
    "drum": Winch("tension.u", 1.0, 2.0, engaged="sensor.height", width=0.1),
    "pull": FrameActuator("buoy", "follower_wrench"),
    "lift": Buoyancy("buoy", 0.1, WATER, 0.9),
    "drag": Drag("buoy", [0.1, 0.2, 0.3], 0.2, WATER, 0.7),
    "leg": MorisonMember(
        "buoy", 0.8, 0.1, 1.0, 1.0, 1.0, 1.0, 1, WATER, SeaBed(0.0, 20.0, 3.0, 0.3)
    ),
    "hoist": Cable(
        TETHER,
        1.0,
        PinnedEnd("buoy"),
        PinnedEnd("deck", payout="-sheave.rate"),
        mesh=2,
        fluid=WATER,
    ),
    "fall": Cable(
        TETHER, 1.0, FreeEnd(), ClampedEnd("deck", payout="sheave.rate"), mesh=2
    ),
    "sheave": Sheave("hoist", "fall", 0.2, 3.0),
}
SEA = Fluid(
    2.0, currents=[[0.2, 0.1, 0]], surface=0.1, surface_width=0.5,
    waves=irregular_waves(0.3, 3.0, components=3, depth=20.0, spreading=4.0),
)  # fmt: skip
SIX = ThrusterLayout(np.eye(3)[[0, 1, 2, 0, 1, 2]], np.eye(3)[[1, 2, 0, 2, 0, 1]])
SHARE = Allocation(SIX, lower=-3.0, upper=2.0, rounds=1, width=0.5)
BLADES = (0.8, 0.15, 5.0, 1.0, 2.9, 2.0, 1.8, 2.0)
MARINE = {
    "goal": SecondOrderReference("far", np.zeros(6), 2.0, 3.0, 4.0, 0.1, 0.02),
    "pid": VehiclePID("buoy", "goal", np.ones(6), np.ones(6), np.ones(6), SHARE),
    "share": ThrustAllocation("pid.u", SHARE),
    "shafts": Thrusters(
        "buoy", SIX, "pid.thrust", ShaftAndDuct(*BLADES, "thrust", 1.0, 1.0), SEA
    ),
    "lags": Thrusters("buoy", SIX, "share.thrust", FirstOrderThrust(0.2, -3, 3), SEA),
    "squares": Thrusters("buoy", SIX, "pid.thrust", QuadraticThrust(0.1, 0.3, 0.1)),
    "curves": Thrusters("buoy", SIX, "pid.thrust", ThrottleCurve(0.2, [0.9, 0.3])),
    "waterplane": Hydrostatics("knot", 0.4, (0, 0, 0.1), 0.5, (0.1, 0.2), fluid=SEA),
    "damping": BodyDamping("buoy", np.ones(6), np.ones(6), SEA, 0.4),
    "swell": WaveForce("buoy", 0.1, [0.1, 0.2, 0.3], SEA, 0.4),
    "strips": StripDrag("arm", 0.5, 0.1, 0.7, 0.3, 2, fluid=SEA),
    "gale": StripDrag(
        "arm", 0.5, 0.1, strips=1, axes=True,
        fluid=Wind(3.0, 0.4, 0.1, gusts=kaimal_gusts(3.0, components=2)),
    ),
    "line": Cable(TETHER, 1.0, PinnedEnd("buoy"), FreeEnd(), mesh=2, fluid=SEA),
    "grip": Grip("knot", "buoy", "closed", 9.0, 1.0, 3.0, 0.5, latch=True),
    "pillar": Support("knot", 0.2, 30.0, 3.0, 1.0, width=0.1),
    "hand": EndEffectorControl(
        ("cart", "arm"), "arm", "place", [0.1, 0.2], 0.5, 0.3, 0.4, damping=0.5
    ),
    "reach": ArmPID(
        ("cart", "arm"), "hand", 9.0, 1.0, 3.0, "moving",
        (Buoyancy("arm", 0.1, Fluid(2.0)),), 0.3, "arm",
    ),
    "motors": JointActuator(("cart", "arm"), "reach.u"),
}  # fmt: skip
TOUCHING = {  # on a few bodies of their own: each of these is much to compile
    "rub": PointContactFriction("stylus", 0.4, 0.3, 0.2, 0.3, width=0.1, slack=0.1),
    "land": RigidContact(
        "buoy", Ball(0.3), "world", HalfSpace(), 0.2, 3.0, width=0.1, slack=0.1
    ),
    "touch": Contact(
        "buoy",
        Cuboid([0.4, 0.5, 0.6]),
        "world",
        HalfSpace(),
        KelvinVoigt(2.0, 0.1, width=0.1),
        Bristles(0.4, 0.5, 1.0, 0.01, width=0.1, full=1.0),
        rolling=0.01,
        spinning=0.02,
        turn_width=0.1,
    ),
    "bed": VolumeContact(
        "stylus",
        Polyhedron([[-3.0, -2.0, -2.0], [4.0, 0.0, -1.0], [0.0, 4.0, 0.0], [0, 0, 5]]),
        "deck",
        HalfSpace(),
        (ElasticFoundation(0.5, 0.05), ElasticFoundation(0.4, 0.04, 1.0)),
        Surface(0.3, 0.1),
        width=0.05,
    ),
}
XLA_ONLY = {ContactGroup}  # which of its pairs are nearest is a sort
SAVES = np.array([0.0, 0.07, 0.1, 0.2])  # uneven; twenty steps
LANES = 3


def contents(x, kind: type) -> set[type]:
    """Classes of what a model consists of."""
    inner = x.values() if isinstance(x, dict) else x if isinstance(x, tuple) else ()
    inner = vars(x).values() if isinstance(x, eqx.Module) else inner
    return {type(x) for x in (x,) if isinstance(x, kind)}.union(
        *(contents(y, kind) for y in inner)
    )


def built(names, parts, inputs=None) -> djdyn.System:
    rng, bodies = np.random.default_rng(0), []
    for name in names:
        parent, joint = JOINTS[name]
        free = isinstance(joint, djdyn.Free)
        X_PJ = djdyn.translation((0.0, 0.0, 0.0)) if free else random_pose(rng)
        bodies.append(djdyn.Body(name, parent, joint, *random_inertia(rng), X_PJ))
    return djdyn.System(djdyn.Mechanism(tuple(bodies)), parts, inputs or {})


def bending() -> djdyn.System:
    """A beam that bends and twists between a deck and a load, with a spring."""
    beam = Beam((Piece(1.0, Rectangle(0.05, 0.06), elements=2),), 2e7, 8e6, 1000.0)
    modes = dict.fromkeys(("xy", "xz", "torsion"), 1)
    boom = FlexibleBody(
        "boom", "deck", djdyn.Revolute((0, 1, 0)), beam, modes, method="vibration",
        damping=0.02, nodes={"middle": 1, "tip": -1},
    )  # fmt: skip
    rng = np.random.default_rng(1)
    deck = djdyn.Body("deck", *JOINTS["deck"], *random_inertia(rng))
    small = (0.05, (0.0, 0.02, 0.03), 1e-3 * np.eye(3))
    load = djdyn.Body("load", "boom.tip", djdyn.Spherical(), *small)
    parts = {"stay": SpringDamper("world", "boom.middle", 30.0, 0.3, 0.4)}
    return djdyn.System(djdyn.Mechanism((deck, boom, load)), parts)


ROLLING = ("stylus", "disc")
MACHINES = {
    "all": lambda: built(
        [k for k in JOINTS if k not in ROLLING],
        PARTS,
        {"follower_wrench": np.arange(6.0)},
    ),
    "touching": lambda: built(("deck", *ROLLING, "buoy"), TOUCHING),
    "bending": lambda: bending(),
    "marine": lambda: built(
        ("deck", "cart", "arm", "buoy", "knot"),
        MARINE,
        {"far": 0.3 * np.ones(6), "place": 0.2 * np.ones(3), "closed": 0.6},
    ),
}


@pytest.fixture(scope="module", params=MACHINES)
def system(request) -> djdyn.System:
    return MACHINES[request.param]()


@pytest.fixture(scope="module")
def y0(system) -> djdyn.State:
    """Lanes that start apart; the first at rest and unturned, where kinks show."""
    rng, mechanism = np.random.default_rng(8), system.mechanism  # explicit steps do
    q = np.stack([random_q(rng, mechanism) for _ in range(LANES)])
    v = 0.3 * rng.normal(size=(LANES, mechanism.nv))
    for name in mechanism.joint_names:
        if name.endswith(".modes"):  # bodies bend a little
            q[:, mechanism.q_slice(name)] *= 0.02
    q[0], v[0] = mechanism.q0(), 0.0
    at = lambda y: (y.q, y.v)
    return eqx.tree_at(at, system.initial_state(), (jnp.asarray(q), jnp.asarray(v)))


def test_the_table_is_complete():
    classes = modules("djdyn") | modules("controllers")
    made = (two_joint_arm(), *(make() for make in MACHINES.values()))
    for base in (AbstractJoint, AbstractPart, AbstractTimeFunction):
        concrete = {
            c for c in classes if issubclass(c, base) and "Abstract" not in c.__name__
        }
        found = set().union(*(contents(x, base) for x in made))
        assert found == concrete - XLA_ONLY


def states(backend: str, system, y0, solver: str = "semi_implicit", **how):
    how = {"saveat": SAVES, **how}
    return djdyn.rollout(
        system, 0.2, y0, solver=solver, dt=0.01, backend=backend, **how
    )


def assert_near(found, wanted, rtol: float, scale: str = "each"):
    """Leaf by leaf, or relative to the largest entry of all."""
    rows = jax.tree_util.tree_leaves_with_path(found)
    most = max(np.max(np.abs(z), initial=0.0) for z in jax.tree.leaves(wanted))
    wrong = []
    for (path, x), z in zip(rows, jax.tree.leaves(wanted), strict=True):
        size = np.max(np.abs(z), initial=0.0) if scale == "each" else most
        if not np.all(np.abs(x - z) <= rtol * size):
            off = np.max(np.abs(x - z)) / size
            wrong.append(f"{jax.tree_util.keystr(path)} by {off:.1e}")
    assert not wrong


@pytest.mark.parametrize("solver", ["semi_implicit", "rk4", "tsit5"])
def test_states(system, y0, solver):
    found, wanted = (states(b, system, y0, solver) for b in ("kernel", "xla"))
    assert np.all(found.ok)
    assert_near(found.y, wanted.y, 1e-12)
    if solver == "semi_implicit":  # the solvers of `simulate` are others
        lane = eqx.tree_at(lambda y: (y.q, y.v), y0, (y0.q[1], y0.v[1]))
        alone = djdyn.simulate(system, 0.2, lane, solver=solver, dt=0.01, saveat=SAVES)
        assert_near(found.lane(1).y, alone.y, 1e-12)


@pytest.mark.slow
def test_gradients(system, y0):
    def gradient(backend: str):
        def loss(args):
            leaves = jax.tree.leaves(states(backend, *args).y)
            # No phases of thousands of turns: they would magnify rounding.
            sizes = [jnp.max(jnp.abs(x), initial=1.0) for x in leaves]
            pairs = zip(leaves, jax.lax.stop_gradient(sizes), strict=True)
            return sum(jnp.sum(jnp.cos(2 * x / size)) for x, size in pairs)

        return eqx.filter_jit(eqx.filter_grad(loss))((system, y0))

    found, wanted = gradient("kernel"), gradient("xla")
    for name, part in found[0].parts.items():
        used = [x for x in jax.tree.leaves(part) if np.any(x != 0)]
        assert used or not jax.tree.leaves(part), name
    assert_near(found, wanted, 1e-10, "all")


def two_joint_arm() -> djdyn.System:
    """Controllers that know the whole machine, on one of two joints."""
    rng, names = np.random.default_rng(2), ("shoulder", "elbow")
    parents = ("world", "shoulder")
    bodies = tuple(
        djdyn.Body(name, parent, djdyn.Revolute((0, 1, 0)), *random_inertia(rng))
        for name, parent in zip(names, parents, strict=True)
    )
    chambers = {k: Volume(1e-2, 1e5) for k in ("A", "B", "C", "D")}
    command = [f"control.u.{name}" for name in names]
    gain = 1e-4 * 0.9 * np.sqrt(2 / 950)
    valves = {
        "upper": ServoValve("P", "T", "A", "B", command[0], gain, 1e-4),
        "lower": ServoValve("P", "T", "C", "D", command[1], gain, 1e-4),
        "motor": Motor("A", "B", "shoulder", 1e-5),
        "ram": HydraulicCylinder(
            "C", "D", Triangle("elbow", 0.3, 0.2, 1.0), 1e-4, 1e-4, 1.0
        ),
    }
    ends = {"P": Supply(2e5), "T": Tank()}
    parts = {
        "path": ReferenceModel("target", [0.1, -0.1]),
        "torque": ComputedTorque("path", 9.0, 6.0),
        "pd": PDGravity("path", 9.0, 6.0),
        "motors": JointActuator(names, "torque.u"),
        "helpers": JointActuator(names, "pd.u"),
        "control": Backstepping(
            names, "path", (("oil.A.bar", "oil.B.bar"), ("oil.C.bar", "oil.D.bar")),
            [1e-5, 1e-4], (None, Triangle("elbow", 0.3, 0.2, 1.0)), 5.0, 1.0, 2.0, 3.0,
            friction=0.1, supply=2e5, stiffness=1e9, pressure_scale=1e3,
        ),
        "oil": Circuit(Oil(bulk_modulus=1e7), ends | chambers | valves),
    }  # fmt: skip
    return djdyn.System(djdyn.Mechanism(bodies), parts, {"target": [0.4, 0.3]})


@pytest.mark.slow
def test_model_based_control():
    system = two_joint_arm()
    lanes = jnp.asarray(np.random.default_rng(3).normal(size=(3, 2)))
    y0 = eqx.tree_at(lambda y: y.q, system.initial_state(), 0.2 * lanes)
    found, wanted = (states(b, system, y0) for b in ("kernel", "xla"))
    assert np.all(found.ok)
    assert_near(found.y, wanted.y, 1e-9)


def test_sampled_control():
    rng, names = np.random.default_rng(2), ("cart", "arm")
    joints = (djdyn.Prismatic((1, 0, 0)), djdyn.Revolute((0, 1, 0)))
    rows = zip(names, ("world", "cart"), joints, strict=True)
    bodies = tuple(djdyn.Body(*row, *random_inertia(rng)) for row in rows)
    parts = ("path", "pid", "speed", "drive", "motors", "winch", "spring")
    system = djdyn.System(djdyn.Mechanism(bodies), {k: PARTS[k] for k in parts})
    y0 = eqx.tree_at(
        lambda y: y.q, system.initial_state(), jnp.asarray(rng.normal(size=(3, 2)))
    )
    how = {"control_period": 0.05, "saveat": None}
    found, wanted = (states(b, system, y0, **how) for b in ("kernel", "xla"))
    assert_near(found.y, wanted.y, 1e-12)
    assert_near(found.sampled, wanted.sampled, 1e-12)
    lane = jax.tree.map(lambda x: x[1] if x.ndim > 1 else x, y0)
    alone = djdyn.simulate(
        system, 0.2, lane, solver="semi_implicit", dt=0.01, control_period=0.05
    )
    assert_near(found.lane(1).y, alone.y, 1e-12)
