"""The cache of compiled kernels: its directory, and the choice among code that was compiled for levels of processors.

Compiled code fits one processor, as LLVM names it. Without further steps each machine caches its own code in a
directory of the user; the variable `NUMBA_CACHE_DIR` names another one. A package for many machines, such as an image,
can bring
compiled code: `python -m neardup.warm LEVEL...` compiles for levels of processors into one folder per level beside the
kernels. Then the highest level that the processor has is used, and nothing is written. In each directory the folder is
named by a digest of the sources, because numba notices a changed file, but not a change in a file that it calls. The
kernels of each folder of `ROOMS` have a folder of their own, so a change in a rule leaves the kernels for pages alone.
"""

import hashlib
import os
import platform
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numba

#: Whether kernels are compiled without the private parts of numba: see `neardup.kernels.compiling`.
PLAIN = os.environ.get("NEARDUP_PLAIN_KERNELS", "") not in ("", "0")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of processors. cpu: its name in LLVM; needs: LLVM's names of the features that its code uses."""

    machine: str
    cpu: str
    needs: frozenset[str]


_V3 = frozenset({"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"})
#: Levels by name, the highest first: the levels of the x86-64 ABI from Haswell on, and all 64-bit ARM processors.
LEVELS: Mapping[str, Level] = {
    "x86-64-v4": Level("x86_64", "x86-64-v4", _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "x86-64-v3": Level("x86_64", "x86-64-v3", _V3),
    "arm64": Level("aarch64", "generic", frozenset()),
}


#: Folders of this package with kernels, the lowest first: a kernel calls those of its own folder and of earlier ones.
ROOMS = ("kernels", "rules", "matching/kernels")
#: Sources outside of its folder whose constants the kernels of a room contain.
CONSTANTS = {
    "matching/kernels": (
        *("index/naming_rows.py", "index/posting_rows.py", "index/rows.py", "matching/verdict_columns.py"),
        "sketch/layout.py",
    )
}
PACKAGE = Path(__file__).parents[1]


@cache
def digest(room: str = ROOMS[0]) -> str:
    """Digest of everything that the compiled code of a room depends on, except the processor."""
    found = hashlib.blake2b(digest_size=8)
    for each in ROOMS[: ROOMS.index(room) + 1]:
        for path in [*sorted((PACKAGE / each).glob("*.py")), *(PACKAGE / name for name in CONSTANTS.get(each, ()))]:
            found.update(path.read_bytes())
    found.update(repr((numba.__version__, bool(numba.config.BOUNDSCHECK), PLAIN)).encode())
    return found.hexdigest()


def room_of(file: str | Path) -> str:
    """The room of a kernel's source file; files elsewhere, as of tests, may call kernels of the last room."""
    folder = Path(file).parent
    room = folder.relative_to(PACKAGE).as_posix() if folder.is_relative_to(PACKAGE) else ""
    return room if room in ROOMS else ROOMS[-1]


def shipped(level: str) -> Path:
    """The directory of the code that the package brings for a level."""
    return Path(__file__).parent.with_name("compiled") / level


def folder(directory: str | Path, room: str = ROOMS[0]) -> Path:
    """The folder in a cache directory for the kernels of these sources."""
    return Path(directory) / f"{room.replace('/', '-')}-{digest(room)}"


def suiting(levels: Collection[str], machine: str, features: Collection[str]) -> str | None:
    """The highest of the levels that a processor with these features can run; None if there is none."""
    for name, level in LEVELS.items():
        if name in levels and level.machine == machine and level.needs <= set(features):
            return name
    return None


def _features() -> set[str]:
    try:
        return {name for name, has in llvm.get_host_cpu_features().items() if has}
    except RuntimeError:  # LLVM cannot tell on some systems
        return set()


def choose() -> tuple[str, str | None]:
    """The cache directory, and the level of the code in it; None: code of this processor."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return given, None
    levels = [] if os.environ.get("NUMBA_CPU_NAME") else [name for name in LEVELS if folder(shipped(name)).is_dir()]
    if levels:
        name = suiting(levels, platform.machine(), _features())
        if name is not None:
            return str(shipped(name)), name
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "neardup"), None


def _writable(directory: Path) -> bool:
    try:
        os.makedirs(directory, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _begin() -> None:
    """Set numba's cache directory and processor. Runs once, before the first compilation."""
    numba.config.CACHE_DIR, level = choose()
    if PLAIN:
        # Numba's cache does not notice a change in a file that a kernel calls, so each state of the sources has its
        # own.
        numba.config.CACHE_DIR = str(folder(numba.config.CACHE_DIR, ROOMS[-1]))
    if level is not None:
        numba.config.CPU_NAME, numba.config.CPU_FEATURES = LEVELS[level].cpu, ""


_begin()

#: Whether newly compiled code is written to the cache. Code in the cache is used in any case.
KEPT = _writable(folder(numba.config.CACHE_DIR))
