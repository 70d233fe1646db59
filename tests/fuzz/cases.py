"""Cases: a kind of file, a number and a seed make a file and say who reads it."""

import contextlib
import dataclasses
import functools
import io
import json
import random
import struct
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import controllers
import djdyn
from djdyn.io import from_mjcf, from_urdf
from djdyn.io.moordyn import read_moordyn
from djdyn.io.scenario import read_scenario
from estimation.markers.files import read_c3d, read_csv, read_ndi, read_trc
from estimation.measurements import read_table
from experiments.__main__ import main
from experiments.machine.identify import prepared
from experiments.machine.kinds import KINDS

from . import seeds
from .mutate import mutate_bytes, mutate_data, mutate_text, mutate_xml


LONGEST_SENTENCE = 1000  # letters
DEEP = ("[" * 9000 + "]" * 9000, "{a=" * 9000 + "1" + "}" * 9000, "1\n[" + "a." * 9000)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of file: its ending, its reader, sound ones, and a maker of mutants."""

    suffix: str
    read: Callable[[Path], Any]
    sound: Callable[[], list[bytes]]
    make: Callable[[random.Random], bytes]


def outcome(read: Callable[[Path], Any], path: Path) -> tuple[str, str]:
    """Read a file; return `result`, `sentence` or `raw`, and what was said."""
    try:
        read(path)
    except (ValueError, OSError) as error:
        said = str(error)
        short = len(said) <= LONGEST_SENTENCE and said.isprintable()
        if short and path.name in said and type(error) is not UnicodeDecodeError:
            return "sentence", said
        return "raw", f"{type(error).__name__}: {said[:2000]}"
    except (Exception, RecursionError, MemoryError) as error:
        return "raw", f"{type(error).__name__}: {str(error)[:2000]}"
    return "result", ""


def _scenarios() -> list[bytes]:
    return [seeds.toml(data).encode() for data in seeds.scenarios()]


def _scenario(rng: random.Random) -> bytes:
    data = rng.choice(seeds.scenarios())
    if rng.random() < 0.8:
        text = seeds.toml(mutate_data(rng, data))
    else:
        text = mutate_text(rng, seeds.toml(data))
    if rng.random() < 0.02:
        text = text.replace("1.0", rng.choice(DEEP), 1)
    return _encoded(rng, text)


def _encoded(rng: random.Random, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return mutate_bytes(rng, data) if rng.random() < 0.1 else data


def _text(source: str) -> Callable[[random.Random], bytes]:
    return lambda rng: _encoded(rng, mutate_text(rng, source))


def _xml(source: str) -> Callable[[random.Random], bytes]:
    return lambda rng: _encoded(rng, mutate_xml(rng, source))


@functools.cache
def _marker_seed(suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return seeds.markers(Path(folder), suffix)


def _marker_text(suffix: str) -> Callable[[random.Random], bytes]:
    return lambda rng: _text(_marker_seed(suffix).decode())(rng)


def _c3d(rng: random.Random) -> bytes:
    """Mutate header and parameters more often than the points."""
    data = _marker_seed(".c3d")
    if rng.random() < 0.3:  # one field of the header
        at = 2 * rng.randrange(12)
        word = struct.pack("<H", rng.choice((0, 1, 2, 0x7FFF, 0x8000, 0xFFFF)))
        return data[:at] + word + data[at + 2 :]
    return mutate_bytes(rng, data, rng.choice((24, 512, 1536, None)))


GAINS = json.dumps(
    {"gains": {"pid.kp": 3.0, "pid.K": [[1.0, 2.0]]}, "summary": "done"}, indent=1
)


@functools.cache
def _series_seed(suffix: str) -> bytes:
    import xarray as xr

    from djdyn.simulation.series import save_dataset

    time = ("time", [0.0, 0.1, 0.2], {"units": "s"})
    data = xr.Dataset({"q": ("time", [1.0, 2.0, 3.0])}, coords={"time": time})
    with tempfile.TemporaryDirectory() as folder:
        save_dataset(data, Path(folder) / f"seed{suffix}")
        return (Path(folder) / f"seed{suffix}").read_bytes()


def _series(suffix: str) -> Callable[[random.Random], bytes]:
    return lambda rng: mutate_bytes(rng, _series_seed(suffix))


def _text_kind(suffix: str, read: Callable[[Path], Any], source: str) -> Kind:
    return Kind(suffix, read, lambda: [source.encode()], _text(source))


def _xml_kind(suffix: str, read: Callable[[Path], Any], source: str) -> Kind:
    return Kind(suffix, read, lambda: [source.encode()], _xml(source))


def _marker_kind(suffix: str, read: Callable[[Path], Any]) -> Kind:
    make = _c3d if suffix == ".c3d" else _marker_text(suffix)
    return Kind(suffix, read, lambda: [_marker_seed(suffix)], make)


def _series_kind(suffix: str) -> Kind:
    sound = lambda: [_series_seed(suffix)]
    return Kind(suffix, djdyn.load_dataset, sound, _series(suffix))


def _read_scenario(path: Path) -> Any:
    return read_scenario(path, KINDS)


def _identification(rng: random.Random) -> bytes:
    """Mutate what a scenario says of its measurements, and nothing else."""
    data = tomllib.loads(seeds.IDENTIFY)
    data["identify"] = mutate_data(rng, {"identify": data["identify"]}).get("identify")
    if data["identify"] is None:
        del data["identify"]
    return _encoded(rng, seeds.toml(data))


@functools.cache
def _parquet_seed() -> bytes:
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.parquet"
        pd.DataFrame({"t": [0.0, 0.1, 0.2, 0.3], "x": [1, 2, 3, 4]}).to_parquet(path)
        return path.read_bytes()


def _parquet(rng: random.Random) -> bytes:
    return mutate_bytes(rng, _parquet_seed())


def _simulate(path: Path) -> None:
    """Run the command on a scenario; raise what it says if its status is 2."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = main(["simulate", str(path), "--out", str(path.parent / "out")])
    if status == 2:
        raise ValueError(said.getvalue().removeprefix("djdyn: ").removesuffix("\n"))


