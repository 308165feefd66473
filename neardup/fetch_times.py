"""Fetch times as crawlers write them, read as milliseconds since 1970: the one function behind `Page.fetched_at`.

**Numbers.** Programs write seconds, milliseconds, microseconds or nanoseconds since 1970. The unit is chosen for each
value alone, so that a verdict is a function of the record. It follows from the number of digits, because no two units
meet in the years 1973 to 2286:

| value | read as |
|---|---|
| below 10^8 | as it is: numbers of an order that a caller counts himself; as milliseconds they lie on 1 January 1970 |
| 10^8 to 10^10 | seconds |
| 10^11 to 10^13 | milliseconds |
| 10^14 to 10^16 | microseconds |
| 10^17 to 10^19 | nanoseconds |
| 8, 14 or 17 digits that are a date from 1990 to 2099 | that date, as archives write it: 20260301, 20260301120000 |

A number between these ranges, or below 0, is no fetch time. A fraction is valid where it is a part of a unit.

**Text** is such a number, or a date of ISO 8601 (also with a space, without seconds, time or day), of HTTP (RFC 9110,
section 5.6.7, with its two obsolete forms) or of mail (RFC 5322). A date without a zone is in UTC. So all six forms of
a WARC-Date are read: with seconds (WARC 1.0), with a fraction (1.1), with 14 digits (ARC), without zone, with an
offset, and that of HTTP.
"""

import calendar
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from neardup.errors import BadPage

#: Smaller numbers are numbers of an order.
ORDER_MAX = 10**8
#: Milliseconds of a date that is plausible for a fetch: 1973 to 2286.
MS_MIN, MS_MAX = 10**11, 10**13
#: Ranges of numbers in other units: from, below, milliseconds of a unit, name.
_UNITS = (
    (10**8, 10**10, Fraction(1000), "seconds"),
    (MS_MIN, MS_MAX, Fraction(1), ""),
    (10**14, 10**16, Fraction(1, 1000), "microseconds"),
    (10**17, 10**19, Fraction(1, 1_000_000), "nanoseconds"),
)
IN_ORDER, DIGITS = "numbers below 10^8", "dates of digits"
#: Key of counts of pages without a time, beside those of `FetchTime.read_as`.
UNDATED = "no date"
_CHARS_MAX = 80
#: Digits of milliseconds of the years 2001 to 2286. No date has so many digits.
_MS_DIGITS = 13
_NUMBER_MAX = 10**19
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_DATE_OF_DIGITS = re.compile(
    r"(?P<year>199\d|20\d\d)(?P<month>\d\d)(?P<day>\d\d)"
    r"(?:(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)(?P<fraction>\d{3})?)?",
    re.ASCII,
)
_ZONE = r"\s*(?P<zone>Z|UTC|GMT|UT|[+-]\d\d(?::?\d\d)?)?"
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
_DATES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        rf"(?P<year>\d{{4}})[-/](?P<month>\d\d)(?:[-/](?P<day>\d\d)(?:(?:T|\s)\s*{_CLOCK}{_ZONE})?)?",
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)T(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)"
        rf"(?:[.,](?P<fraction>\d+))?{_ZONE}",
        # Sun, 06 Nov 1994 08:49:37 GMT; Sunday, 06-Nov-94 08:49:37 GMT
        rf"(?:[a-z]{{3,9}},?\s+)?(?P<day>\d\d?)[\s-](?P<name>[a-z]{{3}})[a-z]*[\s-](?P<year>\d{{4}}|\d\d)\s{_CLOCK}{_ZONE}",
        # Sun Nov  6 08:49:37 1994
        rf"[a-z]{{3}}\s(?P<name>[a-z]{{3}})\s+(?P<day>\d\d?)\s{_CLOCK}{_ZONE}\s(?P<year>\d{{4}})",
    )
)


@dataclass(frozen=True, slots=True)
class FetchTime:
    """A fetch time. ms: milliseconds since 1970. read_as: what was read if it was neither these nor a date, else ""."""

    ms: int
    read_as: str = ""


def is_ms(given: object) -> bool:
    """Whether a value certainly is a time in milliseconds. Quick: it is asked for each page."""
    return type(given) is int and MS_MIN <= given < MS_MAX


