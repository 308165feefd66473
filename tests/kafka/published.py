"""The pages topic as a sketcher reads it."""

from neardup.page import Page
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec
from streams.kafka import Connection, TopicReader


def read_pages(bootstrap: str, topic: str, codec: str, *prefixes: str) -> dict[str, list[Page]]:
    """What a sketcher would read, by URL."""
    decode = Codec(codec, Bodies(prefixes, 10_000_000), 10_000_000)
    reader = TopicReader(Connection(bootstrap), topic, committed_only=True)
    ends = reader.ends()
    reader.assign(reader.first_offsets())
    found: dict[str, list[Page]] = {}
    while any(position < ends[partition] for partition, position in reader.positions().items()):
        for record in reader.read(1000, wait_s=1.0):
            page = decode.page(record)
            found.setdefault(page.url, []).append(page)
    reader.close()
    return found
