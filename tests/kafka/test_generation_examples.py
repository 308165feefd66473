"""The commands of `streams/verdicts/replay-and-backfill.md`, typed line by line, on a running stream."""

import json
import re
import shlex
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from broker import PATIENCE_SECONDS, eventually
from line import Line, Make, story

from neardup.errors import BadInput
from streams.client import LiveVerdicts
from streams.state import index_rows as look
from tests import forked
from tests.streams.archives import crawl, write_warc
from tests.streams.shell import Ended, Shell

pytestmark = pytest.mark.whole

forked.preload("streams.commands")
forked.preload("tests.warmed")

PAGE = Path(__file__).parents[2] / "streams" / "verdicts" / "replay-and-backfill.md"


def walks() -> tuple[list[str], list[str]]:
    """The commands of two sections: another rule, and the history again."""
    text = PAGE.read_text().partition("## Try another rule")[2]
    blocks = re.findall(r"^```\n(neardup backfill .*?)^```$", text, re.MULTILINE | re.DOTALL)
    rule, history = ([line.partition("#")[0].strip() for line in block.splitlines()] for block in blocks)
    return rule, history


class Typist:
    """Types commands into a shell whose environment names the line."""

    def __init__(self, line: Line, folder: Path, shell: Shell, environment: pytest.MonkeyPatch) -> None:
        self._line, self._folder, self._shell = line, folder, shell
        settings = line.settings
        topics = ("pages_topic", "rejected_topic", "sketches_topic", "verdicts_topic")
        for name in ("bootstrap", "group", *topics, "seed", "threads"):
            environment.setenv(f"NEARDUP_{name.upper()}", str(getattr(settings, name)))
        self.behind: dict[str, forked.Command] = {}

    def __call__(self, command: str) -> Ended | None:
        command = command.replace("/var/lib/neardup", str(self._folder / "of"))
        command = command.replace("topic:verdicts", f"topic:{self._line.names.verdicts}")
        name, *words = shlex.split(command.removesuffix("&"))
        assert name == "neardup"
        if not command.endswith("&"):
            ended = self._shell(*words)
            assert ended.code == 0, (command, ended.err)
            return ended
        self.behind[words[0]] = forked.Command(words, self._folder / f"{words[0]}.log")
        return None

    def generations(self) -> dict[str, dict[str, Any]]:
        return {row["name"]: row for row in json.loads(self._shell("generation", "list", "--json").out)}

    def kill(self, name: str) -> None:
        process = self.behind.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        process = self.behind.pop(name)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0, (self._folder / f"{name}.log").read_text()


@pytest.mark.slow
def test_another_rule_and_the_history_again_as_the_page_has_them(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = make()
    pages = story(12)
    line.publish(pages)
    for role in ("sketch", "match"):
        line.start(role)
    line.settle()
    typist = Typist(line, tmp_path, Shell(tmp_path, monkeypatch, capsys), monkeypatch)
    archived = crawl(9)
    write_warc(tmp_path / "old.warc.gz", archived)
    (backfill, diff, match, cutover, listing), (again, list_again, diff_pages, cutover_again, remove) = walks()
    taken_down = pages[-1].url
    try:
        typist(f"neardup forget {taken_down}")
        typist(backfill)
        typist(diff)
        assert "verdicts.second" in (tmp_path / "diff.html").read_text()
        typist(match)
        typist(cutover)
        result = typist(listing)
        assert result is not None
        assert "second" in result.out
        assert typist.generations()["second"]["live"]
        # A supervisor starts both again, now that their generation is live.
        typist.kill("match")
        typist(backfill)
        typist(match)

        typist(again)
        typist(list_again)
        eventually(lambda: typist.generations().get("third", {}).get("stage") == "caught up", "the third has caught up")
        typist(diff_pages)
        assert (tmp_path / "changed.parquet").stat().st_size > 0
        typist(cutover_again)
        typist.stop("backfill")
        typist(again)
        line.publish(story(2))
        typist.stop("match")
        typist(remove)
        third, own = typist.generations()["third"], line.settings
        assert third["live"]
        behind = ("pages_behind", "messages_behind")
        eventually(lambda: [typist.generations()["third"][name] for name in behind] == [0, 0], "it follows")
        with LiveVerdicts(own.bootstrap, NoPositions(), own.verdicts_topic, group=own.group) as verdicts:
            batches = list(verdicts.batches(follow=False))
        assert {batch.generation for batch in batches} == {"third"}
        urls = {verdict["url"].rpartition("/")[2] for batch in batches for verdict in batch.verdicts}
        assert {sample.path for sample in archived} <= urls
        typist.stop("backfill")
        with ExitStack() as held:
            opened = look.open_index(tmp_path / "of.third", held)
            assert look.of_url(opened, pages[0].url)
            with pytest.raises(BadInput, match="the index has no row of this URL"):
                look.of_url(opened, taken_down)
    finally:
        for process in typist.behind.values():
            process.kill()
            process.wait()


class NoPositions:
    def load(self) -> dict[str, int]:
        return {}
