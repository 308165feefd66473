"""How many keys should a page post? Recall and candidates over the number of keys.

    python -m tests.measure.bench.curve

For generated pages and pages of real crawls (--real) after them, every choice of keys is judged: the head, the start of
the main content and the place of a page, n supershingles of w minvalues, b blocks of its simhash. What they find, how
many candidates they bring and how many keys turn hot is counted exactly (`tests.measure.bench.collisions`); what they
cost is measured by folding the same pages into an index on disk (--runs), for the choices that fit the layout of a
record. A table (CSV) and a picture of it are written; rows of other numbers of pages that the table has already are
kept.
"""

import argparse
import csv
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from neardup.rules import RULES
from neardup.rules.base import Posts
from neardup.rules.key_families import KeyFamily
from neardup.scheme import Scheme
from tests.measure.bench import curve_figure
from tests.measure.bench.collisions import Column, Point, evaluate, follow
from tests.measure.bench.mixture import Mixture, generated, joined
from tests.measure.bench.real_pages import Records, real
from tests.measure.bench.store_rows import enough_room

_BATCH = 512
_SEED = 1
_DUPLICATES = ("near_duplicate", "exact_duplicate", "same_content")
#: Minvalues that are kept of a page; of very many pages fewer, for memory.
_FUNCTIONS, _FEW_FUNCTIONS, _MANY_PAGES = 48, 32, 3_000_000
_BLOCKS = (0, 1, 2, 4, 6, 8, 12)


class Choice(NamedTuple):
    """Keys that a page posts beside its digest."""

    width: int = 2
    supershingles: int = 7
    blocks: int = 2
    head: bool = True
    place: bool = True
    content: bool = True

    def posted(self) -> dict[str, int]:
        """Numbers of a decider that posts these supershingles and blocks."""
        return {
            "supershingles_posted": self.supershingles,
            "blocks_posted": self.blocks,
            "content_starts_posted": int(self.content),
        }

    def columns(self) -> list[Column]:
        return [
            *([Column("head")] if self.head else []),
            *([Column("place")] if self.place else []),
            *([Column("content")] if self.content else []),
            *(Column("wide", self.width, i) for i in range(self.supershingles)),
            *(Column("block", 0, i) for i in range(self.blocks)),
        ]


DEFAULT = Choice()
#: Of three minvalues, as many bits as a block has: keys that meet by chance least.
WIDER = Choice(3, 7, 6)
#: The default of versions of the scheme before 4.
FORMER = Choice(2, 8, 2, content=False)


def choices(functions: int) -> list[Choice]:
    """Every choice that the minvalues at hand allow."""
    out = [
        Choice(width, many, blocks)
        for width in (2, 3, 4, 6)
        for many in (0, 2, 4, 6, 7, 8, 12, 16)
        for blocks in _BLOCKS
        if width * many <= functions and (many or width == DEFAULT.width)
    ]
    some = [names for many in (1, 2, 3) for names in combinations(("head", "place", "content"), many)]
    without = [dict.fromkeys(names, False) for names in some]
    return [*out, FORMER, *(choice._replace(**less) for choice in (DEFAULT, WIDER) for less in without)]


#: Choices that are folded for their cost, in this order.
RUNS = (
    DEFAULT,
    WIDER,
    Choice(2, 7, 0),
    Choice(2, 6, 0),
    Choice(3, 7, 0),
    Choice(2, 4, 2),
    Choice(3, 7, 2),
    Choice(2, 7, 6),
    Choice(4, 7, 6),
    DEFAULT._replace(head=False),
)


@dataclass(frozen=True)
class Run:
    """What folding cost. us: of processors, a page, over the last quarter.

    found: share of the repeats that got a verdict of a duplicate. candidates: scored, a page. disk: bytes a page.
    """

    us: float
    found: float
    candidates: float
    disk: float
    disk_keys: float


@contextmanager
def posting(choice: Choice) -> Iterator[None]:
    """Inside, the default rule posts heads and places only if the choice has them. The rest is the decider's."""
    own = RULES["verified"]
    less = {KeyFamily.PLACE: choice.place, KeyFamily.HEAD: choice.head}

    def posts(decider: Decider) -> Posts:
        return tuple((family, many) for family, many in own.posts(decider) if less.get(family, True))

    RULES["verified"] = replace(own, posts=posts)
    try:
        yield
    finally:
        RULES["verified"] = own


def run(mixture: Mixture, last: Sequence[bytes], choice: Choice, scheme: Scheme, scratch: Path | None) -> Run:
    """Folds all pages into an index on disk. Making the records is not counted; RocksDB's threads are."""
    decider = Decider(scheme=scheme.digest, **choice.posted())  # type: ignore[arg-type]
    records = Records(mixture, last, _SEED, scheme, choice.width)
    repeats = set(mixture.pairs[:, 1].tolist())
    n, late = len(mixture), 3 * len(mixture) // 4
    found = scored = 0
    spent: Counter[bool] = Counter()
    background: Counter[bool] = Counter()
    with tempfile.TemporaryDirectory(dir=scratch) as folder, posting(choice):
        enough_room(Path(folder), n)
        store = RocksStore(Path(folder) / "index")
        for start in range(0, n, _BATCH):
            others = time.process_time() - time.thread_time()
            batch = list(enumerate(records.part(start, min(n, start + _BATCH)), start))
            began = time.thread_time()
            outcome = fold(batch, store, decider)
            store.write(outcome.writes)
            spent[start >= late] += time.thread_time() - began
            background[start >= late] += time.process_time() - time.thread_time() - others
            scored += outcome.scored
            found += sum(v.page_id in repeats and v.verdict in _DUPLICATES for v in outcome.verdicts)
        store.flush()
        sizes = store.sizes()
        store.close()
    return Run(
        us=1e6 * (spent[True] + background[True]) / max(1, n - late),
        found=found / max(1, len(repeats)),
        candidates=scored / n,
        disk=sum(size.file_bytes for size in sizes.values()) / n,
        disk_keys=sizes[Family.KEYS].file_bytes / n,
    )


