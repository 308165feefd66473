"""Limits of this process: those of its memory, for the error of a process that ran out of it, and that of open files.

An index keeps each of its tables open, and Kafka clients keep sockets to each broker.
"""

import os
import resource
from contextlib import suppress
from pathlib import Path

from neardup.errors import BadInput

_LIMITS = ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d"))
_CGROUPS = Path("/sys/fs/cgroup")
#: A role or scan with a small index needs about 100. Each table of the index, of 64 MB or more, needs one more.
OPEN_FILES_MIN = 512


def out_of_memory() -> str:
    """The error text: the memory in use so far, the limits, and advice."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return (
        f"out of memory ({_megabytes(used)} in use so far; limits: {memory_limits()}): raise the limit or use fewer "
        "--threads; nothing is lost, the same command goes on from where it stopped"
    )


def memory_limits() -> str:
    """The limits by the names of their settings."""
    found = []
    for limit, name in _LIMITS:
        bytes_max = resource.getrlimit(limit)[0]
        if bytes_max != resource.RLIM_INFINITY:
            found.append(f"{name} {bytes_max >> 10} ({_megabytes(bytes_max)})")
    for folder in _own_cgroups():
        with suppress(OSError, ValueError):
            found.append(f"{folder / 'memory.max'} {_megabytes(int((folder / 'memory.max').read_text()))}")
    found.append(f"the machine's {_megabytes(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'))}")
    return ", ".join(found)


def _megabytes(count: int) -> str:
    return f"{count >> 20:,} MB"


def _own_cgroups() -> list[Path]:
    """The folders of this process's control group and its parents (cgroup version 2)."""
    with suppress(OSError, IndexError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = _CGROUPS / next(line[3:] for line in lines if line.startswith("0::")).lstrip("/")
        return [folder for folder in (own, *own.parents) if folder.is_relative_to(_CGROUPS)]
    return []


def raise_open_files() -> None:
    """Raises the soft limit of open files to the hard limit.

    Raises BadInput if that is less than `OPEN_FILES_MIN`: clients that get no socket wait for one without end.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES_MIN:
        raise BadInput(
            f"the process may open {hard} files only, needed: {OPEN_FILES_MIN} or more: raise its hard limit "
            "(ulimit -Hn, systemd's LimitNOFILE, nofile of the container), and start again"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
