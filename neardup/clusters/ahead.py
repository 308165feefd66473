"""Reads ahead of judging what a batch will most likely need, in few large rounds.

Whatever is not foreseen here costs `neardup.fold.fold` another pass, and nothing else.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from neardup.clusters import choice
from neardup.decider import Decider
from neardup.index import keys
from neardup.index.base import Family, Reader
from neardup.index.rows import NOTES_MAX, ClusterRow, UrlRow, id_key, member_key
from neardup.rules.posted import counts_siblings
from neardup.search.hot_keys import elsewhere
from neardup.search.overlay import Overlay
from neardup.search.pages import Pages, Records
from neardup.search.reads import FIRST_MIN, Needs, ReadSet
from neardup.sketch.header import Header, url_hash
from neardup.sketch.layout import RecordKind


def candidates(batch: Records, store: Reader, decider: Decider, threads: int = 1) -> ReadSet:
    """Reads what the batch will most likely need. Raises CorruptRecord, InvariantBroken for unusable page ids."""
    reads = ReadSet(Pages(batch), decider, threads)
    overlay = Overlay(reads, decider)  # only looked through: nothing is put here
    known = _read_urls(overlay, store)
    found = _read_holders(overlay, store)
    seeking = [
        page_id
        for page_id, kind in zip(reads.batch, reads.batch.kinds, strict=True)
        if kind == RecordKind.PAGE and page_id not in found
        if page_id not in known or not reads.batch[page_id].same_digest(overlay.header(known[page_id].page_id))
    ]
    leading = set(found.values()) | _read_candidates(overlay, store, seeking)
    _read_clusters(overlay, store, known, leading)
    _read_leaving(overlay, store, known)
    _read_noted(overlay, store, found)
    return reads


def _read_urls(overlay: Overlay, store: Reader) -> dict[int, UrlRow]:
    """Reads rows of the batch's URLs and digests, then what is held of live URLs; returns their rows by page id."""
    reads, batch = overlay.reads, overlay.reads.batch
    hashes = list(compress(zip(batch, batch.url_hashes, strict=True), batch.named))
    needs = Needs()
    needs.rows[Family.URLS] = {hashed for _, hashed in hashes}
    needs.rows[Family.KEYS] = set(filter(None, compress(batch.digest_keys, batch.named)))
    reads.read(store, needs)
    held = reads.rows[Family.URLS]
    rows = {page_id: overlay.urls.need(hashed) for page_id, hashed in hashes if held[hashed] is not None}
    known = {page_id: row for page_id, row in rows.items() if row.live}
    _read_stars(overlay, store, known.values())
    reads.read_sketches(store, [row.page_id for row in known.values()])
    return known


def _read_stars(overlay: Overlay, store: Reader, urls: Iterable[UrlRow]) -> None:
    """Reads cluster and member rows of live URLs."""
    needs = Needs()
    for row in urls:
        needs.row(Family.CLUSTERS, id_key(row.cluster))
        if row.member:
            needs.row(Family.MEMBERS, member_key(row.cluster, row.member))
    overlay.reads.read(store, needs)


def _read_holders(overlay: Overlay, store: Reader) -> dict[int, int]:
    """Reads the sketches of pages whose content a page of the batch has; returns them by that page's id."""
    batch, held = overlay.reads.batch, overlay.reads.rows[Family.KEYS]
    found = {}
    for page_id, key in compress(zip(batch, batch.digest_keys, strict=True), batch.named):
        if key and held[key] is not None and (row := overlay.digests.need(key)).pages:
            found[page_id] = row.pages[0]
    overlay.reads.read_sketches(store, found.values())
    return found


def _read_candidates(overlay: Overlay, store: Reader, seeking: Sequence[int]) -> set[int]:
    """Reads posting lists and candidates' sketches; returns the candidates whose clusters a verdict may name."""
    reads, batch = overlay.reads, overlay.reads.batch
    reads.read_lists(store, seeking)
    if counts_siblings(overlay.decider):
        needs = Needs()
        needs.rows[Family.KEYS] = {batch.naming_keys[batch.at(page_id)] for page_id in seeking}
        reads.read(store, needs)
    gathered = overlay.lists.gather_many(seeking, [False] * len(seeking))
    everyone = {candidate for candidates, _, _ in gathered.values() for candidate in candidates}
    reads.read_sketches(store, everyone)
    gathered = elsewhere(overlay, gathered)
    overlay.lists.know_lonely([page_id for page_id, (left, _, _) in gathered.items() if not left])
    gathered = {page_id: found for page_id, found in gathered.items() if found[0]}
    choice.score(overlay, ((page_id, candidates) for page_id, (candidates, _, _) in gathered.items()))
    firsts = {batch.digest_keys[batch.at(page_id)]: page_id for page_id in reversed(seeking)}
    reads.founders = {page_id for page_id in seeking if firsts[batch.digest_keys[batch.at(page_id)]] == page_id}
    if overlay.decider.crowd_min:
        return everyone
    chosen = {page_id: choice.choose(overlay, page_id, every).best for page_id, every in gathered.items()}
    found = {page_id: best.page_id for page_id, best in chosen.items() if best is not None}
    reads.founders -= found.keys()
    return set(found.values())


def _read_clusters(overlay: Overlay, store: Reader, known: Mapping[int, UrlRow], leading: Iterable[int]) -> None:
    """Reads the clusters that a page may join, and what stands for all clusters in question, at first and now."""
    reads = overlay.reads
    hashes = [overlay.header(page_id).url_hash for page_id in leading]
    needs = Needs()
    needs.rows[Family.URLS] = set(hashes)
    reads.read(store, needs)
    rows = [row for hashed in hashes if (row := overlay.urls.get(hashed)) is not None and row.live]
    _read_stars(overlay, store, rows)
    ids = {row.cluster for row in (*rows, *known.values())}
    clusters = [overlay.clusters.get(id_key(cluster_id)) for cluster_id in ids]
    stars = [cluster for cluster in clusters if cluster is not None]
    reads.read_sketches(store, [page_id for cluster in stars for page_id in (cluster.founding, cluster.current)])


