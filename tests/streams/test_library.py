"""The library: the same verdicts in memory, on disk, over reopened directories, and beside a scan."""

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from neardup import (
    BadInput,
    Decider,
    Page,
    Scheme,
    SiteOverride,
    Sketch,
    StateError,
    Verdict,
    compare,
    open_index,
    sketch_pages,
)
from neardup.errors import BadPage, NeardupError
from neardup.index.column_families import Store, Writes
from neardup.index.memory import MemoryStore
from neardup.index.rocks import RocksStore
from streams.pipeline.matcher import Matcher
from streams.scan.scan import scan
from streams.state.directory import Directory
from streams.state.scan_directory import ScanDirectory, VerdictLog

SCHEME = Scheme(seed=7)


def page(number: int, words: int = 200, *, edited: int = 0, fetched_at: int | None = None) -> Page:
    """A page of its own words, of which the first `edited` are others."""
    body = " ".join(f"w{number}x{i}" if i >= edited else f"e{number}x{i}" for i in range(words))
    return Page(f"https://site{number}.example/{edited}", f"<p>{body}".encode(), "text/html", fetched_at)


def kinds(verdicts: list[Verdict]) -> list[str]:
    return [verdict.verdict.value for verdict in verdicts]


def json_of(verdicts: list[Verdict]) -> list[bytes]:
    return [verdict.to_json() for verdict in verdicts]


