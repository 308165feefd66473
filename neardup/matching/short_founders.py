"""Pages of a batch that the index knows nothing of: by far the most frequent case, so their rows are made by columns.

Their URL and their content were never seen, and no candidate is accepted: such a page is unique, and founds a cluster.
Mostly nobody is posted under any of its keys, which is known without a look. What it writes and what is told of it is
what `neardup.matching.lifecycle` does, word for word and byte for byte.
"""

from typing import Any

import numpy as np

from neardup.index import namings, sharing
from neardup.index.rows import CLUSTER_ROW, DIGEST_ROW, NO_PAGE, UNIQUE_CODE, URL_ROW, id_key
from neardup.matching import choice, evidence
from neardup.matching.frames import Frames
from neardup.matching.lifecycle import Told
from neardup.matching.overlay import Overlay, Table
from neardup.rules.posted import counts_names
from neardup.sketch.header import url_hash
from neardup.sketch.layout import RecordKind
from neardup.verdict import Kind


class Firsts:
    """Which pages of a batch bring something new, by their place. url: a URL that the index knows nothing of, and that
    no earlier page of the batch has; content: likewise."""

    def __init__(self, overlay: Overlay) -> None:
        pages = overlay.reads.batch
        self.url = _firsts(pages.url_hashes, overlay.urls)
        self.content = _firsts(pages.digest_keys, overlay.digests)
        for place, key in enumerate(pages.digest_keys):
            if not key:
                self.content[place] = True  # it repeats nothing


def _firsts(names: list[bytes], table: Table[Any]) -> list[bool]:
    first: dict[bytes, int] = {}
    for place, name in enumerate(names):
        first.setdefault(name, place)
    return [first[name] == place and table.is_absent(name) for place, name in enumerate(names)]


class Newcomers:
    """Which pages of an overlay's batch are newcomers, as far as that can be said before they are judged."""

    def __init__(self, overlay: Overlay, firsts: Firsts, frames: Frames | None) -> None:
        self._overlay = overlay
        self._frames = frames
        pages, posted = overlay.reads.batch, overlay.reads.posted
        kinds = pages.headers["kind"].tolist()
        ids = pages.ids.tolist()
        new = []
        for place, first in enumerate(firsts.url):
            if not (first and firsts.content[place] and kinds[place] == RecordKind.PAGE):
                continue
            if (chosen := overlay.reads.chosen.get(ids[place])) is not None and chosen[2].best is not None:
                continue  # most likely a duplicate
            new.append((place, posted.place_of.get(ids[place], -1)))
        self._rows = dict(new)
        self._make_rows([place for place, _ in new])

    def _make_rows(self, places: list[int]) -> None:
        pages = self._overlay.reads.batch
        headers, ids = pages.headers[places], pages.ids[places]
        self._ids: list[int] = pages.ids.tolist()
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
        self._made = dict(
            zip(
                places,
                zip(map(id_key, ids.tolist()), _rows(urls), _rows(clusters), _rows(digests), _rows(names), strict=True),
                strict=True,
            )
        )

    def live(self, place: int) -> Told | None:
        """Judges the page at this place of the batch, if it is a newcomer, like `Life.live`. Raises Missing."""
        made = self._made.get(place)
        if made is None:
            return None
        overlay, row = self._overlay, self._rows[place]
        search, proof = None, {"candidates": 0}
        page_id = self._ids[place]
        if row >= 0 and overlay.lists.is_lonely(row):
            overlay.lists.post_lonely(row)
        elif row >= 0:
            search = choice.choose(overlay, page_id)
            if search.best is not None:
                return None
            if self._frames is not None:
                proof = evidence.of_none(overlay, overlay.header(page_id), search)
            overlay.post(page_id)
        self._write(place, row >= 0, *made)
        if self._frames is None:
            return Told([], search, [], None)
        cut = search is not None and search.cut
        return Told([self._frames.verdict(place, Kind.UNIQUE, page_id, 1, "", 1, proof, cut=cut)], search, [], None)

    def _write(
        self, place: int, sighted: bool, key: bytes, url: bytes, cluster: bytes, digest: bytes, naming: bytes
    ) -> None:
        """Puts the rows of a page, all but its postings. sighted: it can be found again."""
        overlay = self._overlay
        pages = overlay.reads.batch
        if sighted and counts_names(overlay.decider):
            name = pages.naming_keys[place]
            if overlay.namings.is_fresh(name):
                overlay.namings.put_encoded(name, naming)
            else:
                choice.sight(overlay, self._ids[place])
        overlay.urls.put_encoded(pages.url_hashes[place], url)
        overlay.clusters.put_encoded(key, cluster)
        overlay.sketches.put_encoded(key, sharing.whole_row(pages.records[place]))
        if pages.digest_keys[place]:
            overlay.digests.put_encoded(pages.digest_keys[place], digest)


def _rows(column: np.ndarray) -> list[bytes]:
    out: list[bytes] = column.view(f"V{column.dtype.itemsize}").tolist()
    return out
