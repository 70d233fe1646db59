"""MoorDyn's decks: what MoorDyn takes is read, what is not held is named."""

import math

import numpy as np
import pytest

from djdyn.io import from_moordyn
from djdyn.io.moordyn import read_moordyn
from experiments.harness import moordyn_peer as peer


DECK = """\
------- MoorDyn Input File -------
A mooring
with a buoy
of three lines
---------------------- LINE TYPES ----------------------
TypeName   Diam  Mass/m   EA      BA/-zeta  EI   Cd   Ca   CdAx  CaAx
(-)        (m)   (kg/m)   (N)     (N-s/-)   (..) (-)  (-)  (-)   (-)
chain      0.252 390      1.674E9 -1.0      0.0  1.37 0.64 0.0   0.1   # a comment
rope       0.1   8        5e6     2e4       100  1.2  1.0  0.05  0.0
---------------------- BODIES ----------------------
ID  Attachment X0 Y0 Z0  r0 p0 y0  Mass  CG*    I*        Volume CdA* Ca*
(-) (-)        (m) ...
1   Free       0  0  -10 0  90 0   4e3   0|0|-1 1e3|2e3|3e3 2.0  1|2  0.5
---------------------- POINTS ----------------------
ID Attachment X    Y  Z    Mass Volume CdA  Ca
(-) (-)       (m) (m) (m)  (kg) (m^3)  (m^2) (-)
1  Anchor     400  0  -50  0    0      0    0
2  Body1      1.0  0  0.5  0    0      0    0
3  Vessel     0    0  0    0    0      0    0
4  Connect    10   0  -20  100  0.2    0.1  1.0
---------------------- LINES ----------------------
ID LineType AttachA AttachB UnstrLen NumSegs LineOutputs
(-) (-)     (-)     (-)     (m)      (-)     (-)
1  chain    1       2       410      40      tp
2  rope     4       3       30.5     10      -
---------------------- OPTIONS ----------------------
0.001   dtM       time step
9.81    g
1025.0  rhoW      water
50      WtrDpth
0       WaveKin
---------------------- OUTPUTS ----------------------
FairTen1
Line2N3T
--------------------- need this line ------------------
"""


def test_every_number_is_read():
    deck = read_moordyn(DECK)
    chain, rope = deck.line_types["chain"], deck.line_types["rope"]
    assert (chain.damping, chain.damping_ratio) == (None, 1.0)
    assert (rope.damping, rope.damping_ratio, rope.EI) == (2e4, None, 100.0)
    assert (chain.diameter, chain.mass, chain.EA) == (0.252, 390.0, 1.674e9)
    assert (chain.Cd, chain.Ca, chain.CdAx, chain.CaAx) == (1.37, 0.64, 0.0, 0.1)
    body = deck.bodies[1]
    assert (body.kind, body.mass, body.volume) == ("free", 4e3, 2.0)
    assert body.roll_pitch_yaw == (0.0, math.pi / 2, 0.0)
    assert (body.centre, body.inertia) == ((0, 0, -1), (1e3, 2e3, 3e3))
    assert (body.CdA, body.Ca) == ((1.0, 2.0), (0.5,))
    kinds = {i: (p.kind, p.body) for i, p in deck.points.items()}
    assert kinds == {
        1: ("fixed", None),
        2: ("body", 1),
        3: ("coupled", None),
        4: ("free", None),
    }
    point = deck.points[4]
    assert (point.position, point.mass) == ((10.0, 0.0, -20.0), 100.0)
    assert (point.volume, point.CdA, point.Ca) == (0.2, 0.1, 1.0)
    line = deck.lines[2]
    assert (line.type, line.start, line.end) == ("rope", 4, 3)
    assert (line.length, line.segments) == (30.5, 10)
    assert (deck.gravity, deck.density, deck.depth) == (9.81, 1025.0, 50.0)
    assert (deck.time_step, deck.options["WaveKin"]) == (0.001, "0")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0       WaveKin", "3 WaveKin", r"waves of WaveKin"),
        ("1.674E9", "1.6e9|2e9", r"curve of line type chain \(1.6e9\|2e9\)"),
        ("3  Vessel", "3 Turbine1", "turbine of points 3"),
        ("rope       0.1", "rope 0.1.2", "expected a number, got '0.1.2'"),
        ("1  chain    1", "1  chian    1", "line 1 is of unknown type 'chian'"),
        ("2  rope     4 ", "2  rope     7 ", "line 2 ends at unknown point 7"),
        ("2  rope     4 ", "1  rope     4 ", "a second 1"),
        ("2  Body1", "2  Body3", "point 2 is on unknown body 3"),
        ("3  Vessel", "3 Ship", r"line 19 \(POINTS\): unknown attachment 'Ship'"),
        ("410 ", "-4 ", "a positive length"),
        ("0    0    -50".replace("    ", "  "), "0 -50", "expected 9 columns, got 8"),
        ("FairTen1", "--- FAILURE\n(-)\n(-)\n1 2", "section of FAILURE"),
    ],
)
def test_what_is_wrong_is_said(old, new, said):
    assert old in DECK
    with pytest.raises(ValueError, match=said):
        read_moordyn(DECK.replace(old, new))


