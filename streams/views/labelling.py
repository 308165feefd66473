"""The labelling pages of the views: those of `neardup label`, over the newest audited pairs.

Opening the first page starts a round of pairs, a new one if pairs were drawn since. Forms carry the token of their
round, so that a label always belongs to the pair that was shown. Labels are appended to a file for `neardup label` and
`neardup evaluate`.
"""

import asyncio
from collections.abc import Collection, Sequence

from aiohttp import web

from neardup.errors import BadInput, NeardupError
from neardup.evaluation.audits import AuditPair, AuditRecords, drawn_of
from neardup.evaluation.corpus import corpus_of
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.labelling_rounds import Labelling
from neardup.evaluation.labels import Label
from neardup.scheme import Scheme
from streams.evaluation.label import LabelFile, LabelViews
from streams.views.source import Source
from streams.views.view_rows import url_of

PREFIX = "/label"
#: Each pair of a round needs two sketches from the log, once.
ROUND_PAIRS_MAX = 100
#: Sketches kept for the next round, some 2 kB each.
SKETCHES_KEPT = 20 * ROUND_PAIRS_MAX


class AuditLabelling:
    """The pages below PREFIX. hosts: names by which requests may call the server. The caller checks access."""

    def __init__(self, source: Source, file: LabelFile, hosts: Collection[str]) -> None:
        self._source, self._file, self._hosts = source, file, hosts
        self._round: LabelViews | None = None
        self._shown: Sequence[AuditPair] = ()
        self._sketches: dict[int, bytes] = {}
        self._lock = asyncio.Lock()

    def labels(self) -> list[Label]:
        """Return all labels that were not withdrawn. Raises BadInput."""
        return self._file.held()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a page of the round. Raises web.HTTPException."""
        name = request.match_info["name"]
        try:
            async with self._lock:
                if self._round is None or not name:
                    await asyncio.to_thread(self._renew)
        except (NeardupError, OSError) as error:
            raise web.HTTPServiceUnavailable(text=f"no pair can be labelled now: {error}") from error
        assert self._round is not None
        handler = self._round.handlers().get((request.method, name))
        if handler is None:
            raise web.HTTPNotFound
        return await handler(request)

    def _renew(self) -> None:
        pairs = self._source.audits.pairs()[-ROUND_PAIRS_MAX:]
        if self._round is not None and pairs == self._shown:
            return
        if not pairs:
            raise BadInput("no pair was drawn yet")
        urls = {page_id: url for pair in pairs for page_id, url in zip(pair.page_ids, (pair.a, pair.b), strict=True)}
        corpus = corpus_of(record for page_id, url in sorted(urls.items()) if (record := self._record(page_id, url)))
        drawn = drawn_of(AuditRecords(list(pairs)), corpus)
        texts = Texts(corpus, self._source.origin.page, Scheme(seed=0))  # only texts are shown, so any seed will do
        labelling = Labelling(drawn, corpus, self._file.held(), self._file.append)
        self._round, self._shown = LabelViews(labelling, texts, hosts=self._hosts, prefix=PREFIX), pairs

    def _record(self, page_id: int, url: str) -> bytes | None:
        """Return a page's sketch; None if it is unavailable, and its pairs with it."""
        if page_id not in self._sketches:
            row = url_of(self._source.rows("urls", url))
            try:
                found = self._source.origin.record(page_id, row["verdict"].get("log") if row else None)
            except (NeardupError, OSError):
                return None
            while len(self._sketches) >= SKETCHES_KEPT:
                del self._sketches[next(iter(self._sketches))]
            self._sketches[page_id] = found
        return self._sketches[page_id]
