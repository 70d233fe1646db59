"""Swing-up: a pendulum on a wagon, planned by iLQR, held by LQR, from random starts.

The wagon of Rokseth, master's thesis, NTNU, 2014, example 3.6. Plans are made with one
model. The model that follows them has steps four times as fine; in a second run its
measurements have noise and its inputs act one sample late.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import Plan, flat_step, ilqr, linearise, lqr, search_baseline
from djdyn.parts import JointActuator, JointSpring
from djdyn.view import Scene

from ...harness.study import Study


TITLE = "Swing-up of a pendulum on a wagon"
STAGES = 4
SCENE = "Swing-up from the first start"
MAX_FORCE = 20.0  # N
PERIOD, PLAN_SAMPLES, HOLD_SAMPLES = 0.02, 150, 150  # s, 1, 1
ITERATIONS = 60
NOISE = jnp.array([1e-3, 2e-3, 1e-2, 2e-2])  # m, rad, m/s, rad/s
Q, R = (1.0, 10.0, 1.0, 1.0), (0.1,)
FINAL_WEIGHTS = jnp.array([50.0, 500.0, 20.0, 50.0])
UPRIGHT_LIMITS = jnp.array([0.3, 0.1, 0.5, 0.5])  # m, rad, m/s, rad/s
FREE_MOTION = {  # s: q, v by Hamilton's equations, from (0.1, 0.2) at rest
    0.5: (0.01276055, 1.80910531, 0.15679522, 7.93989473),
    1.0: (0.09584614, 3.28702490, -1.09413706, -10.10075058),
    2.0: (-0.08072645, 0.77503677, -0.37620378, 4.13021271),
}


def build(**parts: Any) -> djdyn.System:
    """Return wagon and rod on springs, with an input `push` and additional parts.

    The angle is measured from the upward vertical.
    """
    bodies = (
        djdyn.Body("wagon", "world", djdyn.Prismatic((1, 0, 0)), 2.0),
        djdyn.Body("rod", "wagon", djdyn.Revolute((0, 1, 0)), 1.0, p_BC=(0, 0, 0.3)),
    )
    given = {
        "wall": JointSpring("wagon", 3.0),
        "hinge": JointSpring("rod", 0.5),
        "drive": JointActuator(("wagon",), command="push"),
        **parts,
    }
    return djdyn.System(djdyn.Mechanism(bodies), given, {"push": [0.0]})


def running(x: Array, u: Array) -> Array:
    """Return the running cost of a sample."""
    upright = 0.5 * (1 - jnp.cos(x[1]))
    slow = 0.1 * x[0] ** 2 + 0.01 * x[2] ** 2 + 0.01 * x[3] ** 2
    return PERIOD * (1e-3 * u @ u + upright + slow)


def final(x: Array) -> Array:
    """Return the cost of the last state."""
    return x @ (FINAL_WEIGHTS * x) / 2


def starts(count: int, seed: int = 0) -> Array:
    """Return random initial states, with the rod at any angle."""
    most = jnp.array([0.2, jnp.pi, 0.5, 2.0])
    key = jax.random.key(seed)
    return most[None] * jax.random.uniform(key, (count, 4), minval=-1.0, maxval=1.0)


class Rig:
    """The wagon with its planner and the regulator of the upright state."""

    def __init__(self, system: djdyn.System):
        self.system = system
        self.step, _ = flat_step(system, PERIOD)
        self.fine, _ = flat_step(system, PERIOD / 4)
        self.sampled = linearise(system).discretise(PERIOD)
        self.K = lqr(self.sampled, Q, R)

    def plan(self, x0: Array, key: Array, iterations: Any = ITERATIONS) -> Plan:
        """Plan a swing-up by iLQR, from random inputs."""
        u = 0.5 * jax.random.normal(key, (PLAN_SAMPLES, 1))
        given = (self.step, running, final, x0, u)
        return ilqr(*given, low=-MAX_FORCE, high=MAX_FORCE, iterations=iterations)

    def follow(self, plan: Plan, noise: Array, late: bool) -> tuple[Array, Array]:
        """Return states and inputs along the plan and then at the upright state."""
        upright = jnp.zeros((HOLD_SAMPLES, 4))
        hold = jnp.broadcast_to(-self.K, (HOLD_SAMPLES, *self.K.shape))
        rows = (
            jnp.concatenate([plan.x[:-1], upright]),
            jnp.concatenate([plan.u, jnp.zeros((HOLD_SAMPLES, 1))]),
            jnp.concatenate([plan.K, hold]),
            noise,
        )

        def one(carry: tuple[Array, Array], row: tuple) -> tuple:
            (x, last), (x_i, u_i, K, n) = carry, row
            u = jnp.clip(u_i + K @ (x + n - x_i), -MAX_FORCE, MAX_FORCE)
            acts = last if late else u
            new = jax.lax.fori_loop(0, 4, lambda _, x: self.fine(x, acts), x)
            return (new, u), (x, acts)

        _, found = jax.lax.scan(one, (plan.x[0], plan.u[0]), rows)
        return found


def run(study: Study) -> None:
    """Plan swing-ups from random starts, track them, and compare with CMA-ES."""
    count = 32 if study.quick else 256
    system = study.customise(build())
    rig = Rig(system)
    study.report.text(
        "The wagon has a mass of 2 kg, and the rod carries 1 kg at 0.3 m; springs pull "
        f"both to zero. A force of at most {MAX_FORCE:g} N acts on the wagon and is "
        "updated every 20 ms."
    )
    with study.stage("free motion"):
        run_free_motion(study, system)
    with study.stage("plans"):
        x0 = starts(count)
        keys = jax.random.split(jax.random.key(1), count)
        plans = jax.jit(jax.vmap(rig.plan))(x0, keys)
    with study.stage("tracking the plans"):
        track_plans(study, rig, plans)
    with study.stage("comparison with CMA-ES"):
        if not study.quick:
            compare_with_cmaes(study, rig, x0[:4], keys[:4])
    study.answer(summary(study.metrics, count), SCENE)


def summary(found: dict[str, float], count: int) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"swing_up.{name}"]
    said = (
        f"Of {count} random starts, {100 * of('success_rate'):.4g} % end upright "
        "along plans by iLQR and then under LQR, with pushes of at most "
        f"{of('largest_push'):g} N. With noise and a command that acts one sample "
        f"late, {100 * of('delay_and_noise.success_rate'):.4g} % do. "
    )
    if "swing_up.simulations_vs_cmaes" in found:
        said += (
            "For the cost of CMA-ES, iLQR needs at most "
            f"{of('simulations_vs_cmaes'):.1%} of its simulations."
        )
    return said


def run_free_motion(study: Study, system: djdyn.System) -> None:
    """Compare the free motion with Hamilton's equations (Rokseth 2014, example 3.6)."""
    times = np.array([0.0, *FREE_MOTION])
    y0 = system.initial_state(q={"wagon": 0.1, "rod": 0.2})
    free = djdyn.simulate(system, 2.0, y0, saveat=times, rtol=1e-11, atol=1e-11)
    found = np.hstack([free.y.q, free.y.v])[1:]
    study.metric(
        "swing_up.free_motion.max_error",
        np.abs(found - np.array([*FREE_MOTION.values()])).max(),
        at_most=1e-6,
        note="largest error of the free motion over 2 s, beside Hamilton's equations",
    )
    study.metric(
        "swing_up.free_motion.energy",
        free.energy()[-1],
        2.9093359386,
        1e-8,
        unit="J",
        note="after 2 s",
    )


