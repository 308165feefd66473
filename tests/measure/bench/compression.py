"""What none, lz4 and zstd cost and save for each topic: bytes that the broker keeps, CPU of writer and reader."""

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.config.settings import Settings
from streams.files import sources
from streams.files.not_read import NotRead
from streams.formats.message import page_id
from streams.kafka import Admin, Connection, Writer
from streams.kafka.reader import TopicReader
from streams.pipeline.packing import pack
from streams.ports import Range

PAGES_MAX = 1_000
CODECS = ("none", "lz4", "zstd")

Record = tuple[bytes | None, bytes]


def _samples(archive: Path) -> dict[str, list[Record]]:
    """Records of each topic, of the same pages."""
    (source,) = sources.open_sources(archive, not_read=NotRead(), body_bytes_max=10_000_000)
    pages = [sourced.page for sourced, _ in zip(source.read(), range(PAGES_MAX), strict=False)]
    scheme = Scheme(seed=7)
    places = [(0, number) for number in range(len(pages))]
    coordinates = [Coordinates("0" * 32, *place) for place in places]
    sketches = sketch_pages(pages, scheme, coordinates=coordinates, log_times=[0] * len(pages))
    messages = pack(bytes.fromhex(scheme.digest), [Range(bytes(16), 0, 0, len(pages))], places, sketches)
    batch = [(page_id(0, number), sketch) for number, sketch in enumerate(sketches)]
    verdicts = fold(batch, MemoryStore(), Settings().decider(scheme)).verdicts
    return {
        "pages": [(page.url.encode(), page.body or b"") for page in pages],
        "sketches": [(None, message) for message in messages],
        "verdicts": [(verdict.url.encode(), verdict.to_json()) for verdict in verdicts],
    }


def _spent(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _through(cluster: Any, codec: str, records: Sequence[Record]) -> tuple[int, float, float]:
    """Bytes kept, CPU seconds of writing and of reading."""
    connection = Connection(cluster.bootstrap, {"compression.type": codec})
    topic = uuid.uuid4().hex
    Admin(connection).create(topic, 1, 1, {"max.message.bytes": "10485760"})
    writer = Writer(connection, topic, message_bytes_max=10_000_000, linger_ms=5)

    def write() -> None:
        for key, value in records:
            writer.send(value, key=key)
        writer.flush()

    writing = _spent(write)
    writer.close()
    folder = cluster.nodes[0].folder / "data" / f"{topic}-0"
    kept = sum(file.stat().st_size for file in folder.glob("*.log"))
    with closing(TopicReader(connection, topic, committed_only=True)) as reader:
        reader.assign(reader.first_offsets())

        def read() -> None:
            left = len(records)
            while left:
                left -= len(reader.read(4096, wait_s=30.0))

        reading = _spent(read)
    return kept, writing, reading


def compressions(cluster: Any, folder: Path, archive: Path) -> str:
    """A table in Markdown."""
    lines = [
        "| topic | codec | bytes/page | of uncompressed | writer CPU ms/page | reader CPU ms/page |",
        "|---" * 6 + "|",
    ]
    samples = _samples(archive)
    pages = len(samples["pages"])
    for topic, records in samples.items():
        plain = 0
        for codec in CODECS:
            kept, writing, reading = min((_through(cluster, codec, records) for _ in range(3)), key=lambda r: r[1])
            plain = plain or kept
            cpu = [f"{seconds * 1000 / pages:.3f}" for seconds in (writing, reading)]
            lines.append(f"| {topic} | {codec} | {kept / pages:.0f} | {kept / plain:.2f} | {' | '.join(cpu)} |")
    return "\n".join(lines) + "\n"
