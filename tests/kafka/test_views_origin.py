"""Pages and sketches of the stream, read again by their places in the topics."""

from dataclasses import replace

import pytest
from line import Make

from neardup.errors import BadInput
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.views import url_pages
from streams.views.stream_topics import StreamOrigin
from tests.streams.shell import words
from tests.streams.views.random_verdicts import DECIDER, Held

A, B = "http://a.example/1", "http://b.example/1"


def test_two_pages_of_the_stream_are_compared(make: Make) -> None:
    line = make()
    line.publish([Page("http://a.example/0", b"<p>first", "text/html", 1)])
    line.judge([Page(A, f"<title>Wool</title><p>{words('a')}".encode(), "text/html", 2)])
    line.settle()  # the first of the two is judged before the other comes
    line.publish([Page(B, f"<title>Wool</title><p>{words('a')} again".encode(), "text/html", 3)])
    verdicts = line.check()
    origin = StreamOrigin(replace(line.settings, bootstrap=line.bootstrap))
    try:
        source = Held(verdicts)
        source.origin = origin
        found = url_pages.compare(source, A, B, DECIDER, shown=12)
        assert not isinstance(found, str)
        assert (found["a"]["missing"], found["b"]["missing"]) == ({}, {})
        assert (found["differences"]["only_a"], found["differences"]["only_b"]) == (0, 1)
        judged = next(v for v in verdicts if v["verdict"] == "near_duplicate")
        assert found["pair"]["tape_score"] == pytest.approx(judged["evidence"]["tape_score"], abs=1e-4)
        with pytest.raises(BadInput, match="another topic"):
            origin.page(Coordinates("0" * 32, 0, 0))
        with pytest.raises(BadInput, match="another topic"):
            origin.record(judged["page_id"], None)
    finally:
        origin.close()


@pytest.mark.whole
def test_a_rejected_page_is_sent_again(make: Make) -> None:
    line = make()
    bad = Page(A, b"oops", "text/html", 5, status=503)
    line.judge([bad])
    (rejected,) = line.check()
    origin = StreamOrigin(replace(line.settings, bootstrap=line.bootstrap))
    place = Coordinates(**rejected["coordinates"])
    try:
        origin.send_again(place)
    finally:
        origin.close()
    line.published[place.source, place.partition].append(bad)
    line.start("sketch")
    line.start("match")
    assert [verdict["verdict"] for verdict in line.check()] == ["rejected"] * 2
