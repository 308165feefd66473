"""Topics that were deleted and recreated: what names a place in the old one is no place in the new one.

What the program says about it is followed, word for word.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from line import Line, Make
from roles import freeze

from neardup.page import Page
from streams.errors import NEW_GENERATION
from streams.kafka import topics
from streams.roles.match_start_checks import ACCEPT_LOST
from streams.verdicts.replay import Stretch
from streams.verdicts.replay_stream import replay_stream

#: A frozen sketcher keeps its partitions.
PATIENT = {"kafka_values": {"sketch.session.timeout.ms": "300000"}}


def pages(count: int, start: int = 0) -> list[Page]:
    made = []
    for number in range(start, start + count):
        words = b" ".join(b"w%d" % (number * 40 + word) for word in range(40))
        made.append(Page(f"http://site{number % 5}.example/{number}", b"<p>" + words))
    return made


def judged(make: Make, **settings: Any) -> Line:
    """A line that has judged 40 pages, all roles stopped."""
    line = make(**settings)
    line.judge(pages(40))
    line.settle()
    line.stop()
    return line


def begin_another_generation(line: Line, text: str) -> None:
    """As the text says, where `pages` has all pages."""
    assert NEW_GENERATION in text
    line.settings = replace(line.settings, generation="two", state=str(line.folder / "two"))
    line.names = line.settings.topics
    line.start("backfill", read_pages=True)


def say_again(line: Line, text: str) -> None:
    """As the text says: a replay to the topic."""
    found = re.search(r"emit them again: neardup replay --from (\d+) --to (\d+) --to-topic (\S+);", text)
    assert found is not None, text
    replay_stream(line.settings, Stretch(int(found[1]), int(found[2])), topic=found[3])
    assert f"then, or to continue without them, start once with {ACCEPT_LOST}" in text


# The sketch log.


@pytest.mark.whole
def test_another_directory_does_not_make_another_log_this_one(make: Make, tmp_path: Path) -> None:
    line = judged(make)
    line.recreate(line.names.sketches)
    line.publish(pages(60, 40))
    # Of another group: it reads all pages, and the new log soon is longer than the old one.
    line.start("sketch", settings={"group": f"{line.settings.group}.other"})
    old = line.verdicts()[-1]["page_id"] >> 12
    eventually(lambda: line.ends(line.names.sketches)[0] > old + 2, "a log of more messages than the old one")

    for name in ("new", "newer"):
        error = line.start("match", settings={"state": str(tmp_path / name)}).refused()
        assert "begin another generation" in error
        assert "state directory" not in error
    assert len(line.verdicts()) == 40
    line.stop()
    begin_another_generation(line, error)
    assert len({verdict["log"] for verdict in line.check()}) == 1


def test_a_sketcher_does_not_go_on_into_another_log(make: Make) -> None:
    line = judged(make)
    line.recreate(line.names.sketches)
    line.publish(pages(20, 40))
    before = line.committed("sketch", line.names.pages, 2)

    error = line.start("sketch").refused()

    assert f"topic {line.names.sketches}" in error
    assert "begin another generation" in error
    assert line.committed("sketch", line.names.pages, 2) == before


@pytest.mark.whole
def test_a_running_sketcher_ends_when_the_log_is_recreated(make: Make) -> None:
    line = make()
    line.publish(pages(20))
    sketcher = line.start("sketch")
    line.settle(judged=False)
    before = line.committed("sketch", line.names.pages, 2)
    line.recreate(line.names.sketches)
    line.publish(pages(20, 20))

    assert "begin another generation" in sketcher.refused()
    assert line.committed("sketch", line.names.pages, 2) == before


@pytest.mark.whole
def test_a_running_matcher_ends_when_the_log_is_recreated(make: Make) -> None:
    line = make()
    line.publish(pages(20))
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.settle()
    sketcher.stop()
    line.recreate(line.names.sketches)

    error = matcher.refused()
    assert "begin another generation" in error
    assert "start again" not in error


# The pages.


@pytest.mark.whole
def test_a_late_commit_does_not_move_the_new_topic_on(make: Make) -> None:
    line = make(partitions=1, batch_pages=20)
    line.publish(pages(20))
    late = line.start("sketch", step="5 acknowledged", call=1, how=freeze, settings=PATIENT)
    late.frozen()
    line.recreate(line.names.pages)
    line.publish(pages(40))
    late.thaw()

    eventually(lambda: not late.running, "its end")
    assert "recreated" in late.output()
    line.start("sketch")
    line.start("match")
    line.check()


# The verdicts.


def test_a_start_misses_verdicts_of_a_recreated_topic(make: Make) -> None:
    line = judged(make)
    line.recreate(line.names.verdicts)

    error = line.start("match").refused()
    assert f"topic {line.names.verdicts} was deleted and recreated" in error
    say_again(line, error)
    # Without the operator's word it still is not sure.
    assert "was deleted and recreated" in line.start("match").refused()
    line.start("match", accept_lost_verdicts=True)
    line.publish(pages(10, 40))
    line.start("sketch")
    line.check()


@pytest.mark.whole
def test_unneeded_lost_verdicts_are_given_up(make: Make) -> None:
    line = judged(make)
    line.recreate(line.names.verdicts)
    assert ACCEPT_LOST in line.start("match").refused()
    line.start("match", accept_lost_verdicts=True)
    line.publish(pages(10, 40))
    line.start("sketch")
    line.settle()
    line.stop()
    assert len(line.verdicts()) == 10
    assert line.verdicts() == line.expected()[40:]
    # It is reported once: from now on the position is one in the new topic.
    line.start("match").stop()


@pytest.mark.whole
def test_a_running_matcher_ends_when_the_verdicts_are_recreated(make: Make) -> None:
    line = make()
    line.publish(pages(20))
    line.start("sketch")
    matcher = line.start("match")
    line.settle()
    line._client.delete_topics([line.names.verdicts])[line.names.verdicts].result(30)

    error = matcher.refused()
    assert f"topic {line.names.verdicts} " in error
    assert "start the matcher: it says what is gone and how to emit it again" in error
    topics.create(line.admin, line.names, line.sizes)
    say_again(line, line.start("match").refused())
    line.start("match", accept_lost_verdicts=True)
    line.publish(pages(10, 20))
    line.check()