def without_ids(verdicts: Iterable[Verdict | dict[str, Any]]) -> list[object]:
    """Verdicts without page ids and coordinates, which depend on calls and on sources."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items() if name not in _OF_CALLS}
        return value

    return [without(verdict.to_dict() if isinstance(verdict, Verdict) else verdict) for verdict in verdicts]


_OF_CALLS = ("page_id", "cluster", "coordinates", "replaces", "nearest")


def scanned(state: Path, folder: Path, pages: list[Page]) -> None:
    """`neardup scan` of a file of these pages."""
    file = folder / f"{len(list(folder.iterdir()))}.jsonl"
    values = [{"url": each.url, "body": (each.body or b"").decode(), "content_type": "text/html"} for each in pages]
    file.write_bytes(b"".join(orjson.dumps(value | {"fetched_at": 1}) + b"\n" for value in values))
    with ScanDirectory.open(state) as opened:
        scan([file], opened)


def dated(pages: list[Page]) -> list[Page]:
    return [replace(each, fetched_at=1) for each in pages]


@pytest.mark.slow
@pytest.mark.parametrize("scans", [(True, False, True), (False, True, False)])
def test_library_and_scan_share_one_directory(tmp_path: Path, scans: tuple[bool, ...]) -> None:
    """Whichever wrote the directory, the other one goes on with it, and the index can be made again from the log."""
    parts = [dated(STREAM[:3]), dated(STREAM[3:5]), dated(STREAM[5:])]
    with open_index(scheme=SCHEME) as index:
        whole = without_ids(verdict for part in parts for verdict in index.add(part))
    state, folder = tmp_path / "state", tmp_path / "files"
    folder.mkdir()
    with ScanDirectory.open(state, scheme=SCHEME):
        pass
    for by_scan, part in zip(scans, parts, strict=True):
        if by_scan:
            scanned(state, folder, part)
        else:
            with open_index(state) as index:
                asked = index.query(part[0])
                assert json_of(index.add(part)[:1]) == json_of([asked])
    for rebuilt in (False, True):
        if rebuilt:
            shutil.rmtree(state / "index")
        with ScanDirectory.open(state) as opened:
            values = list(opened.verdicts())
            assert bool(opened.messages) == rebuilt
        assert without_ids(values) == whole


def test_the_directory_of_a_matcher_is_refused(tmp_path: Path) -> None:
    with ExitStack() as held:
        directory = Directory(tmp_path, held)
        directory.keep(SCHEME)
        directory.keep(Decider(SCHEME.digest))
    with pytest.raises(StateError, match="topics of Kafka"):
        open_index(tmp_path)


def test_an_interrupted_call_counts_or_not_but_never_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C once the log holds the pages: they count, and the same index goes on behind them."""
    with open_index(tmp_path / "a", scheme=SCHEME) as index:
        for owner, name in ((VerdictLog, "emit"), (Matcher, "apply")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    index.add([page(len(name))])
            assert kinds(index.add([page(len(name))])) == ["unchanged"]


def interrupted(*given: object) -> None:
    raise KeyboardInterrupt


STREAM = [page(1), page(2), page(1, edited=5), page(2), page(2, edited=199), page(3, words=3), page(1, edited=9)]


def test_a_stream_in_memory_gets_its_verdicts() -> None:
    with open_index(scheme=SCHEME) as index:
        assert kinds(index.add(STREAM)) == [
            "unique",
            "unique",
            "near_duplicate",
            "unchanged",
            "unique",
            "unique",
            "near_duplicate",
        ]  # fmt: skip  (the last is the third page of a site without names: nine numbers differ, and no word)


@pytest.mark.slow
def test_calls_and_reopening_change_no_verdict(tmp_path: Path) -> None:
    with open_index(scheme=SCHEME) as index:
        whole = without_ids(index.add(STREAM))
    parts = []
    for one in STREAM:
        with open_index(tmp_path / "index", scheme=SCHEME) as index:
            parts += without_ids(index.add([one]))
    assert parts == whole


def test_query_equals_adding_and_changes_nothing(tmp_path: Path) -> None:
    with open_index(tmp_path / "index", scheme=SCHEME) as index:
        for one in STREAM:
            asked = [index.query(one) for _ in range(2)]
            verdicts = index.add([one])
            assert json_of(asked) == json_of(verdicts[:1]) * 2
    with open_index(scheme=SCHEME) as other:
        assert json_of(other.add(iter(STREAM))) == json_of(list(open_index(scheme=SCHEME).stream(iter(STREAM))))


def test_a_stream_takes_no_more_pages_than_it_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.library.deduplicator.MESSAGE_PAGES_MAX", 2)
    taken: list[Page] = []

    def pages() -> Iterator[Page]:
        for one in STREAM:
            taken.append(one)
            yield one

    with open_index(scheme=SCHEME) as index:
        verdicts = index.stream(pages())
        next(verdicts)
        assert len(taken) == 2
        assert 1 + len(list(verdicts)) == len(STREAM)


def test_a_score_is_from_0_to_1() -> None:
    for score in (-0.1, 1.01, float("nan")):
        with pytest.raises(BadPage, match="score is not a number from 0 to 1"):
            Page("https://a.example/", b"", score=score)


def test_a_seed_is_a_64_bit_number() -> None:
    for seed in ("7", -1, 1 << 64):
        with pytest.raises(BadInput, match=r"is not a number from 0 to 2\^64 - 1"):
            Scheme(seed=seed)  # type: ignore[arg-type]


def test_text_is_no_body() -> None:
    with pytest.raises(TypeError, match=r"https://a\.example/' must be bytes"):
        Page("https://a.example/", "<p>text")  # type: ignore[arg-type]


def test_a_directory_remembers_its_scheme_and_refuses_another(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        made = index.scheme
    with open_index(tmp_path) as index:
        assert index.scheme == made
        index.add([page(1)])
    with pytest.raises(StateError, match="another directory"):
        open_index(tmp_path, scheme=SCHEME)
    with pytest.raises(StateError, match="decider"):
        open_index(tmp_path, rule="shingling")
    other = Decider(made.digest, tape_min=0.8)
    with open_index(tmp_path, decider=other, new_decider=True) as index:  # none of these has kept the lock
        assert index.decider == other
    with open_index(tmp_path) as index:
        assert index.decider == other


def test_a_directory_remembers_its_rule(tmp_path: Path) -> None:
    with open_index(tmp_path, rule="simhash") as index:
        made = index.decider
    with open_index(tmp_path) as index:
        assert index.decider == made


def test_log_time_never_turns_back() -> None:
    with open_index(scheme=SCHEME) as index:
        verdicts = index.add([page(1, fetched_at=100), page(2, fetched_at=50), page(3)]) + index.add([page(4)])
    assert [verdict.fetched_at for verdict in verdicts] == [100, 50, 100, 100]


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_call_that_could_not_be_written_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    def full(store: Store, writes: Writes) -> None:
        raise StateError("as planned")

    with open_index(scheme=SCHEME) as index:
        whole = json_of(index.add(STREAM))
    with open_index(tmp_path / "state" if on_disk else None, scheme=SCHEME) as index:
        with monkeypatch.context() as patch:
            patch.setattr(RocksStore if on_disk else MemoryStore, "write", full)
            with pytest.raises(StateError):
                index.add([page(9, fetched_at=999), *STREAM])
        assert json_of(index.add(STREAM)) == whole


def test_a_decider_of_another_scheme_is_refused() -> None:
    with pytest.raises(StateError, match="scheme"):
        open_index(scheme=SCHEME, decider=Decider(scheme="0" * 32))


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(BadInput, match="shingles"):
        open_index(rule="shingles")


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with open_index(tmp_path), pytest.raises(NeardupError, match="in this process already"):
        open_index(tmp_path)


def test_unreadable_page_is_a_rejected_verdict() -> None:
    bad = [Page("no url", b"x"), Page("https://a.example/", b"x", status=503), Page("https://a.example/", None)]
    with open_index(scheme=SCHEME) as index:
        assert kinds(index.add(bad)) == ["rejected", "rejected", "gone"]


def test_the_canonical_url_is_the_one_that_the_representative_names_if_it_is_a_live_member() -> None:
    named = "https://site2.example/5"
    first = page(1)
    naming = Page(first.url, f'<link rel="canonical" href="{named}">'.encode() + (first.body or b""), "text/html")
    with open_index(scheme=SCHEME) as index:
        verdicts = index.add([naming, Page(named, page(1, edited=5).body, "text/html"), Page(named, None)])
    assert [verdict.canonical for verdict in verdicts[:2]] == [naming.url, named]


def test_pages_without_content_duplicate_nothing() -> None:
    kinds_of_nothing = [(b"", "image/png"), (b"", "text/html"), (b"<p>", "text/html"), (b" - ", "text/plain")]
    twice = [
        Page(f"https://{i}.example/{n}", body, kind) for i, (body, kind) in enumerate(kinds_of_nothing) for n in "ab"
    ]
    with open_index(scheme=SCHEME) as index:
        assert set(kinds(index.add(twice))) == {"unique"}


def test_opaque_pages_are_duplicates_by_their_bytes_alone() -> None:
    bodies = [b"\x89PNG\r\n\x1a\n 1", b"\x89PNG\r\n\x1a\n 2", b"\x89PNG\r\n\x1a\n 1"]
    pictures = [Page(f"https://{i}.example/", body, "image/png") for i, body in enumerate(bodies)]
    with open_index(scheme=SCHEME) as index:
        assert kinds(index.add(pictures)) == ["unique", "unique", "exact_duplicate"]


def test_a_verdict_is_plain_values_and_a_table_in_a_notebook():
    evil = b"<title>A &lt;script&gt;alert(1)&lt;/script&gt;</title>" + b" ".join(b"word%d" % i for i in range(99))
    with open_index() as index:
        first, second = index.add([Page("https://a.example/1", evil), Page("https://b.example/2", evil + b" more")])
    assert second.to_dict() == json.loads(second.to_json())
    assert second.to_dict()["representative"]["url"] == "https://a.example/1"
    shown = second._repr_html_()
    assert "https://a.example/1" in shown
    assert "evidence: tape_score" in shown
    assert "<script>" not in first._repr_html_() + shown
    assert "&lt;script&gt;" in shown


def test_an_index_names_its_place_and_rule(tmp_path: Path) -> None:
    with open_index(tmp_path / "state") as held:
        assert repr(held) == f"<neardup.Deduplicator: {tmp_path / 'state'}, rule verified>"
    with open_index() as index:
        assert repr(index) == "<neardup.Deduplicator: in memory, rule verified>"


def test_a_page_without_a_list_is_named() -> None:
    with open_index() as index, pytest.raises(TypeError, match=r"add\(\[page\]\)"):
        index.add(page(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["https://a.example/", ("https://a.example/", b"")])
def test_argument_that_is_no_page_is_named(wrong: Any) -> None:
    with open_index() as index:
        for method in (index.add, index.query):
            with pytest.raises(TypeError, match=r"neardup\.Page\(url, body\), not (str|tuple): .*a\.example"):
                method([wrong] if method == index.add else wrong)


def test_sketch_and_compare_name_bad_arguments() -> None:
    with pytest.raises(TypeError, match=r"sketch_pages\(\[page\], scheme\)"):
        sketch_pages(page(1), SCHEME)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"neardup\.Page\(url, body\), not bytes: "):
        sketch_pages([b"<p>wool"], SCHEME)  # type: ignore[list-item]
    (record,) = sketch_pages([page(1)], SCHEME)
    for wrong, kind in ((page(1), "Page"), (record, "bytes")):
        with pytest.raises(TypeError, match=rf"two neardup\.Sketch, not {kind}: Sketch\(record, scheme\)"):
            compare(Sketch(record), wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("url", b"https://a.example/", r"Page\.url must be a str, not b'https://a\.example/' of type bytes"),
        ("url", None, r"Page\.url must be a str, not None"),
        (
            "body",
            "<p>text",
            r"Page\.body of 'https://a\.example/' must be bytes .encode text as UTF-8.*, not '<p>text'",
        ),
        ("body", np.zeros(2), "of type ndarray"),
        ("status", np.bool_(True), "of type bool"),
        ("content_type", None, r"Page\.content_type of 'https://a\.example/' must be a str, empty if .*, not None"),
        ("content_type", b"text/html", "of type bytes"),
        ("fetched_at", [5], r"a time, such as milliseconds since 1970, or None, not \[5\] of type list"),
        ("fetched_at", True, "of type bool"),
        ("status", "200", r"Page\.status of 'https://a\.example/' must be an int, such as 200, not '200' of type str"),
        ("status", None, r"must be an int, such as 200, not None"),
        ("problem", None, r"Page\.problem .* must be a str, not None"),
        ("score", "0.5", r"Page\.score .* must be a number from 0 to 1, or None, not '0\.5' of type str"),
    ],
)
def test_bad_page_field_is_named(field: str, value: object, words: str) -> None:
    given: dict[str, Any] = {"url": "https://a.example/", "body": b""}
    with pytest.raises(TypeError, match=words):
        Page(**{**given, field: value})


def test_page_takes_buffers_and_numpy_scalars() -> None:
    plain = Page("https://a.example/", b"text", "text/plain", 1_700_000_000_000, 404, "", 0.5)
    url, kind = np.str_(plain.url), np.str_("text/plain")
    for body in (bytearray(b"text"), memoryview(b"text"), np.bytes_(b"text"), np.frombuffer(b"text", np.uint8)):
        numbers = np.int64(1_700_000_000_000), np.int16(404), np.str_(""), np.float32(0.5)
        made = Page(url, body, kind, *numbers)  # type: ignore[arg-type]
        assert made == plain
        assert [type(getattr(made, name)) for name in fields_of(made)] == [
            type(getattr(plain, name)) for name in fields_of(plain)
        ]
    assert Page(plain.url, b"", fetched_at=np.float64(1_700_000_000)).fetched_at == plain.fetched_at  # type: ignore[arg-type]


def fields_of(made: Page) -> list[str]:
    return [each.name for each in fields(made)]


@pytest.mark.parametrize("on_disk", [False, True])
def test_add_from_threads_keeps_each_page(on_disk: bool, tmp_path: Path) -> None:
    where = tmp_path / "index" if on_disk else None
    count, each = 8, 6
    with open_index(where, scheme=SCHEME) as index, ThreadPoolExecutor(count) as pool:

        def add(thread: int) -> list[Verdict]:
            found = []
            for number in range(each):
                found += index.add([page(1_000 + thread * each + number, 60)])
                index.query(page(1_000, 60))
                index.cluster(page(1_000, 60).url)
            return found

        verdicts = [verdict for found in pool.map(add, range(count)) for verdict in found]
        assert kinds(verdicts) == ["unique"] * count * each
        assert len({verdict.page_id for verdict in verdicts}) == count * each
        assert kinds(index.add([page(1_000 + number, 60) for number in range(count * each)])) == ["unchanged"] * 48
    if where is not None:
        with open_index(where) as index:  # opens again, and holds them
            assert kinds(index.add([page(1_000 + number, 60) for number in range(count * each)])) == ["unchanged"] * 48


def test_add_from_asyncio_to_thread_keeps_each_page(tmp_path: Path) -> None:
    with open_index(tmp_path, scheme=SCHEME) as index:

        async def add_all() -> list[list[Verdict]]:
            return await asyncio.gather(*(asyncio.to_thread(index.add, [page(2_000 + n, 60)]) for n in range(20)))

        assert [kinds(found) for found in asyncio.run(add_all())] == [["unique"]] * 20
    with open_index(tmp_path) as index:
        assert kinds(index.add([page(2_000 + n, 60) for n in range(20)])) == ["unchanged"] * 20


def test_close_while_threads_add_loses_no_page_that_was_judged(tmp_path: Path) -> None:
    index = open_index(tmp_path, scheme=SCHEME)
    begun = threading.Barrier(4)
    judged: list[str] = []

    def add(thread: int) -> None:
        begun.wait()
        with suppress(StateError):
            for number in range(50):
                judged.extend(one.url for one in index.add([page(3_000 + thread * 50 + number, 60)]))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    index.close()
    for thread in threads:
        thread.join()
    with pytest.raises(StateError, match="the index is closed"):
        index.add([page(1)])
    index.close()
    with open_index(tmp_path) as index:
        assert all(index.cluster(url) for url in judged)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_child_of_fork_that_adds_gets_an_error(on_disk: bool, tmp_path: Path) -> None:
    # In a process of its own: the tests' process has threads.
    program = f"""
import os, sys
from neardup import Page, Scheme, StateError, open_index
index = open_index({str(tmp_path / "index") if on_disk else None!r}, scheme=Scheme(seed=7))
text = b" ".join(b"word%d" % number for number in range(60))
index.add([Page("https://a.example/", text)])
if (child := os.fork()) == 0:
    said = ""
    try:
        index.add([Page("https://b.example/", text)])
    except StateError as error:
        said = str(error)
    index.close()
    if not {on_disk} and index.query(Page("https://b.example/", text)).verdict != "exact_duplicate":
        os._exit(2)
    os._exit(0 if "fork" in said and str(os.getppid()) in said else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(index.add([Page("https://c.example/", text)])[0].verdict)
index.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "exact_duplicate\n", done.stderr


def test_without_fcntl_an_index_is_in_memory_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.process.disk.fcntl", None)
    with open_index() as index:
        assert kinds(index.add([page(1)])) == ["unique"]
    with pytest.raises(StateError, match="lacks fcntl"):
        open_index(tmp_path / "state")


@pytest.mark.parametrize("on_disk", [False, True])
def test_the_cluster_of_a_url(tmp_path: Path, on_disk: bool) -> None:
    body = page(1).body
    first, copy, alone = (f"https://{name}.example/" for name in ("a", "b", "c"))
    with open_index(tmp_path / "index" if on_disk else None, scheme=SCHEME) as index:
        assert index.cluster(first) is None
        verdicts = index.add([Page(first, body), Page(copy, body), Page(alone, page(2).body)])
        found = index.cluster("HTTPS://B.example")
        assert found == (verdicts[0].cluster, first, (copy,)) == index.cluster(first)
        assert index.cluster(alone) == (verdicts[2].cluster, alone, ())
        index.add([Page(first, None)])
        assert index.cluster(first) is None
        assert index.cluster(copy) == (verdicts[0].cluster, copy, ())


NEAR = {"tape_min": 0.99, "two_sites_tape_min": 0.99, "short_tape_min": 0.99}
CONTENT = {"content_tape_min": 0.99, "syndicated_share_min": 0.99}


@pytest.mark.parametrize("site", ["site1.example", "site2.example"])
@pytest.mark.parametrize(
    ("numbers", "expected"), [({}, "near_duplicate"), (NEAR, "same_content"), (NEAR | CONTENT, "unique")]
)
def test_a_closer_match_everywhere_takes_the_numbers_of_the_library_page(
    site: str, numbers: dict[str, float], expected: str
) -> None:
    original, edited = (
        Page(url, b"<title>Wool</title>" + (page(1, 400, edited=number).body or b""))
        for url, number in (("https://site1.example/x", 0), (f"https://{site}/x?y", 20))
    )
    with open_index(scheme=SCHEME, decider=Decider(SCHEME.digest, **numbers)) as index:
        assert kinds(index.add([original, edited])) == ["unique", expected]


def test_a_number_of_a_site_raises_the_demand_and_never_lowers_it() -> None:
    for tape_min, edited, expected in ((0.1, 40, "near_duplicate"), (0.1, 60, "unique"), (0.9, 40, "unique")):
        decider = Decider(SCHEME.digest, sites={"site1.example": SiteOverride(tape_min=tape_min)})
        with open_index(scheme=SCHEME, decider=decider) as index:
            assert kinds(index.add([page(1, 400), page(1, 400, edited=edited)])) == ["unique", expected]


def test_a_page_that_was_never_added_is_gone_without_a_cluster() -> None:
    with open_index(scheme=SCHEME) as index:
        assert index.cluster("https://a.example/typo") is None
        assert kinds(index.add([Page("https://a.example/typo", None)])) == ["gone"]