def row_of(mixture: Mixture, real_pages: int, choice: Choice, point: Point, cost: Run | None) -> dict[str, str]:
    """A line of the table."""
    row = {
        "pages": str(len(mixture)),
        "real pages": str(real_pages),
        "head": str(int(choice.head)),
        "place": str(int(choice.place)),
        "content": str(int(choice.content)),
        "width": str(choice.width),
        "supershingles": str(choice.supershingles),
        "blocks": str(choice.blocks),
        "keys": str(point.keys),
        "recall": f"{point.recall:.4f}",
        "recall without hot keys": f"{point.uncut:.4f}",
        "candidates": f"{point.candidates:.3f}",
        "cut": f"{point.cut:.4f}",
        "hot probes": f"{point.hot:.4f}",
    }
    if cost:
        row |= {
            "us a page": f"{cost.us:.1f}",
            "pages/s": f"{1e6 / cost.us:.0f}",
            "found": f"{cost.found:.4f}",
            "scored": f"{cost.candidates:.3f}",
            "bytes a page": f"{cost.disk:.0f}",
            "bytes of keys": f"{cost.disk_keys:.0f}",
        }
    row |= {f"candidates: {name}": f"{many:.3f}" for name, many in point.by_part.items()}
    return row | {f"recall: {name}": f"{share:.4f}" for name, share in point.by_kind.items()}


def median(runs: Sequence[Run]) -> Run:
    """Of each number."""
    return Run(*(statistics.median(values) for values in zip(*map(astuple, runs), strict=True)))


def judged(
    pages: int, folders: Sequence[Path], sample: int, runs: int, repeats: int, scratch: Path | None, scheme: Scheme
) -> list[dict[str, str]]:
    """The table's lines for so many pages, the real ones among them."""
    functions = _FUNCTIONS if pages < _MANY_PAGES else _FEW_FUNCTIONS
    known, records = real(folders, functions, scheme) if folders else (None, [])
    made = generated(_SEED, max(0, pages - len(records)), functions)
    mixture = joined(made, known) if known else made
    n, many = len(mixture), len(made)
    # Where most of the others are there already.
    parts = {"generated": range(3 * many // 4, many), "real": range(many + (n - many) // 2, n)}
    _complain(f"{len(mixture):,} pages, {len(records):,} of them real; repeats: {_counted(mixture)}")
    wanted = choices(functions)
    meetings = follow(mixture, sorted({column for choice in wanted for column in choice.columns()}), sample, parts)
    _complain(f"{len(meetings.watched):,} pages watched under {len(meetings.met)} keys")
    taken: dict[Choice, list[Run]] = {}
    for choice in RUNS[:runs] * repeats:  # in turns, so that a busy minute falls on all of them
        taken.setdefault(choice, []).append(run(mixture, records, choice, scheme, scratch))
        _complain(f"{choice}: {taken[choice][-1]}")
    costs = {choice: median(several) for choice, several in taken.items()}
    return [
        row_of(mixture, len(records), choice, evaluate(meetings, choice.columns(), mixture.names), costs.get(choice))
        for choice in wanted
    ]


def _counted(mixture: Mixture) -> dict[str, int]:
    return {name: int((mixture.kinds == kind).sum()) for kind, name in enumerate(mixture.names)}


def merged(old: Sequence[dict[str, str]], new: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The old lines of other numbers of pages, and the new ones."""
    again = {row["pages"] for row in new}
    return sorted([row for row in old if row["pages"] not in again] + list(new), key=lambda row: int(row["pages"]))


def write(rows: Sequence[dict[str, str]], path: Path) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, names, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.curve", description=__doc__)
    parser.add_argument("--pages", default="100000", help="numbers of pages, with commas between")
    parser.add_argument("--real", type=Path, action="append", default=[], help="a folder of HTML; may be repeated")
    parser.add_argument("--sample", type=int, default=5_000, help="pages and repeats of each kind that are watched")
    parser.add_argument("--runs", default="0", help="choices that are folded, one number for each number of pages")
    parser.add_argument("--repeats", type=int, default=1, help="of each folding; medians count")
    parser.add_argument("--scratch", type=Path, help="folder for indexes: 2.3 kB a page")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of posted-keys.csv and posted-keys.svg")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    table = asked.out / "posted-keys.csv"
    sizes, runs = ([int(part) for part in text.split(",")] for text in (asked.pages, asked.runs))
    scheme = Scheme(seed=_SEED)
    for pages, folded in zip(sizes, runs + [runs[-1]] * len(sizes), strict=False):
        rows = merged(
            read(table), judged(pages, asked.real, asked.sample, folded, asked.repeats, asked.scratch, scheme)
        )
        write(rows, table)
        (asked.out / "posted-keys.svg").write_text(curve_figure.figure(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
