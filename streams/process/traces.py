"""Traces a page as spans of OpenTelemetry: publish, sketch, match, verdict. Each span is the parent of the next.

The publisher decides whether a page is traced. The context of a span is the header `traceparent` (W3C) of the page's
record. A message of the log has many pages, so it has the header `neardup-traces`, with a line per traced page: its
position in the topic of pages, and its context. Values of records never change, so traces change no verdict.

OpenTelemetry is imported by `traces_to`. Roles that do not trace have None instead of a `Traces`.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

from neardup.verdict import Verdict
from streams.ports import Record

if TYPE_CHECKING:
    from opentelemetry.context import Context as OpenTelemetryContext
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

PARENT, PARENTS = "traceparent", "neardup-traces"
#: Bytes for the header of a page's record with its name, rounded up.
HEADER_BYTES = 100
#: Pages of a message that are traced further, at most. A message has some 100 kB left for its headers.
TRACED_MAX = 64
#: Characters of a URL in a span.
_URL_CHARS_MAX = 500
#: Seconds for which a process that ends waits for an address that does not answer.
_EXPORT_SECONDS_MAX = 2.0
_LINE = re.compile(rb"(\d{1,9}) (\d{1,19}) (\S{55})")

Headers = Sequence[tuple[str, bytes | None]]
#: Partition and offset of a record of `pages`.
Place = tuple[int, int]
#: W3C's form, of a page that is traced.
Context = bytes


def parent_in(headers: Headers | None) -> Context | None:
    """The context in the headers of a record of `pages`; None if there is none, it is not sampled, or it is invalid."""
    for name, value in headers or ():
        if name == PARENT and value is not None and _is_sampled(value):
            return value
    return None


def _context_of(value: Context) -> "OpenTelemetryContext":
    """The context in a header; an empty one if the header is invalid."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({PARENT: value.decode("ascii", "replace")})


def _is_sampled(value: Context) -> bool:
    from opentelemetry import trace

    found = trace.get_current_span(_context_of(value)).get_span_context()
    return found.is_valid and found.trace_flags.sampled


def parents_in(headers: Headers | None) -> Iterator[tuple[Place, Context]]:
    """The contexts in the headers of a message of the log, by page."""
    for name, value in headers or ():
        if name == PARENTS and value is not None:
            for line in value.split(b"\n")[:TRACED_MAX]:
                found = _LINE.fullmatch(line)
                if found and _is_sampled(found[3]):
                    yield (int(found[1]), int(found[2])), found[3]


def header_of(contexts: Mapping[Place, Context]) -> list[tuple[str, bytes]]:
    """The headers of a message with these pages; empty if none is traced."""
    lines = [b"%d %d %s" % (*place, context) for place, context in contexts.items()]
    return [(PARENTS, b"\n".join(lines))] if lines else []


class Traces:
    """Makes the spans of a process.

    It keeps the contexts of up to HEARD_MAX pages that were read and not judged yet.
    """

    HEARD_MAX = 10_000

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import trace

        self._trace, self._provider = trace, provider
        self._tracer = provider.get_tracer("neardup", version("neardup"))
        self._heard: dict[Place, tuple[Context, int]] = {}

    def close(self) -> None:
        """Sends waiting spans, for a limited time."""
        self._provider.shutdown()

    @contextmanager
    def publishing(self, url: str, topic: str) -> Iterator[list[tuple[str, bytes]]]:
        """The headers of a page's record. Its span is a child of the caller's span, if there is one."""
        attributes = {"url.full": url[:_URL_CHARS_MAX], "messaging.destination.name": topic}
        with self._tracer.start_as_current_span(
            "publish", kind=self._trace.SpanKind.PRODUCER, attributes=attributes
        ) as span:
            yield [(PARENT, context)] if (context := self._context(span)) else []

    @contextmanager
    def sketching(self, records: Sequence[Record]) -> Iterator[list[tuple[str, bytes]]]:
        """The headers of the messages that contain these pages. Their spans end with the block."""
        traced = first(((each.partition(), each.offset()), parent_in(each.headers())) for each in records)
        with self._step("sketch", traced, time.time_ns()) as spans:
            yield header_of(self._contexts(spans))

    def hear(self, headers: Headers | None) -> None:
        """Keeps the contexts of a message of the log that was read."""
        if headers:
            if len(self._heard) > self.HEARD_MAX:
                self._heard.clear()
            now = time.time_ns()
            self._heard |= {place: (context, now) for place, context in parents_in(headers)}

    @contextmanager
    def judged(self, verdicts: Sequence[Verdict]) -> Iterator[dict[int, list[tuple[str, bytes]]]]:
        """The headers of verdicts, by index. The spans of their pages end with the block."""
        places: dict[Place, int] = {}
        if self._heard:
            of = ((number, verdict.coordinates) for number, verdict in enumerate(verdicts) if not verdict.n)
            of_page = {(at.partition, at.offset): number for number, at in of}
            places = {place: of_page[place] for place in of_page.keys() & self._heard.keys()}
        heard = {place: self._heard.pop(place) for place in places}
        began = min((ns for _, ns in heard.values()), default=0)
        with self._step("match", {place: context for place, (context, _) in heard.items()}, began) as spans:
            above = self._contexts(spans)
        with self._step("verdict", above, time.time_ns()) as spans:
            for place, span in spans.items():
                span.set_attribute("neardup.verdict", verdicts[places[place]].verdict)
            yield {places[place]: [(PARENT, context)] for place, context in self._contexts(spans).items()}

    @contextmanager
    def _step(self, name: str, parents: Mapping[Place, Context], began_ns: int) -> Iterator[dict[Place, "Span"]]:
        """Makes a span of each page, from `began_ns` since the epoch until the end of the block."""
        spans = {place: self._begin(name, place, parent, began_ns) for place, parent in parents.items()}
        try:
            yield spans
        finally:
            for span in spans.values():
                span.end()

    def _contexts(self, spans: Mapping[Place, "Span"]) -> dict[Place, Context]:
        """The contexts of spans, as parents of the next step's spans."""
        found = ((place, self._context(span)) for place, span in spans.items())
        return {place: context for place, context in found if context is not None}

    def _begin(self, name: str, place: Place, parent: Context, began_ns: int) -> "Span":
        attributes: Mapping[str, Any] = {"neardup.partition": place[0], "neardup.offset": place[1]}
        kind = self._trace.SpanKind.CONSUMER
        return self._tracer.start_span(name, _context_of(parent), kind=kind, attributes=attributes, start_time=began_ns)

    def _context(self, span: "Span") -> Context | None:
        """The header of a span; None if it is not sampled."""
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        if not span.get_span_context().trace_flags.sampled:
            return None
        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier, self._trace.set_span_in_context(span))
        return carrier[PARENT].encode() if PARENT in carrier else None


def first(parents: Iterable[tuple[Place, Context | None]]) -> dict[Place, Context]:
    """The first TRACED_MAX of the traced pages."""
    traced = ((place, context) for place, context in parents if context is not None)
    return dict(islice(traced, TRACED_MAX))


def traces_to(address: str, rate: float, service: str) -> Traces:
    """Makes a `Traces` that sends spans to an address of OTLP over HTTP.

    rate: share of pages that are traced among those without a decision of their publisher.

    Raises ModuleNotFoundError without the extra.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    named = {"service.name": service, "service.version": version("neardup")}
    sampler = ParentBased(TraceIdRatioBased(rate))
    # `close` ends it, not a hook at exit, which would run after the end of the connection's threads.
    provider = TracerProvider(sampler, Resource.create(named), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(address, timeout=_EXPORT_SECONDS_MAX)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Traces(provider)
