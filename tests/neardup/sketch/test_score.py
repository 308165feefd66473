"""The crawler's score on its way: a byte of the sketch, a field of the verdict, and nothing that a judgement heeds."""

import orjson
import pytest

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import score_code, score_of
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch

SCHEME = Scheme(seed=7)
TEXT = b"<title>Wool</title><link rel=canonical href=/\xc3\xa9><p>" + b" ".join(b"word%d" % i for i in range(80))


def test_a_byte_holds_a_score_to_half_a_percent() -> None:
    assert [score_code(score) for score in (None, 0.0, 1.0)] == [0, 1, 255]
    assert score_of(0) is None
    for thousandth in range(1001):
        values = score_of(score_code(thousandth / 1000))
        assert values is not None
        assert abs(values - thousandth / 1000) <= 0.0025
    assert [score_code(score_of(code)) for code in range(256)] == list(range(256))


@pytest.mark.parametrize("body", [TEXT, b"", b"\0\1"])
def test_nothing_but_the_score_differs(body: bytes) -> None:
    pages = [Page(f"https://a.example/{i}", body, "text/html", 1, score=score) for i, score in ((1, None), (1, 0.5))]
    without, scored = sketch_pages(pages, SCHEME)
    assert [at for at, (one, other) in enumerate(zip(without, scored, strict=True)) if one != other] == [3]
    assert (Sketch(without).score, Sketch(scored).score) == (None, 0.5)
    assert Header(scored).problem() == ""
    assert (Header(scored).opaque, Header(scored).truncated) == (Header(without).opaque, Header(without).truncated)
    assert "score" not in Sketch(without).to_dict()


def test_a_verdict_tells_the_score_of_its_page() -> None:
    scores = [None, 0.0, 0.75]
    pages = [Page(f"https://a.example/{i}", TEXT, "text/html", i, score=score) for i, score in enumerate(scores)]
    pages.append(Page(pages[2].url, TEXT, "text/html", 9, score=0.25))
    records = list(enumerate(sketch_pages(pages, SCHEME), 1))
    verdicts = fold(records, MemoryStore(), Decider(SCHEME.digest)).verdicts
    shown = [orjson.loads(verdict.to_json()) for verdict in verdicts]
    assert [verdict.get("score") for verdict in shown] == [None, 0.0, 0.748, 0.252]
    assert [verdict["verdict"] for verdict in shown] == ["unique", *["exact_duplicate"] * 2, "unchanged"]