def track_plans(study: Study, rig: Rig, plans: Plan) -> None:
    """Track the plans on a finer model, then also with delay and noise."""
    count = len(plans.cost)
    grains = jax.random.normal(
        jax.random.key(2), (count, PLAN_SAMPLES + HOLD_SAMPLES, 4)
    )
    noise = grains * NOISE[None, None]
    cases = {"": (0 * noise, False), ".delay_and_noise": (noise, True)}
    shown = {}
    for tail, (noise, late) in cases.items():
        go = jax.jit(jax.vmap(lambda p, n, late=late: rig.follow(p, n, late)))
        xs, us = (np.asarray(z) for z in go(plans, noise))
        shown[tail] = xs, us
        up = np.all(np.abs(xs[:, -25:]) < np.asarray(UPRIGHT_LIMITS), axis=(1, 2))
        study.metric(
            f"swing_up{tail}.success_rate",
            np.mean(up),
            at_least=0.99,
            note=f"share of {count} random starts that are upright in the last 0.5 s",
        )
        study.metric(
            f"swing_up{tail}.largest_push",
            np.abs(us).max(),
            at_most=MAX_FORCE,
            unit="N",
            note="largest force on the wagon",
        )
    poles = np.abs(np.linalg.eigvals(rig.sampled.A - rig.sampled.B @ rig.K))
    study.metric(
        "swing_up.held.largest_pole",
        poles.max(),
        at_most=1.0,
        note="largest modulus of a pole of the sampled loop at the upright state",
    )
    figures(study, rig, shown[""], shown[".delay_and_noise"][0])


