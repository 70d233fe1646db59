"""MoorDyn's decks as systems, at rest as closed forms have it, and moving."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import FixedEnd
from djdyn.io import from_moordyn
from experiments.harness import moordyn_peer as peer


def test_a_deck_as_a_system_at_rest():
    """CAB-2, elastic catenary: the exact tension at the fairlead, by 20 elements."""
    system, y = from_moordyn(peer.catenary_deck(20, 1e-3))
    found = system.at(0.0, y).signals["line1.head_tension"]
    assert np.isclose(found, peer.CATENARY_TENSION, rtol=5e-4)


WEIGHT = 698.094  # N/m, in water
OC3 = ("chain", 0.09, 77.7066, 384.243e6, -0.8, 0, 1.0, 1.0, 0.0, 0.0)


def test_a_mooring_line_on_the_sea_bed():
    """OC3 without friction: H and V at the fairlead of the elastic catenary with
    touchdown, to 0.1 %.
    """
    density = (77.7066 - WEIGHT / 9.81) / (math.pi / 4 * 0.09**2)
    ends = [
        (1, "Fixed", -848.67, 0, -250, 0, 0, 0, 0),
        (2, "Coupled", 0, 0, 0, 0, 0, 0, 0),
    ]
    options = {"g": 9.81, "rho": density, "WtrDpth": 250, "kBot": 3e6, "cBot": 3e5}
    deck = peer.deck([OC3], ends, [(1, "chain", 1, 2, 902.2, 20, "-")], **options)
    system, y = from_moordyn(deck)
    line: Any = system.parts["line1"]
    f = line.end_loads(system.at(0.0, y), "line1")[1, 3:]
    assert np.isclose(-f[0], 736_938, rtol=1e-3)
    assert np.isclose(-f[2], 535_727, rtol=1e-3)


def test_a_flexible_jumper_at_rest():
    """Lowe and Langley (2006): 11.40 and 45.71 kN on top, 24.04 kN at the bottom."""
    jumper = ("hose", 0.396, 165.0, 500e6, -0.5, 120.8e3, 1.0, 1.0, 0.0, 0.0)
    ends = [
        (1, "Fixed", -100, 0, -55, 0, 0, 0, 0),
        (2, "Coupled", 0, 0, -5, 0, 0, 0, 0),
    ]
    lines = [(1, "hose", 1, 2, 170, 20, "-")]
    options = {"g": 9.807, "rho": 1000, "WtrDpth": 100}
    system, y = from_moordyn(peer.deck([jumper], ends, lines, **options))
    signals = system.at(0.0, y).signals
    found = [float(signals[f"line1.{end}_tension"]) for end in ("head", "tail")]
    wanted = [math.hypot(11.40e3, 45.71e3), math.hypot(11.40e3, 24.04e3)]
    assert np.allclose(found, wanted, rtol=1e-3)


BUOY = """\
---------------------- LINE TYPES ----------------------
name Diam Mass/m EA BA EI Cd Ca CdAx CaAx
(-)
rope 0.1 8 5e6 2e4 0 1.2 1.0 0.05 0.1
---------------------- BODIES ----------------------
ID Attachment X0 Y0 Z0 r0 p0 y0 Mass CG I Volume CdA Ca
(-)
1 Free 0 0 -10 0 0 90 1e3 0 1e3|2e3|3e3 2.0 1|2 0.5
---------------------- POINTS ----------------------
ID Attachment X Y Z Mass Volume CdA Ca
(-)
1 Fixed 0 0 -40 0 0 0 0
2 Body1 0 0 0 0 0 0 0
3 Free 0 0 -20 100 0.02 0.1 1.0
---------------------- LINES ----------------------
ID LineType AttachA AttachB UnstrLen NumSegs LineOutputs
(-)
1 rope 1 2 30 3 -
2 rope 3 2 10 3 -
---------------------- OPTIONS ----------------------
9.81 g
1000 rhoW
--------------------- need this line ------------------
"""


@pytest.mark.slow
def test_free_points_and_bodies_hang_at_rest():
    """A buoy on a rope, from which a weight hangs: tensions are weights in water."""
    system, y = from_moordyn(BUOY, elements={1: 2, 2: 2})
    now = system.at(0.0, y)
    assert np.allclose(now.v_dot, 0.0, atol=1e-6)
    rope = 9.81 * (8 - 1000 * math.pi / 4 * 0.1**2)  # N/m
    hung = 9.81 * (100 - 20) + 10 * rope
    lift = 9.81 * (2000 - 1000)
    assert np.isclose(now.signals["line2.head_tension"], hung, rtol=1e-6)
    assert np.isclose(now.signals["line1.head_tension"], lift - hung, rtol=1e-6)


RIG = """\
---------------------- LINE TYPES ----------------------
name Diam Mass/m EA BA EI Cd Ca CdAx CaAx
(-)
rope 0.05 4 5e6 -0.5 0 1.2 1.0 0.05 0.1
---------------------- ROD TYPES ----------------------
name Diam Mass/m Cd Ca CdEnd CaEnd
(-)
can 0.3 200 0.6 1.0 1.2 1.0
---------------------- BODIES ----------------------
ID Attachment X0 Y0 Z0 r0 p0 y0 Mass CG I Volume CdA Ca
(-)
1 CoupledPinned 0 0 -5 0 0 0 50 0 10 0 0 0
---------------------- RODS ----------------------
ID RodType Attachment Xa Ya Za Xb Yb Zb NumSegs Out
(-)
1 can Body1 0 0 0 0 0 -6 3 -
---------------------- POINTS ----------------------
ID Attachment X Y Z Mass Volume CdA Ca
(-)
1 Coupled -30 0 0 0 0 0 0
2 Fixed 30 0 0 0 0 0 0
3 Free 0 0 -25 0 0 0 0
---------------------- LINES ----------------------
ID LineType AttachA AttachB UnstrLen NumSegs Out
(-)
1 rope 1 3 40 3 -
2 rope 2 3 40 3 -
---------------------- OPTIONS ----------------------
9.81 g
1000 rhoW
60 WtrDpth
2 TmaxIC
--------------------- need this line ------------------
"""


@pytest.mark.slow
def test_a_massless_junction_and_a_rod_on_a_pin_that_moves():
    """Two ropes alike meet in a point without mass: each top carries half the weight.

    The search for rest holds what moves where it begins.
    """
    moves = {
        "point1": lambda t: (-30.0 + 2 * t, 0.0, 0.0),
        "body1": lambda t: (3 * t, 0.0, -5.0),
    }
    system, y = from_moordyn(RIG, motions=moves)
    line: Any = system.parts["line1"]
    state = y.parts["line1"]
    assert line.tail.motion(jnp.array(0.5))[0] == -29.0
    weight = 9.81 * 40 * (4 - 1000 * math.pi / 4 * 0.05**2)
    world = djdyn.forward_kinematics(system.mechanism, y.q, y.v, 0.0)
    still = eqx.tree_at(lambda x: x.tail, line, FixedEnd(point=[-30.0, 0, 0]))
    load = still.snapshot(world.t, state, world, jnp.zeros(2)).load
    assert np.isclose(-load[0, 2], weight, rtol=1e-3)
    assert abs(load[-1, 2]) < 1e-3 * weight  # level where they meet
    assert np.allclose(world.pose("rod1B").p, [0, 0, -11], atol=1e-9)
    end = djdyn.simulate(system, 0.02, y, solver="ros2", dt=0.01)
    assert np.allclose(end.pose("body1").p[-1], [0.06, 0, -5], atol=1e-12)
    assert np.isfinite(end.signal("line1.head_tension")).all()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"ignore": ("CaAx",)}, "cannot ignore 'CaAx'"),
        (
            {"motions": {"point3": len}},
            "a motion of 'point3', but coupled are body1, point1",
        ),
        ({"elements": {7: 3}}, "elements of unknown line 7"),
        ({"start": "slow"}, "not 'slow'"),
    ],
)
def test_what_a_system_cannot_hold_is_said(how, said):
    with pytest.raises(ValueError, match=said):
        from_moordyn(RIG, **how)


def test_bathymetry_and_currents_come_from_files(tmp_path):
    """A slope from file, and a profile, each beside the deck."""
    (tmp_path / "bed.txt").write_text(
        "2 2\n-100 100\n-50 50\n-100 -50 -40\n-100 50 -40\n100 -50 -60\n100 50 -60\n"
    )
    (tmp_path / "current_profile.txt").write_text("-\n-\n-\n-40 0.2\n0 1.0 0.5\n")
    deck = tmp_path / "deck.txt"
    options = "60 WtrDpth\nbed.txt SeafloorFile\n1 Currents\n0.5 FrictionCoefficient"
    deck.write_text(RIG.replace("60 WtrDpth", options))
    system, _ = from_moordyn(deck, start="rough")
    line: Any = system.parts["line1"]
    assert np.isclose(line.ground.level(jnp.array([50.0, 7, 0])), -55.0)
    found = line.fluid.velocity(jnp.array([0.0, 0, -20]), jnp.array(0.0))
    assert np.allclose(found, [0.6, 0.25, 0])
    assert line.ground.friction == 0.5
    with pytest.raises(ValueError, match="read the deck from its file"):
        from_moordyn(deck.read_text())
    (tmp_path / "bed.txt").write_text("2 2\n-100 100\n-50 50\n-100 -50 -40\n")
    with pytest.raises(ValueError, match="a height at each of 2 times 2 points"):
        from_moordyn(deck)