READERS = {
    "scenario": Kind(".toml", _read_scenario, _scenarios, _scenario),
    "simulate": Kind(".toml", _simulate, _scenarios, _scenario),
    "identify": Kind(
        ".toml", prepared, lambda: [seeds.IDENTIFY.encode()], _identification
    ),
    "table": _text_kind(".csv", read_table, seeds.RECORD),
    "table-parquet": Kind(".parquet", read_table, lambda: [_parquet_seed()], _parquet),
    "csv": _marker_kind(".csv", read_csv),
    "trc": _marker_kind(".trc", read_trc),
    "ndi": _marker_kind(".xls", read_ndi),
    "c3d": _marker_kind(".c3d", read_c3d),
    "mjcf": _xml_kind(".xml", from_mjcf, seeds.MJCF),
    "urdf": _xml_kind(".urdf", from_urdf, seeds.URDF),
    "moordyn": _text_kind(".dat", read_moordyn, seeds.DECK),
    "gains": _text_kind(".json", controllers.load_gains, GAINS),
    "series-npz": _series_kind(".npz"),
    "series-nc": _series_kind(".nc"),
}


def prepare(root: Path) -> None:
    """Make a folder for a case, and one beside it that nobody may read."""
    here, outside = root / "case", root / "outside"
    here.mkdir(parents=True)
    outside.mkdir()
    (root / "empty").mkdir()
    (here / "arm.xml").write_text(seeds.MJCF)
    (here / "arm.urdf").write_text(seeds.URDF)
    (here / "record.csv").write_text(seeds.RECORD)
    (outside / "secret.csv").write_text(seeds.RECORD)
    (outside / "secret.xml").write_text(seeds.MJCF)
    (outside / "secret.toml").write_text(seeds.ROD)
    corner = struct.pack("<12fH", *map(float, (0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1)), 0)
    (outside / "secret.stl").write_bytes(bytes(80) + struct.pack("<I", 4) + 4 * corner)
    (outside / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (here / "link.xml").symlink_to(outside / "secret.xml")


def write(root: Path, kind: str, seed: int, number: int) -> Path:
    """Write the file of a case, the same each time, and return its path."""
    rng = random.Random(f"{seed} {kind} {number}")
    path = root / "case" / f"case{READERS[kind].suffix}"
    path.write_bytes(READERS[kind].make(rng))
    return path
