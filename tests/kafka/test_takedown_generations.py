"""Takedowns and generations: what was taken down comes back in no generation, whichever one is live."""

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from broker import eventually
from line import Line, Make, story
from test_backfill import beside, control, live

from neardup.errors import BadInput, StateError
from neardup.sketch.takedown_hashes import of_url
from streams.errors import BrokerError
from streams.formats.message import Forget, encode_control
from streams.kafka import Generation, Stage, TopicReader, Writer
from streams.kafka.topics import Sizes, create
from streams.operate.cut_over import cut_over
from streams.operate.operator_decisions import forget
from streams.state import index_rows as look

pytestmark = pytest.mark.whole

RULE = {"decider_values": {"rule": "tape"}}


def holds(line: Line, url: str) -> bool:
    """Whether the index of a generation, whose matcher is stopped, holds a page."""
    with ExitStack() as held:
        opened = look.open_index(Path(line.settings.state), held)
        try:
            look.of_url(opened, url)
        except BadInput as error:
            if "the index has no row of this URL" not in str(error):
                raise
            return False
    return True


def test_takedowns_reach_a_backfill_behind_a_generation_that_judges_others_sketches(make: Make) -> None:
    """The walk of the README: another rule, cutover, then history anew. And the page is fetched anew after that."""
    pages = story(10)
    line = live(make, pages, partitions=1)
    line.alter(line.names.sketches, "retention.ms", "-1")
    url = pages[0].url
    forget(line.settings, of_url(url))
    second = beside(line, "second", **RULE)
    assert second.start("backfill", once=True).wait() == 0
    cut_over(line.settings, "second", force=True)
    third = beside(line, "third")
    role = third.start("backfill", read_pages=True)
    eventually(lambda: '"caught up' in role.output(), "caught up")
    eventually(lambda: len(third.takedowns()) == 1, "the takedown in its log")
    role.stop()
    assert not holds(third, url)
    assert line.admin.settings(third.names.sketches)["retention.ms"] == "-1"
    cut_over(line.settings, "third", force=True)
    # Live by now, and started again by a supervisor: it serves on, and repeats no takedown.
    line.publish([page for page in pages if page.url == url])
    again = third.start("backfill", read_pages=True)
    eventually(lambda: again.output().count('"caught up') == 1, "caught up again")
    again.stop()
    assert len(third.takedowns()) == 1
    assert holds(third, url)
    assert third.verdicts() == third.expected()


def test_takedowns_reach_a_backfill_behind_a_cutover_and_a_trimmed_log(make: Make) -> None:
    pages = story(10)
    line = live(make, pages, partitions=1)
    url = pages[0].url
    offset = forget(line.settings, of_url(url))
    third = beside(line, "third")
    third.start("backfill", step="match 4 written", call=1, read_pages=True).dead()
    cut_over(line.settings, "third", force=True)
    line.delete_before(line.names.sketches, 0, offset + 1)  # the takedown's record is gone with its log
    fourth = beside(line, "fourth")
    assert fourth.start("backfill", once=True, read_pages=True).wait() == 0
    assert not holds(fourth, url)
    # The live one: no other role than its backfill may fill it.
    assert "neardup backfill --generation third" in third.start("run").refused()
    assert control(line).read().known["third"].stage is Stage.FILLING
    assert third.start("backfill", once=True, read_pages=True).wait() == 0
    assert not holds(third, url)
    assert control(line).read().known["third"].stage is Stage.CAUGHT_UP


def test_a_backfill_is_not_caught_up_while_takedowns_cannot_be_read(make: Make) -> None:
    pages = story(6)
    line = live(make, pages, partitions=1)
    forget(line.settings, of_url(pages[0].url))
    third = beside(line, "third")
    role = third.start("backfill", read_pages=True, rate=2.0, once=True)
    eventually(lambda: third.names.sketches in line.admin.topics([third.names.sketches]), "its topics")
    eventually(lambda: "third" in control(line).read().known, "the record of it")
    key = next(iter(_takedown_keys(line)))

    def say(value: bytes | None) -> None:
        with closing(Writer(line.connection, line.settings.generations_topic, linger_ms=0)) as writer:
            writer.send(value, key=key)
            writer.flush()

    say(b"damaged")
    eventually(lambda: "cannot be read" in role.output(), "a warning")
    assert role.running
    say(None)
    forget(line.settings, of_url(pages[0].url))
    assert role.wait() == 0
    assert not holds(third, pages[0].url)


def _takedown_keys(line: Line) -> set[bytes]:
    with closing(TopicReader(line.connection, line.settings.generations_topic, committed_only=False)) as reader:
        reader.assign(reader.first_offsets())
        found: set[bytes] = set()
        while reader.positions() != reader.ends():
            found |= {record.key() or b"" for record in reader.read(100, wait_s=0.2)}
    return {key for key in found if key.startswith(b"takedown/")}


def test_a_takedown_reaches_the_log_of_every_generation(make: Make) -> None:
    """Of another scheme, too; and it may be given to any of them."""
    pages = story(6)
    line = live(make, pages, partitions=1)
    second = beside(line, "second", **RULE)
    assert second.start("backfill", once=True).wait() == 0
    third = beside(line, "third", body_bytes_max=50_000)
    assert third.start("backfill", once=True).wait() == 0
    forget(line.settings, of_url(pages[0].url))
    assert (len(line.takedowns()), len(third.takedowns())) == (1, 1)
    # As with --generation alone: whose sketches it judges is in the control topic.
    forget(replace(second.settings, sketches_of=None), of_url(pages[1].url))
    assert (len(line.takedowns()), len(third.takedowns())) == (2, 2)
    assert third.start("backfill", once=True).wait() == 0
    assert not holds(third, pages[0].url)
    assert not holds(third, pages[1].url)


def test_a_log_that_cannot_be_written_is_named_and_all_others_have_the_takedown(make: Make) -> None:
    line = live(make, story(6), partitions=1)
    others = [beside(line, name) for name in ("aside", "beyond")]
    scheme = line.settings.scheme().digest
    for other in others:
        create(line.admin, other.names, Sizes(partitions=1))
        control(line).create()
        control(line).describe(Generation(other.settings.generation, scheme, "", stage=Stage.CAUGHT_UP))
        other.append(encode_control(Forget(bytes.fromhex(scheme), of_url("https://former.example/"))))
    aside, beyond = others
    line.alter(aside.names.sketches, "max.message.bytes", "10")
    url = of_url(story(6)[0].url)
    with pytest.raises(BrokerError, match=r"not in topic \S+ of generation aside .* call neardup forget again"):
        forget(line.settings, url)
    assert [len(each.takedowns()) for each in (line, aside, beyond)] == [1, 1, 2]
    line.alter(aside.names.sketches, "max.message.bytes", "1000000")
    forget(line.settings, url)
    assert [len(each.takedowns()) for each in (line, aside, beyond)] == [2, 2, 3]


def test_a_generation_that_was_live_while_it_was_filled_must_still_be_filled(make: Make) -> None:
    line = live(make, story(6), partitions=1)
    third = beside(line, "third")
    third.start("backfill", step="match 4 written", call=1, read_pages=True).dead()
    cut_over(line.settings, "third", force=True)
    cut_over(line.settings, "", force=True)
    with pytest.raises(StateError, match="has not caught up"):
        cut_over(line.settings, "third")
