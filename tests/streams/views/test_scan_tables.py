"""The tables of a scan's views: built once, by one process, of the scan's own verdicts."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from neardup.errors import StateError
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from streams.state import view_tables
from streams.state.view_tables import FAMILIES
from streams.views import counts, scan_tables, url_pages
from streams.views.source import ScanSource
from tests.streams.shell import Shell, words
from tests.streams.views.test_view_rows import every

STATE = Path("neardup-state")


@pytest.fixture
def scanned(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Forty pages, of which ten are copies, in batches of seven."""
    monkeypatch.setattr(scan_tables, "BATCH_VERDICTS", 7)
    scan(shell, "one", 40)
    return shell


def scan(shell: Shell, name: str, count: int) -> None:
    with (shell.folder / f"{name}.jsonl").open("wb") as file:
        for n in range(count):
            page = {"url": f"https://{name}.example/{n:02}", "body": f"<title>T{n}</title>" + words(f"{name}{n % 30}x")}
            file.write(orjson.dumps(page) + b"\n")
    assert shell("scan", f"{name}.jsonl").code == 0


def opened(path: Path = STATE) -> tuple[ScanSource, int]:
    """The source, and the verdicts that it applied."""
    applied = [0]
    return ScanSource(path, progress=lambda done, total, verdicts: applied.append(verdicts)), applied[-1]


def facts_of(source: ScanSource) -> list[Any]:
    lists = [counts.overview(source, None), counts.clusters(source, 1), counts.sites(source, 1, by="name")]
    lists += [counts.kind(source, kind) for kind in ("unique", "exact_duplicate")]
    return [*lists, *(url_pages.url(source, f"https://one.example/{n:02}", source.decider) for n in range(40))]


def test_a_second_start_builds_nothing_and_a_grown_scan_its_new_rows(scanned: Shell) -> None:
    first, applied = opened()
    assert applied == 40
    again, applied = opened()
    assert applied == 0
    assert facts_of(again) == facts_of(first)
    scan(scanned, "two", 12)
    grown, applied = opened()
    assert applied == 12
    shutil.rmtree(STATE / "views")
    anew, applied = opened()
    assert applied == 52
    assert facts_of(grown) == facts_of(anew)
    assert every(lambda *at: counts.kind(anew, "unique", "", *at))


class Killed(Exception):
    pass


def test_a_build_that_was_interrupted_goes_on_where_it_was(scanned: Shell) -> None:
    def kill(done: int, total: int, verdicts: int) -> None:
        if verdicts >= 21:
            raise Killed

    with pytest.raises(Killed):
        ScanSource(STATE, progress=kill)
    source, applied = opened()
    assert applied in (40, 19)  # the frames of this scan: verdicts of one that was not finished come again
    assert sum(facts_of(source)[0]["kinds"].values()) == 40


def test_tables_of_other_rows_or_of_another_scan_are_rebuilt(scanned: Shell, monkeypatch: Any) -> None:
    opened()
    monkeypatch.setattr(scan_tables, "ROWS_VERSION", 99)
    assert opened()[1] == 40
    assert opened()[1] == 0
    STATE.rename("former")
    scan(scanned, "one", 40)
    shutil.move("former/views", STATE / "views")
    assert opened()[1] == 40


def test_tables_of_a_scan_that_was_put_back_are_rebuilt(scanned: Shell) -> None:
    shutil.copytree(STATE, "copy")
    scan(scanned, "two", 12)
    assert opened()[1] == 52
    shutil.move(STATE / "views", "copy/views")
    source, applied = opened(Path("copy"))
    assert applied == 40
    assert facts_of(source)[0]["verdicts"] == 40


def test_tables_that_another_process_changes_meanwhile_are_an_error(scanned: Shell, monkeypatch: Any) -> None:
    opened()
    scan(scanned, "two", 12)
    close = view_tables.TablesBuild.close

    def closed(build: view_tables.TablesBuild) -> None:
        close(build)
        shutil.rmtree(STATE / "views")

    monkeypatch.setattr(view_tables.TablesBuild, "close", closed)
    with pytest.raises(StateError, match="another process changed the tables of the views meanwhile: start again"):
        opened()


