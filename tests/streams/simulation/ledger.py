"""What judges and sketches in a simulation, a hundred times cheaper than the real thing, and less forgiving."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any
from unittest import mock

from neardup.decider import Decider
from neardup.fold import Outcome
from neardup.index.column_families import Family, Reader
from neardup.index.layered import Layered
from neardup.matching.takedown_and_expiry import Removed
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import field_at
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.takedown_hashes import Takedown
from neardup.urls import host_of, site_of
from neardup.verdict import Coordinates, Kind, Verdict
from streams.pipeline import batch_fold, sketching
from tests.oracle.fold.listed import ListedVerdicts

SCHEME = Scheme(seed=7)


def ledger(
    batch: Sequence[tuple[int, bytes]],
    store: Reader,
    decider: Decider,
    *,
    keep_compared: bool = False,
    emit: bool = True,
    threads: int = 1,
    trace: object = None,
) -> Outcome:
    """Takes the place of `fold`: a verdict is a digest of all before it, and of what the store has of its URL."""
    (chain,) = store.get_many(Family.META, [b"chain"])
    rows: dict[bytes, bytes] = {}
    verdicts: list[Verdict] = []
    for number, record in batch:
        header = Header(record)
        held = rows.get(header.url_hash) or store.get_many(Family.URLS, [header.url_hash])[0] or b"0"
        known = held.split()[0]
        chain, emitted = entered(chain or b"", known, number, record, decider, header)
        rows[header.url_hash] = b"%d %s" % (int(known) + 1, header.url.encode())
        verdicts += emitted
    meta: dict[bytes, bytes | None] = {} if chain is None else {b"chain": chain}
    return Outcome(
        ListedVerdicts(verdicts if emit else ()),  # type: ignore[arg-type]
        {Family.META: meta, Family.URLS: {**rows}},
        scored_by_page=[],
    )


def entered(
    chain: bytes, known: bytes, number: int, record: bytes, decider: Decider, header: Header
) -> tuple[bytes, list[Verdict]]:
    """One page in the ledger. Every third fetch of a URL tells of another one, too."""
    entry = b"%d %s %s" % (number, known, decider.digest.encode())
    chain = hashlib.blake2b(chain + entry + record, digest_size=8).digest()
    kind = Kind.UNIQUE if known == b"0" else Kind.UNCHANGED
    evidence = {"chain": chain.hex()}
    first = Verdict(
        verdict=kind,
        page_id=number,
        n=0,
        url=header.url,
        fetched_at=header.fetched_at,
        coordinates=header.coordinates,
        scheme=decider.scheme,
        decider=decider.digest,
        evidence=evidence,
    )
    if int(known) % 3 == 2:
        promoted = copy(first)
        promoted.verdict, promoted.n = Kind.PROMOTED, 1
        return chain, [first, promoted]
    return chain, [first]


def taken_down(
    takedown: Takedown, index: Layered, decider: Decider, *, cause: int, emit: bool = True, **unused: object
) -> Removed:
    """Takes the place of `take_down`: the rows of the URLs go, and each has a verdict."""
    urls = {key: row.split()[1].decode() for key, row in index.scan(Family.URLS)}
    named = {key: url for key, url in urls.items() if takedown.names(url, site_of(host_of(url)))}
    if not named:
        return Removed()
    (chain,) = index.get_many(Family.META, [b"chain"])
    chain = hashlib.blake2b((chain or b"") + b"%d " % cause + takedown.hash, digest_size=8).digest()
    index.add({Family.META: {b"chain": chain}, Family.URLS: dict.fromkeys(named)})
    verdicts = [
        Verdict(
            verdict=Kind.GONE,
            page_id=cause,
            n=n,
            url=url,
            fetched_at=0,
            coordinates=Coordinates(),
            scheme=decider.scheme,
            decider=decider.digest,
            reason=chain.hex(),
        )
        for n, url in enumerate(named.values(), 1)
    ]
    return Removed(len(named), len(named), 0, len(named), ListedVerdicts(verdicts if emit else ()))  # type: ignore[arg-type]


class Templates:
    """Takes the place of `sketch_pages`: a page is sketched once; place and time are written into the record."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], bytes] = {}

    def __call__(
        self,
        pages: Sequence[Page],
        scheme: Scheme,
        *,
        coordinates: Sequence[Coordinates],
        log_times: Sequence[int],
        threads: int = 1,
    ) -> list[bytes]:
        assert scheme == SCHEME
        return [self._one(*each) for each in zip(pages, coordinates, log_times, strict=True)]

    def _one(self, page: Page, at: Coordinates, log_time: int) -> bytes:
        name = (page.url, page.body, page.status, page.fetched_at, page.problem)
        if name not in self._made:
            (self._made[name],) = sketch_pages([page], SCHEME, coordinates=[Coordinates()], log_times=[0])
        record = bytearray(self._made[name])
        for place, value in _PLACES.items():
            values = value(at, log_time)
            record[place : place + len(values)] = values
        return bytes(record)


_PLACES: Mapping[int, Callable[[Coordinates, int], bytes]] = {
    field_at("source"): lambda at, log_time: bytes.fromhex(at.source),
    field_at("partition"): lambda at, log_time: at.partition.to_bytes(4, "little"),
    field_at("offset"): lambda at, log_time: at.offset.to_bytes(8, "little"),
    field_at("position"): lambda at, log_time: at.position.to_bytes(8, "little"),
    field_at("log_time"): lambda at, log_time: log_time.to_bytes(8, "little"),
}
TEMPLATES = Templates()


@contextlib.contextmanager
def cheap() -> Iterator[None]:
    """Judging and sketching replaced, in this block."""
    with (
        mock.patch.object(batch_fold, "fold", ledger),
        mock.patch.object(batch_fold, "take_down", taken_down),
        mock.patch.object(sketching, "sketch_pages", TEMPLATES),
    ):
        yield
