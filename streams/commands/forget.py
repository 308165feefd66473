"""`neardup forget`: pages are taken down, in a scan's directory or on the stream."""

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.errors import NeardupError
from neardup.limits import PLACE_BITS
from neardup.sketch.takedown import Takedown, of_prefix, of_site, of_url
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.files.state import State
from streams.pipeline.takedowns import FoldedTakedown

if TYPE_CHECKING:
    from streams.client import VerdictConsumer

#: So long `forget` waits for the matcher to come to the takedown, to tell how many pages that are.
MATCHER_SECONDS_MAX = 10.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Written:
    """A takedown in the stream's log. offset: there. pages, promoted: verdicts `gone` and `promoted` that it has;
    None: the matcher has not come to it yet, or its verdicts cannot be read.
    """

    offset: int
    pages: int | None = None
    promoted: int | None = None

    @property
    def cause(self) -> int:
        """Page id of its verdicts."""
        return self.offset << PLACE_BITS


class _NothingStored:
    def load(self) -> Mapping[str, int]:
        return {}


def takedown_of(url: str | None, site: str | None, prefix: str | None) -> Takedown:
    """Raises WrongUsage unless it is one of them."""
    if sum(value is not None for value in (url, site, prefix)) != 1:
        raise WrongUsage("name one: a URL, --site or --prefix")
    if url is not None:
        return of_url(url)
    return of_site(site) if site is not None else of_prefix(prefix or "")


def forget_scan(path: Path, takedown: Takedown) -> FoldedTakedown:
    """Takes pages out of a scan's directory. Raises StateError, CorruptRecord."""
    with State.open(path) as state:
        return state.forget(takedown)


def forget_stream(settings: Settings, takedown: Takedown) -> Written:
    """Writes the takedown into the logs of all generations, and waits for what the settings' matcher says of it.

    Raises as `streams.roles.forget`.
    """
    from streams.client import VerdictConsumer
    from streams.roles import forget
    from streams.roles.runtime import connect, greet

    greet(settings, "match")
    consumer = None
    with suppress(NeardupError):  # a takedown does not fail because verdicts cannot be read
        kafka = connect(settings, "verdicts", reading=True).settings
        topic = settings.topics.verdicts
        consumer = VerdictConsumer(settings.bootstrap, _NothingStored(), topic, start="end", kafka=kafka)
    written = Written(forget(settings, takedown))
    if consumer is None:
        return written
    with closing(consumer), suppress(NeardupError):
        return _judged(settings, written, consumer)
    return written


def _judged(settings: Settings, written: Written, consumer: "VerdictConsumer") -> Written:
    """Counts the takedown's verdicts. consumer: began before it was written. Raises BrokerError, CorruptRecord."""
    from streams.kafka import Admin
    from streams.roles.runtime import connect

    admin, until = Admin(connect(settings, "match")), time.monotonic() + MATCHER_SECONDS_MAX
    ends: Mapping[int, int] | None = None
    kinds = {"gone": 0, "promoted": 0}
    while time.monotonic() < until:
        if ends is None:
            known = admin.committed(settings.group_of("match"), settings.topics.sketches, 0)
            if known is not None and known.offset > written.offset:  # in one transaction with its verdicts
                ends = admin.offsets(admin.topic(settings.topics.verdicts), "latest")
        elif consumer.has_read(ends):
            return Written(written.offset, kinds["gone"], kinds["promoted"])
        for batch in consumer.batches(wait_s=_LOOK_SECONDS):
            for verdict in batch.verdicts:
                if verdict["page_id"] == written.cause and verdict["verdict"] in kinds:
                    kinds[verdict["verdict"]] += 1
            if time.monotonic() >= until or (ends is not None and consumer.has_read(ends)):
                break
    return written


def unreached(settings: Settings, scan: Path | None) -> list[str]:
    """Where the pages still are, and what to do there."""
    if scan is not None:
        return [
            f"the files that were scanned, and the bytes of {scan / 'log'} and {scan / 'verdicts'}: reports, exports "
            "and views leave the pages out, a replay of what was said before does not; for good they go with the "
            "directory: scan what is left of the sources into another one, and delete this one",
            "what was written elsewhere: --out files, reports, exports, checkpoints of before (the next "
            "`neardup checkpoint` removes those)",
        ]
    names = settings.topics
    return [
        f"topics {names.pages} and {names.rejected}, which hold the pages themselves, until their retention "
        "(or kafka-delete-records): a sketcher that reads them again brings the pages back",
        f"the bytes of topic {names.sketches}, until its retention; who folds it forgets them at this place",
        f"former verdicts in topic {names.verdicts}, with their URLs and titles, until its retention; where it is "
        "compacted, the verdict `gone` replaces them, and names the URL alone: a null record with the URL as its key "
        "deletes that too, once all indexes have read it. Lists of the views may name a page until newer pages push it "
        "out: `neardup views --rebuild` behind that",
        "texts that an index keeps: its client hides a page whose verdict is `gone`; delete the text where its reason "
        "is `taken down`",
        "checkpoints of before: they are removed when the next one is made",
    ]
