"""Pages of a batch that the index knows nothing of: by far the most frequent case, so their rows are made by columns.

Their URL and their content were never seen, and under each of their keys nobody is posted, neither in the store nor
earlier in the batch: such a page is unique, and founds a cluster. What it writes and what is told of it is what
`neardup.lifecycle` does, word for word and byte for byte.
"""

from itertools import pairwise

import numpy as np

from neardup import choice
from neardup.index import namings, sharing
from neardup.index.rows import CLUSTER_ROW, DIGEST_ROW, NO_PAGE, UNIQUE_CODE, URL_ROW, id_key
from neardup.layout import HEADER, NAME, RecordFlag, RecordKind
from neardup.overlay import Overlay
from neardup.record import url_hash
from neardup.verdict import Coordinates, Kind, Verdict


class Newcomers:
    """Which pages of an overlay's batch are newcomers, as far as that can be said before they are judged."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        pages, posted = overlay.reads.batch, overlay.reads.posted
        lonely = overlay.lists.lonely_rows()
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
            row = posted.place_of.get(ids[place], -1)
            if row < 0 or row in lonely:
                new.append((place, row))
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
        names["format"] = names["alike"] = 1
        names["tail"] = headers["tail"]
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

    def settle(self, place: int) -> bool:
        """Judges the page at this place of the batch, if it is a newcomer. Raises Missing."""
        made = self._made.get(place)
        if made is None:
            return False
        overlay, row = self._overlay, self._rows[place]
        if row >= 0 and not overlay.lists.is_lonely(row):
            return False
        pages = overlay.reads.batch
        key, url, cluster, digest, naming = made
        if row >= 0:
            overlay.lists.post_lonely(row)
            if choice.counts_names(overlay.decider):
                name = pages.naming_keys[place]
                if overlay.namings.is_fresh(name):
                    overlay.namings.put_encoded(name, naming)
                else:
                    choice.sight(overlay, int(pages.ids[place]), pages[int(pages.ids[place])])
        overlay.urls.put_encoded(pages.url_hashes[place], url)
        overlay.clusters.put_encoded(key, cluster)
        overlay.sketches.put_encoded(key, sharing.whole_row(pages.records[place]))
        if pages.digest_keys[place]:
            overlay.digests.put_encoded(pages.digest_keys[place], digest)
        return True

    def tell(self, place: int) -> Verdict:
        """The verdict of a newcomer that was just settled."""
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
            evidence={"candidates": 0},
            title=title or None,
            site=site or None,
            lang=lang or None,
            thin=not opaque and tokens < decider.thin_tokens,
            opaque=opaque,
            truncated=truncated,
        )


def _rows(column: np.ndarray) -> list[bytes]:
    out: list[bytes] = column.view(f"V{column.dtype.itemsize}").tolist()
    return out
