"""Fetch times in every unit and form that crawlers write: one instant, or a reason."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.errors import BadPage
from neardup.fetch_times import DIGITS, IN_ORDER, FetchTime, is_ms, ms_of_digits, read_time
from neardup.page import Page

MS = 1_772_366_400_500  # 2026-03-01T12:00:00.5Z
S = MS // 1000


@pytest.mark.parametrize(
    ("given", "ms", "read_as"),
    [
        (MS, MS, ""),
        (float(MS), MS, ""),
        (S, S * 1000, "seconds"),
        (MS / 1000, MS, "seconds"),
        (Decimal("1772366400.5"), MS, "seconds"),
        (MS * 1000 + 999, MS, "microseconds"),
        (MS * 1_000_000 + 999_999, MS, "nanoseconds"),
        (20260301, S * 1000 - 43_200_000, DIGITS),
        (20260301120000, S * 1000, DIGITS),
        (20260301120000500, MS, DIGITS),
        (0, 0, IN_ORDER),
        (7.0, 7, IN_ORDER),
        (10**8 - 1, 10**8 - 1, IN_ORDER),
        (20261301, 20261301, IN_ORDER),
        (datetime(2026, 3, 1, 12, 0, 0, 500_999, UTC), MS, ""),
        (datetime(2026, 3, 1, 14, 0, tzinfo=timezone(timedelta(hours=2))), S * 1000, ""),
        (date(2026, 3, 1), S * 1000 - 43_200_000, ""),
    ],
)
def test_a_time_is_read_by_its_number_of_digits(given: object, ms: int, read_as: str) -> None:
    assert read_time(given) == FetchTime(ms, read_as)
    if not isinstance(given, date):
        assert read_time(f" {Decimal(given):f}\n") == FetchTime(ms, read_as)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T12:00:00.5Z",
        "2026-03-01T12:00:00.500000000Z",
        "2026-03-01t12:00:00,5z",
        "2026-03-01 12:00:00.5",
        "2026-03-01 12:00:00.5 UTC",
        "2026-03-01T14:00:00.5+02:00",
        "2026-03-01T07:00:00.5-0500",
        "2026-03-01 13:00:00.500999+01",
        "2026/03/01 12:00:00.5",
        "20260301T120000.5Z",
        "Sun, 01 Mar 2026 12:00:00.5 GMT",
        "1 Mar 2026 13:00:00.5 +0100",
        "Sunday, 01-Mar-26 12:00:00.5 GMT",
        "Sun Mar  1 12:00:00.5 2026",
        "Sun Mar 01 12:00:00.5 UTC 2026",
    ],
)
def test_a_date_as_text_is_one_instant(text: str) -> None:
    assert read_time(text) == FetchTime(MS)


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2026-03", "2026-03-01T00:00:00Z"),
        ("2026-03-01", "2026-03-01T00:00:00Z"),
        ("2026-03-01T12:30Z", "2026-03-01T12:30:00Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
    ],
)
def test_a_date_may_lack_its_smaller_parts(text: str, same_as: str) -> None:
    assert read_time(text) == read_time(same_as)


@pytest.mark.parametrize(
    "given",
    [
        *("", "now", "yesterday", "2026-13-01", "2026-02-30T00:00:00Z", "2026-03-01T25:00:00Z", "2026-03-01T12:00:61Z"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "Sun, 01 Foo 2026 12:00:00 GMT"),
        *("03/01/2026", "1e12", "\u0661\u0662", "2026-W09", "9" * 31, "2026-03-01T12:00:00Z" + " " * 99 + "x"),
        *(
            -1,
            -MS,
            10**10,
            10**11 - 1,
            10**13,
            10**16,
            10**19,
            2**70,
            -(2**70),
            Decimal("1e999999"),
            1.5,
            0.1,
        ),
        *(float("nan"), float("inf"), -float("inf"), Decimal("nan"), True, None, [], b"1"),
        datetime(2026, 3, 1),
    ],
)
def test_bad_fetch_time_is_a_bad_page(given: object) -> None:
    with pytest.raises(BadPage, match="fetched_at"):
        read_time(given)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2099, 12, 31)))
def test_units_never_meet(moment: datetime) -> None:
    ms = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert read_time(ms).ms == read_time(ms * 1000).ms == read_time(ms * 1_000_000).ms == ms
    assert read_time(ms // 1000).ms == ms // 1000 * 1000
    assert read_time(moment.isoformat()).ms == ms
    assert read_time(ms) == FetchTime(ms)
    assert is_ms(ms)


@given(
    st.integers()
    | st.integers(0, 10**20)
    | st.floats()
    | st.text(max_size=40)
    | st.text("0123456789-:. TZ+", max_size=30)
)
def test_a_time_that_was_read_is_read_as_itself(given: float | str) -> None:
    try:
        found = read_time(given)
    except BadPage:
        return
    assert read_time(found.ms).ms == found.ms
    assert not is_ms(given) or found == FetchTime(int(given))


@pytest.mark.parametrize(
    ("given", "ms", "note"),
    [(MS, MS, ""), (S, S * 1000, "seconds"), (5, 5, IN_ORDER), ("2026-03-01", S * 1000 - 43_200_000, "")],
)
def test_page_reads_its_fetch_time(given: int | str, ms: int, note: str) -> None:
    page = Page("http://a.example/", b"", fetched_at=given)  # type: ignore[arg-type]
    assert (page.fetched_at, page.time_read_as) == (ms, note)
    assert page == Page("http://a.example/", b"", fetched_at=ms)
    assert page.dated(3 * 10**10).fetched_at == 3 * 10**10


def test_a_number_of_many_digits_is_named_by_its_size() -> None:
    with pytest.raises(BadPage, match="a number of 33216 bits"):
        read_time(10**9999)


@given(st.text("0123456789 -+._٣", max_size=18) | st.integers(0, 10**19).map(str))
@example("1700000000000")
@example("0170000000000")
@example("9999999999999")
def test_ms_of_digits_equals_read_time(text: str) -> None:
    found = ms_of_digits(text.encode())
    if found is not None:
        assert read_time(text) == FetchTime(found)
    quick = text.isascii() and text.isdigit() and len(text) == 13 and text[0] != "0"
    assert (found is not None) == quick
