"""Reads pages and their sketches again."""

from typing import Protocol

from neardup.errors import BadInput
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.files.state import State
from streams.formats.message import decode_message


class Origin(Protocol):
    """Source of pages and sketches for the comparison; from one thread at a time."""

    def record(self, page_id: int, log: str | None) -> bytes:
        """Return the page's sketch. log: topic id of its log. Raises NeardupError if it is unavailable."""
        ...

    def page(self, coordinates: Coordinates) -> Page:
        """Return the page as it was fetched. Raises NeardupError if it is unavailable."""
        ...

    @property
    def sends_again(self) -> bool:
        """Whether pages can be sent to their topic again."""
        ...

    def send_again(self, coordinates: Coordinates) -> None:
        """Send the unchanged page again. Raises NeardupError if it is unavailable."""
        ...


class ScanOrigin:
    """A scan's log and sources, by their files, which only grow: the directory is not locked."""

    def __init__(self, state: State) -> None:
        self._state = state

    def record(self, page_id: int, log: str | None) -> bytes:
        offset = page_id >> PLACE_BITS
        message = next(iter(self._state.log.read(offset, offset + 1)), None)
        return record_at(page_id, None if message is None else message[1])

    def page(self, coordinates: Coordinates) -> Page:
        return self._state.read_page(coordinates)

    sends_again = False

    def send_again(self, coordinates: Coordinates) -> None:
        raise BadInput("a scan reads its sources once: scan them with --again")


def record_at(page_id: int, data: bytes | None) -> bytes:
    """Return a page's sketch from its message. Raises CorruptRecord, BadInput."""
    offset, number = page_id >> PLACE_BITS, page_id & ((1 << PLACE_BITS) - 1)
    records = decode_message(data or b"", offset).records
    if number >= len(records):
        raise BadInput(f"the log's message {offset} holds no page {page_id}")
    return records[number]
