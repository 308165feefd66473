"""Reports to the operator that a process ran out of memory, even if the process was killed.

Lack of memory ends a process in ways that Python does not see: libraries abort it, or the kernel kills it. So a second
process of a few megabytes waits at a pipe. If the pipe ends without the mark END, the second process writes which input
was being read, how much memory was in use, and the limits. This file is its program, too, so it uses the standard
library only.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_END = "END\n"
_LIMITS = ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d"))
_CGROUPS = Path("/sys/fs/cgroup")
_ADVICE = "if memory ran out, raise the limit or use fewer --threads; the same command goes on from where it stopped"


class LastWords:
    """A context manager around the work. reading: the input that is being read, for the report."""

    def __init__(self) -> None:
        self._reading = ""
        self._limits = limits()
        self._watcher: subprocess.Popen[str] | None = None

    def __enter__(self) -> "LastWords":
        command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(_kills())]
        with suppress(OSError, ValueError):  # without a second process there is no report
            self._watcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self._send(self.words())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, MemoryError):
            error.add_note(self.words())
        if self._watcher is not None:
            self._send(_END)
            with suppress(OSError):
                self._watcher.communicate()

    @property
    def reading(self) -> str:
        return self._reading

    @reading.setter
    def reading(self, what: str) -> None:
        if what != self._reading:
            self._reading = what
            self._send(self.words())

    def words(self) -> str:
        """The report: the input that was being read, and the limits of memory."""
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        while_reading = f" while it read {self._reading}" if self._reading else ""
        return f"{while_reading} (memory: {megabytes:,} MB in use so far; limits: {self._limits}): {_ADVICE}"

    def _send(self, text: str) -> None:
        if self._watcher is not None and self._watcher.stdin is not None:
            with suppress(OSError):
                self._watcher.stdin.write(text if text == _END else json.dumps(text) + "\n")
                self._watcher.stdin.flush()


def limits() -> str:
    """The limits of this process's memory, by the names of their settings."""
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
    with suppress(OSError, IndexError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = _CGROUPS / next(line[3:] for line in lines if line.startswith("0::")).lstrip("/")
        return [folder for folder in (own, *own.parents) if folder.is_relative_to(_CGROUPS)]
    return []


def _kills() -> int:
    """Number of processes of the control group that the kernel has killed for lack of memory."""
    for folder in _own_cgroups():
        with suppress(OSError, ValueError, IndexError):
            lines = (folder / "memory.events").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


def _watch(process: str, kills: int) -> None:
    """The second process: reads the pipe until the first process ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # signals are for the first process, whose end this one reports
    last = ""
    for line in sys.stdin:
        if line == _END:
            return
        with suppress(ValueError):
            last = json.loads(line)
    killed = "was killed by the kernel, which was out of memory," if _kills() > kills else "was killed or aborted"
    sys.stderr.write(f"neardup: process {process} {killed}{last}\n")


if __name__ == "__main__":
    _watch(sys.argv[1], int(sys.argv[2]))
