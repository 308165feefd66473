"""The indexes that are documented follow a cut-over, also to a generation that judged the same log anew, and back."""

import json
import re
import runpy
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from line import Line, Make, story
from test_backfill import beside, live

from neardup.errors import StateError
from streams import client
from streams.client import duplicate_of
from streams.errors import TopicError
from streams.kafka import Writer
from streams.kafka.reader import TopicReader
from streams.operate.cut_over import cut_over
from streams.roles.own_generation import presence_of
from streams.verdicts import replay_stream as replay_module
from streams.verdicts.replay import Stretch
from streams.verdicts.replay_stream import replay_stream

pytestmark = pytest.mark.whole

FULLTEXT = Path(__file__).parents[2] / "deploy" / "demo" / "fulltext.py"


def rows(line: Line) -> dict[str, tuple[str, str | None]]:
    """Kind and representative of each URL by the last verdict of the generation."""
    return {verdict["url"]: (verdict["verdict"], duplicate_of(verdict)) for verdict in line.verdicts()}


def last_rows(line: Line) -> dict[str, tuple[str, str | None]]:
    """The same by the last verdict in the topic, as an index without page ids and compaction have it."""
    with closing(TopicReader(line.connection, line.names.verdicts, committed_only=True)) as reader:
        found = [json.loads(record.value() or b"") for record in reader.to_end()]
    return {verdict["url"]: (verdict["verdict"], duplicate_of(verdict)) for verdict in found}


def shown(line: Line, fulltext: dict[str, Any]) -> set[str]:
    last = {verdict["url"]: verdict for verdict in line.verdicts()}
    return {url for url, verdict in last.items() if fulltext["shows"](verdict)}


def example(line: Line) -> Callable[[], dict[str, tuple[str, str | None]]]:
    """Runs the indexer's example of the client's docstring and returns the rows that it shows."""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", client.__doc__ or "", flags=re.MULTILINE)
    (code,) = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks if "sqlite3" in block]
    code = code.replace('"127.0.0.1:9092"', f'"{line.bootstrap}"')
    named = f"partial(LiveVerdicts, topic={line.settings.verdicts_topic!r}, group={line.settings.group!r})("
    code = "from functools import partial\n" + code.replace("LiveVerdicts(", named)

    def run() -> dict[str, tuple[str, str | None]]:
        names: dict[str, Any] = {}
        exec(compile(code, "the client's example", "exec"), names)
        with sqlite3.connect("index.db") as db:
            found = db.execute(names["SHOWN"]).fetchall()
        return {url: (kind, other) for url, kind, other in found}

    return run


def test_documented_indexes_follow_a_cut_over_and_back(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = live(make, story())
    other = beside(line, sketches_of="", decider_values={"rule": "shingling"})
    assert other.start("backfill", once=True).wait() == 0
    # Both judge one log, so verdicts of both have the same log and page ids.
    assert {v["log"] for v in line.verdicts()} == {v["log"] for v in other.verdicts()}
    assert rows(line) != rows(other)

    monkeypatch.chdir(tmp_path)
    table, fulltext = example(line), runpy.run_path(str(FULLTEXT))
    index = fulltext["Index"]("fulltext.db")
    with index.db:
        texts = [(url, f"wool {number}") for number, url in enumerate(rows(line))]
        index.db.executemany("INSERT INTO fetched (url, text) VALUES (?, ?)", texts)

    def followed(generation: Line) -> None:
        for _ in range(2):  # the second time nothing is new
            arguments = [line.bootstrap, line.settings.verdicts_topic, "fulltext.db", "--group", line.settings.group]
            fulltext["main"](arguments)
            assert set(index.find("wool")) == shown(generation, fulltext)
            assert table() == rows(generation)

    assert shown(line, fulltext) != shown(other, fulltext)
    followed(line)
    cut_over(line.settings, "second", force=True)
    followed(other)
    cut_over(line.settings, "", force=True)  # no verdict is new there
    followed(line)
    line.start("sketch")
    line.start("match")
    line.publish(story(4))
    line.settle()
    line.stop()
    followed(line)
    index.db.close()


def test_replay_writes_no_verdict_behind_a_newer_one(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Onto a compacted topic, which lacks older verdicts; beside a running matcher; onto another generation's topic."""
    line = live(make, story())
    compacted = f"{line.names.verdicts}.compacted"
    line.admin.create(compacted, 2, 1, {"cleanup.policy": "compact"})
    with closing(Writer(line.connection, compacted)) as writer:
        for verdict in {verdict["url"]: verdict for verdict in line.verdicts()}.values():
            writer.send(json.dumps(verdict).encode(), key=verdict["url"].encode())
        writer.flush()
    for _ in range(2):
        assert replay_stream(line.settings, Stretch(), topic=compacted).verdicts == 0
    copy = beside(line, "")
    copy.names = line.names._replace(verdicts=compacted)
    assert last_rows(copy) == rows(line)

    with closing(Writer(line.connection, compacted)) as writer:
        writer.send(json.dumps({**line.verdicts()[0], "generation": "second"}).encode(), key=b"http://a.example/")
        writer.flush()
    with pytest.raises(TopicError, match=r"holds verdicts of generation second.*name another topic"):
        replay_stream(line.settings, Stretch(), topic=compacted)

    monkeypatch.setattr(replay_module, "MATCHER_SECONDS_MAX", 0.1)
    line.start("match")
    group = presence_of(line.settings, "match")
    eventually(lambda: line.admin.members(group), "the matcher in its group")
    with pytest.raises(StateError, match=r"a matcher of generation \(unnamed\) runs .*stop it and its standbys"):
        replay_stream(line.settings, Stretch(), topic=line.names.verdicts)


def test_a_generation_with_trimmed_verdicts_is_refused_and_the_advice_makes_it_whole(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = live(make, story())
    other = beside(line, sketches_of="", decider_values={"rule": "shingling"})
    assert other.start("backfill", once=True).wait() == 0
    whole = rows(other)
    line.delete_before(other.names.verdicts, 0, other.ends(other.names.verdicts)[0] // 2)
    assert rows(other) != whole
    with pytest.raises(StateError, match="retention has removed verdicts of generation second") as refused:
        cut_over(line.settings, "second")

    command = re.search(r"neardup replay (.*?)\)", str(refused.value))
    assert command is not None
    name, sketches_of, topic = re.findall(r"--\S+ (\S+)", command[1])
    own = replace(line.settings, generation=name, sketches_of=sketches_of.strip("'"), state=other.settings.state)
    own = replace(own, decider_values=other.settings.decider_values)
    done = replay_stream(own, Stretch(), topic=topic)
    assert done.verdicts > 0
    assert last_rows(other) == whole  # for an index without page ids, which keeps the last verdict of each URL
    again = replay_stream(own, Stretch(), topic=topic)
    assert (again.verdicts, again.present) == (0, done.verdicts + done.present)
    assert "neardup generation cutover second --force" in str(refused.value)
    cut_over(line.settings, "second", force=True)
    monkeypatch.chdir(tmp_path)
    assert example(line)() == whole
    cut_over(line.settings, "", force=True)
    line.delete_before(other.names.verdicts, 0, 1 + other.ends(other.names.verdicts)[0] // 2)
    other.start("match")
    cut_over(line.settings, "second")  # it has been live: consumers of verdicts have positions there
