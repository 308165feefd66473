"""The matcher's core: sketch records of a batch in, verdicts and one atomic change of the store out.

`candidates` reads what the batch will most likely need, in few large rounds. `judge` is a pure function of the batch
and what was read: it folds page after page through an overlay, so that pages of one batch see each other exactly as if
they came one by one, and slicing the log in other batches changes no verdict and no stored byte. What `judge` finds
absent from the read set it reports as Missing; `fold` reads that too and judges again.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress

from neardup.decider import Decider
from neardup.errors import InvariantBroken
from neardup.index import keys
from neardup.index.base import Family, Store
from neardup.index.rows import ClusterRow, UrlRow, id_key, member_key
from neardup.matching import choice
from neardup.matching.batch import Pages
from neardup.matching.choice import Weighed
from neardup.matching.frames import Frames
from neardup.matching.lifecycle import Check, Life, Told
from neardup.matching.overlay import FIRST_MIN, Missing, Overlay, ReadSet, Wanted
from neardup.matching.short_founders import Firsts, Newcomers
from neardup.matching.short_joiners import Joiners
from neardup.rules import Pair, Ruling
from neardup.rules.posted import counts_names
from neardup.sketch.header import Head, url_hash
from neardup.sketch.layout import RecordKind
from neardup.verdict import Verdict

Batch = Sequence[tuple[int, bytes]]

#: Pages whose pairs among themselves are scored together. Of more pages more would be guessed wrong.
_AHEAD = 32


@dataclass(slots=True)
class Candidate:
    """One scored candidate of a page: what it shares with it, the pair's numbers, and the rule's ruling.

    shared: keys in common that are not hot; families: their names and numbers; crowd: of the page, for the ruling.
    """

    page_id: int
    url: str
    cluster: int
    pair: Pair
    ruling: Ruling
    shared: int
    families: dict[str, int]
    crowd: int


@dataclass(slots=True)
class Trace:
    """Everything that was weighed for one page.

    holder: the live page of the same digest, which settles it before any candidate is scored. checks: a known URL's
    new content against its previous fetch and its cluster's founding sketch.
    """

    page_id: int
    url: str
    candidates: list[Candidate]
    checks: list[Check]
    holder: int | None
    candidates_cut: bool


@dataclass(slots=True)
class Outcome:
    """What folding a batch led to; nothing is written yet.

    verdicts: in the order of the batch, promotions after the page that caused them. writes: one atomic change. scored:
    candidates whose numbers a ruling was made on, all together, and by page. cut: pages with more candidates than are
    scored. hot_turned: keys that turned hot.
    """

    verdicts: list[Verdict]
    writes: dict[Family, dict[bytes, bytes | None]]
    scored: int = 0
    cut: int = 0
    hot_turned: int = 0
    scored_by_page: list[int] = field(default_factory=list)
    #: Of pages with candidates, if asked for.
    weighed: list[Weighed] = field(default_factory=list, compare=False)
    #: (passes of judge, rows read): what slicing may change, unlike everything above.
    effort: tuple[int, int] = field(default=(1, 0), compare=False)


def fold(
    batch: Batch,
    store: Store,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    weigh: bool = False,
    tell: bool = True,
    threads: int = 1,
) -> Outcome:
    """Judges a batch against a store. Does not write: the caller writes `outcome.writes` with its own marks, at once.

    batch: (page id, sketch record) with ascending page ids, all greater than any the store holds. trace: called for
    each page in order, once it is settled. weigh: tell in the outcome what was weighed; changes nothing else.
    tell: without, the outcome has no verdicts: for who folds again what was told. threads: how many read and score.
    Raises CorruptRecord, InvariantBroken, StateError.
    """
    with _unswept():
        reads = candidates(batch, store, decider, threads)
        passes = 0
        while True:
            passes += 1
            try:
                outcome = judge(batch, reads, decider, trace=trace, weigh=weigh, tell=tell)
            except Missing as missing:
                if not reads.read(store, missing.wanted):
                    raise InvariantBroken("judging asks again for what was read") from missing
                continue
            outcome.effort = (passes, sum(map(len, reads.rows.values())))
            return outcome


@contextmanager
def _unswept() -> Iterator[None]:
    """No search for unreachable cycles meanwhile: a batch makes some 100,000 objects, and all of them go without it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def judge(
    batch: Batch,
    reads: ReadSet,
    decider: Decider,
    *,
    trace: Callable[[Trace], None] | None = None,
    weigh: bool = False,
    tell: bool = True,
) -> Outcome:
    """Folds the batch over what was read. Pure. Raises Missing with all that it came upon, InvariantBroken."""
    overlay = Overlay(reads, decider)
    outcome = Outcome([], {})
    traces = []
    wanted = Wanted()
    frames = Frames(reads.batch, decider) if tell else None
    firsts = Firsts(overlay)
    newcomers, joiners = Newcomers(overlay, firsts, frames), Joiners(overlay, firsts, frames)
    for place, (page_id, _) in enumerate(batch):
        try:
            if place % _AHEAD == 0:
                choice.look_ahead(overlay, reads.batch.ids[place : place + _AHEAD].tolist())
            told = newcomers.live(place) or joiners.live(place)
            if told is None:
                told = Life(overlay, page_id, reads.batch[page_id], telling=tell).live()
            if trace is not None:
                traces.append(_trace(overlay, page_id, reads.batch[page_id], told))
            if weigh and told.search is not None and told.search.candidates:
                heads = [overlay.head(candidate) for candidate in told.search.candidates]
                outcome.weighed.append(Weighed(page_id, reads.batch[page_id], told.search.choice(overlay), heads))
        except Missing as missing:
            # The remaining pages are judged on a state that lacks this one's effects, only to learn what they need too.
            wanted.add(missing.wanted)
            continue
        except InvariantBroken:
            if not wanted:
                raise
            continue
        outcome.verdicts += told.verdicts
        outcome.scored_by_page.append(len(told.search.candidates) if told.search else 0)
        if told.search is not None:
            outcome.scored += len(told.search.candidates)
            outcome.cut += told.search.cut
    if wanted:
        raise Missing(wanted)
    outcome.writes = overlay.writes()
    outcome.hot_turned = overlay.hot_turned
    if trace is not None:
        for one in traces:
            trace(one)
    return outcome


