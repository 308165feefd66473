"""State directories of former versions are opened with the same content, or refused with advice."""

import json
import shutil
import tarfile
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import pytest

from neardup import Page, open_index
from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.column_families import Family
from neardup.scheme import Scheme
from streams.formats.message import Forget, Message, decode_entry
from streams.state import index_rows as look
from streams.state.scan_directory import ScanDirectory
from tests.golden import states
from tests.streams import contradictions
from tests.streams.archives import crawl, write_warc
from tests.streams.shell import Shell

GOLDEN = sorted(states.FOLDER.glob("*.tar.xz"))


def unpacked(packed: Path, folder: Path) -> Path:
    with tarfile.open(packed) as source:
        source.extractall(folder, filter="data")
    return folder


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, object]]:
    """The directory unpacked, and what must be read of it."""
    packed: Path = request.param
    return unpacked(packed, tmp_path / "state"), json.loads(packed.with_suffix("").with_suffix(".json").read_text())


def test_the_state_of_this_version_is_there_and_is_opened(tmp_path: Path) -> None:
    unpacked(states.FOLDER / f"{version('neardup')}.tar.xz", tmp_path)
    with ScanDirectory.open(tmp_path) as state:
        assert list(state.verdicts())
    with ScanDirectory.open(tmp_path, scheme=Scheme(seed=7, version=1)) as state:  # as with an explicit seed
        assert list(state.verdicts())
    assert all(packed.stat().st_size < 40_000 for packed in GOLDEN)


def test_a_directory_of_an_earlier_scheme_sketches_no_page_and_is_left_as_it_is(
    shell: Shell, golden: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    """It is read, and the advice of the error is followed: another directory takes the pages."""
    path, wanted = golden
    archive = str(write_warc(tmp_path / "b.warc", crawl(3)))
    for options in ((), ("--again",)):
        result = shell("scan", archive, "--state", str(path), *options)
        assert (result.code, "version is 1" in result.err) == (1, True)
        assert "another state directory" in result.err
    with ScanDirectory.open(path) as state:
        assert json.loads(json.dumps(states.content(state))) == wanted
    other = shell("scan", archive, "--state", str(tmp_path / "other"), "--json")
    assert (other.code, json.loads(other.out)["pages"]) == (0, 4)
    assert shell("replay", str(path)).code == 0


def test_a_directory_of_before_is_read(golden: tuple[Path, dict[str, object]]) -> None:
    path, wanted = golden
    with ScanDirectory.open(path) as state:
        assert json.loads(json.dumps(states.content(state))) == wanted
        entries = [decode_entry(data, offset) for offset, data in state.log.read()]
        assert [type(entry) for entry in entries] == [Message, Forget]
    with ExitStack() as held:
        opened = look.open_index(path, held)
        assert not contradictions.inspect(opened.store).wrong_total
        _, shown = look.overview(opened, lambda rows: None)
        assert len(shown["takedowns"]) == 1
        assert shown["program"]


@pytest.mark.slow
def test_its_log_is_folded_again_to_the_same_verdicts_and_index(golden: tuple[Path, dict[str, object]]) -> None:
    """The rules of its version are still in this program, as is the scheme that its sketches were made by."""
    path, wanted = golden
    with ScanDirectory.open(path) as state:
        before = [list(state.store.scan(family)) for family in Family if family is not Family.META]
        frames = list(state.verdict_frames.read())
    for name in ("index", "verdicts"):
        shutil.rmtree(path / name)
    with ScanDirectory.open(path) as state:
        assert list(state.verdict_frames.read()) == frames
        assert [list(state.store.scan(family)) for family in Family if family is not Family.META] == before
        assert json.loads(json.dumps(states.content(state))) == wanted


def gauge(day: int) -> Page:
    """A page of figures: the text of all days, and a list of its own."""
    text = " ".join(f"word{n}" for n in range(200))
    rows = "".join(f"<p>row{day}x{n} value{day}x{n}.</p>" for n in range(70))
    url = f"https://a.example/gauge?day={'one' if day else 'two'}"
    return Page(url, f"<title>A gauge</title><p>{text}.</p>{rows}".encode())


def test_a_directory_goes_on_under_the_rule_version_it_was_begun_with(tmp_path: Path) -> None:
    """Version 1 of the rules hides pages of one frame; version 2 demands most of the shorter page."""
    scheme = Scheme(seed=7)
    first = Decider(scheme.digest, rule_version=1, alike_min=16)
    with open_index(tmp_path / "old", scheme=scheme, decider=first) as index:
        assert [verdict.verdict for verdict in index.add([gauge(0)])] == ["unique"]
    with open_index(tmp_path / "old") as index:
        assert index.decider == first
        assert [verdict.verdict for verdict in index.add([gauge(1)])] == ["same_content"]
    with open_index(tmp_path / "new", scheme=scheme) as index:
        assert [verdict.verdict for verdict in index.add([gauge(0), gauge(1)])] == ["unique", "unique"]
    newest = Decider(scheme.digest)
    with pytest.raises(StateError, match="rule_version 1 -> 2"):
        open_index(tmp_path / "old", decider=newest)
    with open_index(tmp_path / "old", decider=newest, new_decider=True) as index:
        assert index.decider == newest
