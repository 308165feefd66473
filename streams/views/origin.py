"""Where pages and their sketches can be read again."""

from typing import Protocol

from neardup.errors import BadInput
from neardup.limits import PLACE_BITS
from neardup.page import Page
from neardup.verdict import Coordinates
from streams.files.state import State
from streams.formats.message import decode_message


class Origin(Protocol):
    """What the compare page asks, from one thread at a time."""

    def record(self, page_id: int, log: str | None) -> bytes:
        """The page's sketch. log: the topic that the id is a place in. Raises NeardupError where it is out of reach."""
        ...

    def page(self, coordinates: Coordinates) -> Page:
        """The page as it was fetched. Raises NeardupError where it is out of reach."""
        ...

    @property
    def sends_again(self) -> bool:
        """Whether a page can be sent down the line once more."""
        ...

    def send_again(self, coordinates: Coordinates) -> None:
        """Returns when the page is there once more, as it was. Raises NeardupError where it is out of reach."""
        ...


class ScanOrigin:
    """A scan's log and sources by their files, which only grow: the directory itself is let go of."""

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
    """A page's sketch in the log's message. Raises CorruptRecord, BadInput."""
    offset, place = page_id >> PLACE_BITS, page_id & ((1 << PLACE_BITS) - 1)
    records = decode_message(data or b"", offset).records
    if place >= len(records):
        raise BadInput(f"the log's message {offset} holds no page {page_id}")
    return records[place]
