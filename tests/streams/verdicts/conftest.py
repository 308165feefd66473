"""A scan whose verdicts are read."""

from pathlib import Path

import pytest

from neardup.scheme import Scheme
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import crawl, write_warc


@pytest.fixture
def scanned(tmp_path: Path) -> Path:
    """The state directory of a scan of 40 pages; the archive is `a.warc` beside it."""
    path = tmp_path / "state"
    with ScanDirectory.open(path, scheme=Scheme(seed=7)) as state:
        scan([write_warc(tmp_path / "a.warc", crawl(40))], state)
    return path
