"""Flexible bodies against particles, Lagrange, closed forms and published digits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import djdyn
from djdyn.multibody import reactions
from djdyn.multibody.flexible import (
    Beam,
    FiniteElements,
    FlexibleBody,
    Piece,
    Rectangle,
)
from djdyn.multibody.flexible.body import reduced_mechanism
from djdyn.multibody.spatial import rotation_rpy

from ...gradients import assert_gradient, quick_jit
from .booms import hinged, soft_beam, steel_boom


EVERY = {"xy": 0, "xz": 0, "torsion": 0, "axial": 0}  # and the static ones of the tip


def spatial_mechanism() -> djdyn.Mechanism:
    """A cart, a beam on a gimbal that bends, twists and stretches, and a load on it."""
    X_PJ = djdyn.pose_rpy((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    beam = hinged(
        soft_beam(), EVERY, joint=djdyn.RollPitchYaw(), X_PJ=X_PJ,
        nodes={"middle": 1, "tip": -1}, damping=0.01, parent="cart",
    )  # fmt: skip
    moments = np.diag([0.002, 0.003, 0.004])
    load = djdyn.Body(
        "load", "boom.tip", djdyn.Revolute((0, 1, 1)), 0.3, (0.1, 0, 0.02), moments
    )
    cart = djdyn.Body("cart", "world", djdyn.Prismatic((1, 2, 0)), 1.5)
    side = djdyn.Body("side", "boom.middle", djdyn.Prismatic((0, 0, 1)), 0.2)
    frames = (djdyn.Frame("hook", "load", djdyn.pose_rpy((0.2, 0, 0), (0, 0.4, 0))),)
    return reduced_mechanism(djdyn.Mechanism((cart, beam, load, side), frames))


def random_state(mechanism, seed=0):
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=mechanism.nq), rng.normal(size=mechanism.nv)
    own = mechanism.q_slice("boom.modes")
    q[own] *= 0.003
    return jnp.asarray(q), jnp.asarray(v)


def test_equations_of_motion_are_those_of_lagrange():
    """Also rows of the tree: twists, accelerations and Jacobians are derivatives."""
    m = spatial_mechanism()
    stiff = m.bodies[1]
    assert isinstance(stiff, FlexibleBody)
    at = lambda q, v: djdyn.forward_kinematics(m, q, v)
    kinetic = lambda q, v: reactions.kinetic_energy(at(q, v))
    potential = lambda q: reactions.potential_energy(at(q, jnp.zeros(m.nv)))

    @quick_jit
    def both(q, v):
        momentum = lambda q, v: jax.grad(kinetic, 1)(q, v)
        M = jax.jacfwd(momentum, 1)(q, v)
        spun = jax.jvp(lambda q: momentum(q, v), (q,), (v,))[1]
        needed = spun - jax.grad(lambda q: kinetic(q, v) - potential(q))(q)
        world = at(q, v)
        damping = (
            jnp.zeros(m.nv)
            .at[m.v_slice("boom.modes")]
            .set(stiff.shape().D @ v[m.v_slice("boom.modes")])
        )
        place = lambda q: at(q, v).pose("hook").p
        turn = lambda q: at(q, v).pose("hook").R
        R_dot = jax.jvp(turn, (q,), (v,))[1] @ turn(q).T
        moved = jax.jvp(lambda q: at(q, v).twist("hook"), (q,), (v,))[1]
        b = m.index("load")
        own = jax.jvp(lambda q: at(q, v).V_WB[b], (q,), (v,))[1]
        return [
            (M, djdyn.mass_matrix(m, q)),
            (needed + damping, djdyn.bias_force(m, q, v)),
            (jax.jacfwd(place)(q), world.jacobian("hook")[3:]),
            (world.twist("hook"), world.jacobian("hook") @ v),
            (
                jnp.stack([R_dot[2, 1], R_dot[0, 2], R_dot[1, 0]]),
                world.twist("hook")[:3],
            ),
            (own, world.A_bias_WB[b]),
            (world.jacobians()[b].T, world.jacobian("load")),
            (moved[:3], world.A_bias_WB[b][:3]),
        ]

    for i, (found, expected) in enumerate(both(*random_state(m))):
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-10), i


def test_forward_dynamics_inverts_inverse_dynamics():
    m = spatial_mechanism()
    q, v = random_state(m, 1)
    F = jnp.asarray(np.random.default_rng(2).normal(size=(len(m.bodies) + 1, 6)))
    v_dot = jnp.linspace(-1, 1, m.nv)

    @quick_jit
    def there_and_back(q, v, v_dot, F):
        tau = djdyn.inverse_dynamics(m, q, v, v_dot, F)
        return djdyn.forward_dynamics(m, q, v, tau, F)

    assert np.allclose(there_and_back(q, v, v_dot, F), v_dot, atol=1e-7)
    with pytest.raises(ValueError, match="by projection, not by recursion"):
        djdyn.forward_dynamics(m, q, v, v_dot, method="recursion")


def test_inertia_is_that_of_particles():
    """Kinetic energy of the particles, to the order in eta that the body keeps."""
    beam = soft_beam()
    body = hinged(beam, EVERY, joint=djdyn.Free())
    m = reduced_mechanism(djdyn.Mechanism((body,), gravity_W=(0, 0, 0)))
    modes, points = body.basis(), beam.mass_points()
    _, G = beam.shortening(modes)
    phi = jnp.einsum("pad,dm->pma", points.shapes, modes)
    n = body.n_modes
    rng = np.random.default_rng(3)
    eta, eta_dot = jnp.asarray(rng.normal(size=(2, n)))
    w, v, R = (
        jnp.array([0.3, -0.7, 0.5]),
        jnp.array([1.0, 2.0, 3.0]),
        rotation_rpy(*jnp.array([0.3, 0.5, 0.7])),
    )

    def of_particles(eta, eta_dot):
        def place(eta):
            short = 0.5 * jnp.einsum("pij,i,j->p", G, eta, eta)
            x = points.position + jnp.einsum("pma,m->pa", phi, eta)
            return x + jnp.pad(short[:, None], ((0, 0), (0, 2)))

        x, x_dot = jax.jvp(place, (eta,), (eta_dot,))
        speed = v[None] + (jnp.cross(w[None], x) + x_dot) @ R.T
        return 0.5 * jnp.sum(points.mass * jnp.sum(speed**2, 1))

    q = jnp.concatenate([jnp.zeros(3), jnp.array([1.0, 0, 0, 0])])
    from djdyn.multibody.spatial import quat_from_rotation

    q = q.at[3:].set(quat_from_rotation(R))

    def of_body(eta, eta_dot):
        speeds = jnp.concatenate([w, v, eta_dot])
        world = djdyn.forward_kinematics(m, jnp.concatenate([q, eta]), speeds)
        return reactions.kinetic_energy(world)

    def taylor(T):
        still = lambda s: T(s * eta, 0.0 * eta_dot)
        odd = lambda s: 0.5 * (T(s * eta, eta_dot) - T(s * eta, -eta_dot))
        even = 0.5 * (T(0 * eta, eta_dot) + T(0 * eta, -eta_dot))
        one = lambda f: jax.jvp(f, (0.0,), (1.0,))
        second = jax.jvp(jax.grad(still), (0.0,), (1.0,))
        return jnp.stack([even, *one(still), second[1], *one(odd)])

    found = quick_jit(lambda: (taylor(of_body), taylor(of_particles)))()
    assert np.allclose(*found, rtol=1e-11)


def test_no_modes_make_a_rigid_body():
    stiff = hinged(soft_beam(), {"xz": 0}, "vibration", armature=[0.2])
    rigid = djdyn.Body(
        "boom", "world", djdyn.Revolute((0, 1, 0)), stiff.mass, stiff.p_BC, stiff.I_BC,
        armature=[0.2],
    )  # fmt: skip
    end = djdyn.translation((1.0, 0, 0))
    load = djdyn.Body("load", "boom.tip", djdyn.Spherical(), 1.0, (0, 0.1, 0.2))
    other = djdyn.Body("load", "boom", djdyn.Spherical(), 1.0, (0, 0.1, 0.2), X_PJ=end)
    q, v = jnp.array([0.3, 1, 0.1, 0.2, 0.3]), jnp.array([1.0, 2.0, 3.0, 4.0])
    load, other = (
        eqx.tree_at(lambda b: b.I_BC, b, jnp.diag(jnp.array([0.1, 0.2, 0.15])))
        for b in (load, other)
    )
    tau = jnp.ones(4)
    first, second = (
        quick_jit(lambda q, v, m=m: djdyn.forward_dynamics(m, q, v, tau))(q, v)
        for m in (djdyn.Mechanism((stiff, load)), djdyn.Mechanism((rigid, other)))
    )
    assert np.allclose(first, second, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("modes", "published"),
    [(1, [118.484]), (2, [89.051, 427.151]), (4, [88.954, 288.389])],
)
def test_hinged_boom_has_the_published_frequencies(modes, published):
    """Clamped modes behind a hinge; the beam itself has 88.9535 and 288.266 Hz.

    The published ones are of exact modes: forty elements come near enough.
    """
    body = hinged(steel_boom(40), {"xz": modes}, "vibration")
    m = reduced_mechanism(djdyn.Mechanism((body,), gravity_W=(0, 0, 0)))
    still = jnp.zeros(m.nv)

    @quick_jit
    def linearised(q):
        force = lambda q: djdyn.inverse_dynamics(m, q, still, still)
        return jax.jacfwd(force)(q), djdyn.mass_matrix(m, q)

    values = scipy.linalg.eigh(*linearised(m.q0()), eigvals_only=True)
    found = np.sqrt(np.maximum(values[1:], 0)) / (2 * np.pi)
    assert np.allclose(found[: len(published)], published, rtol=0, atol=5.1e-4)


def test_sag_under_gravity():
    """The tip of the clamped boom, with two modes and with what a load is exact by."""
    bodies = [
        hinged(steel_boom(), {"xz": n}, "vibration", joint=djdyn.Fixed())
        for n in (2, 8)
    ]
    sags = []
    for body in bodies:
        y = djdyn.equilibrium(djdyn.System(djdyn.Mechanism((body,))))
        sags.append(
            float(djdyn.frame_pose(djdyn.Mechanism((body,)), y.q, "boom.tip").p[2])
        )
    assert np.allclose(sags[0], -9.32320e-4, atol=5e-9)
    assert np.allclose(sags[1], -9.33171e-4, atol=3e-8)


def column(axial_load, modes=3):
    """Lowest eigenvalue of a clamped column's stiffness under a load at its tip."""
    body = hinged(soft_beam(8), {"xz": modes}, "vibration", joint=djdyn.Fixed())
    m = reduced_mechanism(djdyn.Mechanism((body,), gravity_W=(0, 0, 0)))
    F = jnp.zeros((len(m.bodies) + 1, 6)).at[m.index("boom.tip"), 3].set(-axial_load)
    still = jnp.zeros(m.nv)
    force = lambda q: djdyn.inverse_dynamics(m, q, still, still, F)
    return np.linalg.eigvalsh(quick_jit(jax.jacfwd(force))(m.q0()))[0]


