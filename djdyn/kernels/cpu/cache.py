"""The folder of compiled programs on disk, and entries that prove what they are.

Machine code from disk runs in the user's process, so it is loaded only where nobody
else could have written it, and only if it is whole and made from what was asked for.
Whatever does not fit is compiled anew. A folder that cannot be read or written costs
time and nothing else.
"""

import hashlib
import os
import stat
import tempfile
import warnings
from pathlib import Path


MAGIC = b"djdyn kernel 1\n"
DIGEST_BYTES = hashlib.sha256().digest_size
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

_warned: set[Path] = set()


def user_cache() -> Path | None:
    """Return the user's folder of compiled programs, made if need be.

    It is `DJDYN_CACHE`, else `djdyn` in the user's cache folder.

    **Returns:** None where there is none, or where others may write to it.
    """
    given = os.environ.get("DJDYN_CACHE")
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(given) if given else Path(home) / "djdyn"
        return folder if _is_private(folder) else None
    except (OSError, RuntimeError):  # no home, or a disk that refuses
        return None


def load_entry(key: bytes) -> bytes | None:
    """Return the code saved under a key, or None if there is none that fits."""
    try:
        folder = _kernel_folder()
        if folder is None:
            return None
        with open(_entry(folder, key), "rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            data = file.read()
    except OSError:
        return None
    head = len(MAGIC) + 2 * DIGEST_BYTES
    code = data[head:]
    return code if data[:head] == _head(key, code) else None


def save_entry(key: bytes, code: bytes) -> None:
    """Write an entry, whole or not at all."""
    written = None
    try:
        folder = _kernel_folder()
        if folder is None:
            return
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            written = Path(file.name)
            file.write(_head(key, code) + code)
        os.replace(written, _entry(folder, key))
    except OSError:
        if written is not None:
            written.unlink(missing_ok=True)


def _head(key: bytes, code: bytes) -> bytes:
    """Return what an entry opens with: digests of its origin and of its code."""
    origin = hashlib.sha256(key).digest()
    return MAGIC + origin + hashlib.sha256(key + code).digest()


def _entry(folder: Path, key: bytes) -> Path:
    return folder / f"{hashlib.sha256(key).hexdigest()[:32]}.kernel"


def _kernel_folder() -> Path | None:
    above = user_cache()
    folder = None if above is None else above / "kernels"
    return folder if folder is not None and _is_private(folder) else None


def _is_private(folder: Path) -> bool:
    """Whether only the user may write to a folder, which is made if need be."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    private = _is_ours(folder.stat())
    if not private and folder not in _warned:
        _warned.add(folder)
        warnings.warn(
            f"compiled programs are not kept in {folder}, because it belongs to "
            "somebody else or others may write to it: make it yours alone (chmod 700), "
            "or set DJDYN_CACHE to a folder that is",
            stacklevel=2,
        )
    return private


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to the user and nobody else may write to it."""
    if not hasattr(os, "getuid"):  # Windows keeps a user's folders private by itself
        return True
    return status.st_uid == os.getuid() and not status.st_mode & OTHERS_MAY_WRITE
