"""Options of a MoorDyn deck: used, needless here, or refused by name."""

from .moordyn_rows import Row


USED = {  # by any of their names, in lower case
    "gravity": ("g", "gravity"),
    "density": ("rho", "rhow", "wtrdnsty"),
    "depth": ("wtrdpth",),
    "time_step": ("dtm", "dt"),
    "bed_stiffness": ("kbot", "kb"),
    "bed_damping": ("cbot", "cb"),
    "friction": ("frictioncoefficient",),
    "friction_damping": ("fricdamp", "cv"),
    "start_time": ("tmaxic", "ictmax"),
    "wave_step": ("dtwave",),
}
FILES = {"bathymetry": ("seafloorfile",)}
MODES = {"waves": ("wavekin",), "currents": ("currents",)}
NEEDLESS = (  # how MoorDyn steps, looks for its start, and prints
    *("cfl", "tscheme", "unifycurrentgrid"),
    *("dtic", "icdt", "cdscaleic", "icdfac", "threshic", "icthresh"),
    *("icgendynamic", "gendynamicic", "fileic", "icfile"),
    *("writelog", "writeunits", "dtout", "disableoutput", "disableouttime"),
    *("inertialf", "inertialf_rampt", "outswitch"),
)
OFF = {  # options that are supported at one value alone
    "statdynfricscale": ("friction", 1.0),
    "mc": ("friction", 1.0),
    "mu_kt": ("friction", 0.0),
    "mu_ka": ("friction", 0.0),
}
WAVES = (0, 1, 2, 3, 7)  # values of WaveKin that are read
CURRENT_FILES = {
    1: "current_profile.txt",
    2: "current_profile_dynamic.txt",
    5: "current_profile_4d.txt",
}


def _field(name: str, table: dict[str, tuple[str, ...]]) -> str | None:
    return next((field for field, names in table.items() if name in names), None)


def unsupported_option(row: Row) -> tuple[str, str] | None:
    """Return the kind and the name of an option that asks for what is not supported."""
    row.need(2)
    name, value = row.words[1].lower(), row.words[0]
    if name in OFF and row.number(0) != OFF[name][1]:
        return OFF[name][0], row.words[1]
    mode = _field(name, MODES)
    if mode == "waves" and row.whole(0) not in WAVES:
        return "waves", f"{row.words[1]} {value}"
    if mode == "currents" and row.whole(0) not in (0, *CURRENT_FILES):
        return "currents", f"{row.words[1]} {value}"
    if name == "waterkin" and value.upper() not in ("0", "NONE", '""'):
        return "waves", row.words[1]
    return None


def option(row: Row) -> dict[str, float | int | str]:
    """Return what an option sets, by field of the deck; nothing if it is needless."""
    name, value = row.words[1].lower(), row.words[0]
    if field := _field(name, FILES):
        return {field: value}
    if field := _field(name, USED):
        return {field: row.number(0)}
    if field := _field(name, MODES):
        return {field: row.whole(0)}
    if name in NEEDLESS or name in OFF or name == "waterkin":
        return {}
    raise row.error(f"unknown option {row.words[1]!r}")