def test_a_column_buckles_at_eulers_load():
    """Loads on nodes stiffen and soften; modes find the load from above."""
    EI = 2e8 * 0.05**4 / 12
    critical = np.pi**2 * EI / 4
    assert column(0.9999 * critical) > 0 > column(1.003 * critical)


def test_a_rotating_blade_has_the_published_frequencies():
    """Hodges and Rutkowski, Free-vibration analysis of rotating beams (1981)."""
    beam = soft_beam(10, rotary_inertia=False)
    body = hinged(beam, {"xz": 6}, "vibration", joint=djdyn.Revolute((0, 0, 1)))
    m = reduced_mechanism(djdyn.Mechanism((body,), gravity_W=(0, 0, 0)))
    scale = float(jnp.sqrt(2e8 * 0.05**4 / 12 / (1000 * 0.05**2)))

    @quick_jit
    def frequencies(speed):
        v = jnp.zeros(m.nv).at[0].set(speed * scale)
        force = lambda q: djdyn.inverse_dynamics(m, q, v, 0 * v)[1:]
        K = jax.jacfwd(force)(m.q0())[:, 1:]
        # Modes are orthonormal: the spin does not couple to bending across its plane.
        return jnp.sqrt(jnp.linalg.eigvalsh(K)[:2]) / scale

    for speed, published in (
        (0.0, (3.51602, 22.0345)),
        (2.0, (4.13732, 22.6149)),
        (6.0, (7.36037, 26.8091)),
        (12.0, (13.1702, 37.6031)),
    ):
        assert np.allclose(frequencies(speed), published, rtol=3e-4), speed


