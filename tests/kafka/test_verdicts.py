"""Watching verdicts from a terminal, and from a program."""

import io
import os
import re
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from broker import PATIENCE_SECONDS
from confluent_kafka import Producer
from rich.console import Console

from neardup.errors import BadInput
from streams.commands.options import parse_start
from streams.config.settings import Settings, Topics
from streams.kafka import Admin, topics
from streams.kafka.topics import Sizes
from streams.roles.match_start_checks import newest_verdicts
from streams.verdicts.print_verdicts import COLUMNS, line, parse_columns, show, table, tail
from streams.verdicts.shared_rows import VerdictFilter
from tests import processes
from tests.streams.shell import Shell

NOW = 1_700_000_000_000


def verdict(page_id: int, url: str, kind: str = "unique", **fields: Any) -> dict[str, Any]:
    return {"version": 1, "verdict": kind, "page_id": page_id, "n": 0, "url": url, **fields}


OTHER = {"page_id": 0, "url": "https://one.example/0"}
VERDICTS = [
    verdict(0, "https://one.example/0", site="one.example"),
    verdict(
        1,
        "https://www.one.example/1",
        "near_duplicate",
        site="one.example",
        representative=OTHER,
        evidence={"tape_score": 0.9143},
    ),
    verdict(2, "https://two.example/2", "exact_duplicate", site="two.example", representative=OTHER),
    verdict(3, "oops", "rejected", reason="not an absolute URL"),
    verdict(4, "https://two.example/2", "unchanged", site="two.example", standing={"verdict": "unique"}),
    verdict(5, "https://two.example/\x1b[31mred", "same_content", content_of=OTHER, evidence={"score": 1.0}),
]


@pytest.fixture
def settings(broker: str, admin: Admin, names: Topics) -> Settings:
    topics.create(admin, names, Sizes(partitions=1))
    producer = Producer({"bootstrap.servers": broker})
    for each in VERDICTS:
        producer.produce(names.verdicts, orjson.dumps(each), each["url"].encode())
    assert producer.flush(30) == 0
    return Settings(bootstrap=broker, verdicts_topic=names.verdicts)


def ids(settings: Settings, **how: Any) -> list[int]:
    return [each["page_id"] for batch in tail(settings, follow=False, **how) for each in batch]


def test_all_verdicts_are_shown_in_order(settings: Settings) -> None:
    assert [each for batch in tail(settings, follow=False) for each in batch] == VERDICTS


@pytest.mark.parametrize(
    ("sites", "kinds", "found"),
    [
        (["one.example"], [], [0, 1]),
        (["www.one.example"], [], [1]),
        (["ONE.example", "two.example"], [], [0, 1, 2, 4, 5]),
        (["ne.example"], [], []),
        ([], ["rejected", "unique"], [0, 3]),
        (["two.example"], ["exact_duplicate", "unique"], [2]),
    ],
)
def test_verdicts_are_filtered(settings: Settings, sites: list[str], kinds: list[str], found: list[int]) -> None:
    assert ids(settings, verdict_filter=VerdictFilter.of(sites, kinds)) == found


def test_the_last_verdict_of_the_whole_topic_is_found_before_replayed_ones(
    broker: str, admin: Admin, names: Topics
) -> None:
    topics.create(admin, names, Sizes(partitions=1))
    producer = Producer({"bootstrap.servers": broker})
    for message in (*range(200), 3, 4):  # the last two were replayed
        value = verdict(message << 12, f"https://one.example/{message}", scheme="s", decider="d", log="ab")
        producer.produce(names.verdicts, orjson.dumps(value), value["url"].encode())
    producer.produce(names.verdicts, None, b"https://one.example/0")
    assert producer.flush(30) == 0
    settings = Settings(bootstrap=broker, verdicts_topic=names.verdicts)
    ends = [newest_verdicts(settings, whole=whole) for whole in (False, True)]
    assert [end.last and end.last.next_offset for end in ends] == [5, 200]
    assert all(end.emptied for end in ends), "a null record"


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="no verdict is called 'duplicate'; there is unique, exact_duplicate, "):
        VerdictFilter.of([], ["unique", "duplicate"])


