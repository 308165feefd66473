"""A page's way as spans, over a real broker: publish, sketch, match, verdict; each the parent of the next."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from line import Line, Make, story

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased

from streams.client import PageProducer
from streams.config.settings import Settings
from streams.kafka import KafkaLog, TopicReader
from streams.process import traces as module
from streams.process.traces import PARENT, PARENTS, TRACED_MAX, Traces, parent_in, parents_in
from streams.roles.runtime import traces_of
from streams.roles.single_process import run_single_process
from tests.quiet import quiet_runtime

CONTEXT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STEPS = ("publish", "sketch", "match", "verdict")


class Kept:
    """Traces whose spans are kept in memory."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.traces = Traces(provider)

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


def run(line: Line, traces: Traces | None, until: int) -> None:
    """Both roles in this process, until so many pages are judged."""
    runtime = replace(quiet_runtime(replace(line.settings, flush_ms=1)), traces=traces)
    running = threading.Thread(target=run_single_process, args=(runtime.settings, runtime), daemon=True)
    running.start()
    try:
        eventually(lambda: len([row for row in line.verdicts() if row["n"] == 0]) == until, "all verdicts")
    finally:
        runtime.stop.set()
        running.join(60)


def headers_of(line: Line, topic: str) -> Iterator[Any]:
    with closing(TopicReader(line.connection, topic, committed_only=True)) as reader:
        ends = reader.ends()
        reader.assign(reader.first_offsets())
        while any(position < ends[partition] for partition, position in reader.positions().items()):
            yield from (record.headers() for record in reader.read(4096, wait_s=1.0))


def test_a_traced_page_is_followed_to_its_verdict(make: Make) -> None:
    line = make(match_messages=1)
    kept = Kept()
    pages = story(6)
    with PageProducer(line.bootstrap, line.names.pages, traces=kept.traces) as producer:
        for page in pages:
            producer.send(page)
    # Pages of publishers that do not trace, or whose header is invalid.
    with PageProducer(line.bootstrap, line.names.pages) as producer:
        producer.publish("https://untraced.example/", b"<p>nobody follows this")
    run(line, kept.traces, len(pages) + 1)

    spans = kept.spans()
    assert {span.name for span in spans} == set(STEPS)
    ways: dict[int, dict[str, ReadableSpan]] = {}
    for span in spans:
        assert span.context is not None
        way = ways.setdefault(span.context.trace_id, {})
        assert span.name not in way, "a step twice"
        way[span.name] = span
    assert len(ways) == len(pages), "the page of others has no spans"
    for way in ways.values():
        assert list(way) == list(STEPS), "in the order in which they ended"
        for above, below in pairwise(STEPS):
            assert way[below].parent is not None
            assert way[above].context is not None
            assert way[below].parent.span_id == way[above].context.span_id
        times = [way[name].start_time or 0 for name in STEPS]
        assert times == sorted(times)
    assert sorted(str(way["publish"].attributes["url.full"]) for way in ways.values()) == sorted(p.url for p in pages)
    kinds = {str(way["verdict"].attributes["neardup.verdict"]) for way in ways.values()}
    assert kinds == {row["verdict"] for row in line.verdicts() if row["url"] != "https://untraced.example/"}

    # The indexer can go on with it.
    found = [parent_in(headers) for headers in headers_of(line, line.names.verdicts)]
    last = {b"%016x" % way["verdict"].context.span_id for way in ways.values() if way["verdict"].context}
    assert {context.split(b"-")[2] for context in found if context} == last


def test_unsampled_and_disabled_traces_leave_no_spans(make: Make) -> None:
    line = make()
    kept = Kept(ParentBased(TraceIdRatioBased(0.0)))
    with PageProducer(line.bootstrap, line.names.pages, traces=kept.traces) as producer:
        producer.publish("https://a.example/", b"<p>one")
    with PageProducer(line.bootstrap, line.names.pages) as producer:
        producer.publish("https://b.example/", b"<p>two")
    run(line, None, 2)
    assert kept.spans() == []
    for topic in (line.names.pages, line.names.sketches, line.names.verdicts):
        for headers in headers_of(line, topic):
            assert not {name for name, _ in headers or ()} & {PARENT, PARENTS}, topic