def test_momentum_and_energy_in_free_flight():
    body = hinged(soft_beam(), {"xz": 1, "xy": 1, "torsion": 1}, "vibration")
    body = eqx.tree_at(lambda b: b.joint, body, djdyn.Free())
    load = djdyn.Body("load", "boom.tip", djdyn.Revolute((0, 0, 1)), 0.4, (0.1, 0, 0))
    load = eqx.tree_at(lambda b: b.I_BC, load, 1e-3 * jnp.eye(3))
    system = djdyn.System(djdyn.Mechanism((body, load), gravity_W=(0, 0, 0)))
    y0 = system.initial_state(
        v={"boom": [2, 3, 1, 0.5, 0, 0], "boom.modes": [0.2, 0.1, 0.05], "load": 2.0}
    )
    run = djdyn.simulate(system, 0.2, y0, solver="rk4", dt=2e-4, saveat=5)
    momentum = run.map(lambda now: reactions.momentum(now.world))
    assert np.allclose(momentum, momentum[0], rtol=1e-8, atol=1e-9)
    assert np.allclose(run.energy(), run.energy()[0], rtol=1e-8)
    assert np.ptp(run.q("boom.modes"), axis=0).max() > 1e-3


def test_tip_deflection_has_exact_derivatives():
    def deflection(theta):
        E, height, damping = theta
        beam = Beam((Piece(1.0, Rectangle(0.05, height), elements=3),), E, 8e7, 1000.0)
        body = hinged(beam, {"xz": 0}, damping=damping)
        m = reduced_mechanism(djdyn.Mechanism((body,)))
        system = djdyn.System(m)
        y0 = jax.tree.map(lambda x: x[None], system.initial_state())
        run = djdyn.rollout(system, 0.05, y0, solver="rk4", dt=5e-4, saveat=[0.05])
        return djdyn.frame_pose(m, run.y.q[0, 0], "boom.tip").p[2]

    scales = jnp.array([2e8, 0.05, 0.1])
    loss = lambda x: deflection(scales * x)
    assert_gradient(
        loss, jnp.ones(3), h=1e-4, rtol=1e-6, modes_rtol=1e-9, jit=quick_jit
    )


