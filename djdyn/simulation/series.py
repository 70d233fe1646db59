"""Labelled time series of a trajectory, in memory and on disk.

xarray and pandas are imported when they are asked for, not with the library.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import read_arrays, replacing, write_arrays


if TYPE_CHECKING:
    import xarray


def label_series(
    time: Any, series: dict[str, Any], units: dict[str, str], *, batched: bool
) -> "xarray.Dataset":
    """Return arrays with time as an axis as a dataset with named axes and units."""
    import xarray as xr

    lead = ("lane",) if batched else ()
    data: dict[str, Any] = {}
    for name, value in series.items():
        value = np.asarray(value)
        if value.ndim == len(lead) + 2 and value.shape[-1] == 1:
            value = value[..., 0]
        if value.size:
            extra = tuple(f"{name}_{i}" for i in range(value.ndim - len(lead) - 1))
            about = {"units": units[name]} if units.get(name) else {}
            data[name] = ((*lead, "time", *extra), value, about)
    axis = ("time", np.asarray(time), {"units": "s"})
    return xr.Dataset(data, coords={"time": axis})


def save_dataset(data: "xarray.Dataset", path: str | Path) -> None:
    """Write labelled series as netCDF (`.nc`) or NumPy (`.npz`)."""
    path = Path(path)
    if path.suffix == ".nc":
        with replacing(path) as new:
            data.to_netcdf(new, engine="h5netcdf", invalid_netcdf=False)
    elif path.suffix == ".npz":
        series: Any = {str(name): values.values for name, values in data.items()}
        dims = json.dumps({str(name): values.dims for name, values in data.items()})
        units = {str(name): values.attrs.get("units") for name, values in data.items()}
        header = {"time": data.time.values, "dims": np.array(dims)}
        header["units"] = np.array(json.dumps(units))
        write_arrays(path, header | series)
    else:
        raise ValueError(f"series are saved as .nc or .npz, not {path.name!r}")


LONGEST_READ = 6.0  # s, and more for large files
READING_SPEED = 2e6  # bytes/s, at the least


def _check_hdf5(path: Path) -> None:
    """Raise if another process cannot read all of a file: damage can hang HDF5."""
    script = Path(__file__).with_name("_hdf5_probe.py")
    size = path.stat().st_size if path.is_file() else 0
    limit = LONGEST_READ + size / READING_SPEED
    command = [sys.executable, str(script), str(path.absolute())]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit)
        said = done.stderr.decode("utf-8", "replace").rpartition("\n")[2]
        said = said if done.returncode in (0, 1) else "HDF5 crashes on it"
    except subprocess.TimeoutExpired:
        said = f"HDF5 does not end within {limit:.3g} s"
    if said:
        raise ValueError(f"{path} is not a file of series: {said}")


def load_dataset(path: str | Path, group: str | None = None) -> "xarray.Dataset":
    """Return the labelled series in a file that `Trajectory.save` wrote.

    `group` is one of a netCDF file with several, such as `series.nc` of a study.
    """
    import xarray as xr

    path = Path(path)
    if path.suffix == ".nc":
        _check_hdf5(path)
        try:
            return xr.load_dataset(path, engine="h5netcdf", group=group)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ValueError(f"{path} is not a file of series: {error}") from None
    if group is not None:
        raise ValueError(f"{path} has no groups: only .nc files do")
    saved = read_arrays(path, "a file of series")
    try:
        dims, units = (json.loads(str(saved[k])) for k in ("dims", "units"))
        about = {name: {"units": unit} if unit else {} for name, unit in units.items()}
        data = {name: (dims[name], saved[name], about[name]) for name in dims}
        time = ("time", saved["time"], {"units": "s"})
        return xr.Dataset(data, coords={"time": time})
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{path} is not a file of series: {error}") from None
