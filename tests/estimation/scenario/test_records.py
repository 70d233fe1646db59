"""Records: columns come in the units of what they measure."""

import numpy as np

from experiments.machine.identify import prepared


SCENARIO = """
[simulation]
t1 = 0.1
solver = "rodas4"
dt = 0.01
[[body]]
name = "mass"
joint = { type = "prismatic", axis = [1, 0, 0], name = "slide" }
mass = 1000.0
[input]
u = 1.0
[part.oil]
type = "Circuit"
oil = { type = "Oil", bulk_modulus = 1e9 }
[part.oil.parts]
P = { type = "Supply", pressure = 200e5 }
A = { type = "Volume", volume = 1e-4, pressure = 100e5 }
throttle = { type = "Orifice", inlet = "P", outlet = "A", area = 1e-6 }
[identify]
records = ["record.csv"]
[identify.free]
"oil.throttle.area" = {}
[identify.channel.pressure]
signal = "oil.A.bar"
noise = 0.1
[identify.channel.place]
signal = "slide.q"
[identify.input.u]
"""


def test_pressures_come_in_bar_and_set_points_may_rest(tmp_path):
    (tmp_path / "machine.toml").write_text(SCENARIO)
    t = np.arange(20) / 100
    rows = [f"{x},{10 + x},{50 - x},{int(x > 0.15)}" for x in t]
    text = "\n".join(["t [s],pressure [MPa],place [mm],u", *rows]) + "\n"
    (tmp_path / "record.csv").write_text(text)
    (record,) = prepared(tmp_path / "machine.toml").records
    assert np.allclose(record.values, np.stack([100 + 10 * t, 0.05 - 1e-3 * t], -1))
    assert np.isclose(record.sigma[0], 1.0)  # bar
    assert not record.faults
