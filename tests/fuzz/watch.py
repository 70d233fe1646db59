"""A watch on files that must not be opened, by inotify where there is one."""

import ctypes
import os
import sys
from pathlib import Path


IN_ACCESS, IN_OPEN = 0x1, 0x20


class Watch:
    """Notices whether any file of a folder is opened, also by compiled libraries."""

    def __init__(self, folder: Path):
        self._file = -1
        if sys.platform == "linux":
            libc = ctypes.CDLL(None, use_errno=True)
            self._file = libc.inotify_init1(os.O_NONBLOCK)
            wanted = IN_ACCESS | IN_OPEN
            libc.inotify_add_watch(self._file, os.fsencode(folder), wanted)

    @property
    def blind(self) -> bool:
        """Whether this system tells nothing of files that are opened."""
        return self._file < 0

    def opened(self) -> bool:
        """Return whether a file was opened since the last call."""
        if self.blind:
            return False
        try:
            return bool(os.read(self._file, 65536))
        except BlockingIOError:
            return False
