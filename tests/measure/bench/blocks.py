"""What only blocks of the simhash find, and what they cost: none, 6 of 32 bits, 4 of 48 bits of the same 192.

    python -m tests.measure.bench.blocks --data ../shared/data --pages 3000

Four blocks of 48 bits meet for every two pages whose vectors differ in at most 3 bits, whatever their shingles; six of
32 bits for at most 5. Judged are texts edited in ways that hurt supershingles (padded, re-sorted, in other
boilerplate, a word in ten changed), the real web pages of the archive of main contents, and the halves of the public
sets that nothing was chosen by. The width of 48 bits stands in no decider: here the places of the family are swapped.

meet: repeats that share any key with the first page of their item. found: those that the default rule merges. only:
pages merged that are unique without blocks. candidates: pairs scored, a page. bytes: of the rows of keys, a page, as
they stand before compression. us: processor time of folding a page, least of three rounds in turns.
"""

import argparse
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.rules import posted_keys
from neardup.rules.key_families import PLACES, KeyFamily
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import field_at
from tests.measure.gate.corpora import SETS, pages_of
from tests.measure.gate.language import Language
from tests.measure.gate.measure import SEED, sketched
from tests.measure.gate.sites import Sample, make_site

_BATCH, _ROUNDS, _SEEDED = 250, 3, 41
_DUPLICATES = ("near_duplicate", "exact_duplicate", "same_content")
_BITS = 192


class Blocks(NamedTuple):
    """How many blocks a page posts, and how many bits each has."""

    many: int
    bits: int

    def __str__(self) -> str:
        return f"{self.many} x {self.bits}" if self.many else "none"


CHOICES = (Blocks(0, 32), Blocks(6, 32), Blocks(4, 48))


