"""A state directory of scan, library and matcher: whose it is, its scheme and its first decider, one answer to all."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from neardup.decider import Decider
from neardup.errors import CorruptRecord, StateError
from neardup.scheme import Scheme
from streams.ask.answers import IndexSnapshot
from streams.scan.scan import scan
from streams.state.index_rows import open_index
from streams.state.matcher_directory import MatcherDirectory
from streams.state.scan_directory import ScanDirectory
from streams.state.scan_snapshot import read_scan
from tests.streams.archives import crawl, write_warc

SCHEME = Scheme(seed=7)


def read(path: Path) -> None:
    with read_scan(path):
        pass


def ask(path: Path) -> None:
    IndexSnapshot(path).close()


def show(path: Path) -> None:
    with ExitStack() as held:
        open_index(path, held)


def match(path: Path) -> None:
    MatcherDirectory(path, SCHEME).close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with ScanDirectory.open(tmp_path / "state", scheme=SCHEME) as state:
        scan([write_warc(tmp_path / "a.warc", crawl(3))], state)
    return tmp_path / "state"


@pytest.mark.parametrize("opened", [read, ask, show])
def test_a_reader_names_a_damaged_decider(path: Path, opened: Callable[[Path], None]) -> None:
    opened(path)
    (path / "decider.json").write_text("{")
    with pytest.raises(CorruptRecord, match=r"decider\.json is not a decider: .*; restore it"):
        opened(path)


@pytest.mark.parametrize("opened", [read, ask, show])
def test_a_reader_names_a_missing_decider(path: Path, opened: Callable[[Path], None]) -> None:
    (path / "decider.json").unlink()
    with pytest.raises(StateError, match=r"decider\.json"):
        opened(path)


@pytest.mark.parametrize("name", ["log", "verdicts", "sources"])
def test_a_matcher_refuses_the_directory_of_a_scan(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(StateError, match=r"belongs to `neardup scan`; name another directory for the stream"):
        match(tmp_path)


def test_a_scan_and_its_readers_refuse_the_directory_of_a_matcher(tmp_path: Path) -> None:
    match(tmp_path)
    for opened in (read, lambda path: ScanDirectory.open(path).close()):
        with pytest.raises(StateError, match=r"belongs to `neardup match`.*neardup verdicts"):
            opened(tmp_path)


def test_both_refuse_another_scheme(tmp_path: Path) -> None:
    match(tmp_path / "matcher")
    with pytest.raises(StateError, match=f"was made with scheme {SCHEME.digest}.*set the seed"):
        MatcherDirectory(tmp_path / "matcher", Scheme(seed=8))
    ScanDirectory.open(tmp_path / "scan", scheme=SCHEME).close()
    with pytest.raises(StateError, match=f"was made with scheme {SCHEME.digest}.*leave the seed"):
        ScanDirectory.open(tmp_path / "scan", scheme=Scheme(seed=8))


def test_a_first_decider_stays_once_messages_are_folded(tmp_path: Path, path: Path) -> None:
    other = Decider(SCHEME.digest, rule="simhash")
    directory = MatcherDirectory(tmp_path / "matcher", SCHEME)
    assert directory.first_decider(other) == other
    assert directory.first_decider(Decider(SCHEME.digest)).rule == "verified", "nothing is folded"
    directory.close()
    with ScanDirectory.open(path) as state:
        assert state.first_decider.rule == "verified"
