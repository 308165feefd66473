"""Sends one page through the stream and measures the time to its verdict."""

import time
import uuid
from contextlib import closing
from dataclasses import dataclass

from streams.client import PageProducer, Stored, VerdictConsumer
from streams.config.settings import Settings
from streams.errors import NoVerdict
from streams.roles.own_generation import serving_settings, shown
from streams.roles.runtime import connect

#: RFC 2606 reserves the domain: it is never a site.
_SITE = "https://ping.neardup.invalid/"


@dataclass(frozen=True, slots=True)
class PingResult:
    """The verdict on a page that was published for a test.

    verdict: kind of the verdict. seconds: time from publishing the page to reading the verdict. generation: generation
    that gave the verdict; "" for the unnamed generation.
    """

    url: str
    verdict: str
    page_id: int
    seconds: float
    generation: str = ""


def ping(settings: Settings, *, timeout_s: float, generation: str | None = None) -> PingResult:
    """Publishes a page with a new URL, waits for its verdict, and publishes its tombstone.

    The index keeps a row for the URL. generation: generation that gives the verdict; by default the live generation,
    whose verdicts clients consume. Raises NoVerdict after `timeout_s` seconds, TopicError, BrokerError, CorruptRecord.
    """
    settings = serving_settings(settings, generation)
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
                return _await_verdict(consumer, url, began, timeout_s, settings.generation)
            finally:
                pages.gone(url)


def _await_verdict(consumer: VerdictConsumer, url: str, began: float, timeout_s: float, generation: str) -> PingResult:
    while (left := began + timeout_s - time.monotonic()) > 0:
        for batch in consumer.batches(wait_s=min(left, 1.0)):
            for verdict in batch.verdicts:
                if verdict["url"] == url:
                    seconds = time.monotonic() - began
                    return PingResult(url, verdict["verdict"], int(verdict["page_id"]), seconds, generation)
            if time.monotonic() - began > timeout_s:
                break
    raise NoVerdict(
        f"no verdict for {url} within {timeout_s:g} s: does a sketcher read the pages, and is the matcher ready? "
        f"See their logs and /ready, of generation {shown(generation)}, `neardup generation list`, `neardup topics "
        "check`"
    )
