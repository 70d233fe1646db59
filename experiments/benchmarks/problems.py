"""Benchmark problems: model, initial state and torques.

A mechanism of revolute joints is MJCF text that all engines read; the crane has springs
and a controller and runs in djdyn only. All engines use semi-implicit Euler steps.
"""

import dataclasses
import re
from collections.abc import Callable
from importlib import resources

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.parts import JointActuator

from ..studies.crane import model as crane


STEP = 1e-3  # s
MODEL = """<mujoco model="{name}">
<compiler angle="radian" inertiafromgeom="false"/>
<option timestep="0.001" integrator="Euler" gravity="0 0 -9.81">
<flag contact="disable" constraint="disable" eulerdamp="disable"/></option>
<worldbody>{bodies}</worldbody><actuator>{motors}</actuator></mujoco>"""


@dataclasses.dataclass(frozen=True)
class Problem:
    """A benchmark problem.

    `text` is None if it is not a tree of revolute joints under constant torques.
    """

    name: str
    title: str
    q0: np.ndarray
    v0: np.ndarray
    torques: np.ndarray
    text: str | None = None
    builder: Callable[[], djdyn.System] | None = None

    def build(self) -> djdyn.System:
        """Return djdyn's system, with torques as an input."""
        if self.builder:
            return self.builder()
        assert self.text is not None
        mechanism = djdyn.from_mjcf(self.text)
        motors = JointActuator(mechanism.joint_names, "torque")
        inputs = {"torque": jnp.asarray(self.torques)}
        return djdyn.System(mechanism, {"motors": motors}, inputs)

    def starts(self, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates and speeds of a batch; the first lane is nominal."""
        rng = np.random.default_rng(batch)
        q = self.q0 + 0.1 * rng.uniform(-1, 1, (batch, len(self.q0)))
        v = self.v0 + 0.1 * rng.uniform(-1, 1, (batch, len(self.v0)))
        q[0], v[0] = self.q0, self.v0
        return q, v


def arm7() -> Problem:
    """Return an arm of seven joints."""
    return Problem(
        "arm7",
        "seven-joint arm",
        np.array((0.1, -0.5, 0.2, -1.8, 0.3, 1.2, 0.4)),
        np.array((0.2, -0.1, 0.3, 0.1, -0.2, 0.3, 0.1)),
        np.array((1.0, -20.0, 1.0, 10.0, 0.5, 1.0, 0.1)),
        _file("arm7.xml"),
    )


def dpend() -> Problem:
    """Return a double pendulum."""
    start, still = np.array((2.0, 0.5)), np.zeros(2)
    return Problem("dpend", "double pendulum", start, still, still, _file("dpend.xml"))


def tree20() -> Problem:
    """Return a tree of twenty bodies, each joined to one of the four before it."""
    rng = np.random.default_rng(20)
    parents = [int(rng.integers(max(0, i - 3), i + 1)) for i in range(20)]
    return _random("tree20", "tree of twenty bodies", parents, rng)


def chain(bodies: int) -> Problem:
    """Return a chain of bodies with skew revolute joints."""
    rng = np.random.default_rng(bodies)
    return _random(
        f"chain{bodies}", f"chain of {bodies} bodies", list(range(bodies)), rng
    )


def offshore_crane() -> Problem:
    """Return the offshore crane under control along its motion sequence."""
    start = crane.start(crane.build())
    q, v = np.asarray(start.q), np.asarray(start.v)
    return Problem("crane", "offshore crane", q, v, np.zeros(0), builder=crane.build)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "arm7": arm7,
    "dpend": dpend,
    "tree20": tree20,
    "crane": offshore_crane,
}


def problem(name: str) -> Problem:
    """Return a problem by name; `chain12` is a chain of twelve bodies."""
    if name.startswith("chain"):
        return chain(int(name.removeprefix("chain")))
    return PROBLEMS[name]()


def _file(name: str) -> str:
    return (
        resources.files("experiments.benchmarks").joinpath("models", name).read_text()
    )


def _random(
    name: str, title: str, parents: list[int], rng: np.random.Generator
) -> Problem:
    """Return a random problem of slender bodies of 0.2 m.

    `parents` are numbers of bodies from one on; the world is 0.
    """
    n = len(parents)
    axes = rng.normal(size=(n, 3))
    bodies = [_body(i + 1, parents[i], axes[i], rng) for i in range(n)]

    def below(parent: int) -> str:
        found = [i for i in range(n) if parents[i] == parent]
        return "".join(f"{bodies[i]}{below(i + 1)}</body>\n" for i in found)

    text = below(0)
    order = re.findall(r'joint name="(\w+)"', text)  # of the coordinates
    motors = "".join(f'<motor joint="{joint}" gear="1"/>' for joint in order)
    return Problem(
        name,
        title,
        rng.uniform(-0.5, 0.5, n),
        rng.uniform(-0.5, 0.5, n),
        rng.uniform(-0.2, 0.2, n),
        MODEL.format(name=name, bodies=text, motors=motors),
    )


def _body(i: int, parent: int, axis: np.ndarray, rng: np.random.Generator) -> str:
    """Return the opening tag of a rod with some thickness."""
    mass = rng.uniform(0.5, 1.5)
    moments = mass * 0.2**2 / 12 * np.array((1.1, 1.0, 0.2))
    centre = np.array((0.0, 0.0, -0.1)) + rng.uniform(-0.01, 0.01, 3)
    numbers = lambda x: " ".join(repr(float(value)) for value in x)
    return (
        f'<body name="b{i}" pos="0 0 {-0.2 if parent else 0.0}">'
        f'<joint name="j{i}" type="hinge" axis="{numbers(axis)}"/>'
        f'<inertial pos="{numbers(centre)}" mass="{mass!r}" '
        f'diaginertia="{numbers(moments)}"/>'
    )
