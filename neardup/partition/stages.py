"""Runs the two stages that read texts, sign and compare. Processes and cluster executors run the same code."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.page import Page
from neardup.partition.parameters import Parameters
from neardup.partition.plan import QUALITY_MAX
from neardup.partition.signatures import signatures
from neardup.partition.texts import document_of
from neardup.partition.trustable import compare
from neardup.scheme import Scheme
from neardup.sketch.addresses import addresses_of
from neardup.sketch.layout import RecordKind
from neardup.text.one_page_html import extract_page
from neardup.text.one_page_tokens import tokens_of

#: Reading limits and URL fingerprints are the same in every partition.
_SCHEME = Scheme(seed=0)
_INT64 = "<i8"


_PLAIN = 1
Frequencies = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]


def frequencies(text: str) -> Frequencies:
    """Counts the distinct terms of a compared text: (fingerprints, ascending; how often each occurs)."""
    # Texts are compared within one archive only, so no secret seed is needed, and every machine computes the same sets.
    tokens = tokens_of(extract_page(text.encode("utf-8", "replace"), _PLAIN))
    terms, counts = np.unique(tokens.fp, return_counts=True)
    return terms, counts.astype(np.int64)


def cosine(a: Frequencies, b: Frequencies) -> float:
    """Computes sum f g / sqrt(sum f**2 * sum g**2) over the frequencies of both texts; 0 if either has no term."""
    _, at_a, at_b = np.intersect1d(a[0], b[0], assume_unique=True, return_indices=True)
    product = int((a[1][at_a] * b[1][at_b]).sum())
    norms = int((a[1] ** 2).sum()) * int((b[1] ** 2).sum())
    return product / sqrt(norms) if product else 0.0


class Signed(NamedTuple):
    """One document as the relations store it.

    kind: 0 for a page, 1 if the URL is gone. quality: quality of the page, see `quality_of`.
    digest_high, digest_low: int64 halves of the text's digest, 0 for an empty text.
    high, low: int64 halves of the signatures. text: the compared text.
    """

    doc: int
    kind: int
    url: str
    site: str
    quality: int
    digest_high: int
    digest_low: int
    characters: int
    high: list[int]
    low: list[int]
    text: str


#: Numbers of `Signed` that are stored in 32 bits.
SMALL = ("kind", "quality", "characters")


class Rejected(NamedTuple):
    """A page that cannot be read, and the reason."""

    doc: int
    url: str
    reason: str


class Compared(NamedTuple):
    """One compared pair. a, b: keys, a the greater. score: resemblance, or the cosine. step: the step that decided."""

    a: int
    b: int
    near: int
    step: str
    score: float
    containment: float
    trusted: int
    characters_a: int
    characters_b: int
    kept_a: int
    kept_b: int


def sign(pages: Sequence[tuple[int, Page]], parameters: Parameters) -> Iterator[Signed | Rejected]:
    """Signs pages in order. Never raises for the content of a page."""
    named = addresses_of([page for _, page in pages], _SCHEME)
    urls, ends = named.urls[0].tobytes(), named.urls[1].tolist()
    starts = [0, *ends]
    for i, (doc, page) in enumerate(pages):
        url = urls[starts[i] : ends[i]].decode()
        if named.kinds[i] == RecordKind.REJECTED:
            yield Rejected(doc, url, _reason(named.reasons, i))
        elif named.kinds[i] == RecordKind.TOMBSTONE:
            yield Signed(doc, 1, url, "", 0, 0, 0, 0, [], [], "")
        else:
            yield _signed(doc, Page(url, page.body, page.content_type, score=page.score), parameters)


def quality_of(score: float | None) -> int:
    """Returns the page quality of a crawler's score: 1 to QUALITY_MAX for 0 to 1, 0 without a score."""
    return 0 if score is None else 1 + round((QUALITY_MAX - 1) * score)


def _signed(doc: int, page: Page, parameters: Parameters) -> Signed:
    document = document_of(page, parameters, body_bytes_max=_SCHEME.body_bytes_max)
    made = signatures(document.text, parameters).view(np.int64)
    high, low = np.frombuffer(document.digest or bytes(16), _INT64).tolist()
    halves = made[:, 0].tolist(), made[:, 1].tolist()
    quality = quality_of(page.score)
    return Signed(doc, 0, document.url, document.site, quality, high, low, len(document.text), *halves, document.text)


def _reason(reasons: tuple[np.ndarray, np.ndarray], place: int) -> str:
    start = int(reasons[1][place - 1]) if place else 0
    return reasons[0][start : int(reasons[1][place])].tobytes().decode("utf-8", "replace")


def judge(pairs: Iterable[tuple[int, int, str, str]], parameters: Parameters) -> Iterator[Compared]:
    """Compares pairs (a, b, text of a, text of b), in order."""
    for a, b, text_a, text_b in pairs:
        if parameters.method == "cosine":
            score = cosine(_frequencies(text_a), _frequencies(text_b))
            sizes = len(text_a), len(text_b)
            yield Compared(a, b, int(score > parameters.cosine_min), "cosine", score, 0.0, 0, *sizes, 0, 0)
        else:
            found = compare(text_a, text_b, parameters)
            yield Compared(a, b, int(found.similar), found.by, found.resemblance, found.containment, *found[4:9])


def make_ready() -> None:
    """Compiles the kernels of both stages into the cache if needed: once, instead of in each worker process.

    Raises ModuleNotFoundError if a package of the stages is missing.
    """
    parameters = Parameters()
    text = "\n".join(f"a sentence of some length, number {number}" for number in range(parameters.smallest))
    signatures(text, parameters)
    compare(text, text[len(text) // 2 :] + text[: len(text) // 2], parameters)  # far apart, so an LCS is computed


@lru_cache(maxsize=256)
def _frequencies(text: str) -> Frequencies:
    return frequencies(text)
