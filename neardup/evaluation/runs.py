"""Reads the verdicts of a run from a state directory or a file, or computes them in memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from neardup.decider import Decider
from neardup.errors import BadInput, BadPage
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.limits import VERDICT_LINE_BYTES_MAX
from neardup.standing import standing_of
from neardup.urls import hen_site, host_of, normalise_url
from neardup.verdict import VERDICT_VERSION, Kind, Verdict

_BATCH = 250


class Merge(NamedTuple):
    """A page that a run called a near-duplicate, the page it was verified against, and the numbers of the pair.

    c_similarity, b_similarity: None if the verdict has no evidence for them.
    """

    url: str
    other: str
    b_similarity: int | None
    c_similarity: int | None
    same_site: bool
    by: str


@dataclass
class CrawlRun:
    """The verdicts of a run.

    name: name of the run in tables. kinds: count of each verdict. merges: merges in the order of the verdicts.
    clusters: final cluster of each URL. Pages of one cluster count as duplicates of each other, since an index shows
        one page of the cluster.
    exact: URLs whose last content was an exact duplicate. unreadable: number of invalid lines in a file.
    """

    name: str
    kinds: Counter[Kind] = field(default_factory=Counter)
    merges: list[Merge] = field(default_factory=list)
    clusters: dict[str, int] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    unreadable: int = 0

    def take(self, verdict: dict[str, Any]) -> None:
        """Adds the next verdict in log order. Raises KeyError, TypeError or ValueError for an invalid one."""
        kind = Kind(verdict["verdict"])
        if kind is Kind.REJECTED:  # the page could not be read; its URL may be invalid, too
            self.kinds[kind] += 1
            return
        url = verdict["url"]
        if not isinstance(url, str) or not url:
            raise ValueError("a verdict without a URL")
        merge = _merge(verdict, url) if kind is Kind.NEAR_DUPLICATE else None
        cluster = standing_of(verdict).cluster
        self.kinds[kind] += 1
        if kind is Kind.GONE:
            self.clusters.pop(url, None)
        elif kind is not Kind.STALE and cluster is not None:
            self.clusters[url] = cluster
        if kind is Kind.EXACT_DUPLICATE:
            self.exact.add(url)
        elif kind in (Kind.UNIQUE, Kind.NEAR_DUPLICATE, Kind.SAME_CONTENT, Kind.EDITED):
            self.exact.discard(url)
        if merge is not None:
            self.merges.append(merge)

    def says(self, a: str, b: str) -> bool | None:
        """Whether two URLs ended in one cluster; None if the run does not know both."""
        one, other = self.clusters.get(a), self.clusters.get(b)
        return None if one is None or other is None else one == other


def _merge(verdict: dict[str, Any], url: str) -> Merge:
    evidence = verdict.get("evidence") or {}
    other = str(verdict["representative"]["url"])
    same = hen_site(host_of(url)) == hen_site(host_of(other))
    levels = [evidence.get(name) for name in ("b_similarity", "c_similarity")]
    b, c = (None if level is None else int(level) for level in levels)
    if (b is not None and not 0 <= b <= 6) or (c is not None and not 0 <= c <= 384):
        raise ValueError("similarities beyond 6 supershingles or 384 bits")
    return Merge(url, other, b, c, same, str(evidence.get("by", ""))[:100])


def run_of(name: str, verdicts: Iterable[dict[str, Any]]) -> CrawlRun:
    """Builds a run from trusted verdicts, such as those of a state directory."""
    run = CrawlRun(name)
    for verdict in verdicts:
        run.take(verdict)
    return run


def read_run(lines: Iterable[bytes], name: str, place: str) -> CrawlRun:
    """Reads a run from verdicts as JSON lines, as `neardup scan --out` writes them.

    place: name of the input in messages.

    Counts invalid lines. Raises BadInput for another version, and if no line is a verdict.
    """
    run = CrawlRun(name)
    for number, line in enumerate(lines, 1):
        if line.strip():
            _take_line(run, line, f"{place}:{number}")
    if not run.kinds:
        raise BadInput(f"{place} holds no verdict; `neardup scan --out FILE` writes them")
    return run


def _take_line(run: CrawlRun, line: bytes, place: str) -> None:
    try:
        if len(line) > VERDICT_LINE_BYTES_MAX:
            raise ValueError("too long")
        verdict = orjson.loads(line)
        version = verdict["version"]
        if version == VERDICT_VERSION:
            known = Kind(verdict["verdict"]) is not Kind.REJECTED
            run.take({**verdict, "url": normalise_url(verdict["url"])} if known else verdict)
    except (ValueError, TypeError, KeyError, AttributeError, BadPage):
        run.unreadable += 1
        return
    if version != VERDICT_VERSION:
        raise BadInput(f"{place}: version {version!r}; this program reads version {VERDICT_VERSION}")


def stream(records: Sequence[bytes], decider: Decider) -> CrawlRun:
    """Judges sketch records with an index in memory, as a scan in this order would."""
    return run_of(f"{decider.rule}, as a stream", (verdict.to_dict() for verdict in judged(records, decider)))


def judged(records: Sequence[bytes], decider: Decider, threads: int = 1) -> Iterator[Verdict]:
    """Judges sketch records in their order, with an index in memory; a page id is a record's number."""
    store = MemoryStore()
    for start in range(0, len(records), _BATCH):
        outcome = fold(list(enumerate(records[start : start + _BATCH], start)), store, decider, threads=threads)
        store.write(outcome.writes)
        yield from outcome.verdicts