@contextmanager
def posting(blocks: Blocks) -> Iterator[Decider]:
    """A decider that posts these blocks; inside, their keys stand where the width says."""
    usual, first, step = PLACES[KeyFamily.LOGTF], field_at("logtf"), blocks.bits // 8
    padding = (-1,) * (6 - step)
    PLACES[KeyFamily.LOGTF] = tuple((*range(at, at + step), *padding) for at in range(first, first + _BITS // 8, step))
    _forget()
    try:
        yield Decider(Scheme(seed=SEED).digest, blocks_posted=blocks.many)
    finally:
        PLACES[KeyFamily.LOGTF] = usual
        _forget()


def _forget() -> None:
    """Where keys stand is remembered by what a rule posts."""
    posted_keys._takers.cache_clear()
    posted_keys._columns.cache_clear()


class Found(NamedTuple):
    """What one choice did with one stream. merged: page ids. See the module for the rest."""

    merged: frozenset[int]
    met: int
    found: int
    repeats: int
    candidates: float
    bytes_of_keys: float
    us: float


def judge(samples: Sequence[Sample], records: Sequence[bytes], blocks: Blocks) -> Found:
    merged, found, scored = set[int](), 0, 0
    store = MemoryStore()
    with posting(blocks) as decider:
        began = time.thread_time()
        for start in range(0, len(records), _BATCH):
            outcome = fold(list(enumerate(records[start : start + _BATCH], start)), store, decider)
            store.write(outcome.writes)
            scored += outcome.scored
            for verdict in outcome.verdicts:
                if verdict.verdict in _DUPLICATES:
                    merged.add(verdict.page_id)
                    other = verdict.content_of if verdict.verdict == "same_content" else verdict.representative
                    found += samples[other.page_id].item == samples[verdict.page_id].item
        us = 1e6 * (time.thread_time() - began) / max(1, len(records))
        met, repeats = _meetings(samples, records, decider)
    rows = sum(len(key) + len(row) for key, row in store.scan(Family.KEYS))
    n = max(1, len(records))
    return Found(frozenset(merged), met, found, repeats, scored / n, rows / n, us)


def _meetings(samples: Sequence[Sample], records: Sequence[bytes], decider: Decider) -> tuple[int, int]:
    """(repeats that share a key with the first page of their item, repeats)"""
    first: dict[str, set[bytes]] = {}
    met = repeats = 0
    for sample, record in zip(samples, records, strict=True):
        header = Header(record)
        keys = {header.digest, *posted_keys.similarity_keys(header, decider)}
        known = first.setdefault(sample.item, keys)
        repeats += known is not keys
        met += known is not keys and not known.isdisjoint(keys)
    return met, repeats


def edited(kind: str, count: int) -> list[Sample]:
    """Texts of 150 to 600 words on two sites each, edited in one way; neither titles nor places are alike."""
    random, language = Random(_SEEDED), Language(_SEEDED)
    samples: list[Sample] = []
    for item in range(count):
        words = language.draw(random, random.randint(150, 600))
        other = _EDITS[kind](language, random, list(words))
        for at, values in enumerate((words, other)):
            site = make_site(language, random, "portal" if kind == "other boilerplate" else "plain")
            html = site.html("", f"<p>{language.text(random, 8)}</p><p>{' '.join(values)}</p>")
            samples.append(Sample(f"http://{site.host}/{at}/{random.randrange(10**9)}", html, str(item), kind))
    return samples


def _padded(language: Language, random: Random, words: list[str]) -> list[str]:
    """Every fifth of the text, a word of some frequent ones is put in."""
    for at in range(len(words), 0, -5):
        words.insert(at, random.choice(language.words[:100]))
    return words


def _resorted(language: Language, random: Random, words: list[str]) -> list[str]:
    parts = [words[at : at + 12] for at in range(0, len(words), 12)]
    random.shuffle(parts)
    return [word for part in parts for word in part]


def _scattered(language: Language, random: Random, words: list[str]) -> list[str]:
    for at in range(random.randrange(10), len(words), 10):
        words[at] = random.choice(language.words)
    return words


_EDITS = {
    "padded": _padded,
    "re-sorted": _resorted,
    "other boilerplate": lambda language, random, words: words,
    "a word in ten": _scattered,
}
_URL = re.compile(rb'^\s*<text id="([^"]+)"[^>]*>')


def web_pages(folder: Path) -> list[Sample]:
    """The pages of the archive of main contents, as they were fetched; each is an item, for nothing better is known."""
    samples = []
    for path in sorted(folder.glob("*/input/*.html")):
        body = path.read_bytes()
        match = _URL.match(body)
        url = match[1].decode("utf-8", "replace") if match else f"http://{path.stem.lower()}.example/"
        samples.append(Sample(url, _URL.sub(b"", body), str(path), "real web pages"))
    return samples


def half_of(folder: Path, name: str, pages: int) -> list[Sample]:
    """All editions of some items of a public set, of the half that nothing was chosen by."""
    one = next(one for one in SETS if one.archive == name)
    served = [page for tuned, page in pages_of(folder, one) if not tuned]
    items = sorted({page.item for page in served})
    wanted = set(Random(_SEEDED).sample(items, min(len(items), len(items) * pages // len(served))))
    samples = [Sample(page.url, page.body(), page.item, one.name) for page in served if page.item in wanted]
    Random(_SEEDED).shuffle(samples)
    return samples


def table_rows(name: str, samples: Sequence[Sample]) -> str:
    """Lines of the table."""
    records = sketched(samples)
    rounds = [[judge(samples, records, blocks) for blocks in CHOICES] for _ in range(_ROUNDS)]
    lines = []
    for at, blocks in enumerate(CHOICES):
        one, us = rounds[0][at], min(again[at].us for again in rounds)
        only = len(one.merged - rounds[0][0].merged)
        shares = [f"{part / one.repeats:.3f}" if one.repeats else "-" for part in (one.met, one.found)]
        cells = [name, str(len(samples)), str(blocks), *shares, str(len(one.merged)), str(only)]
        lines.append(
            "| " + " | ".join([*cells, f"{one.candidates:.2f}", f"{one.bytes_of_keys:.0f}", f"{us:.0f}"]) + " |"
        )
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description="What only blocks of the simhash find, and what they cost.")
    options.add_argument("--data", type=Path, help="folder of the public archives, unpacked or not")
    options.add_argument("--pages", type=int, default=3000, help="of each public set, about")
    options.add_argument("--texts", type=int, default=300, help="of each way of editing")
    given = options.parse_args()
    columns = ("pages of", "n", "blocks", "meet", "found", "merged", "only", "candidates", "bytes", "us")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for kind in _EDITS:
        print(table_rows(kind, edited(kind, given.texts)), flush=True)
    if given.data is None:
        return
    if (given.data / "real_web_pages_gold").is_dir():
        print(table_rows("real web pages", web_pages(given.data / "real_web_pages_gold")), flush=True)
    for one in SETS:
        if (given.data / one.archive).is_dir() or (given.data / f"{one.archive}.tar.xz").exists():
            print(table_rows(one.name, half_of(given.data, one.archive, given.pages)), flush=True)


if __name__ == "__main__":
    main()