def test_all_that_is_not_held_is_named_at_once_and_can_be_ignored(tmp_path):
    more = DECK.replace("0       WaveKin", "3 WaveKin\n0.5 FricCoeff")
    more = more.replace("FairTen1", "--- FAILURE\n(-)\n(-)\n1 2")
    more = more.replace("1.674E9", "1.674E9|3e9")
    with pytest.raises(ValueError, match=r"curve .*; waves .*; friction .*; section"):
        read_moordyn(more)
    file = tmp_path / "lines.txt"
    file.write_text(more)
    deck = read_moordyn(file, ignore=("curve", "waves", "friction", "section"))
    assert deck.options["FricCoeff"] == "0.5"
    assert deck.line_types["chain"].EA == 1.674e9
    with pytest.raises(ValueError, match="cannot ignore 'wind'"):
        read_moordyn(more, ignore=("wind",))


@pytest.mark.validation
def test_moordyn_takes_what_we_read_and_falls_short_at_the_fairlead():
    """CAB-2: half a segment's weight is missing from its tension, not its force."""
    pytest.importorskip("moordyn")
    text = peer.catenary_deck(20, 2e-4)
    deck = read_moordyn(text)
    kind = deck.line_types["chain"]
    wet = kind.mass - deck.density * np.pi / 4 * kind.diameter**2
    assert math.isclose(wet * deck.gravity, 698.333, rel_tol=1e-5)
    run = peer.run_moordyn(text, 1.0, 0.01)
    missing = deck.lines[1].length / 40 * 698.333 * 0.73  # along the line there
    error = run.tension[-1] / peer.CATENARY_TENSION - 1
    assert abs(error + missing / peer.CATENARY_TENSION) < 1e-3
    assert abs(run.force[-1] / peer.CATENARY_TENSION - 1) < 1e-3


@pytest.mark.validation
def test_moordyn_on_the_heave_driven_payload():
    """CAB-3 with 20 segments: [14 615, 18 336] N on the fairlead over 20 s."""
    pytest.importorskip("moordyn")
    text = peer.heave_deck(20, 5e-4)
    kind = read_moordyn(text).line_types["wire"]
    assert math.isclose(kind.axial_damping(5.0), 15_000.0)  # as MoorDyn reports
    run = peer.run_moordyn(text, 20.0, 0.01, peer.heave)
    assert abs(run.force.min() - 14_615) < 10
    assert abs(run.force.max() - 18_336) < 10
    assert run.positions.shape == (2001, 2, 3)
    assert run.wall > 0


def test_a_deck_as_a_system_at_rest():
    """CAB-2, elastic catenary: the exact tension at the fairlead, by 20 elements."""
    system, y = from_moordyn(peer.catenary_deck(20, 1e-3))
    found = system.at(0.0, y).signals["line1.head_tension"]
    assert np.isclose(found, peer.CATENARY_TENSION, rtol=5e-4)


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


def test_free_points_and_bodies_hang_at_rest():
    """A buoy on a rope, from which a weight hangs: tensions are weights in water."""
    system, y = from_moordyn(BUOY, elements={2: 2}, ignore=("CaAx",))
    now = system.at(0.0, y)
    assert np.allclose(now.v_dot, 0.0, atol=1e-6)
    rope = 9.81 * (8 - 1000 * math.pi / 4 * 0.1**2)  # N/m
    hung = 9.81 * (100 - 20) + 10 * rope
    lift = 9.81 * (2000 - 1000)
    assert np.isclose(now.signals["line2.head_tension"], hung, rtol=1e-6)
    assert np.isclose(now.signals["line1.head_tension"], lift - hung, rtol=1e-6)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "'chain' has added mass along the line"),
        ({"motions": {"point1": len}}, "a motion of 'point1', but coupled are point3"),
        ({"elements": {7: 3}}, "elements of unknown line 7"),
    ],
)
def test_what_a_system_cannot_hold_is_said(how, said):
    ignore = {} if not how else {"ignore": ("CaAx",)}
    with pytest.raises(ValueError, match=said):
        from_moordyn(DECK, **how, **ignore)
