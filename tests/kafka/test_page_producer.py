"""A crawler's side: pages arrive as they were given, or are named."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from published import read_pages

from neardup.errors import BadInput, BadPage
from neardup.page import Page
from streams.client import NotDelivered, PageProducer
from streams.config.settings import Topics
from streams.errors import RecordTooLarge, TopicError
from streams.formats.codecs import encode_page
from streams.kafka import Admin

CODECS = ("raw", "json", "warc")
URL = "https://a.example/ä?b=c"


@pytest.mark.parametrize("codec", CODECS)
def test_published_pages_arrive(broker: str, made: Topics, codec: str) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    with PageProducer(broker, made.pages, codec=codec) as pages:
        pages.publish(URL, b"<p>1", content_type="text/html", fetched_at=1_700_000_000_000)
        pages.publish(URL, b"<p>2", fetched_at=noon)
        pages.gone(URL)
        pages.publish("https://b.example/", b"<p>3", status=404, fetched_at=1_700_000_000_000)

    assert (pages.sent, pages.acknowledged) == (4, 4)
    assert read_pages(broker, made.pages, codec) == {
        URL: [
            Page(URL, b"<p>1", "text/html", 1_700_000_000_000),
            Page(URL, b"<p>2", fetched_at=int(datetime(2026, 1, 1, 11, tzinfo=UTC).timestamp() * 1000)),
            Page(URL, None),
        ],
        "https://b.example/": [Page("https://b.example/", None, fetched_at=1_700_000_000_000, status=404)],
    }


def test_a_page_over_the_topic_s_limit_is_refused_by_name(broker: str, admin: Admin, names: Topics) -> None:
    admin.create(names.pages, 1, 1, {"max.message.bytes": "100000"})
    with PageProducer(broker, names.pages, kafka={"compression.type": "none"}) as pages:
        with pytest.raises(RecordTooLarge, match=r"https://a.example/large: a record of 101,\d+ bytes.* takes 100,000"):
            pages.publish("https://a.example/large", b"x" * 100_000)
        largest = 100_000 - encode_page(Page("https://a.example/fits", b""), "raw").size
        pages.publish("https://a.example/fits", b"x" * largest)
        with pytest.raises(RecordTooLarge):
            pages.publish("https://a.example/fits", b"x" * (largest + 1))

    assert read_pages(broker, names.pages, "raw").keys() == {"https://a.example/fits"}


def test_a_page_over_the_limit_travels_beside_kafka(broker: str, admin: Admin, names: Topics, tmp_path: Path) -> None:
    admin.create(names.pages, 1, 1, {"max.message.bytes": "100000"})
    body = b"<p>" + b"x" * 200_000
    with PageProducer(broker, names.pages, bodies=tmp_path) as pages:
        pages.publish(URL, body, content_type="text/html")
        pages.publish("https://a.example/small", b"<p>small")

    found = read_pages(broker, names.pages, "raw", f"file://{tmp_path}/")
    assert found == {
        URL: [Page(URL, body, "text/html")],
        "https://a.example/small": [Page("https://a.example/small", b"<p>small")],
    }
    assert len(list(tmp_path.iterdir())) == 1


def test_bad_arguments_are_reported_before_anything_is_sent(broker: str, made: Topics) -> None:
    with PageProducer(broker, made.pages) as pages:
        for wrong in (17_000_000_000, 1.5, datetime(2026, 1, 1)):
            with pytest.raises(BadPage, match="fetched_at"):
                pages.publish(URL, b"", fetched_at=wrong)
        with pytest.raises(BadInput, match="without a URL"):
            pages.publish("", b"")
        assert pages.sent == 0
    with pytest.raises(TopicError, match="does not exist"):
        PageProducer(broker, "no-such-topic")
    with pytest.raises(BadInput, match="codec 'xml'"):
        PageProducer(broker, made.pages, codec="xml")


def unreachable(**changes: Any) -> PageProducer:
    """No broker listens there: a published page fails after a second."""
    return PageProducer("127.0.0.1:1", record_bytes_max=1_000_000, delivery_s=1.0, **changes)


@pytest.mark.slow
def test_pages_that_were_not_delivered_are_named() -> None:
    pages = unreachable()
    for number in range(5):
        pages.publish(f"https://a.example/{number}", b"")
    with pytest.raises(
        NotDelivered, match=r"^5 pages not written to topic pages: .*a.example/0: .* and 2 more$"
    ) as error:
        pages.flush()

    assert [url for url, _ in error.value.failures] == [f"https://a.example/{number}" for number in range(5)]
    assert all("_MSG_TIMED_OUT" in reason for _, reason in error.value.failures)
    assert pages.acknowledged == 0
    pages.flush()  # raised once
    pages.close()


@pytest.mark.slow
def test_a_later_call_tells_of_an_earlier_page() -> None:
    pages = unreachable()
    pages.publish("https://a.example/lost", b"")

    def tell() -> str:
        try:
            pages.poll()
        except NotDelivered as error:
            return str(error)
        return ""

    assert "1 page not written to topic pages: https://a.example/lost" in eventually(tell, "the failure")
    pages.close()


@pytest.mark.slow
def test_failures_may_go_to_a_callback() -> None:
    reported: list[str] = []
    with unreachable(on_error=lambda url, reason: reported.append(url)) as pages:
        pages.publish("https://a.example/1", b"")
        pages.publish("https://a.example/2", b"")

    assert reported == ["https://a.example/1", "https://a.example/2"]


@pytest.mark.slow
def test_leaving_the_block_with_an_error_keeps_that_error() -> None:
    def crawl() -> None:
        with unreachable() as pages:
            pages.publish("https://a.example/lost", b"")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:
        crawl()

    (note,) = error.value.__notes__
    assert "https://a.example/lost" in note


def test_memory_is_bounded_and_offering_never_waits() -> None:
    pages = PageProducer("127.0.0.1:1", record_bytes_max=1_000_000, buffer_bytes=1 << 20)
    taken = sum(pages.offer(Page(f"https://a.example/{number}", b"x" * 100_000)) for number in range(100))

    assert 8 <= taken <= 11
    assert pages.sent == taken
    pages.close()
