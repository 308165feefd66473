"""The indexes that are documented follow a cut-over, also to a generation that judged the same log anew, and back."""

import re
import runpy
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from line import Line, Make, story
from test_backfill import beside, live

from streams import client
from streams.client import duplicate_of
from streams.commands.generations import cut_over

FULLTEXT = Path(__file__).parents[2] / "deploy" / "demo" / "fulltext.py"


def rows(line: Line) -> dict[str, tuple[str, str | None]]:
    """Kind and representative of each URL by the last verdict of the generation."""
    return {verdict["url"]: (verdict["verdict"], duplicate_of(verdict)) for verdict in line.verdicts()}


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
    cut_over(line.settings, "second")
    followed(other)
    cut_over(line.settings, "")  # no verdict is new there
    followed(line)
    line.start("sketch")
    line.start("match")
    line.publish(story(4))
    line.settle()
    line.stop()
    followed(line)
    index.db.close()
