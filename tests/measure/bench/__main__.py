"""Every row of the table, ours and the peers' in turn, to build/bench.md and bench.json.

python -m tests.measure.bench
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from neardup.errors import BadInput, NeardupError
from neardup.scheme import Scheme
from neardup.warm import warm
from tests.measure.bench import (
    charsets,
    html_rows,
    lcs_rows,
    matching,
    operation_rows,
    same_bits,
    scaling,
    scanning,
    spark_rows,
    store_rows,
    text_rows,
    worst,
    worst_matching,
)
from tests.measure.bench.crawl import HEADLINE
from tests.measure.bench.peers import PACKAGES, Peers, environment
from tests.measure.bench.table import Row, Sheet, commit, machine, seconds_of, versions

#: Pages of the indexes that the crawl is matched into.
SIZES = (10_000, 50_000)
LARGE = (10_000, 1_000_000)
#: Texts that are judged beside the peers, which hold them all in memory.
LARGE_TEXTS = 100_000
#: Pages of one template, in a row.
TEMPLATE, LARGE_TEMPLATE = 20_000, 1_000_000
#: Pages of an index that is checkpointed; the large ones take some 2 GB, and their copy as much.
CHECKPOINTED, LARGE_CHECKPOINTED = 20_000, 1_000_000
_OURS = ("numpy", "numba", "llvmlite", "rocksdict", "selectolax", "xxhash")

#: The rows of a group, as they are measured.
Groups = Mapping[str, Callable[[], Iterable[Row]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of bench.md and bench.json")
    parser.add_argument("--tools", type=Path, default=Path(".tools"), help="folder of the peers' environment")
    parser.add_argument("--only", default="", help="groups of rows with this in their name, to files of their own")
    parser.add_argument("--large", action="store_true", help="only the matcher, with an index of 1,000,000 pages")
    parser.add_argument("--sizes", default="", help="pages of the indexes of growth, with commas between")
    parser.add_argument("--template", type=int, default=0, help="pages of one template, in a row")
    parser.add_argument("--checkpointed", type=int, default=0, help="pages of the index that is checkpointed")
    parser.add_argument("--scratch", type=Path, help="folder for large indexes; by default that of temporary files")
    asked = parser.parse_args()
    # A signal removes the temporary folders, too, as any other exit does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    try:
        _run(_groups(asked), asked)
    except NeardupError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit("bench: stopped")


def _groups(asked: argparse.Namespace) -> Groups:
    scheme = Scheme(seed=1)
    sizes = [int(size) for size in asked.sizes.split(",")] if asked.sizes else LARGE if asked.large else SIZES
    pages = asked.template or (LARGE_TEMPLATE if asked.large else TEMPLATE)
    checkpointed = asked.checkpointed or (LARGE_CHECKPOINTED if asked.large else CHECKPOINTED)
    matcher: Groups = {
        "growth": lambda: matching.growth(scheme, sizes, asked.scratch),
        "template": lambda: worst_matching.one_template(scheme, pages, asked.scratch),
        "checkpoint": lambda: operation_rows.checkpoints(scheme, checkpointed, asked.scratch),
    }
    if asked.large:
        of_many = partial(text_rows.verdicts, count=LARGE_TEXTS, shares=(HEADLINE,), rounds=1)
        return {**matcher, "verdicts": lambda: _peers(asked.tools / "peers", scheme, of_many)}
    return {
        "mixture": lambda: matching.mixture(scheme),
        "verdicts": lambda: _peers(asked.tools / "peers", scheme, text_rows.verdicts),
        "refolded": lambda: matching.refolded(scheme),
        "worst matching": lambda: worst_matching.matching(scheme),
        **matcher,
        "scan": lambda: scanning.scanning(scheme),
        "start": html_rows.start,
        "html": lambda: html_rows.speed(scheme),
        "scaling": lambda: scaling.scaling(scheme),
        "same bits": same_bits.same_bits,
        "worst pages": lambda: html_rows.worst(scheme),
        "more worst pages": lambda: worst.rows(scheme),
        "charsets": lambda: charsets.rows(scheme),
        "lcs": lcs_rows.rows,
        "spark": spark_rows.rows,
        "sketches": lambda: _peers(asked.tools / "peers", scheme, text_rows.sketches),
        "sweeps": lambda: operation_rows.sweeps(scheme),
        "archives": lambda: operation_rows.archives(scheme),
        "promotions": lambda: worst_matching.promotions(scheme),
        "memory": lambda: store_rows.memory(scheme),
        "record": lambda: store_rows.by_field(scheme),
    }


def _peers(
    tools: Path, scheme: Scheme, rows: Callable[[Peers, dict[str, str], Scheme], Iterator[Row]]
) -> Iterator[Row]:
    """The first time the peers are installed, which takes a minute or more."""
    python, missing = environment(tools)
    with Peers(python) as peers:
        yield from rows(peers, missing, scheme)


#: What each group took on two quiet cores; the last run's own seconds, where there are any, are nearer.
SECONDS: Mapping[str, int] = {
    "mixture": 110,
    "verdicts": 190,
    "refolded": 40,
    "worst matching": 30,
    "growth": 40,
    "scan": 100,
    "start": 29,
    "html": 27,
    "scaling": 68,
    "same bits": 26,
    "worst pages": 2,
    "more worst pages": 25,
    "charsets": 30,
    "lcs": 11,
    "sketches": 100,
    "sweeps": 30,
    "archives": 10,
    "checkpoint": 6,
    "promotions": 50,
    "memory": 3,
    "record": 1,
    "template": 6,
}


def _run(groups: Groups, asked: argparse.Namespace) -> None:
    """Raises BadInput if there is no such group."""
    chosen = {name: make for name, make in groups.items() if asked.only in name}
    if not chosen:
        raise BadInput(f"no group has {asked.only!r} in its name; there is {', '.join(groups)}")
    name = "bench-large" if asked.large else "bench"
    expected = {**SECONDS, **seconds_of(asked.out / name)}
    left = {group: expected.get(group, 0) for group in chosen}
    _say(f"about {_minutes(sum(left.values()))}: {', '.join(f'{group} {each} s' for group, each in left.items())}")
    warm()
    about = {
        "command": "python -m tests.measure.bench " + " ".join(sys.argv[1:]),
        "commit": commit(),
        "machine": machine(),
        "versions": {**versions(_OURS), **{peer: PACKAGES[peer].partition("==")[2].split()[0] for peer in PACKAGES}},
        "how": "medians; the sides of a row take turns in one run; of the matcher and of verdicts processor time",
    }
    sheet = Sheet(about, asked.out, f"{name}-{asked.only.replace(' ', '-')}" if asked.only else name)
    for group, make in chosen.items():
        began = time.monotonic()
        for row in make():
            sheet.add(row)
        sheet.seconds[group] = round(time.monotonic() - began)
        _say(f"{group}: {sheet.seconds[group]} s, expected {left.pop(group)}; {_minutes(sum(left.values()))} left")
    sheet.finish()
    _say(f"all rows: {sheet.path}")


def _minutes(seconds: int) -> str:
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