def test_two_servers_read_the_same_tables_and_one_builds_them(scanned: Shell) -> None:
    first, second = opened()[0], opened()[0]
    assert facts_of(first) == facts_of(second)
    first.close()
    shutil.rmtree(STATE / "views")
    build = RocksStore(STATE / "views")
    try:
        with pytest.raises(StateError, match="another process uses it"):
            opened()
    finally:
        build.close()


def test_a_scan_that_cannot_be_written_is_shown_all_the_same(scanned: Shell, monkeypatch: Any) -> None:
    monkeypatch.setattr(view_tables.os, "access", lambda *_: False)
    source, applied = opened()
    assert applied == 40
    assert not (STATE / "views").exists()
    assert facts_of(source)[0]["verdicts"] == 40


def test_tables_of_a_scan_that_cannot_be_written_are_used(scanned: Shell, monkeypatch: Any) -> None:
    opened()
    monkeypatch.setattr(view_tables.os, "access", lambda *_: False)
    assert opened()[1] == 0


def test_a_takedown_deletes_the_rows_that_may_name_the_page(scanned: Shell) -> None:
    before = opened()[0]
    assert url_pages.url(before, "https://one.example/03", before.decider) is not None
    assert scanned("forget", "https://one.example/03", "--state", str(STATE)).code == 0
    assert not (STATE / "views").exists()
    source, applied = opened()
    assert applied >= 40
    shown = url_pages.url(source, "https://one.example/03", source.decider)
    assert shown is not None
    assert [entry["verdict"] for entry in shown["history"]] == ["gone"]
    assert "https://one.example/03" not in str(counts.kind(source, "unique"))


def test_reading_backwards_is_reading_forwards_reversed(tmp_path: Path) -> None:
    family = FAMILIES["entries"]
    store = RocksStore(tmp_path / "index")
    keys = [b"%03d" % n for n in range(150)]
    store.write({family: dict.fromkeys(keys, b"{}"), Family.META: {b"x": b"y"}})
    tables = view_tables.ViewTables(store)

    def read(start: bytes, back: bool) -> list[bytes]:
        return [key for key, _ in tables.rows("entries", start, back)]

    assert read(b"", False) == keys
    assert read(b"070", False) == keys[70:]
    assert read(b"0705", False) == keys[71:]
    assert read(b"070", True) == keys[70::-1]
    assert read(b"0705", True) == keys[70::-1]
    assert read(b"000", True) == keys[:1]
    assert read(b"~", True) == keys[::-1]
    store.close()


def test_views_of_a_scan_report_the_progress_of_the_tables(scanned: Shell, monkeypatch: Any) -> None:
    from streams.views import web

    async def served(*_: object, **__: object) -> None:
        pass

    monkeypatch.setattr(web, "serve", served)
    said = scanned("views", str(STATE), "--port", "0").err
    assert "building the tables of the views: 40 verdicts, 100%" in said
    assert "building" not in scanned("views", str(STATE), "--port", "0").err


def test_members_beyond_those_of_a_row_are_listed_with_pages(shell: Shell, monkeypatch: Any) -> None:
    from streams.views import view_rows

    monkeypatch.setattr(view_rows, "MEMBERS_KEPT", 5)
    monkeypatch.setattr(url_pages, "MEMBERS_SHOWN", 4)
    with (shell.folder / "copies.jsonl").open("wb") as file:
        for n in range(18):
            file.write(orjson.dumps({"url": f"https://a.example/{n:02}", "body": words("same")}) + b"\n")
    assert shell("scan", "copies.jsonl").code == 0
    source = opened()[0]
    page_of: Callable[..., Any] = lambda *at: url_pages.cluster(source, 0, url_pages.Cursor(*at))  # noqa: E731
    pages, at = [page_of()], ("", "")
    assert (pages[0]["complete"], pages[0]["size"], len(pages[0]["members"])) == (False, 18, 5)
    while (end := pages[-1]["next"]) is not None:
        at = end, ""
        pages.append(page_of(*at))
    assert [len(page["members"]) for page in pages] == [5, 4, 4, 4, 1]
    assert sorted(one["url"] for page in pages for one in page["members"]) == [
        f"https://a.example/{n:02}" for n in range(18)
    ]
    back = [pages[-1]]
    while back[-1]["previous"] is not None:
        back.append(page_of("", back[-1]["previous"]))
    assert [page["members"] for page in reversed(back)] == [page["members"] for page in pages]
