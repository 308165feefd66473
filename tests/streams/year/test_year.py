"""A year of operation: no stored data grows without bound, and exactly the expected pages are held.

`make test-large` runs it with a million pages, and restarts every day, not every week.
"""

import os
import time
from pathlib import Path

import pytest

from streams.pipeline import batch_fold
from tests.streams.year.run import DAYS, Year

pytestmark = pytest.mark.whole

PAGES = int(os.environ.get("NEARDUP_TEST_YEAR_PAGES", "3000"))
SHORT = PAGES <= 10_000
#: What the design gives a page in the log and in the index; an index takes twice its size until it is compacted.
LOG_BYTES_A_FETCH, INDEX_BYTES_A_URL = 2_000, 2 * 2_400


@pytest.mark.slow
def test_a_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if SHORT:  # so that the sweeps go round as often as with a million pages
        monkeypatch.setattr(batch_fold, "PAGES_BETWEEN", 30)
    began = time.monotonic()
    year = Year(tmp_path, PAGES, seed=1, restart_days=14 if SHORT else 1)
    year.run()
    print(f"{year.fetches} fetches in {time.monotonic() - began:.0f} s: {year.expired} URLs expired,")
    print(f"{year.taken_down} were taken down;", *year.sizes, sep="\n")
    assert year.fetches > PAGES - DAYS
    assert year.sizes[-1].generation == 3
    assert min(year.expired, 10 * year.taken_down) > PAGES / 10, "both were at work"
    for size in year.sizes:
        assert size.log_bytes <= LOG_BYTES_A_FETCH * size.fetches
        assert size.index_bytes <= INDEX_BYTES_A_URL * size.held
    # Filled once, it stays as it is, however much is fetched.
    full = [size for size in year.sizes if size.day > DAYS // 4]
    assert max(size.held for size in full) < 1.3 * min(size.held for size in full)
    assert all(0 < size.live <= size.held for size in full)
