"""Names the limits of this process's memory, for the error of a process that ran out of it."""

import os
import resource
from contextlib import suppress
from pathlib import Path

_LIMITS = ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d"))
_CGROUPS = Path("/sys/fs/cgroup")


def out_of_memory() -> str:
    """The error text: the memory in use so far, the limits, and advice."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return (
        f"out of memory ({_megabytes(used)} in use so far; limits: {limits()}): raise the limit or use fewer "
        "--threads; nothing is lost, the same command goes on from where it stopped"
    )


def limits() -> str:
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