@pytest.mark.whole
def test_roles_without_tracing_ignore_trace_headers(make: Make) -> None:
    line = make()
    kept = Kept()
    with PageProducer(line.bootstrap, line.names.pages, traces=kept.traces) as producer:
        producer.publish("https://a.example/", b"<p>one")
    run(line, None, 1)
    assert [span.name for span in kept.spans()] == ["publish"]
    with closing(KafkaLog(line.connection, line.names.sketches)) as log:
        assert list(log.messages(log.first_offset()))
    assert all(headers is None for headers in headers_of(line, line.names.sketches))


def test_a_crawlers_own_span_is_the_parent(make: Make) -> None:
    line = make()
    kept = Kept()
    with (
        PageProducer(line.bootstrap, line.names.pages, traces=kept.traces) as producer,
        TracerProvider(shutdown_on_exit=False).get_tracer("crawler").start_as_current_span("fetch") as fetch,
    ):
        assert producer.offer(story(1)[0])
    (span,) = kept.spans()
    assert span.parent is not None
    assert span.parent.span_id == fetch.get_span_context().span_id
    assert trace.get_current_span() is trace.INVALID_SPAN


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"00-0-0-01",
        CONTEXT[:-2] + b"00",
        CONTEXT + b"-x",
        CONTEXT.upper(),
        b"ff" + CONTEXT[2:],
        b"\xff" * 55,
    ],
)
def test_a_header_without_sense_is_no_trace(value: bytes | None) -> None:
    assert parent_in([("content-type", b"text/html"), (PARENT, value)]) is None
    assert list(parents_in([(PARENTS, b"0 1 " + value if value else value)])) == []


def test_a_message_bears_so_many_and_is_read_so_far() -> None:
    many = module.first(((0, number), CONTEXT) for number in range(1000))
    assert len(many) == TRACED_MAX
    ((name, value),) = module.header_of(many)
    assert len(value) < 10_000, "beside a full message there is no room for more"
    assert dict(parents_in([(name, value)])) == many
    flood = b"\n".join(b"0 %d %s" % (number, CONTEXT) for number in range(100_000))
    assert len(list(parents_in([(PARENTS, flood)]))) == TRACED_MAX
    traces = Kept().traces
    for number in range(0, 2 * Traces.HEARD_MAX, TRACED_MAX):
        traces.hear(module.header_of({(0, number + each): CONTEXT for each in range(TRACED_MAX)}))
    assert len(traces._heard) <= Traces.HEARD_MAX + TRACED_MAX


@pytest.mark.whole
@pytest.mark.slow
def test_nothing_is_imported_where_nothing_is_traced() -> None:
    code = (
        "import sys, streams.roles, streams.client\n"
        "from streams.config.settings import Settings\n"
        "from streams.roles.runtime import traces_of\n"
        "assert traces_of(Settings(), 'sketch') is None\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'opentelemetry'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.whole
@pytest.mark.slow
def test_spans_go_to_the_address_that_is_set_and_an_address_that_is_silent_holds_nothing_up(tmp_path: Path) -> None:
    import http.server

    got: list[tuple[str, bytes]] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/v1/traces"
        traces = traces_of(Settings(traces=address, trace_rate=1.0), "publish")
        assert traces is not None
        with traces.publishing("https://a.example/", "pages") as headers:
            assert headers
        traces.close()
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    ((path, body),) = got
    assert path == "/v1/traces"
    assert b"https://a.example/" in body or body[:2] == b"\x1f\x8b"
    assert b"neardup.publish" in body or body[:2] == b"\x1f\x8b"

    silent = traces_of(Settings(traces=address, trace_rate=1.0), "publish")
    assert silent is not None
    with silent.publishing("https://a.example/", "pages"):
        pass
    closing_ = threading.Thread(target=silent.close)
    closing_.start()
    closing_.join(60)
    assert not closing_.is_alive()
