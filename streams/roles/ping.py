"""One page through the whole line: does it stand, and how long does a page take?"""

import time
import uuid
from contextlib import closing
from dataclasses import dataclass

from streams.client import PageProducer, VerdictConsumer
from streams.config.settings import Settings
from streams.errors import NoVerdict
from streams.roles.runtime import connect
from streams.roles.tail import NothingStored

#: Nobody's: RFC 2606 keeps it from ever being a site.
_SITE = "https://ping.neardup.invalid/"


@dataclass(frozen=True, slots=True)
class Pong:
    """verdict: its kind; page_id: its place in the log; seconds: from publishing the page to reading its verdict."""

    url: str
    verdict: str
    page_id: int
    seconds: float


def ping(settings: Settings, *, timeout_s: float) -> Pong:
    """Publishes a page that nobody else has, waits for its verdict, and takes the page back.

    What stays is the row of a URL that is gone. Raises NoVerdict after `timeout_s`, TopicError, BrokerError.
    """
    names = settings.topics
    url = _SITE + uuid.uuid4().hex
    body = f"<title>Ping</title><p>{url}".encode()
    reading = connect(settings, "verdicts", reading=True).settings
    consumer = VerdictConsumer(settings.bootstrap, NothingStored(), names.verdicts, start="end", kafka=reading)
    with closing(consumer):
        writing = connect(settings, "publish").settings
        with PageProducer(settings.bootstrap, names.pages, codec=settings.codec, kafka=writing) as pages:
            began = time.monotonic()
            pages.publish(url, body, content_type="text/html; charset=utf-8")
            try:
                pages.flush()
                return _heard(consumer, url, began, timeout_s)
            finally:
                pages.gone(url)


def _heard(consumer: VerdictConsumer, url: str, began: float, timeout_s: float) -> Pong:
    while (left := began + timeout_s - time.monotonic()) > 0:
        for batch in consumer.batches(wait_s=min(left, 1.0)):
            for verdict in batch.verdicts:
                if verdict["url"] == url:
                    return Pong(url, verdict["verdict"], int(verdict["page_id"]), time.monotonic() - began)
            if time.monotonic() - began > timeout_s:
                break
    raise NoVerdict(
        f"no verdict for {url} within {timeout_s:g} s: does a sketcher read the pages, and is the matcher ready? "
        "Their logs and /ready tell; `neardup topics check` looks at the topics"
    )
