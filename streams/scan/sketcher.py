"""The sketcher: sketches of pages in, messages of the sketch log out.

Each round: (1) a block of pages is sketched, a pure function (`streams.scan.reading`); (2) its records get their log
times; (3) full messages, or the rest at the end of a source, are appended; (4) the log is synced. A crash after 1 or 2
leaves nothing behind. After 3 the log has the message whole or not at all: a torn frame is cut when the log is opened.
After 4 the message is durable. A restart continues in each source after the last record that the log accounts for. So
each page is in the log once. Messages are divided by their records alone, so page ids are the same as without the
crash.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from neardup.limits import MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from streams.formats.message import as_first
from streams.scan.archive_time import ArchiveTime
from streams.scan.blocks import MessagePacker
from streams.state.segments import SegmentLog

#: Bytes of bodies that end the pages by which a log begins, before DATES of them: the first log time must not depend on
#: blocks.
HEAD_BYTES_MAX = 64 << 20


@dataclass
class Sketcher:
    """The sketcher of a log. time: the log time at the end of the log. first: the log is empty."""

    scheme: Scheme
    log: SegmentLog
    time: ArchiveTime
    first: bool = False

    def packer(
        self, ids: Sequence[str], offsets: Sequence[int], head_bytes_max: int | None = HEAD_BYTES_MAX
    ) -> MessagePacker:
        """Makes the messages of some sources, which are to be appended in their order. Arguments as `MessagePacker`."""
        return MessagePacker(
            *(self.scheme, self.time, ids, offsets), pages_max=MESSAGE_PAGES_MAX, head_bytes_max=head_bytes_max
        )

    def append(self, message: bytes) -> tuple[int, bytes]:
        """Appends a message, and returns it with its offset once it is durable. The log's first one names the program.

        Raises what the log raises.
        """
        if self.first:
            message, self.first = as_first(message), False
        offset = self.log.append(message)  # (3)
        self.log.sync()  # (4)
        return offset, message
