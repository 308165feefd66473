"""Points in time as an operator writes them."""

import re
from datetime import datetime
from typing import Literal

from streams.errors import WrongUsage

Start = Literal["beginning", "end"] | int

_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_start(text: str, now_ms: int) -> Start:
    """`beginning`, `end`, a time ago (`30s`, `15m`, `2h`, `7d`), or a date and time (ISO 8601; local without a zone).

    now_ms, and a time in the result: ms since the epoch. Raises WrongUsage.
    """
    if text == "beginning":
        return "beginning"
    if text == "end":
        return "end"
    if ago := _AGO.fullmatch(text):
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise WrongUsage(
            f"{text[:40]!r} is no place to begin: beginning, end, a time ago as 15m, or a time as 2026-01-31T12:00"
        ) from None