def _trace(overlay: Overlay, page_id: int, head: Head, told: Told) -> Trace:
    weighed = []
    found = told.search.choice(overlay) if told.search else None
    for one in found.scored if found else ():
        other = overlay.head(one.page_id)
        weighed.append(
            Candidate(
                one.page_id,
                other.url,
                overlay.urls.need(other.url_hash).cluster,
                one.pair,
                one.ruling,
                one.shared,
                choice.families(overlay, page_id, one.page_id),
                found.crowd if found else 0,
            )
        )
    cut = bool(found and found.cut)
    return Trace(page_id, head.url, weighed, told.checks, told.holder, cut)


def candidates(batch: Batch, store: Store, decider: Decider, threads: int = 1) -> ReadSet:
    """Reads what the batch will most likely need. Raises CorruptRecord, InvariantBroken for unusable page ids."""
    reads = ReadSet(Pages(batch), decider, threads)
    overlay = Overlay(reads, decider)  # only looked through: nothing is put here
    known = _read_urls(overlay, store)
    found = _read_holders(overlay, store)
    kinds = reads.batch.headers["kind"].tolist()
    seeking = [
        page_id
        for place, page_id in enumerate(reads.batch)
        if kinds[place] == RecordKind.PAGE and page_id not in found
        if page_id not in known or not reads.batch[page_id].same_content(overlay.head(known[page_id].page_id))
    ]
    leading = set(found.values()) | _read_candidates(overlay, store, seeking)
    _read_clusters(overlay, store, known, leading)
    _read_leaving(overlay, store, known)
    return reads


def _read_urls(overlay: Overlay, store: Store) -> dict[int, UrlRow]:
    """Reads rows of the batch's URLs and digests, then what is held of live URLs; returns their rows by page id."""
    reads, batch = overlay.reads, overlay.reads.batch
    hashes = list(compress(zip(batch, batch.url_hashes, strict=True), batch.named.tolist()))
    wanted = Wanted()
    wanted.rows[Family.URLS] = {hashed for _, hashed in hashes}
    wanted.rows[Family.KEYS] = set(filter(None, compress(batch.digest_keys, batch.named.tolist())))
    reads.read(store, wanted)
    held = reads.rows[Family.URLS]
    rows = {page_id: overlay.urls.need(hashed) for page_id, hashed in hashes if held[hashed] is not None}
    known = {page_id: row for page_id, row in rows.items() if row.live}
    _read_stars(overlay, store, known.values())
    reads.read_sketches(store, [row.page_id for row in known.values()])
    return known


def _read_stars(overlay: Overlay, store: Store, urls: Iterable[UrlRow]) -> None:
    """Reads cluster and member rows of live URLs."""
    wanted = Wanted()
    for row in urls:
        wanted.row(Family.CLUSTERS, id_key(row.cluster))
        if row.member:
            wanted.row(Family.MEMBERS, member_key(row.cluster, row.member))
    overlay.reads.read(store, wanted)


def _read_holders(overlay: Overlay, store: Store) -> dict[int, int]:
    """Reads the sketches of pages whose content a page of the batch has; returns them by that page's id."""
    batch, held = overlay.reads.batch, overlay.reads.rows[Family.KEYS]
    found = {}
    for page_id, key in compress(zip(batch, batch.digest_keys, strict=True), batch.named.tolist()):
        if key and held[key] is not None and (row := overlay.digests.need(key)).pages:
            found[page_id] = row.pages[0]
    overlay.reads.read_sketches(store, found.values())
    return found


