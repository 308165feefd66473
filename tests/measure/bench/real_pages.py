"""Pages of real crawls for the curve of posted keys, and sketch records of any page of a mixture."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neardup.evaluation.corpus_texts import page_tokens
from neardup.evaluation.text_difference import common_ratio, ratio_at_most
from neardup.evaluation.truth import RATIO_MIN, Releases
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER, RecordFlag, RecordKind
from neardup.sketch.make_sketches import sketch_pages
from streams.files import sources
from streams.files.not_read import NotRead
from tests.measure.bench.documents import language
from tests.measure.bench.mixture import BLOCKS, VOCABULARY, Mixture, constants, keys_of, site_of, words_of
from tests.measure.layouts import LAYOUTS

_BATCH = 512
#: The index posts no shorter pages.
_THIN_TOKENS = 20
_Tokens = npt.NDArray[np.uint64]


def real(folders: Sequence[Path], functions: int, scheme: Scheme) -> tuple[Mixture, list[bytes]]:
    """Pages of folders of HTML, each folder a site, without exact duplicates and thin pages; and their records.

    Pages of one item in several releases, in folders of a known layout (`tests.measure.layouts`), are
    repeats if |LCS| / (|A| + |B| - |LCS|) of their full texts is at least .75; the first of them founds the
    cluster.
    """
    rows = _Rows(functions, scheme)
    for folder in folders:
        rows.read(folder)
    headers = np.frombuffer(b"".join(record[: HEADER.itemsize] for record in rows.records), HEADER)
    n = len(rows.records)
    posted = np.ones(n, np.bool_)
    pairs = np.array([pair[:2] for pair in rows.pairs], np.int64).reshape(-1, 2)
    posted[pairs[:, 1]] = False
    mixture = Mixture(
        np.array(rows.minvalues, np.uint32).reshape(n, functions),
        np.array(rows.blocks, np.uint32).reshape(n, BLOCKS),
        headers["head"].astype(np.uint64),
        headers["content_start"].astype(np.uint64),
        headers["place"].astype(np.uint64),
        headers["tokens"].astype(np.int64),
        posted,
        pairs,
        np.array([kind for _, _, kind in rows.pairs], np.int64),
        rows.names,
    )
    return mixture, rows.records


class _Rows:
    """What is read, page after page."""

    def __init__(self, functions: int, scheme: Scheme) -> None:
        self.scheme, self.functions = scheme, functions
        self.records: list[bytes] = []
        self.minvalues: list[npt.NDArray[np.uint32]] = []
        self.blocks: list[npt.NDArray[np.uint32]] = []
        self.pairs: list[tuple[int, int, int]] = []  # the page that is repeated, the repeat, the kind
        self.names: list[str] = []
        self._digests: set[bytes] = set()
        self._founders: dict[str, list[tuple[int, _Tokens]]] = {}
        self._constants = constants(functions)

    def read(self, folder: Path) -> None:
        pattern = LAYOUTS.get(folder.name)
        releases = Releases.by(pattern) if pattern else None
        if releases:
            self.names.append(folder.name.replace("_", " "))
        given = sources.ReadOptions(f"https://{folder.name.replace('_', '-').lower()}.example/")
        for source in sources.open_sources(
            folder, given, not_read=NotRead(), body_bytes_max=self.scheme.body_bytes_max
        ):
            batch: list[Page] = []
            for sourced in source.read():
                batch.append(sourced.page)
                if len(batch) == _BATCH:
                    self._take(batch, releases)
                    batch = []
            self._take(batch, releases)

    def _take(self, pages: Sequence[Page], releases: Releases | None) -> None:
        for page, record in zip(pages, sketch_pages(pages, self.scheme), strict=True):
            head = Header(record)
            fresh = head.kind is RecordKind.PAGE and head.digest and head.digest not in self._digests
            if not fresh or head.opaque or head.tokens < _THIN_TOKENS:
                continue
            self._digests.add(head.digest)
            tokens = page_tokens(page, self.scheme).fp
            low, blocks = np.empty(self.functions, np.uint32), np.empty(BLOCKS, np.uint32)
            n = len(tokens)
            scratch = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(64, np.int32)
            keys_of(tokens, n, *self._constants, *scratch, low, blocks)
            if releases:
                self._label(releases.split(head.url)[0], tokens)
            self.records.append(record)
            self.minvalues.append(low)
            self.blocks.append(blocks)

    def _label(self, item: str, tokens: _Tokens) -> None:
        founders = self._founders.setdefault(item, [])
        for number, other in founders:
            if ratio_at_most(other, tokens) >= RATIO_MIN and (common_ratio(other, tokens) or 0.0) >= RATIO_MIN:
                self.pairs.append((number, len(self.records), len(self.names) - 1))
                return
        founders.append((len(self.records), tokens))


class Records:
    """Sketch records of a mixture's pages, with the mixture's own minvalues, content starts and blocks as index keys.

    last: records of the pages that stand after the generated ones. width: minvalues of a posted supershingle.
    """

    def __init__(self, mixture: Mixture, last: Sequence[bytes], seed: int, scheme: Scheme, width: int) -> None:
        self._mixture, self._last, self._seed, self._scheme = mixture, last, seed, scheme
        self._made = len(mixture) - len(last)
        self._width = width
        words = language().words
        # Numbers tell the rare ones apart: the language has fewer words.
        self._words = [f"{words[i % len(words)]}{i // len(words) or ''}" for i in range(VOCABULARY + 1)]

    def part(self, start: int, end: int) -> list[bytes]:
        """Records of pages start to end - 1."""
        pages = [self._page(number) for number in range(start, min(end, self._made))]
        known = self._last[max(0, start - self._made) : max(0, end - self._made)]
        records = [*sketch_pages(pages, self._scheme), *known]
        return [self._with_keys(record, number) for number, record in enumerate(records, start)]

    def _page(self, number: int) -> Page:
        title, front, body, end = (
            " ".join([self._words[word] for word in part.tolist()]) for part in words_of(self._seed, number)
        )
        html = f"<title>{title}</title><div>{front}</div><p>{body}</p><div>{end}</div>"
        site = int(site_of(np.uint64(self._seed), number))
        return Page(f"http://s{site}.example/p{number}", html.encode(), "text/html; charset=utf-8", number)

    def _with_keys(self, record: bytes, number: int) -> bytes:
        header = np.frombuffer(record[: HEADER.itemsize], HEADER).copy()
        low = self._mixture.minvalues[number].astype(np.uint64)
        many = min(7, len(low) // self._width)
        factors = np.uint64(0x9E3779B97F4A7C15) * np.arange(1, 2 * self._width, 2, dtype=np.uint64)
        header["wide"][0, :many] = (low[: many * self._width].reshape(many, -1) * factors).sum(axis=1, dtype=np.uint64)
        header["content_start"] = self._mixture.content[number]
        header["logtf"][0] = self._mixture.blocks[number, :6]
        assert not header["flags"][0] & RecordFlag.OPAQUE
        return header.tobytes() + record[HEADER.itemsize :]