def _read_leaving(overlay: Overlay, store: Reader, known: Mapping[int, UrlRow]) -> None:
    """Reads what goes with fetches that their URL's next one replaces: digests, postings, and who would take over."""
    reads = overlay.reads
    needs = Needs()
    lost = set()  # clusters whose representative goes
    leaving: Counter[int] = Counter()
    for page_id, row in known.items():
        header, held = reads.batch[page_id], overlay.header(row.page_id)
        cluster = overlay.clusters.get(id_key(row.cluster))
        if cluster is None or not _replaces(header, held, row):
            if row.member and held.digest:  # whether another page has its content is told
                needs.row(Family.KEYS, keys.digest_key(held))
            continue
        leaving[row.cluster] += 1
        gone = [held]
        if not row.member and not _stays(overlay, page_id, cluster):
            if len(row.notes) == NOTES_MAX:  # one is dropped, by what stands for their clusters
                needs.rows.setdefault(Family.CLUSTERS, set()).update(id_key(note.cluster) for note in row.notes)
            founding = overlay.header(cluster.founding)
            gone.append(founding)
            needs.rows.setdefault(Family.KEYS, set()).update(overlay.posted_keys(cluster.founding))
            if cluster.size > 1:
                lost.add(row.cluster)
        for one in gone:
            if one.digest:
                needs.row(Family.KEYS, keys.digest_key(one))
    # Where a mirror goes page by page, each heir goes next: found out one by one, each would cost a pass of `judge`.
    heirs = {cluster: leaving[cluster] for cluster in lost}
    for cluster_id, count in heirs.items():
        after = member_key(cluster_id, overlay.clusters.need(id_key(cluster_id)).promoted)
        needs.first(Family.MEMBERS, id_key(cluster_id), max(FIRST_MIN, count + 1), after)
    reads.read(store, needs)
    _read_heirs(overlay, store, heirs)


def _read_noted(overlay: Overlay, store: Reader, holders: Mapping[int, int]) -> None:
    """Reads the clusters that URLs of the batch have a right to, or may have: what is founding there, and its keys.

    holders: as `_read_holders` gives them.
    """
    reads, batch = overlay.reads, overlay.reads.batch
    if not overlay.decider.reclaim_days:
        return
    ids, named = set(), set()
    for page_id, kind, hashed in zip(batch, batch.kinds, batch.url_hashes, strict=True):
        row = overlay.urls.get(hashed) if kind == RecordKind.PAGE else None
        if row is None or not row.notes:
            continue
        ids |= {id_key(note.cluster) for note in row.notes}
        if canonical := batch[page_id].canonical:
            named.add(url_hash(canonical))
        chosen = reads.chosen.get(page_id)
        best = chosen[2].best if chosen is not None else None
        joined = holders.get(page_id, None if best is None else best.page_id)
        url = None if joined is None else overlay.urls.get(overlay.header(joined).url_hash)
        if url is not None and url.live:
            ids.add(id_key(url.cluster))
    if not ids:
        return
    needs = Needs()
    needs.rows[Family.CLUSTERS], needs.rows[Family.URLS] = ids, named
    reads.read(store, needs)
    stars = [star for key in ids if (star := overlay.clusters.get(key)) is not None]
    reads.read_sketches(store, [page_id for star in stars for page_id in (star.founding, star.current)])
    founding = [overlay.header(star.founding) for star in stars]
    needs = Needs()
    needs.rows[Family.URLS] = {star.url_hash for star in stars}
    needs.rows[Family.KEYS] = {keys.digest_key(header) for header in founding if header.digest}
    needs.rows[Family.KEYS].update(key for star in stars for key in overlay.posted_keys(star.founding))
    reads.read(store, needs)


def _replaces(header: Header, held: Header, row: UrlRow) -> bool:
    """Whether a record takes the place of its URL's held fetch: a tombstone, or other content that is not stale."""
    if header.kind is RecordKind.PAGE:
        return header.clamped >= row.newest and not header.same_digest(held)
    return header.kind is RecordKind.TOMBSTONE


def _stays(overlay: Overlay, page_id: int, cluster: ClusterRow) -> bool:
    """Whether a representative's new content is still its cluster's."""
    header = overlay.reads.batch[page_id]
    return header.kind is RecordKind.PAGE and choice.verify(overlay, page_id, cluster.founding)[0]


def _read_heirs(overlay: Overlay, store: Reader, heirs: Mapping[int, int]) -> None:
    """Reads the earliest members of clusters, so many of each: their URLs, sketches and posting lists."""
    reads = overlay.reads
    firsts = [reads.prefixes[Family.MEMBERS, id_key(cluster)][0][:count] for cluster, count in heirs.items()]
    members = [overlay.members.get(key) for found in firsts for key in found]
    hashes = [member.url_hash for member in members if member is not None]
    needs = Needs()
    needs.rows[Family.URLS] = set(hashes)
    reads.read(store, needs)
    pages = [row.page_id for hashed in hashes if (row := overlay.urls.get(hashed)) is not None]
    reads.read_sketches(store, pages)
    needs = Needs()
    needs.rows[Family.KEYS] = {key for page_id in pages for key in overlay.posted_keys(page_id)}
    canonical = (url_hash(overlay.header(page_id).canonical) for page_id in pages if overlay.header(page_id).canonical)
    needs.rows[Family.URLS] = set(canonical)
    reads.read(store, needs)
