"""Sketches pages so that a defect of a parser rejects one page, and ends neither a scan nor a sketcher."""

from collections.abc import Sequence
from dataclasses import replace

from neardup.errors import NeardupError
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.formats.containment import defect

#: A page that can always be sketched: if it cannot, either, the fault is the machine's and not the page's.
_PROBE = Page("http://probe.invalid/", b"<p>probe")


def contained_sketches(
    pages: Sequence[Page],
    scheme: Scheme,
    *,
    coordinates: Sequence[Coordinates],
    log_times: Sequence[int],
    threads: int = 1,
    **where: object,
) -> list[bytes]:
    """Calls `sketch_pages`. A page for which it has a defect is rejected, and its neighbours are sketched.

    Raises AssertionError, errors of neardup, and any error if no page at all can be sketched on this machine.
    """
    try:
        return sketch_pages(pages, scheme, coordinates=coordinates, log_times=log_times, threads=threads)
    except (NeardupError, AssertionError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - a defect of any parser
        sketch_pages([_PROBE], scheme)
    out = []
    for page, at, time in zip(pages, coordinates, log_times, strict=True):
        try:
            out += sketch_pages([page], scheme, coordinates=[at], log_times=[time])
        except (NeardupError, AssertionError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001
            place = {"source": at.source, "partition": at.partition, "offset": at.offset, "position": at.position}
            reason = defect("the sketcher", error, {**place, "url": page.url[:200], **where})
            bad = replace(page, body=b"", problem=reason)
            out += sketch_pages([bad], scheme, coordinates=[at], log_times=[time])
    return out
