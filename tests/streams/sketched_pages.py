"""Pages of one source as messages of a log, without the processes of a scan."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from streams.ports import SourcedPage
from streams.scan.blocks import Notes, sketched
from streams.scan.reading import BATCH_PAGES_MAX
from streams.scan.sketcher import Sketcher


def append_pages(sketcher: Sketcher, pages: Iterable[SourcedPage]) -> Iterator[tuple[int, bytes]]:
    """Sketches pages, and yields (offset, message) once the message is durable. Offsets ascend without a gap."""
    left = iter(pages)
    first = next(left, None)
    if first is None:
        return
    packer = sketcher.packer([first.coordinates.source], [first.coordinates.offset])
    left = chain([first], left)
    while batch := list(islice(left, BATCH_PAGES_MAX)):
        for _, message in packer.add(sketched(batch, [0] * len(batch), sketcher.scheme, Notes())):
            yield sketcher.append(message)
    for _, message in packer.flush():
        yield sketcher.append(message)