def test_matrices_of_a_beam_give_the_beam():
    """What is of second order comes from the nodes' shares: it is near, not equal."""
    piece = Piece(1.0, Rectangle(0.05, 0.08), elements=12)
    beam = Beam((piece,), 2e8, 8e7, 1000.0)
    M, K = beam.matrices()
    given = FiniteElements(beam.positions, M, K)
    one = hinged(beam, {"xy": 1, "xz": 1}, "vibration", stress_stiffening=False)
    other = FlexibleBody("boom", "world", one.joint, given, 2, method="vibration")
    assert np.allclose(one.frequencies(), other.frequencies(), rtol=1e-9)
    a, b = one.shape().integrals, other.shape().integrals
    assert np.allclose(a.mass, b.mass)
    for k in ("h0", "J0", "S", "Q0"):
        assert np.allclose(abs(getattr(a, k)), abs(getattr(b, k)), atol=1e-9), k
    for k in ("J1", "J2", "Q1"):
        exact, near = abs(getattr(a, k)), abs(getattr(b, k))
        assert np.allclose(near, exact, atol=1e-2 * exact.max()), k


def test_several_nodes_carry_their_mean():
    beam = soft_beam(4)
    body = hinged(beam, {"xz": 2}, "vibration", nodes={"pair": (3, 4), "end": -1})
    nodes = body.shape().nodes
    modes = body.basis().reshape(5, 6, -1)
    assert np.allclose(nodes.Psi[0, :, 2], modes[3:, 2].mean(0))
    assert np.allclose(nodes.p0[0], [0.875, 0, 0])
    turn = -(modes[4, 2] - modes[3, 2]) / 0.25
    assert np.allclose(nodes.Theta[0, :, 1], turn)
    assert np.allclose(nodes.Theta[1, :, 1], modes[4, 4])


def test_a_fast_beam_without_stiffening_warns():
    body = hinged(
        soft_beam(), {"xz": 1}, "vibration", joint=djdyn.Revolute((0, 0, 1)),
        stress_stiffening=False,
    )  # fmt: skip
    system = djdyn.System(djdyn.Mechanism((body,)))
    y0 = system.initial_state(v={"boom": 20.0})
    with pytest.warns(UserWarning, match="stress stiffening is switched off"):
        djdyn.simulate(system, 0.01, y0, solver="rk4", dt=1e-3, saveat=2)


def test_bad_bodies_are_refused_in_a_sentence():
    beam = soft_beam()
    for change, said in (
        ({"modes": {"xz": 7}}, "7 modes 'xz' are asked for, but only 6 degrees"),
        ({"modes": {"up": 1}}, "unknown family of modes 'up'"),
        ({"modes": {"xz": 5}, "method": "craig_bampton"}, "only 4 degrees"),
        ({"modes": {"xz": -1}}, "0 or more, not -1"),
        ({"nodes": {"tip": 9}}, r"nodes \[9\] are not among 4"),
        ({"nodes": {"modes": 1}}, "cannot be called 'modes'"),
        ({"damping": [0.1, 0.2]}, "damping has shape"),
        ({"method": "guess"}, "method is one of"),
    ):
        given = {"modes": {"xz": 1}, "method": "vibration", **change}
        with pytest.raises(ValueError, match=f"flexible body 'boom': .*{said}"):
            hinged(beam, **given)
    M, K = beam.matrices()
    own = np.array([i for i in range(24) if i % 6 < 3])
    solid = FiniteElements(beam.positions, M[np.ix_(own, own)], K[np.ix_(own, own)])
    with pytest.raises(ValueError, match="hold a frame by three of them"):
        FlexibleBody("boom", "world", djdyn.Fixed(), solid, 1)
