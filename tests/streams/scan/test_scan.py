"""The scan, from files to verdicts: order, durability, result."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from neardup.report.verdict_counts import ReportTally
from streams.files.sources import ReadOptions, SourceRecord
from streams.formats import message
from streams.ports import SourceProgress
from streams.scan import blocks, reading, scan_result, sketcher
from streams.scan import scan as scanning
from streams.scan.scan import scan
from streams.state import scan_directory
from tests.streams.archives import (
    Sample,
    crawl,
    html,
    opened,
    small_messages,
    text,
    verdicts_in,
    write_each_form,
    write_warc,
)


def kinds(verdicts: list[dict[str, Any]]) -> list[str]:
    return [verdict["verdict"] for verdict in verdicts]


def test_pages_in_are_verdicts_out(tmp_path: Path) -> None:
    samples = crawl(30)
    seen: list[SourceProgress] = []
    with opened(tmp_path / "state") as state:
        archive = write_warc(tmp_path / "a.warc.gz", samples)
        result = scan([archive], state, out=str(tmp_path / "out"), progress=seen.append)
        assert list(state.verdicts()) == verdicts_in(tmp_path / "out")
    verdicts = verdicts_in(tmp_path / "out")
    assert [v["url"] for v in verdicts] == ["http://a.example/" + s.path for s in samples]
    assert result.pages == len(samples) == sum(result.counts.values())
    assert Counter(kinds(verdicts)) == result.counts
    assert [v["page_id"] for v in verdicts] == list(range(len(samples)))
    for verdict in verdicts:
        expected = {"page": "unique", "copy": "exact_duplicate", "edit": "near_duplicate"}
        assert verdict["verdict"] == expected[verdict["url"].split("/")[-1][:4]], verdict["url"]
        assert verdict.get("representative", {"page_id": -1})["page_id"] < verdict["page_id"]
    assert (result.skipped, result.problems, result.interrupted) == ([], [], False)
    assert (seen[-1].pages, seen[-1].phase, seen[-1].bytes_done) == (len(samples), "scan", seen[-1].bytes_total)
    assert result.bytes == archive.stat().st_size


def test_caused_verdicts_count_as_no_pages_of_a_scan(tmp_path: Path) -> None:
    """A verdict about another page than the one that was read is counted as no page of the scan."""
    ways = [("a", 200), ("b", 200), ("a", 404), ("a", 200)]
    lines = [
        {
            "url": f"http://{host}.example/",
            "body": html("Wool", text(1)).decode(),
            "http_status": status,
            "fetched_at": at,
        }
        for at, (host, status) in enumerate(ways, 1)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with opened(None) as state:
        result = scan([tmp_path / "a.jsonl"], state)
        verdicts = list(state.verdicts())
    assert kinds(verdicts) == [
        "unique",
        "exact_duplicate",
        "gone",
        *("promoted", "unique", "promoted"),
        "exact_duplicate",
    ]
    assert (result.pages, result.counts) == (4, {"unique": 2, "exact_duplicate": 1, "gone": 1, "promoted": 2})
    tally = ReportTally(state.decider)
    for verdict in verdicts:
        tally.add(verdict)
    assert (tally.pages, tally.duplicates, tally.clusters.founded) == (4, 1, 1)
    (cluster,) = tally.clusters.largest()
    assert (cluster.representative, cluster.members) == ("http://a.example/", ["http://b.example/"])


def test_all_forms_give_the_same_verdicts(tmp_path: Path) -> None:
    base = "http://a.example/"
    samples = sorted(crawl(20), key=lambda sample: sample.path)
    found = []
    for path in write_each_form(tmp_path, samples):
        with opened(None) as state:
            scan([path], state, reading=ReadOptions(base))
            found.append([placeless(verdict) for verdict in state.verdicts()])
    assert all(verdicts == found[0] for verdicts in found)
    assert set(kinds(found[0])) == {"unique", "exact_duplicate", "near_duplicate"}


def placeless(value: Any) -> Any:
    """A verdict without the coordinates in it, which say where a page was read."""
    if isinstance(value, dict):
        return {name: placeless(part) for name, part in value.items() if name != "coordinates"}
    return value


def test_a_second_scan_finds_duplicates_of_the_first(tmp_path: Path) -> None:
    first = write_warc(tmp_path / "a.warc", crawl(6))
    second = write_warc(tmp_path / "b.warc", crawl(9), base="http://b.example/")
    with opened(tmp_path / "state") as state:
        scan([first], state)
    with opened(tmp_path / "state") as state:
        result = scan([second], state, out=str(tmp_path / "out"))
    verdicts = verdicts_in(tmp_path / "out")
    assert {v["url"].split("/")[2] for v in verdicts} == {"b.example"}
    assert verdicts[0]["representative"]["url"] == "http://a.example/page0.html"
    assert result.counts["unique"] == 3


def test_a_finished_source_is_skipped_unless_asked_for(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(6))
    out = tmp_path / "out"
    with opened(tmp_path / "state") as state:
        scan([archive], state, out=str(out))
        first = out.read_bytes()
        again = scan([archive, archive], state, out=str(out))
        assert (again.pages, again.skipped) == (0, [str(archive)] * 2)
        assert out.read_bytes() == first, "verdicts of its pages in the log are written again"
        third = scan([archive], state, out=str(out), again=True)
        assert (third.counts, third.skipped) == ({"unchanged": len(crawl(6))}, [])
        assert kinds(verdicts_in(out)) == ["unchanged"] * len(crawl(6))
        assert len({source.id for source in state.sources.values()}) == 2


def test_a_source_named_twice_is_scanned_once(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc", crawl(3))
    with opened(None) as state:
        result = scan([archive, archive], state)
        assert (result.pages, result.skipped, len(result.sources)) == (len(crawl(3)), [str(archive)], 1)


def test_slicing_into_messages_changes_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_warc(tmp_path / "a.warc.gz", crawl(40))
    found = []
    for pages, polled, bytes_max in ((512, 512, 900_000), (1, 512, 900_000), (7, 3, 900_000), (512, 512, 9_000)):
        monkeypatch.setattr(sketcher, "MESSAGE_PAGES_MAX", pages)
        monkeypatch.setattr(reading, "BATCH_PAGES_MAX", polled)
        monkeypatch.setattr(blocks, "MESSAGE_BYTES_MAX", bytes_max)
        with opened(None) as state:
            scan([archive], state)
            sizes = [len(message.decode_message(data, at).records) for at, data in state.log.read()]
            assert max(sizes) <= pages
            assert all(len(data) < bytes_max + 10_000 for _, data in state.log.read())
            order = {v["page_id"]: i for i, v in enumerate(state.verdicts())}
            found.append([numbered(v, order) for v in state.verdicts()])
    assert all(verdicts == found[0] for verdicts in found)


def numbered(verdict: Any, order: dict[int, int]) -> Any:
    """A verdict with page ids as ordinals: they depend on how messages are cut, nothing else does."""
    ids = ("page_id", "cluster", "replaces")
    if isinstance(verdict, list):
        return [numbered(value, order) for value in verdict]
    if not isinstance(verdict, dict):
        return verdict
    return {k: order[v] if k in ids and v is not None else numbered(v, order) for k, v in verdict.items()}


def test_sites_are_ordered_by_their_duplicates(tmp_path: Path) -> None:
    body, other = html("t", text(1)), html("u", text(2))
    a = write_warc(tmp_path / "a.warc", [Sample("1", body), Sample("2", body), Sample("3", other)], "http://a.example/")
    b = write_warc(tmp_path / "b.warc", [Sample("1", body), Sample("2", body), Sample("3", other)], "http://b.example/")
    c = write_warc(tmp_path / "c.warc", [Sample(str(i), html("v", text(9 + i))) for i in range(4)], "http://c.example/")
    with opened(None) as state:
        sites = scan([a, b, c], state).sites
    assert [(site.site, site.pages, site.duplicates) for site in sites] == [
        *(("b.example", 3, 3), ("a.example", 3, 1), ("c.example", 4, 0)),
    ]


def test_the_log_is_durable_before_the_verdicts_and_these_before_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_messages(monkeypatch)
    monkeypatch.setattr(scan_directory, "FLUSH_MESSAGES", 2)
    steps: list[str] = []
    with opened(tmp_path / "state") as state:
        verdicts = state.verdict_log.log

        def noted(where: Any, name: str, step: str) -> None:
            real = getattr(where, name)

            def wrapped(*given: Any) -> Any:
                steps.append(step)
                return real(*given)

            monkeypatch.setattr(where, name, wrapped)

        noted(state.log, "append", "log")
        noted(state.log, "sync", "log synced")
        noted(verdicts, "append", "verdicts")
        noted(verdicts, "sync", "verdicts synced")
        noted(state.store, "write", "index")
        noted(state.store, "flush", "index flushed")
        scan([write_warc(tmp_path / "a.warc", crawl(20))], state)
        messages, done = state.log.end(), list(steps)
    folded = [step for step in done if not step.startswith("log")]
    flushed = [i for i, step in enumerate(folded) if step == "index flushed"]
    assert len(flushed) == messages // 2 + 1, "every second message, and at the end"
    assert all(folded[i - 1] == "verdicts synced" for i in flushed)
    assert [step for step in folded if step in ("verdicts", "index")] == ["verdicts", "index"] * messages
    written = [i for i, step in enumerate(done) if step == "log"]
    emitted = [i for i, step in enumerate(done) if step == "verdicts"]
    for first, last in zip(written, emitted, strict=True):
        assert "log synced" in done[first:last], "a message is folded once it is durable"


def test_messages_are_cut_by_their_records_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_warc(tmp_path / "a.warc.gz", crawl(40))
    monkeypatch.setattr(sketcher, "MESSAGE_PAGES_MAX", 7)
    logs = []
    for polled, polled_bytes in ((512, 1 << 20), (5, 1 << 20), (512, 3000)):
        monkeypatch.setattr(reading, "BATCH_PAGES_MAX", polled)
        monkeypatch.setattr(reading, "BATCH_BYTES_MAX", polled_bytes)
        with opened(None) as state:
            scan([archive], state)
            logs.append(list(state.log.read()))
    assert logs[0] == logs[1] == logs[2]


HOSTILE = {
    "empty": b"",
    "one word": b"word",
    "nul bytes": b"<p>a\0b\0" * 50,
    "deep": b"<div>" * 100_000 + b"text",
    "one token": b"a" * 3_000_000,
    "entities": b"&amp;&lt;&nosuch;&#x110000;" * 20_000,
    "unclosed": b"<!--" + b"<" * 50_000,
    "binary": bytes(range(256)) * 100,
    "utf-16": "\ufeff<p>sixteen bits of text</p>".encode("utf-16-le"),
    "lying charset": b'<meta charset="utf-8"><p>\xff\xfe\xfa' + b"word " * 30,
    "images": b'<img src="a.gif">' * 500,
}


def test_hostile_pages_each_get_a_verdict(tmp_path: Path) -> None:
    samples = [Sample(name.replace(" ", "-") + ".html", body) for name, body in HOSTILE.items()]
    with opened(tmp_path / "state") as state:
        result = scan([write_warc(tmp_path / "a.warc", samples)], state, out=str(tmp_path / "out"))
    assert result.pages == len(samples)
    assert result.counts == {"unique": len(samples)}


def test_unreadable_page_is_rejected_with_its_reason(tmp_path: Path) -> None:
    lines = [
        '{"url":"http://a/","body":"fine enough to be read"}',
        '{"url":"not a url","body":"x"}',
        '{"url":"http://a/%s","body":"x"}' % ("long" * 1000),
        '{"url":"http://a/500","http_status":500,"body":"x"}',
        '{"body":"x"}',
        '{"url":"http://a/gone","http_status":410}',
        '{"url":"http://a/big","body":"%s"}' % ("big word " * 1_200_000),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with opened(tmp_path / "state") as state:
        result = scan([tmp_path / "a.jsonl"], state, out=str(tmp_path / "out"))
    verdicts = verdicts_in(tmp_path / "out")
    assert kinds(verdicts) == ["unique", *["rejected"] * 4, "gone", "unique"]
    assert all(v["reason"] for v in verdicts[1:5])
    assert verdicts[6]["truncated"]
    assert result.pages == len(lines)
    assert result.reasons == {
        "HTTP status 500": 1,
        "URL of more than 2048 bytes": 1,
        "no url": 1,
        "not an absolute URL": 1,
    }


def test_kinds_of_reasons_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_result, "REASONS_MAX", 2)
    lines = [f'{{"url":"http://a/{i}","http_status":{500 + i % 4},"body":"x"}}' for i in range(8)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with opened(None) as state:
        result = scan([tmp_path / "a.jsonl"], state)
    assert result.reasons == {"other reasons": 4, "HTTP status 500": 2, "HTTP status 501": 2}


@pytest.mark.parametrize("batches", [["aab"], ["a", "a", "b"], ["", "aa", "ba"]])
def test_equal_problems_count_once_however_many_come_together(batches: list[str]) -> None:
    run = SimpleNamespace(state=SimpleNamespace(save_source=lambda record: None))
    record = SourceRecord("1", "1", "a.warc", "warc")
    for some in batches:
        scanning._Scan._keep_problems(run, record, list(some))  # type: ignore[arg-type]
    assert (record.problems, record.problems_total) == (["a", "b"], 2)


def test_threads_change_nothing(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc.gz", crawl(40))
    logs = []
    for threads in (1, 3):
        with opened(None) as state:
            scan([archive], state, threads=threads)
            logs.append((list(state.log.read()), list(state.verdicts())))
    assert logs[0] == logs[1]
