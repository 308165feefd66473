"""Pages that add a fetch to what the index holds and change nothing else of it.

Such are a copy or a near copy under a URL never seen before, and a known URL with the content that it had. Where much
is repeated most pages are, so they do not go the long way of `neardup.matching.lifecycle`. What is written and told of
them is the same, word for word and byte for byte; whatever is not as expected is left to it.
"""

from typing import Any

from neardup.index import keys, sharing
from neardup.index.rows import (
    DIGEST_PAGES_MAX,
    NO_PAGE,
    ClusterRow,
    DigestRow,
    UrlRow,
    encode_member,
    encode_new_digest,
    encode_url,
    id_key,
    member_key,
)
from neardup.matching import choice, clusters, evidence
from neardup.matching.frames import Frames
from neardup.matching.lifecycle import Told
from neardup.matching.overlay import Overlay
from neardup.matching.short_founders import Firsts
from neardup.sketch.layout import RecordKind
from neardup.verdict import Kind, Verdict


class Joiners:
    """The short ways of an overlay's batch. firsts: which URLs and contents come first in it."""

    def __init__(self, overlay: Overlay, firsts: Firsts, frames: Frames | None) -> None:
        self._overlay = overlay
        self._firsts = firsts
        self._frames = frames
        pages = overlay.reads.batch
        headers = pages.headers
        self._is_page: list[bool] = (headers["kind"] == RecordKind.PAGE).tolist()
        self._ids: list[int] = pages.ids.tolist()
        self._log_times: list[int] = headers["log_time"].tolist()
        self._fetch_times: list[int] = headers["fetched_at"].tolist()
        self._families = self._shared_families() if frames is not None else {}

    def live(self, place: int) -> Told | None:
        """Judges the page at this place of the batch like `Life.live`, if it goes a short way. Raises Missing."""
        if not self._is_page[place]:
            return None
        if not self._firsts.url[place]:
            return self._again(place)
        if self._firsts.content[place]:
            return self._near(place)
        return self._exact(place)

    # ---- URLs never seen before ------------------------------------------------------------------------------------

    def _exact(self, place: int) -> Told | None:
        """A page whose content a live page has."""
        overlay, page_id = self._overlay, self._ids[place]
        pages = overlay.reads.batch
        key = pages.digest_keys[place]
        digest = overlay.digests.get(key) if key else None
        if digest is None or not digest.pages or digest.rest == NO_PAGE:
            return None
        holder = digest.pages[0]
        held = overlay.header(holder)
        row = overlay.urls.need(held.url_hash)
        cluster = overlay.clusters.need(id_key(row.cluster))
        verified = clusters.verified_against(overlay, row)
        record = pages.records[place]
        refs = digest.refs
        if digest.check == sharing.check_of(sharing.shared_part(record)):
            overlay.sketches.put_encoded(id_key(page_id), sharing.own_row(record, digest.rest))
            refs += 1
        else:
            overlay.sketches.put_encoded(id_key(page_id), sharing.whole_row(record))
        listed = digest.pages
        if digest.live == len(listed) < DIGEST_PAGES_MAX:
            listed = (*listed, page_id)
        else:
            overlay.more.put_encoded(keys.more_prefix(key) + id_key(page_id), keys.MORE)
        overlay.digests.put(key, DigestRow(digest.live + 1, digest.rest, refs, digest.check, listed))
        joined = self._join(place, row.cluster, cluster, Kind.EXACT_DUPLICATE, verified, False)
        if self._frames is None:
            return Told([], None, [], holder)
        founding = overlay.header(cluster.founding)
        proof = evidence.of_digest(pages.sites[place], self._frames.lang(place), holder, held, founding)
        return Told([self._tell_member(place, row.cluster, joined, proof, False)], None, [], holder)

    def _near(self, place: int) -> Told | None:
        """A page whose content is new, and which a candidate was chosen for."""
        overlay, page_id = self._overlay, self._ids[place]
        pages = overlay.reads.batch
        known = overlay.reads.chosen.get(page_id)
        if known is None or not pages.digest_keys[place]:
            return None
        as_read = overlay.lists.is_as_read(page_id)
        if as_read and known[3] and known[1] == choice.siblings_of(overlay, page_id):
            search = known[2]
        else:
            search = choice.choose(overlay, page_id)
        best = search.best
        if best is None or best.ruling.kind is not Kind.NEAR_DUPLICATE:
            return None
        other = overlay.header(best.page_id)
        cluster_id = overlay.urls.need(other.url_hash).cluster
        cluster = overlay.clusters.need(id_key(cluster_id))
        if cluster.founding != best.page_id:
            return None
        proof: dict[str, Any] = {}
        if self._frames is not None:
            families = self._families.get((page_id, best.page_id)) if as_read else None
            proof = evidence.of_choice(overlay, page_id, self._frames.lang(place), search, best, families)
        key, record = pages.digest_keys[place], pages.records[place]
        overlay.sketches.put_encoded(id_key(page_id), sharing.whole_row(record))
        check = sharing.check_of(sharing.shared_part(record))
        overlay.digests.put_encoded(key, encode_new_digest(page_id, check))
        joined = self._join(
            place, cluster_id, cluster, Kind.NEAR_DUPLICATE, best.page_id, pages.sites[place] == other.site
        )
        choice.sight(overlay, page_id)
        verdicts = []
        if self._frames is not None:
            verdicts = [self._tell_member(place, cluster_id, joined, proof, search.cut)]
        return Told(verdicts, search, [], None)

    def _join(
        self, place: int, cluster_id: int, cluster: ClusterRow, kind: Kind, verified: int, counted: bool
    ) -> ClusterRow:
        """Writes the rows of a new member, all but its content's; returns its cluster's. counted: in the crowd."""
        overlay, page_id = self._overlay, self._ids[place]
        hashed = overlay.reads.batch.url_hashes[place]
        overlay.members.put_encoded(member_key(cluster_id, page_id), encode_member(verified, hashed, counted))
        log_time = self._log_times[place]
        newest = min(self._fetch_times[place], log_time)
        overlay.urls.put_encoded(hashed, encode_url(page_id, cluster_id, page_id, kind, newest, log_time))
        founding, url_hash, current, size, revision, crowd, content_of, wanted, canonical = cluster
        if hashed == wanted:
            canonical = overlay.reads.batch[page_id].url
        joined = ClusterRow(
            founding, url_hash, current, size + 1, revision + 1, crowd + counted, content_of, wanted, canonical
        )
        overlay.clusters.put(id_key(cluster_id), joined)
        return joined

    def _tell_member(
        self, place: int, cluster_id: int, cluster: ClusterRow, proof: dict[str, Any], cut: bool
    ) -> Verdict:
        assert self._frames is not None
        near = self._firsts.content[place]
        kind = Kind.NEAR_DUPLICATE if near else Kind.EXACT_DUPLICATE
        representative = evidence.representative(self._overlay, cluster.founding)
        canonical = cluster.canonical or representative.url
        return self._frames.verdict(
            *(place, kind, cluster_id, cluster.size, canonical, cluster.revision, proof),
            representative=representative,
            cut=cut,
        )

    def _shared_families(self) -> dict[tuple[int, int], dict[str, int]]:
        """Families of the keys that pages share with the candidates chosen for them, as lists were read."""
        chosen = self._overlay.reads.chosen.items()
        pairs = [(page_id, found[2].best.page_id) for page_id, found in chosen if found[2].best is not None]
        return self._overlay.lists.families_many(pairs)

    # ---- known URLs ------------------------------------------------------------------------------------------------

    def _again(self, place: int) -> Told | None:
        """A fetch that is older than what is held of its URL, or has the content of it."""
        overlay = self._overlay
        pages = overlay.reads.batch
        hashed = pages.url_hashes[place]
        row = overlay.urls.get(hashed)
        if row is None or not row.live:
            return None
        log_time = self._log_times[place]
        fetched_at = min(self._fetch_times[place], log_time)
        if fetched_at < row.newest:
            return Told(self._tell_again(place, Kind.STALE, row), None, [], None)
        held = overlay.header(row.page_id)
        if keys.digest_key(held) != pages.digest_keys[place] or not held.digest:
            return None
        if row.member:
            verified = clusters.verified_against(overlay, row)
            if verified != overlay.clusters.need(id_key(row.cluster)).founding:
                return None
        row = UrlRow(row.page_id, row.cluster, row.member, row.standing, fetched_at, log_time)
        overlay.urls.put(hashed, row)
        return Told(self._tell_again(place, Kind.UNCHANGED, row), None, [], None)

    def _tell_again(self, place: int, kind: Kind, row: UrlRow) -> list[Verdict]:
        if self._frames is None:
            return []
        overlay = self._overlay
        cluster = overlay.clusters.need(id_key(row.cluster))
        standing = evidence.standing(overlay, row)
        canonical = cluster.canonical or overlay.header(cluster.founding).url
        return [
            self._frames.verdict(
                *(place, kind, row.cluster, cluster.size, canonical, cluster.revision, {}), standing=standing
            )
        ]
