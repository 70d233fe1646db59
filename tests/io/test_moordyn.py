"""MoorDyn's decks: what MoorDyn takes is read, what is not held is named."""

import math

import numpy as np
import pytest

from djdyn.io import read_moordyn
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
        ("0       WaveKin", "5 WaveKin", r"waves of WaveKin 5, which"),
        ("0       WaveKin", "3 Currents", r"currents of Currents 3, which"),
        ("0       WaveKin", "0.2 mu_kT", r"friction of mu_kT, which"),
        ("0       WaveKin", "0.2 FricCoeff", r"unknown option 'FricCoeff'"),
        ("0       WaveKin", "--- WINGS ---", r"line 31 \(WINGS\): unknown heading"),
        ("0.05  0.0", "0.05 0.0 0.7", r"vortex of line type rope \(Cl 0.7\)"),
        ("4       3       30.5", "4 R2B 30.5", "line 2 ends at unknown rod 2"),
        ("4       3       30.5", "4 X3 30.5", "a point or a rod's end, got 'X3'"),
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
        ("FairTen1", "--- FAILURE\n(-)\n(-)\n1 2", "failure of section FAILURE"),
    ],
)
def test_what_is_wrong_is_said(old, new, said):
    assert old in DECK
    with pytest.raises(ValueError, match=said):
        read_moordyn(DECK.replace(old, new))


def test_all_that_is_not_held_is_named_at_once_and_can_be_ignored(tmp_path):
    more = DECK.replace("0       WaveKin", "5 WaveKin\n0.5 FrictionCoefficient")
    more = more.replace("FairTen1", "--- FAILURE\n(-)\n(-)\n1 2")
    more = more.replace("1.674E9", "1.674E9|3e9")
    with pytest.raises(ValueError, match=r"curve .*; waves .*; failure "):
        read_moordyn(more)
    file = tmp_path / "lines.txt"
    file.write_text(more)
    deck = read_moordyn(file, ignore=("curve", "waves", "failure"))
    assert deck.options["FrictionCoefficient"] == "0.5"
    assert (deck.friction, deck.time_step) == (0.5, 0.001)  # ignored is nothing else
    assert (deck.waves, deck.folder) == (0, tmp_path)
    assert deck.line_types["chain"].EA == 1.674e9
    with pytest.raises(ValueError, match="cannot ignore 'wind'"):
        read_moordyn(more, ignore=("wind",))


def test_long_lists_of_what_is_not_held_are_counted():
    types = "".join(f"t{i} 0.1 8 5e6|1 2e4 0 1 1 0 0\n" for i in range(30))
    more = DECK.replace("rope       0.1", types + "rope 0.1")
    with pytest.raises(ValueError, match=r"type t2 \(5e6\|1\) and 27 more, which"):
        read_moordyn(more)


OTHER_SPELLINGS = """\
Free text, also of lines and points
--------------------- MoorDyn Input File ------------------------------------
---------------------- LINE DICTIONARY ---------------------------------------
TypeName Diam Mass/m EA BA/-zeta EI Cd Ca CdAx CaAx Cl dF cF
(-)
rope 0.1 8 5e6 -0.5 10 1.2 1.0 0.05 0.3 0.7 0.08 0.18
----------- ROD DICTIONARY -----------
TypeName Diam Mass/m Cd Ca CdEnd CaEnd
(-)
can 0.5 100 0.6 1.0 1.2 0.9
--------- BODY LIST ---------
ID Attachment X0 Y0 Z0 r0 p0 y0 Mass CG I Volume CdA Ca
(-)
1 CoupledPinned 0 0 -5 0 0 0 10 0 1 0 0 0
---- ROD PROPERTIES ----
ID RodType Attachment Xa Ya Za Xb Yb Zb NumSegs RodOutputs
(-)
1 can Body1Pinned 0 0 0 3 0 4 2 p
--------CONNECTION PROPERTIES--------
ID Attachment X Y Z Mass Volume FX FY FZ CdA Ca
(-)
1 fix 40 0 -50 0 0 1 2 3 0.1 0.2
------ LINE PROPERTIES ------
ID LineType AttachA AttachB UnstrLen NumSegs LineOutputs
(-)
1 rope P1 R1B 60 1 ptUD
------------------ SOLVER    OPTIONS------------------
1e5 kb - bottom stiffness
2e4 cb
0.4 FrictionCoefficient
100 CV
999 rhoW
0 ICTmax
lEuler tScheme
-------------------- OUTPUT ----------------
FairTen1
------- need this line -------
"""


def test_headings_options_and_words_may_be_spelled_otherwise():
    deck = read_moordyn(OTHER_SPELLINGS)
    assert (deck.bed_stiffness, deck.bed_damping) == (1e5, 2e4)
    assert (deck.friction, deck.friction_damping) == (0.4, 100.0)
    assert (deck.gravity, deck.density, deck.depth) == (9.80665, 999.0, 50.0)
    assert (deck.start_time, deck.options["tScheme"]) == (0.0, "lEuler")
    rod, point, line = deck.rods[1], deck.points[1], deck.lines[1]
    assert (rod.kind, rod.body, rod.length, rod.segments) == ("body pinned", 1, 5.0, 2)
    assert (point.kind, point.force) == ("fixed", (1.0, 2.0, 3.0))
    assert (point.CdA, point.Ca) == (0.1, 0.2)
    assert (line.start, line.end) == (1, (1, "B"))
    assert deck.bodies[1].kind == "coupled pinned"
    assert deck.rod_types["can"].CaEnd == 0.9


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
