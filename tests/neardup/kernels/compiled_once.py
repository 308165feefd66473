"""Compiles all kernels, as `python -m neardup.warm` does, and checks that none compiles a shared function twice.

A part of `make bounds`, which compiles all kernels anyway: for a test of `make test` they would be compiled once more.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence

import numba

from neardup.kernels import kernel_cache, names, pairs
from neardup.rules import base, differences, tape
from neardup.warm import Need, warm

#: Functions that many kernels call. Another type of one argument, for instance `U8(1) | U8(2)`, which numba takes for
#: uint64, compiles them again.
SHARED = (
    names.write_name,
    pairs._differs,
    pairs._own_name,
    pairs._has,
    base.refuse,
    tape.demanded,
    differences.is_stamp,
)
#: Two processes with half of the kernels each.
HALVES: dict[str, tuple[Need, ...]] = {"pages": ("sketching", "texts"), "pairs": ("judging", "comparing")}


def compile_half(half: str) -> str | None:
    """Compiles the kernels that the cache lacks. Returns what was compiled twice, and empties the cache then."""
    warm(HALVES[half])
    twice = [each.part() for each in SHARED if len(each.part().overloads) > 1]
    if twice:
        shutil.rmtree(kernel_cache.folder(numba.config.CACHE_DIR))  # type: ignore[attr-defined]
    return "\n".join(f"{each.__name__} is compiled for {list(each.overloads)}" for each in twice) or None


def main(arguments: Sequence[str]) -> None:
    if arguments:
        sys.exit(compile_half(arguments[0]))
    halves = [subprocess.Popen([sys.executable, "-m", __spec__.name, half]) for half in HALVES]
    codes = [half.wait() for half in halves]
    sys.exit(any(codes))


if __name__ == "__main__":
    main(sys.argv[1:])