def _read_candidates(overlay: Overlay, store: Store, seeking: Sequence[int]) -> set[int]:
    """Reads posting lists and candidates' sketches; returns the candidates whose clusters a verdict may name."""
    reads, batch = overlay.reads, overlay.reads.batch
    reads.read_lists(store, seeking)
    if counts_names(overlay.decider):
        wanted = Wanted()
        wanted.rows[Family.KEYS] = {batch.naming_keys[batch.place(page_id)] for page_id in seeking}
        reads.read(store, wanted)
    gathered = overlay.lists.gather_many(seeking, [False] * len(seeking))
    everyone = {candidate for candidates, _, _ in gathered.values() for candidate in candidates}
    reads.read_sketches(store, everyone)
    choice.score(overlay, ((page_id, candidates) for page_id, (candidates, _, _) in gathered.items()))
    contents = {batch.digest_keys[batch.place(page_id)]: page_id for page_id in reversed(seeking)}
    reads.founders = {page_id for page_id in seeking if contents[batch.digest_keys[batch.place(page_id)]] == page_id}
    if overlay.decider.crowd_min:
        return everyone
    chosen = {page_id: choice.choose(overlay, page_id, every).best for page_id, every in gathered.items()}
    found = {page_id: best.page_id for page_id, best in chosen.items() if best is not None}
    reads.founders -= found.keys()
    return set(found.values())


def _read_clusters(overlay: Overlay, store: Store, known: Mapping[int, UrlRow], leading: Iterable[int]) -> None:
    """Reads the clusters that a page may join, and the founding sketches of all clusters in question."""
    reads = overlay.reads
    hashes = [overlay.head(page_id).url_hash for page_id in leading]
    wanted = Wanted()
    wanted.rows[Family.URLS] = set(hashes)
    reads.read(store, wanted)
    rows = [row for hashed in hashes if (row := overlay.urls.get(hashed)) is not None and row.live]
    _read_stars(overlay, store, rows)
    ids = {row.cluster for row in (*rows, *known.values())}
    clusters = [overlay.clusters.get(id_key(cluster_id)) for cluster_id in ids]
    reads.read_sketches(store, [cluster.founding for cluster in clusters if cluster is not None])


def _read_leaving(overlay: Overlay, store: Store, known: Mapping[int, UrlRow]) -> None:
    """Reads what goes with fetches that their URL's next one replaces: digests, postings, and who would take over."""
    reads = overlay.reads
    wanted = Wanted()
    lost = set()  # clusters whose representative goes
    leaving: Counter[int] = Counter()
    for page_id, row in known.items():
        head, held = reads.batch[page_id], overlay.head(row.page_id)
        cluster = overlay.clusters.get(id_key(row.cluster))
        if cluster is None or not _replaces(head, held, row):
            continue
        leaving[row.cluster] += 1
        gone = [held]
        if not row.member and not _stays(overlay, page_id, cluster):
            founding = overlay.head(cluster.founding)
            gone.append(founding)
            wanted.rows.setdefault(Family.KEYS, set()).update(overlay.posted_keys(cluster.founding))
            if cluster.size > 1:
                lost.add(row.cluster)
        for one in gone:
            if one.digest:
                wanted.row(Family.KEYS, keys.digest_key(one))
    # Where a mirror goes page by page, each heir goes next: found out one by one, each would cost a pass of `judge`.
    heirs = {cluster: leaving[cluster] for cluster in lost}
    for cluster_id, count in heirs.items():
        wanted.prefixes[Family.MEMBERS, id_key(cluster_id)] = max(FIRST_MIN, count + 1)
    reads.read(store, wanted)
    _read_heirs(overlay, store, heirs)


def _replaces(head: Head, held: Head, row: UrlRow) -> bool:
    """Whether a record takes the place of its URL's held fetch: a tombstone, or other content that is not stale."""
    if head.kind is RecordKind.PAGE:
        return head.clamped >= row.newest and not head.same_content(held)
    return head.kind is RecordKind.TOMBSTONE


def _stays(overlay: Overlay, page_id: int, cluster: ClusterRow) -> bool:
    """Whether a representative's new content is still its cluster's."""
    head = overlay.reads.batch[page_id]
    return head.kind is RecordKind.PAGE and choice.verify(overlay, page_id, cluster.founding)[0]


def _read_heirs(overlay: Overlay, store: Store, heirs: Mapping[int, int]) -> None:
    """Reads the earliest members of clusters, so many of each: their URLs, sketches and posting lists."""
    reads = overlay.reads
    firsts = [reads.prefixes[Family.MEMBERS, id_key(cluster)][0][:count] for cluster, count in heirs.items()]
    members = [overlay.members.get(key) for found in firsts for key in found]
    hashes = [member.url_hash for member in members if member is not None]
    wanted = Wanted()
    wanted.rows[Family.URLS] = set(hashes)
    reads.read(store, wanted)
    pages = [row.page_id for hashed in hashes if (row := overlay.urls.get(hashed)) is not None]
    reads.read_sketches(store, pages)
    wanted = Wanted()
    wanted.rows[Family.KEYS] = {key for page_id in pages for key in overlay.posted_keys(page_id)}
    canonical = (url_hash(overlay.head(page_id).canonical) for page_id in pages if overlay.head(page_id).canonical)
    wanted.rows[Family.URLS] = set(canonical)
    reads.read(store, wanted)
