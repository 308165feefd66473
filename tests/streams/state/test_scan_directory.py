"""State directories: made, locked, refused, mended."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord, OtherVersion, StateError
from neardup.index.column_families import Family
from neardup.scheme import Scheme
from neardup.verdict import Coordinates
from streams.formats.message import decode_message, encode_message
from streams.pipeline.matcher import LOG_PROGRAM
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests.streams.archives import crawl, write_folder, write_warc

SCHEME = Scheme(seed=7)


def scanned(tmp_path: Path, pages: int = 8) -> Path:
    path = tmp_path / "state"
    with ScanDirectory.open(path, scheme=SCHEME) as state:
        scan([write_warc(tmp_path / "a.warc.gz", crawl(pages))], state)
    return path


@pytest.mark.slow
def test_a_new_directory_has_a_secret_seed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state"
    with ScanDirectory.open(path) as state:
        seed = state.scheme.seed
    assert (path / "scheme.json").stat().st_mode & 0o777 == 0o600
    with ScanDirectory.open(path) as state:
        assert (state.scheme.seed, state.messages) == (seed, [])
    with ScanDirectory.open(tmp_path / "other") as state:
        assert state.scheme.seed != seed


def test_two_on_one_directory(tmp_path: Path) -> None:
    with (
        ScanDirectory.open(tmp_path / "state"),
        pytest.raises(StateError, match=f"{tmp_path}/state is open in this process already; close it"),
    ):
        ScanDirectory.open(tmp_path / "state")
    ScanDirectory.open(tmp_path / "state").close()


@pytest.mark.slow
def test_another_scheme(tmp_path: Path) -> None:
    path = scanned(tmp_path)
    with pytest.raises(StateError, match="use another directory, or leave the seed"):
        ScanDirectory.open(path, scheme=Scheme(seed=8))
    ScanDirectory.open(path, scheme=SCHEME).close()


@pytest.mark.slow
def test_another_decider(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with ScanDirectory.open(path, decider=lambda scheme: Decider(scheme.digest, rule="simhash")) as state:
        assert state.decider.rule == "simhash"
    with ScanDirectory.open(path, scheme=None, decider=lambda scheme: Decider(scheme.digest)) as state:
        assert state.decider.rule == "verified", "nothing was decided yet"
        scan([write_warc(tmp_path / "a.warc", crawl(3))], state)
    with pytest.raises(StateError, match=r"decided by rule verified .* and simhash .* is asked for"):
        ScanDirectory.open(path, decider=lambda scheme: Decider(scheme.digest, rule="simhash"))
    with ScanDirectory.open(path) as state:
        assert state.decider.rule == "verified"


def test_a_folder_with_other_things_is_no_state(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("precious")
    with pytest.raises(StateError, match=r"holds 'thesis\.doc' and no state"):
        ScanDirectory.open(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.doc"]


def test_a_file_is_no_state(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StateError, match="is a file"):
        ScanDirectory.open(tmp_path / "file")


@pytest.mark.parametrize("name", ["scheme.json", "decider.json"])
def test_a_file_of_a_newer_program_is_named(tmp_path: Path, name: str) -> None:
    path = scanned(tmp_path)
    file = path / name
    file.write_text(json.dumps(json.loads(file.read_text()) | {"echo_min": 3}))
    with pytest.raises(
        OtherVersion, match=rf"{name}: written by a newer version of neardup .*echo_min.*; run that one$"
    ):
        ScanDirectory.open(path)


def test_a_log_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    """By its index, which need not read it again, and by a new fold. Earlier versions are not affected."""
    path = scanned(tmp_path)
    with ScanDirectory.open(path) as state:
        assert [decode_message(data, at).program for at, data in state.log.read()] == [version("neardup")]
        assert state.matcher.log_program == version("neardup")
        state.store.write({Family.META: {LOG_PROGRAM: b"99.0.0"}})
    values = r"begun by neardup 99\.0\.0, .*run that version; or .* neardup scan into another directory"
    with pytest.raises(OtherVersion, match=values):
        ScanDirectory.open(path)
    shutil.rmtree(path / "index")
    with ScanDirectory.open(path) as state:
        frames = [data for _, data in state.log.read()]
        state.log.truncate(0)
        for data in [encode_message(replace(decode_message(frames[0], 0), program="99.0.0")), *frames[1:]]:
            state.log.append(data)
    shutil.rmtree(path / "index")
    with pytest.raises(OtherVersion, match=values):
        ScanDirectory.open(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scheme.json", "decider.json"])
def test_a_spoilt_file_is_named(tmp_path: Path, name: str) -> None:
    path = scanned(tmp_path)
    (path / name).write_text('{"seed": ')
    with pytest.raises(CorruptRecord, match=name):
        ScanDirectory.open(path)


def test_lost_seed_is_not_replaced(tmp_path: Path) -> None:
    path = scanned(tmp_path)
    (path / "scheme.json").unlink()
    with pytest.raises(StateError, match=r"scheme\.json is missing"):
        ScanDirectory.open(path)


def rows(state: ScanDirectory) -> list[list[tuple[bytes, bytes]]]:
    return [list(state.store.scan(family)) for family in Family]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [("index",), ("verdicts",), ("index", "verdicts")])
def test_deleted_files_are_rebuilt_from_the_log(tmp_path: Path, lost: tuple[str, ...]) -> None:
    path = scanned(tmp_path)
    with ScanDirectory.open(path) as state:
        before = (rows(state), list(state.verdicts()))
        assert state.messages == []
    for name in lost:
        shutil.rmtree(path / name)
    with ScanDirectory.open(path) as state:
        assert any(name in message for message in state.messages for name in lost)
        assert (rows(state), list(state.verdicts())) == before


@pytest.mark.slow
def test_lost_log_is_reported_and_its_advice_loses_nothing(tmp_path: Path) -> None:
    path = scanned(tmp_path)
    with ScanDirectory.open(path) as state:
        before = (rows(state), list(state.verdicts()))
    (path / "log").rename(tmp_path / "kept")
    with pytest.raises(StateError, match=r"messages are lost; restore the log; or scan .* into another directory"):
        ScanDirectory.open(path)
    with ScanDirectory.open(tmp_path / "another", scheme=SCHEME) as state:
        scan([tmp_path / "a.warc.gz"], state)
        assert (rows(state), list(state.verdicts())) == before
    shutil.rmtree(path / "log", ignore_errors=True)
    (tmp_path / "kept").rename(path / "log")
    with ScanDirectory.open(path) as state:
        assert (rows(state), list(state.verdicts())) == before


@pytest.mark.slow
def test_a_sources_record_that_is_deleted_as_advised_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    path = scanned(tmp_path)
    with ScanDirectory.open(path) as state:
        before = (rows(state), list(state.verdicts()))
    (record,) = (path / "sources").glob("*.json")
    record.write_text("{")
    with pytest.raises(CorruptRecord, match="delete it to scan it again"):
        ScanDirectory.open(path)
    record.unlink()
    with ScanDirectory.open(path) as state:
        scan([tmp_path / "a.warc.gz"], state)
        assert (rows(state), list(state.verdicts())) == before


@pytest.mark.slow
def test_pages_can_be_read_again_until_they_change(tmp_path: Path) -> None:
    samples = crawl(5)
    archive, folder = write_warc(tmp_path / "a.warc.gz", samples), write_folder(tmp_path / "f", crawl(3))
    path = tmp_path / "state"
    with ScanDirectory.open(path) as state:
        scan([archive, folder], state)
    with ScanDirectory.open(path) as state:
        places = [Coordinates(**verdict["coordinates"]) for verdict in state.verdicts() if not verdict["n"]]
        bodies = [state.read_page(place).body for place in places]
        assert bodies == [s.body for s in samples] + [s.body for s in sorted(crawl(3), key=lambda s: s.path)]
        with pytest.raises(BadInput, match="no source"):
            state.read_page(Coordinates(source="f" * 32))
    archive.write_bytes(archive.read_bytes()[:-9])
    (folder / "page0.html").write_text("changed")
    (folder / "page1.html").unlink()
    with ScanDirectory.open(path) as state:
        for place, expected in (
            (places[0], "changed"),
            (places[-3], "changed"),
            (places[-2], "cannot be read any more"),
        ):
            with pytest.raises(BadInput, match=expected):
                state.read_page(place)
        assert state.read_page(places[-1]).body == bodies[-1]


@pytest.mark.slow
def test_a_source_that_moved_is_found_again_where_it_is_named(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    with ScanDirectory.open(tmp_path / "state", scheme=SCHEME) as state:
        scan([archive], state)
        moved = archive.rename(tmp_path / "b.warc")
        first = Coordinates(next(iter(state.sources)))
        with pytest.raises(BadInput):
            state.read_page(first)
        assert scan([moved], state).skipped == [str(moved)]
        assert state.read_page(first).url == "http://a.example/page0.html"
    with ScanDirectory.open(tmp_path / "state") as state:
        assert state.read_page(first).url == "http://a.example/page0.html"


def test_a_throw_away_state_leaves_nothing(tmp_path: Path) -> None:
    with ScanDirectory.open(None) as state:
        place = state.path
        result = scan([write_warc(tmp_path / "a.warc", crawl(4))], state)
        assert len(list(state.verdicts())) == result.pages
        assert place.exists()
    assert not place.exists()


@contextmanager
def mounted(path: Path, options: str) -> Iterator[Path]:
    path.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except OSError as error:
        pytest.skip(f"no mount command: {error}")
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True, timeout=20)


def test_a_read_only_directory(tmp_path: Path) -> None:
    with (
        mounted(tmp_path / "ro", "ro,size=1m") as path,
        pytest.raises(StateError, match=r"Read-only file system; the directory must be writable"),
    ):
        ScanDirectory.open(path / "state")


def test_a_state_that_turned_read_only(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=200m") as disk:
        with ScanDirectory.open(disk / "state") as state:
            scan([write_warc(tmp_path / "a.warc", crawl(3))], state)
        done = subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True, text=True, timeout=20)
        if done.returncode:
            pytest.skip(f"cannot remount: {done.stderr.strip()}")
        with pytest.raises(StateError, match="Read-only file system"):
            ScanDirectory.open(disk / "state")


def test_source_records_survive(tmp_path: Path) -> None:
    path = scanned(tmp_path)
    (record,) = [json.loads(file.read_text()) for file in (path / "sources").glob("*.json")]
    assert (record["path"], record["finished"], record["kind"]) == (str(tmp_path / "a.warc.gz"), True, "warc")
    assert record["pages"] == len(crawl(8))


def test_directory_of_a_scan_with_shards_is_refused_with_advice(tmp_path: Path) -> None:
    path = scanned(tmp_path)
    for name in ("effects", "shards"):
        (path / name).mkdir()
    file = path / "decider.json"
    decider = json.loads(file.read_text())
    file.write_text(json.dumps(decider | {"shards": 4, "epoch": 16}))
    with pytest.raises(OtherVersion, match="scan the files again into another directory"):
        ScanDirectory.open(path)
