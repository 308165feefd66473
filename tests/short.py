"""Short forms of long tests: `make test` runs a share of the cases, another share each day; `make test-whole` all.

The process that starts the workers sets the day, so that they all draw the same cases. NEARDUP_TEST_DAY repeats a day.
"""

import os
import time
import zlib
from collections.abc import Iterable
from typing import Any

import pytest

WHOLE = os.environ.get("NEARDUP_TEST_WHOLE", "0") not in ("", "0")
DAY = int(os.environ.get("NEARDUP_TEST_DAY") or time.time() // 86_400)

#: Of the test files that `holds_today` is asked about, every so many-th runs today.
FILES = int(os.environ.get("NEARDUP_TEST_FILES") or 1)

_PARAM = type(pytest.param())


def set_day() -> None:
    """Workers that this process starts draw as it does, also after midnight."""
    os.environ["NEARDUP_TEST_DAY"] = str(DAY)


def some(cases: Iterable[Any], share: int) -> list[Any]:
    """Cases for `parametrize`, of which every `share`-th runs today. In `share` days in a row each case runs once."""
    others = pytest.mark.skip(reason=_reason())
    made = [_param(case) for case in cases]
    return [
        param if WHOLE or number % share == DAY % share else param._replace(marks=(*param.marks, others))
        for number, param in enumerate(made)
    ]


def turn(number: int, share: int) -> pytest.MarkDecorator:
    """Marks a test that runs on every `share`-th day: those whose remainder is `number`."""
    return pytest.mark.skipif(not WHOLE and DAY % share != number, reason=_reason())


def _reason() -> str:
    return f"not drawn today: make test-whole runs all, NEARDUP_TEST_DAY={DAY} draws as today"


def holds_today(file: str) -> bool:
    """Whether a test file is drawn today. In FILES days in a row each file is drawn once."""
    return WHOLE or zlib.crc32(file.encode()) % FILES == DAY % FILES


def _param(case: Any) -> Any:
    if isinstance(case, _PARAM):
        return case
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)


def count(today: int, whole: int) -> int:
    """Examples to draw: `today`, or `whole` in the whole form."""
    return whole if WHOLE else today


def seeds(today: int, whole: int) -> range:
    """Numbers for random draws: `today` of them, other ones each day, or `whole` in the whole form."""
    return range(DAY * 1_000, DAY * 1_000 + count(today, whole))
