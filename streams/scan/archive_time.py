"""Log time of archives: a clock that the dates of their pages move, and that a few wrong dates do not.

Log time decides which pages expire, so one page dated 2099 in an archive of 2020 must not move it. Nor may the wall
clock: a scan that is resumed next year must give the log that it would have given today. Definition, for the pages of a
log in their order, each with its date (of a page without one: the date of its file, or log time if that is later):

* Log time begins with the median of the first DATES dates (of all dates, if the first archive has fewer).
* A date up to STEP_MS after log time moves log time to that date. An earlier date does not change it.
* A later date moves log time only if at least MAJORITY of the last DATES dates, this one included, are beyond
  the step: to the date that a MAJORITY of the last DATES dates reach. So log time follows when an archive is years
  younger than the one before, or when a page dated 1970 began the log, and it never follows a minority of wrong dates.

Log time never falls. It is a function of the dates in the log alone, whatever the messages and batches that hold them:
records keep the dates (`fetched_at`) and log time (`log_time`), and a scan that is resumed reads both from the end of
the log. Of a date in the future of log time counts log time.

Limits: archives that lie more than a step apart move log time only once MAJORITY pages are in the log behind the gap.
Log time follows wrong dates if most of DATES pages in a row have them: a whole archive with a wrong clock.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from neardup.limits import DAY_MS
from neardup.sketch.header import Header
from streams.formats.message import Message, decode_entry
from streams.state.segments import SegmentLog

DATES = 63
MAJORITY = DATES // 2 + 1
STEP_MS = DAY_MS


class ArchiveTime:
    """The log time of archives. log_time: log time so far, ms since 1970; 0 for an empty log."""

    def __init__(self, log_time: int = 0, dates: Iterable[int] = ()) -> None:
        """dates: dates of the last DATES pages of the log, in the order of the log."""
        self.log_time = log_time
        self._dates = deque(dates, maxlen=DATES)

    @classmethod
    def of_log(cls, log: SegmentLog, log_time: int) -> "ArchiveTime":
        """Where a log's archives have brought it. Raises CorruptRecord."""
        end, back = log.end(), 1
        while True:
            records: list[bytes] = []
            for offset, data in log.read(max(0, end - back)):
                entry = decode_entry(data, offset)
                if isinstance(entry, Message):
                    records += entry.records
            if len(records) >= DATES or back >= end:
                return cls(log_time, [max(0, Header(record).fetched_at) for record in records[-DATES:]])
            back *= 2

    @property
    def begun(self) -> bool:
        return bool(self._dates) or self.log_time > 0

    def begin(self, dates: Sequence[int]) -> None:
        """Begin a log. dates: dates of its first DATES pages, or of all pages of its first archive."""
        if dates and not self.begun:
            self.log_time = sorted(dates)[(len(dates) - 1) // 2]

    def date(self, date: int, *, of_file: bool) -> int:
        """Return the date that counts for the next page. of_file: whether `date` is the date of the page's file."""
        return max(self.log_time, date) if of_file else date

    def advance(self, date: int) -> int:
        """Log time at the next page, by its date as `date` gives it."""
        self._dates.append(date)
        if date > self.log_time:
            if date <= self.log_time + STEP_MS:
                self.log_time = date
            elif sum(each > self.log_time + STEP_MS for each in self._dates) >= MAJORITY:
                self.log_time = sorted(self._dates)[-MAJORITY]
        return self.log_time
