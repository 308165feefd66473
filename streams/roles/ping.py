"""Sends one page through the stream and measures the time to its verdict."""

import time
import uuid
from contextlib import closing
from dataclasses import dataclass

from streams.client import PageProducer, Stored, VerdictConsumer
from streams.config.settings import Settings
from streams.errors import NoVerdict
from streams.roles.runtime import connect

#: RFC 2606 reserves the domain: it is never a site.
_SITE = "https://ping.neardup.invalid/"


@dataclass(frozen=True, slots=True)
class PingResult:
    """verdict: its kind. seconds: from publishing the page to reading its verdict."""

    url: str
    verdict: str
    page_id: int
    seconds: float


def ping(settings: Settings, *, timeout_s: float) -> PingResult:
    """Publishes a page with a new URL, waits for its verdict, and publishes its tombstone.

    The index keeps a row for the URL. Raises NoVerdict after `timeout_s`, TopicError, BrokerError.
    """
    names = settings.topics
    url = _SITE + uuid.uuid4().hex
    body = f"<title>Ping</title><p>{url}".encode()
    reading = connect(settings, "verdicts", reading=True).settings
    consumer = VerdictConsumer(settings.bootstrap, Stored(), names.verdicts, start="end", kafka=reading)
    with closing(consumer):
        writing = connect(settings, "publish").settings
        with PageProducer(settings.bootstrap, names.pages, codec=settings.codec, kafka=writing) as pages:
            began = time.monotonic()
            pages.publish(url, body, content_type="text/html; charset=utf-8")
            try:
                pages.flush()
                return _await_verdict(consumer, url, began, timeout_s)
            finally:
                pages.gone(url)


def _await_verdict(consumer: VerdictConsumer, url: str, began: float, timeout_s: float) -> PingResult:
    while (left := began + timeout_s - time.monotonic()) > 0:
        for batch in consumer.batches(wait_s=min(left, 1.0)):
            for verdict in batch.verdicts:
                if verdict["url"] == url:
                    return PingResult(url, verdict["verdict"], int(verdict["page_id"]), time.monotonic() - began)
            if time.monotonic() - began > timeout_s:
                break
    raise NoVerdict(
        f"no verdict for {url} within {timeout_s:g} s: does a sketcher read the pages, and is the matcher ready? "
        "See their logs and /ready, and `neardup topics check`"
    )
