"""Measures the driver's memory per member of stars, transitive sets and absorption, in sets of three.

`python -m tests.measure.bench.families stars 2500000`; a process each, as the peak is of the process.
"""

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from neardup.pairs.components import components
from neardup.partition import groups

_MADE = {
    "stars": groups.stars,
    "transitive": components,
    "absorb": lambda pairs: groups.absorb(pairs, 1),
}


def pairs(sets: int) -> Iterator[tuple[int, int]]:
    """Yields two pairs per set, the greatest first: keys as large as those of documents."""
    for number in range(sets, 0, -1):
        greatest = number << 36
        yield greatest, greatest - 1
        yield greatest, greatest - 2


def main() -> None:
    name, sets = sys.argv[1], int(sys.argv[2])
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    began = time.process_time()
    made = _MADE[name](pairs(sets))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    seconds = (time.process_time() - began) / len(made) * 1e6
    print(f"{name}: {len(made):,} members, {peak / len(made):.0f} bytes each, {seconds:.1f} s per million")


if __name__ == "__main__":
    main()