def ms_of_digits(text: bytes) -> int | None:
    """Reads what most crawlers write, milliseconds since 1970 as digits; None for all else. Quick: once a page."""
    return int(text) if len(text) == _MS_DIGITS and text.isdigit() and text[:1] != b"0" else None


def is_readable(given: object) -> bool:
    """Whether `read_time` reads values of this type. A `datetime` and a `date` are known by their methods."""
    number = isinstance(given, int | float | Decimal) and not isinstance(given, bool)
    return number or isinstance(given, str) or hasattr(given, "timetuple")


def read_time(given: Any) -> FetchTime:
    """Reads a fetch time: a number, text, a `datetime` with a time zone, or a `date` (its start in UTC).

    Raises BadPage for anything else.
    """
    if is_ms(given):
        return FetchTime(given)
    found = None
    if isinstance(given, str):
        text = given.strip()
        if len(text) <= _CHARS_MAX:
            found = _of_number(Fraction(text)) if _NUMBER.fullmatch(text) else _of_text(text)
    elif hasattr(given, "utcoffset"):
        if given.utcoffset() is None:
            raise BadPage(f"fetched_at has no time zone: {given}")
        found = FetchTime(calendar.timegm(given.utctimetuple()) * 1000 + given.microsecond // 1000)
    elif hasattr(given, "timetuple"):
        found = FetchTime(calendar.timegm(given.timetuple()) * 1000)
    elif is_readable(given):
        try:
            found = _of_number(Fraction(given)) if 0 <= given < _NUMBER_MAX else None
        except (ValueError, ArithmeticError):  # not a number
            found = None
    if found is None or not (MS_MIN <= found.ms < MS_MAX or found.read_as == IN_ORDER):
        long = isinstance(given, int) and abs(given) >= _NUMBER_MAX  # Python writes no number of thousands of digits
        raise BadPage(
            "fetched_at is neither ms since 1970 nor a time as 2026-03-01T12:00:00Z, nor s, us or ns, of the years "
            f"1973 to 2286: {f'a number of {given.bit_length()} bits' if long else f'{given!r:.60}'}"
        )
    return found


def _of_number(value: Fraction) -> FetchTime | None:
    whole = value.denominator == 1
    if whole and (moment := _DATE_OF_DIGITS.fullmatch(str(value.numerator))):
        ms = _ms(moment.groupdict())
        if ms is not None:
            return FetchTime(ms, DIGITS)
    if whole and 0 <= value < ORDER_MAX:
        return FetchTime(value.numerator, IN_ORDER)
    for start, stop, unit, name in _UNITS:
        if start <= value < stop:
            return FetchTime(value * unit // 1, name)
    return None


def _of_text(text: str) -> FetchTime | None:
    for pattern in _DATES:
        if found := pattern.fullmatch(text):
            ms = _ms(found.groupdict())
            return None if ms is None else FetchTime(ms)
    return None


def _ms(parts: dict[str, str | None]) -> int | None:
    """Milliseconds since 1970 of the parts of a date; None for a date that no calendar has."""
    name, second = parts.get("name"), int(parts.get("second") or 0)
    year = int(parts["year"] or 0)
    if len(parts["year"] or "") == 2:
        year += 1900 if year >= 69 else 2000  # as POSIX reads them
    month = int(parts.get("month") or 0)
    if name is not None:
        month = _MONTHS.index(name.lower()) + 1 if name.lower() in _MONTHS else 0
    day, hour, minute = int(parts.get("day") or 1), int(parts.get("hour") or 0), int(parts.get("minute") or 0)
    if not (year and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return None
    # A leap second is the start of the next minute.
    if hour > 23 or minute > 59 or second > 60:
        return None
    seconds = calendar.timegm((year, month, day, hour, minute, second)) - _offset(parts.get("zone") or "")
    return seconds * 1000 + int((parts.get("fraction") or "")[:3].ljust(3, "0"))


def _offset(zone: str) -> int:
    """Seconds by which the clocks of a zone are ahead of UTC."""
    if zone[:1] not in ("+", "-"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds
