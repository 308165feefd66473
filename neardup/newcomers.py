"""Pages of a batch that the index knows nothing of: by far the most frequent case, so their rows are made by columns.

Their URL and their content were never seen, and no candidate is accepted: such a page is unique, and founds a cluster.
Mostly nobody is posted under any of its keys, which is known without a look. What it writes and what is told of it is
what `neardup.lifecycle` does, word for word and byte for byte.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from neardup import choice, evidence
from neardup.index import namings, sharing
from neardup.index.rows import CLUSTER_ROW, DIGEST_ROW, NO_PAGE, UNIQUE_CODE, URL_ROW, id_key
from neardup.layout import HEADER, NAME, RecordFlag, RecordKind
from neardup.lifecycle import Told
from neardup.overlay import Overlay
from neardup.record import url_hash
from neardup.verdict import Coordinates, Kind, Verdict


class Newcomers:
    """Which pages of an overlay's batch are newcomers, as far as that can be said before they are judged."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        pages, posted = overlay.reads.batch, overlay.reads.posted
        first_url: dict[bytes, int] = {}
        first_digest: dict[bytes, int] = {}
        for place, (hashed, digest) in enumerate(zip(pages.url_hashes, pages.digest_keys, strict=True)):
            first_url.setdefault(hashed, place)
            first_digest.setdefault(digest, place)
        kinds = pages.headers["kind"].tolist()
        ids = pages.ids.tolist()
        new = []
        for place, (hashed, digest) in enumerate(zip(pages.url_hashes, pages.digest_keys, strict=True)):
            if kinds[place] != RecordKind.PAGE or first_url[hashed] != place or not overlay.urls.is_absent(hashed):
                continue
            if digest and not (first_digest[digest] == place and overlay.digests.is_absent(digest)):
                continue
            if (chosen := overlay.reads.chosen.get(ids[place])) is not None and chosen[2].best is not None:
                continue  # most likely a duplicate
            new.append((place, posted.place_of.get(ids[place], -1)))
        self._rows = dict(new)
        self._make_rows([place for place, _ in new])

    def _make_rows(self, places: list[int]) -> None:
        pages = self._overlay.reads.batch
        headers, ids = pages.headers[places], pages.ids[places]
        many = len(places)
        urls = np.zeros(many, dtype=URL_ROW)
        urls["format"], urls["standing"] = 1, UNIQUE_CODE
        urls["ids"][:, 0] = urls["ids"][:, 1] = ids
        urls["newest"] = np.minimum(headers["fetched_at"], headers["log_time"])
        urls["seen"] = headers["log_time"]
        clusters = np.zeros(many, dtype=CLUSTER_ROW)
        clusters["format"], clusters["content_of"] = 1, NO_PAGE
        clusters["founding"] = clusters["current"] = ids
        clusters["url_hash"] = headers["url_hash"]
        clusters["counts"][:, :2] = 1
        for i in np.nonzero(headers["canonical_bytes"])[0].tolist():
            wanted = url_hash(pages[int(ids[i])].canonical)
            if wanted != pages.url_hashes[places[i]]:
                clusters["wanted"][i] = np.void(wanted)
        digests = np.zeros(many, dtype=DIGEST_ROW)
        digests["format"] = digests["live"] = digests["refs"] = 1
        digests["rest"] = ids
        records = pages.records
        digests["check"] = [sharing.check_of(sharing.shared_part(records[place])) for place in places]
        digests["page"] = ids.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
        names = np.zeros(many, dtype=namings.ROW)
        names["format"], names["alike"] = namings.FORMAT, 1
        for field in ("tail", "titling", "place"):
            names[field] = headers[field]
        starts = HEADER.itemsize + headers["tape_bytes"].astype(np.int64) + headers["content_bytes"]
        starts += (
            NAME.itemsize * (headers["title_names"].astype(np.int64) + headers["head_names"]) + headers["bloom_bytes"]
        )
        ends = [starts]
        for name in ("url_bytes", "site_bytes", "title_bytes", "canonical_bytes", "lang_bytes"):
            ends.append(ends[-1] + headers[name])
        columns = [headers[name] for name in ("fetched_at", "source", "partition", "offset", "position", "tokens")]
        columns += [headers["flags"] & flag != 0 for flag in (RecordFlag.OPAQUE, RecordFlag.TRUNCATED)]
        self._told = dict(
            zip(places, zip(*(column.tolist() for column in (*columns, *ends)), strict=True), strict=True)
        )
        self._made = dict(
            zip(
                places,
                zip(map(id_key, ids.tolist()), _rows(urls), _rows(clusters), _rows(digests), _rows(names), strict=True),
                strict=True,
            )
        )

    def live(self, place: int, *, telling: bool) -> Told | None:
        """Judges the page at this place of the batch, if it is a newcomer, like `Life.live`. Raises Missing."""
        made = self._made.get(place)
        if made is None:
            return None
        overlay, row = self._overlay, self._rows[place]
        pages = overlay.reads.batch
        search, proof = None, {"candidates": 0}
        if row >= 0 and overlay.lists.is_lonely(row):
            overlay.lists.post_lonely(row)
        elif row >= 0:
            page_id = int(pages.ids[place])
            search = choice.choose(overlay, page_id, pages[page_id])
            if search.best is not None:
                return None
            if telling:
                proof = evidence.of_none(overlay, pages[page_id], search)
            overlay.post(page_id)
        self._write(place, row >= 0, *made)
        verdicts = [self._tell(place, proof, search is not None and search.cut)] if telling else []
        return Told(verdicts, search, [], None)

    def _write(
        self, place: int, sighted: bool, key: bytes, url: bytes, cluster: bytes, digest: bytes, naming: bytes
    ) -> None:
        """Puts the rows of a page, all but its postings. sighted: it can be found again."""
        overlay = self._overlay
        pages = overlay.reads.batch
        if sighted and choice.counts_names(overlay.decider):
            name = pages.naming_keys[place]
            if overlay.namings.is_fresh(name):
                overlay.namings.put_encoded(name, naming)
            else:
                page_id = int(pages.ids[place])
                choice.sight(overlay, page_id, pages[page_id])
        overlay.urls.put_encoded(pages.url_hashes[place], url)
        overlay.clusters.put_encoded(key, cluster)
        overlay.sketches.put_encoded(key, sharing.whole_row(pages.records[place]))
        if pages.digest_keys[place]:
            overlay.digests.put_encoded(pages.digest_keys[place], digest)

    def _tell(self, place: int, proof: dict[str, Any], cut: bool) -> Verdict:
        overlay = self._overlay
        pages, decider = overlay.reads.batch, overlay.decider
        record = pages.records[place]
        fetched_at, source, partition, offset, position, tokens, opaque, truncated, *ends = self._told[place]
        url, site, title, _, lang = (record[start:end].decode("utf-8", "replace") for start, end in pairwise(ends))
        page_id = int(pages.ids[place])
        return Verdict(
            Kind.UNIQUE,
            page_id,
            0,
            url,
            fetched_at,
            Coordinates(source.hex(), partition, offset, position),
            decider.scheme,
            decider.digest,
            cluster=page_id,
            cluster_size=1,
            canonical=url,
            revision=1,
            evidence=proof,
            title=title or None,
            site=site or None,
            lang=lang or None,
            thin=not opaque and tokens < decider.thin_tokens,
            opaque=opaque,
            truncated=truncated,
            candidates_cut=cut,
        )


def _rows(column: np.ndarray) -> list[bytes]:
    out: list[bytes] = column.view(f"V{column.dtype.itemsize}").tolist()
    return out