@pytest.mark.parametrize("site", ["https://one.example/", "one.example/a", "one.example:80"])
def test_a_site_with_more_than_a_domain_is_refused(site: str) -> None:
    with pytest.raises(BadInput, match=f"--site {site}: a site is a domain or host, such as one.example; "):
        VerdictFilter.of([site], [])


def test_a_site_is_a_host_as_urls_have_it() -> None:
    given = ["[2001:DB8::1]", "10.0.0.1", "localhost", "bücher.example", ".One.example."]
    found = VerdictFilter.of(given, []).sites
    assert found == {"[2001:db8::1]", "10.0.0.1", "localhost", "xn--bcher-kva.example", "one.example"}
    for wrong in ("::1", "", "a b"):
        with pytest.raises(BadInput, match=f"--site {wrong}: not a URL: no"):
            VerdictFilter.of([wrong], [])


def test_without_a_verdict_one_line_says_so(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(tmp_path, monkeypatch, capsys)
    given = ("--bootstrap", settings.bootstrap, "--verdicts-topic", settings.topics.verdicts, "--no-follow")
    topic = f"topic {settings.topics.verdicts}"
    assert shell("verdicts", *given, "--kind", "gone").err == f"neardup: {topic}: no verdict of these options\n"
    for option in ("--url", "--prefix"):
        ended = shell("verdicts", *given, option, "one.example/a")
        assert (ended.code, ended.err.count("\n")) == (0, 1)
        assert "no verdict of these options; a URL begins with its scheme, as https://" in ended.err
    assert shell("verdicts", *given, "--from", "end").err == f"neardup: {topic}: no verdict of these options\n"
    assert shell("verdicts", *given).err == ""


def test_a_tail_may_begin_later(settings: Settings) -> None:
    assert ids(settings, start="end") == []
    assert ids(settings, start=0) == [0, 1, 2, 3, 4, 5]
    assert ids(settings, start=4_000_000_000_000) == []


def test_places_to_begin() -> None:
    assert parse_start("beginning", NOW) == "beginning"
    assert parse_start("end", NOW) == "end"
    assert parse_start("90s", NOW) == NOW - 90_000
    assert parse_start("2h", NOW) == NOW - 7_200_000
    assert parse_start("99999d", NOW) == 0
    assert parse_start("2023-11-14T22:13:20Z", NOW) == NOW
    local = datetime(2026, 1, 31, 12).timestamp() * 1000
    assert parse_start("2026-01-31T12:00", NOW) == local
    for wrong in ("", "yesterday", "15", "m", "15 m", "-5m", "1e9999"):
        with pytest.raises(BadInput, match="is no place to begin: beginning, end, a time ago as 15m"):
            parse_start(wrong, NOW)


def test_table_has_the_verdict_of_each_page(settings: Settings) -> None:
    out = io.StringIO()
    console = Console(file=out, width=140, force_terminal=True, no_color=True)

    assert show(settings, console, follow=False) == 6
    header, *rows = [line.rstrip() for line in plain(out.getvalue()).splitlines()]
    assert header.split() == ["page", "id", "verdict", "score", "url", "of,", "or", "why"]
    assert [row.split() for row in rows] == [
        ["0", "unique", "https://one.example/0"],
        ["1", "near_duplicate", "0.91", "https://www.one.example/1", "https://one.example/0"],
        ["2", "exact_duplicate", "1", "https://two.example/2", "https://one.example/0"],
        ["3", "rejected", "oops", "not", "an", "absolute", "URL"],
        ["4", "unchanged", "https://two.example/2", "is", "unique"],
        ["5", "same_content", "1.00", "https://two.example/\ufffd[31mred", "https://one.example/0"],
    ]


def plain(text: str) -> str:
    """Without the terminal's colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_pipe_gets_whole_lines(settings: Settings) -> None:
    out = io.StringIO()
    assert show(settings, Console(file=out, width=40), columns=("verdict", "url", "because"), follow=False) == 6
    assert [text.split("\t") for text in out.getvalue().splitlines()] == [
        ["unique", "https://one.example/0", ""],
        ["near_duplicate", "https://www.one.example/1", "https://one.example/0"],
        ["exact_duplicate", "https://two.example/2", "https://one.example/0"],
        ["rejected", "oops", "not an absolute URL"],
        ["unchanged", "https://two.example/2", "is unique"],
        ["same_content", "https://two.example/\ufffd[31mred", "https://one.example/0"],
    ]


def test_a_cell_cannot_break_a_line() -> None:
    verdict = line({"verdict": "rejected", "url": "a\tb\nc", "reason": "x\ty"})
    assert verdict.count("\t") == len(COLUMNS) - 1
    assert "\n" not in verdict


def test_long_urls_keep_host_and_end() -> None:
    url = "https://a.example/" + "long/" * 40 + "end.html"
    out = io.StringIO()
    Console(file=out, width=80).print(table([{"verdict": "unique", "url": url}], 80, header=True))
    _, row = out.getvalue().splitlines()
    assert len(row) <= 80
    assert " a.example/\u2026/end.html " in row


def test_a_long_url_of_the_same_host_is_shown_as_its_path() -> None:
    """Releases differ in the middle of their URLs, which a narrow column would cut out of both."""
    url, other = (f"https://docs.example/{release}/api/autogenerate.html" for release in ("1.15.1", "1.13.1"))
    verdict = {"verdict": "near_duplicate", "url": url, "representative": {"url": other}}

    def row(width: int) -> str:
        out = io.StringIO()
        Console(file=out, width=width).print(table([verdict], width, header=False))
        return out.getvalue()

    assert row(80).endswith(" /1.13.1/ap\u2026rate.html\n")
    assert row(160).rstrip().endswith(f" {other}")


@pytest.mark.parametrize("text", ["", "page id", "url,,score"])
def test_columns_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match=r"no column is called .*; there is page_id, verdict, score, url, because"):
        parse_columns(text)


def test_tables_below_each_other_look_like_one() -> None:
    def lines(*verdicts: dict[str, Any], header: bool) -> list[str]:
        out = io.StringIO()
        Console(file=out, width=100).print(table(list(verdicts), 100, header=header))
        return out.getvalue().splitlines()

    whole = lines(VERDICTS[0], VERDICTS[1], header=True)
    assert [*lines(VERDICTS[0], header=True), *lines(VERDICTS[1], header=False)] == whole
    assert max(map(len, whole)) <= 100


def test_json_lines_are_the_verdicts_as_published(settings: Settings) -> None:
    out, drawn = io.BytesIO(), io.StringIO()

    assert show(settings, Console(file=drawn), json_out=out, follow=False) == 6
    assert out.getvalue().splitlines() == [orjson.dumps(each) for each in VERDICTS]
    assert drawn.getvalue() == ""


FOLLOW = """
import sys
from rich.console import Console
from streams.config.settings import Settings
from streams.roles.match_start_checks import newest_verdicts
from streams.verdicts.print_verdicts import show
count = show(Settings(bootstrap=sys.argv[1], verdicts_topic=sys.argv[2]), Console(), json_out=sys.stdout.buffer)
print("ended", count > 0)
"""


def test_follow_shows_new_verdicts_until_ctrl_c(settings: Settings, broker: str) -> None:
    command = [sys.executable, "-c", FOLLOW, broker, settings.verdicts_topic]
    follower = processes.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert follower.stdout is not None
        for each in VERDICTS:
            assert orjson.loads(follower.stdout.readline()) == each
        producer = Producer({"bootstrap.servers": broker})
        producer.produce(settings.verdicts_topic, orjson.dumps(VERDICTS[0]))
        assert producer.flush(30) == 0
        assert orjson.loads(follower.stdout.readline()) == VERDICTS[0]
        os.kill(follower.pid, signal.SIGINT)
        out, err = follower.communicate(timeout=PATIENCE_SECONDS)
    finally:
        follower.kill()
        follower.wait()

    assert (follower.returncode, out, err) == (0, "ended True\n", "")
