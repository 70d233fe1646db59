"""The process that JAX's threads belong to: a fork of it would wait for ever."""

import os


_owner: list[int] = []


def refuse_fork() -> None:
    """Raise in a process forked from one in which systems were built or simulated."""
    if not _owner:
        _owner.append(os.getpid())
    if _owner[0] != os.getpid():
        raise RuntimeError(
            "this process was forked from one in which JAX runs, whose threads it has "
            "not: it would wait for ever. Start processes by the method 'spawn' of "
            "multiprocessing, or before the first system is built"
        )
