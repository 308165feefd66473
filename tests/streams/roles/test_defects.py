"""A decoder that fails at a record: the sketcher rejects the record, keeps it, commits, and reads on."""

from collections.abc import Iterable

import pytest

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from streams.config.settings import Settings
from streams.formats import warc
from streams.formats.message import decode_entry
from streams.roles.sketch_role import SketchRole
from tests.quiet import quiet_runtime
from tests.streams.archives import http, record
from tests.streams.scripted import Broker, ScriptedPages, ScriptedWriter

SCHEME = Scheme(seed=7)
URL = "http://a.example/%d"


def sketched(broker: Broker, values: Iterable[bytes]) -> list[str]:
    """The reasons of all records after a run of a sketcher with the codec `warc`; "" of a page."""
    for name in ("pages", "sketches", "pages.rejected"):
        broker.create(name, 1)
    for number, value in enumerate(values):
        broker.topics["pages"].publish(0, (URL % number).encode(), value)
    pages = ScriptedPages(broker, "pages", "sketchers", "sketches")
    pages.assign([0])
    runtime = quiet_runtime(Settings(seed=7, threads=1, codec="warc"))
    writers = (ScriptedWriter(broker, name, at_once=True) for name in ("sketches", "pages.rejected"))
    role = SketchRole(pages, *writers, SCHEME, runtime)
    while role.round():
        pass
    entries = [decode_entry(data, 0) for data in broker.topics["sketches"].partitions[0].records]
    assert role._metrics.rejections["defect"]._value.get() == len(broker.topics["pages.rejected"].partitions[0].records)
    return [Header(one).reason for entry in entries for one in entry.records]


def test_sketcher_rejects_and_keeps_a_record_at_which_its_decoder_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = warc.decode

    def decode(url: str, *given: object) -> Page:
        if url == URL % 1:
            raise OverflowError("Python int too large to convert to C ssize_t")
        return whole(url, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(warc, "decode", decode)
    values = [record(URL % number, http(b"<p>some words")) for number in range(3)]
    assert sketched(Broker(), values) == ["", "the decoder failed with OverflowError", ""]


def test_sketcher_reads_a_chunk_size_that_no_position_can_hold() -> None:
    answers = [http(b"7fffffffffffffff\r\nwords", "Transfer-Encoding: chunked"), http(b"words")]
    assert sketched(Broker(), [record(URL % number, one) for number, one in enumerate(answers)]) == ["", ""]
