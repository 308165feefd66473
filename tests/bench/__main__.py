"""`python -m tests.bench`: every row of the table, ours and the peers' in turn, to build/bench.md and bench.json."""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from neardup.errors import NeardupError
from neardup.scheme import Scheme
from neardup.warm import warm
from tests.bench import html_rows, same_bits, scaling, store_rows, text_rows, worst, worst_matching
from tests.bench.peers import PACKAGES, Peers, environment
from tests.bench.table import Row, commit, machine, versions, write

SIZES = (10_000, 100_000, 1_000_000)
LARGE = (10_000, 100_000, 1_000_000, 3_000_000, 10_000_000)
#: Pages of one template, in a row.
TEMPLATE, LARGE_TEMPLATE = 20_000, 1_000_000
_OURS = ("numpy", "numba", "llvmlite", "rocksdict", "selectolax", "xxhash")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of bench.md and bench.json")
    parser.add_argument("--tools", type=Path, default=Path(".tools"), help="folder of the peers' environment")
    parser.add_argument("--only", default="", help="rows whose group has this in its name")
    parser.add_argument("--large", action="store_true", help="only the matcher, into a store of 10,000,000 pages")
    parser.add_argument("--sizes", default="", help="sizes of stores, with commas between")
    parser.add_argument("--template", type=int, default=0, help="pages of one template, in a row")
    parser.add_argument("--scratch", type=Path, help="folder for large indexes; by default that of temporary files")
    asked = parser.parse_args()
    # Whoever ends it with a signal gets the disk back: temporary folders go as for any other exit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    try:
        _main(asked)
    except NeardupError as error:
        sys.exit(f"bench: {error}")


def _main(asked: argparse.Namespace) -> None:
    started = time.monotonic()
    scheme = Scheme(seed=1)
    sizes = [int(size) for size in asked.sizes.split(",")] if asked.sizes else LARGE if asked.large else SIZES
    pages = asked.template or (LARGE_TEMPLATE if asked.large else TEMPLATE)
    matcher: dict[str, Callable[[], list[Row]]] = {
        "growth": lambda: store_rows.growth(scheme, sizes, asked.scratch),
        "template": lambda: worst_matching.one_template(scheme, pages, asked.scratch),
    }
    if asked.large:
        _run(matcher, asked.only, asked.out, "bench-large", {}, started)
        return
    python, missing = environment(asked.tools / "peers")
    with Peers(python) as peers:
        groups: dict[str, Callable[[], list[Row]]] = {
            "start": html_rows.start,
            "html": lambda: html_rows.speed(scheme),
            "scaling": lambda: scaling.scaling(scheme),
            "same bits": same_bits.same_bits,
            "worst pages": lambda: html_rows.worst(scheme),
            "more worst pages": lambda: worst.rows(scheme),
            "sketches": lambda: text_rows.sketches(peers, missing, scheme),
            "verdicts": lambda: text_rows.verdicts(peers, missing, scheme),
            "rebuild": lambda: store_rows.rebuild(scheme),
            "worst matching": lambda: worst_matching.matching(scheme),
            "memory": lambda: store_rows.memory(scheme),
            "record": lambda: store_rows.by_field(scheme),
            **matcher,
        }
        _run(groups, asked.only, asked.out, "bench", missing, started)


def _run(
    groups: dict[str, Callable[[], list[Row]]], only: str, out: Path, name: str, missing: dict[str, str], started: float
) -> None:
    warm()
    about: dict[str, object] = {
        "command": "python -m tests.bench " + " ".join(sys.argv[1:]),
        "commit": commit(),
        "machine": machine(),
        "versions": {**versions(_OURS), **{peer: PACKAGES[peer].partition("==")[2].split()[0] for peer in PACKAGES}},
        "not installed": missing or "nothing",
        "how": "medians; the sides of a row take turns in one run",
    }
    rows: list[Row] = []
    for group, make in groups.items():
        if only not in group:
            continue
        began = time.monotonic()
        rows += make()
        print(f"{group}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    about["seconds"] = round(time.monotonic() - started)
    write(rows, about, out, name)


if __name__ == "__main__":
    main()
