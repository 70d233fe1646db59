"""A rollout over devices, run by `python -m tests.simulation.scale_out RANK PORT`.

With port 0 it runs alone, else as one of two processes; on as many devices as XLA is
told to make. Prints the largest gaps to the same rollout on one device.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import djdyn
from djdyn import Body, Mechanism, Revolute, State, System


RANK, PORT = int(sys.argv[1]), int(sys.argv[2])


def pendulum() -> System:
    link = lambda name, parent, X: Body(
        name, parent, Revolute((0, 1, 0)), 1.0, (0, 0, -0.5), 0.1 * np.eye(3), X
    )
    hinge = djdyn.translation((0.0, 0.0, -1.0))
    upper = link("upper", "world", djdyn.translation((0.0, 0.0, 0.0)))
    return System(Mechanism((upper, link("lower", "upper", hinge))))


def gap(x: jax.Array, y: jax.Array) -> float:
    """Between the parts of `x` that lie here and the same of `y`."""
    here = [np.asarray(s.data) - np.asarray(y)[s.index] for s in x.addressable_shards]
    return max(float(np.abs(d).max()) for d in here)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    if PORT:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{PORT}", 2, RANK)
    system, batch = pendulum(), 16
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    q = np.linspace(0, 1, 2 * batch).reshape(batch, 2)
    split = NamedSharding(mesh, PartitionSpec("batch"))
    spread = lambda x: jax.make_array_from_callback(x.shape, split, lambda i: x[i])
    whole = State(jnp.asarray(q), jnp.zeros((batch, 2)), {})
    y0 = State(spread(q), spread(np.zeros_like(q)), {})
    masses = np.linspace(1, 2, batch)
    g = system.mechanism.gravity_W
    kernel = {"dt": 0.01, "backend": "kernel"}
    others = [] if PORT else [{"dt": 0.01, "backend": "xla"}, {"rtol": 1e-8}]
    for how in (kernel, *others):

        def run(g, y0, masses, mesh=None, how=how):
            there = djdyn.with_parameters(system, {"gravity_W": g})
            lanes = {"lower.mass": masses}
            return djdyn.rollout(
                there, 0.1, y0, saveat=3, parameters=lanes, mesh=mesh, **how
            ).y.q

        together = run(g, y0, spread(masses), mesh=mesh)
        assert len(together.sharding.device_set) == len(jax.devices())
        print("gap", gap(together, run(g, whole, jnp.asarray(masses))))
        if how is kernel:
            slope = jax.grad(
                lambda *args, run=run, **kw: jnp.mean(run(*args, **kw) ** 2)
            )
            slopes = jax.jit(lambda *args, slope=slope: slope(*args, mesh=mesh))
            wanted = slope(g, whole, jnp.asarray(masses))
            print("gap", gap(slopes(g, y0, spread(masses)), wanted))
    if not PORT:
        odd = State(jnp.zeros((15, 2)), jnp.zeros((15, 2)), {})
        try:
            djdyn.rollout(system, 0.1, odd, dt=0.01, mesh=mesh)
        except ValueError as error:
            print(error)


if __name__ == "__main__":
    main()
