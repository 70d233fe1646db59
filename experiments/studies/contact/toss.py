"""Gradients through impacts: tossed cubes, and the time of impact of a ball."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.contact import (
    Contact,
    Coulomb,
    Cuboid,
    HalfSpace,
    HuntCrossley,
    Sphere,
    dissipation,
)

from ...harness.study import Study


SPAN, SPEED, HEIGHT = 0.5, 1.0, 0.3003  # s, m/s, m
EULER_STEPS = (1e-3, 3e-4, 1e-4)  # s


def cube() -> djdyn.System:
    """Return a cube of 0.37 kg over the ground; `push` adds to its velocity along x."""
    box = Cuboid([0.1, 0.1, 0.1])
    solid = box.inertia(370.0)
    I_BC = solid["I_BC"]
    body = djdyn.Body("cube", "world", djdyn.Free(), solid["mass"], I_BC=I_BC)
    law = HuntCrossley(3e4, dissipation(0.6, 1.0), 1.0, width=1e-3)
    grip = Coulomb(0.3, width=1e-2)
    part = Contact("cube", box, "world", HalfSpace(), law, grip)
    push = {"push": jnp.zeros(())}
    return djdyn.System(djdyn.Mechanism((body,)), {"floor": part}, push)


def starts(count: int) -> Float[Array, "count 10"]:
    """Return random rotations, angular velocities and velocities of tosses."""
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(count, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    spin = 4.0 * rng.normal(size=(count, 3))
    velocity = rng.normal(size=(count, 3)) * [0.5, 0.5, 0.1]
    return jnp.asarray(np.concatenate([turn, spin, velocity], 1))


def way(system: djdyn.System, simulate: Any, start: Array, **how: Any) -> Array:
    """Return the final position of a toss along x, m."""
    q = jnp.concatenate([jnp.array([0.0, 0.0, 0.2]), start[:4]])
    v = start[4:].at[3].add(system.inputs["push"])
    y = djdyn.State(q, v, system.initial_state().parts)
    return simulate(system, SPAN, y, saveat=jnp.array([SPAN]), **how).y.q[-1, 0]


@eqx.filter_jit
def slopes(system: djdyn.System, lanes: Array, how: dict[str, Any]) -> tuple:
    """Return final positions of many tosses, and their gradients by `push`."""

    def one(start: Array) -> tuple[Array, Array]:
        here = lambda x: djdyn.with_parameters(system, {"push": x})
        run = lambda x: way(here(x), djdyn.simulate, start, adjoint="forward", **how)
        return jax.jvp(run, (system.inputs["push"],), (jnp.ones(()),))

    return jax.vmap(one)(lanes)


def run_toss(study: Study) -> None:
    """Compare gradients of tosses with default settings and with Euler's method."""
    system, lanes = cube(), starts(4 if study.quick else 24)
    within = lambda x: {"rtol": jnp.asarray(x), "atol": jnp.asarray(x)}
    tight = {**within(1e-11), "max_steps": 1 << 17}
    true = np.asarray(slopes(system, lanes, tight)[1])
    off = lambda g: 100 * np.abs(np.asarray(g) / true - 1)
    found = off(slopes(system, lanes, {**tight, **within(1e-8)})[1])
    moved = lambda h: slopes(djdyn.with_parameters(system, {"push": h}), lanes, tight)[
        0
    ]
    differences = off((moved(1e-4) - moved(-1e-4)) / 2e-4)
    note = f"largest of {len(lanes)} tosses, default tolerance beside 1e-11"
    study.metric(
        "contact.toss.gradient_error", found.max(), at_most=1.0, unit="%", note=note
    )
    study.metric(
        "contact.toss.difference_error",
        np.median(differences),
        at_most=0.1,
        unit="%",
        note="median error of central differences at a tolerance of 1e-11",
    )
    shown = {"default: adaptive": np.sort(found)}
    for dt in EULER_STEPS[:1] if study.quick else EULER_STEPS:
        how = {"solver": "semi_implicit", "dt": SPAN / round(SPAN / dt)}
        wrong = off(slopes(system, lanes, how)[1])
        shown[f"Euler, {1e3 * dt:g} ms"] = np.sort(wrong)
        name = f"contact.toss.euler_{1e3 * dt:g}ms_error"
        study.metric(name, np.median(wrong), unit="%", note="median, Euler's method")
    study.report.plot(
        "Errors of the gradients of tosses",
        ("toss, in order of its error", "1", np.arange(1, len(lanes) + 1)),
        ("error", "%"),
        {k: np.maximum(x, 1e-4) for k, x in shown.items()},
        log="y",
    )


def ball(width: float) -> djdyn.System:
    """Return a ball of 1 kg that flies at the ground at 1 m/s, from `height`."""
    body = djdyn.Body("b", "world", djdyn.Free(), 1.0, I_BC=0.01 * np.eye(3))
    law = HuntCrossley(1e5, 0.0, 1.0, width=width)
    part = Contact("b", Sphere(0.1), "world", HalfSpace(), law)
    mechanism = djdyn.Mechanism((body,), gravity_W=(0.0, 0.0, 0.0))
    return djdyn.System(mechanism, {"floor": part}, {"height": jnp.asarray(HEIGHT)})


def bounced(system: djdyn.System, simulate: Any, **how: Any) -> Array:
    """Return the height after 1 s; its exact derivative by `height` is -1."""
    y = system.initial_state(v={"b": [0, 0, 0, 0, 0, -SPEED]})
    y = djdyn.State(y.q.at[2].set(0.1 + system.inputs["height"]), y.v, y.parts)
    return simulate(system, 1.0, y, saveat=jnp.array([1.0]), **how).y.q[-1, 2]


def run_ball(study: Study) -> None:
    """Compare the gradient through the time of impact with its exact value."""
    coarse = partial(bounced, solver="semi_implicit", dt=1e-3)
    slope = lambda loss, width, **how: djdyn.gradient(
        loss, ball(width), ["height"], **how
    )
    good = slope(bounced, 3e-3)
    bad = slope(coarse, 1e-6)
    mean = slope(coarse, 1e-6, spread=0.05, samples=64)
    for name, found, within, note in (
        ("gradient", good, 0.01, "default settings, a law as wide as its depth"),
        ("euler_1ms_gradient", bad, None, "Euler's method, stiff law: wrong sign"),
        ("smoothed_gradient", mean, 0.05, "Euler's method, mean over 64 pairs"),
    ):
        study.metric(
            f"contact.ball.{name}",
            found.gradient["height"],
            -1.0,
            within,
            note=f"derivative of the height after a bounce by that before; {note}",
        )
    z = np.linspace(0.29, 0.31, 401)
    lanes = jax.vmap(
        lambda z: coarse(
            djdyn.with_parameters(ball(1e-6), {"height": z}), djdyn.simulate
        )
    )
    study.report.plot(
        "Height after a bounce with a stiff contact",
        ("height before it", "m", z),
        ("height after it", "m"),
        {"Euler, 1 ms": np.asarray(jax.jit(lanes)(jnp.asarray(z)))},
        {"exact": 0.1 + SPEED - z},
    )