def figures(study: Study, rig: Rig, shown: tuple[Any, Any], noisy: Any) -> None:
    """Plot angles, positions and forces of six starts."""
    xs, us = shown
    t = PERIOD * np.arange(xs.shape[1])
    time = ("time", "s", t)
    some = {f"start {i + 1}": i for i in range(6)}
    for what, unit, k, of in (
        ("angle from upright", "rad", 1, xs),
        ("angle from upright, with delay and noise", "rad", 1, noisy),
        ("position of the wagon", "m", 0, xs),
        ("force", "N", 0, us),
    ):
        series = {name: of[i, :, k] for name, i in some.items()}
        study.report.plot(f"Swing-up: {what}", time, (what.split(",")[0], unit), series)
    study.report.scene(scene(rig.system, t, xs[0]), SCENE)


def scene(system: djdyn.System, t: np.ndarray, xs: np.ndarray) -> Scene:
    """Return the replay of wagon and rod."""
    poses = jax.vmap(lambda q: djdyn.forward_kinematics(system.mechanism, q).X_WB)
    X_WB = poses(jnp.asarray(xs[:, :2]))
    R, p = np.asarray(X_WB.R), np.asarray(X_WB.p)
    replay = Scene(t)
    under = np.eye(3), np.array([0.0, 0.0, -0.06])
    replay.box("wagon", (0.3, 0.15, 0.1), R[:, 1], p[:, 1], offset=under)
    rod = np.eye(3), np.array([0.0, 0.0, 0.15])
    replay.box("rod", (0.02, 0.02, 0.3), R[:, 2], p[:, 2], offset=rod)
    end = np.eye(3), np.array([0.0, 0.0, 0.3])
    replay.box("mass", (0.06, 0.06, 0.06), R[:, 2], p[:, 2], offset=end)
    return replay


def compare_with_cmaes(study: Study, rig: Rig, x0: Array, keys: Array) -> None:
    """Count the simulations until a plan costs no more than that of CMA-ES."""
    # An iteration costs 15 simulations: ten step sizes and five derivatives.
    each, budget = 15, 20000
    plan = jax.jit(rig.plan)

    def cost(x: Array, u: Array) -> Array:
        u = jnp.clip(u, -MAX_FORCE, MAX_FORCE)[:, None]
        one = lambda x, u: (rig.step(x, u), running(x, u))
        end, costs = jax.lax.scan(one, x, u)
        return jnp.sum(costs) + final(end)

    all_costs = jax.jit(jax.vmap(cost, (None, 0)))
    ratios, rows = [], []
    for i, (x, key) in enumerate(zip(x0, keys, strict=True)):
        of = lambda u, x=x: np.asarray(all_costs(x, jnp.asarray(MAX_FORCE * u)))
        cmaes = search_baseline(
            "CMA-ES", of, PLAN_SAMPLES, budget=budget, spread=0.2, seed=i
        )
        needed, mine = np.inf, np.inf
        for iterations in range(1, ITERATIONS + 1):
            mine = float(plan(x, key, jnp.asarray(iterations)).cost)
            if mine <= cmaes.cost:
                needed = each * iterations
                break
        ratios.append(needed / cmaes.history[-1, 0])
        rows.append((i + 1, cmaes.cost, cmaes.history[-1, 0], mine, needed))
    study.report.table(
        "Plans by iLQR and by CMA-ES",
        (
            "start",
            "cost, CMA-ES",
            "simulations, CMA-ES",
            "cost, iLQR",
            "simulations, iLQR",
        ),
        rows,
    )
    study.metric(
        "swing_up.simulations_vs_cmaes",
        np.max(ratios),
        at_most=0.1,
        note="aim: simulations that iLQR needs to reach the cost of CMA-ES, over those "
        "of CMA-ES; an iteration counts as 15; worst of four starts",
    )
