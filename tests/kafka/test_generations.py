"""A generation with another rule beside the live one: the same sketches judged anew, to the end and on."""

from dataclasses import replace
from pathlib import Path

import pytest
from broker import eventually
from line import Line, Make, story
from roles import Role

from streams.config.settings import Topics
from streams.kafka import topics
from streams.operate.cut_over import cut_over


def second(line: Line, **settings: object) -> Line:
    """The stream with the settings of the second generation: the live log, its own verdicts."""
    made = replace(
        line.settings,
        generation="second",
        sketches_of="",
        state=str(Path(line.settings.state).with_name("second")),
        **settings,  # type: ignore[arg-type]
    )
    topics.create(line.admin, made.topics, line.sizes)
    other = object.__new__(Line)
    other.__dict__.update(line.__dict__, settings=made, names=Topics(*made.topics), _roles=[])
    return other


def judged(other: Line) -> dict[int, int]:
    """Waits until the second generation has judged the whole log, and stops it; the log's end."""
    wanted = other.ends(other.names.sketches)
    eventually(lambda: other.committed("match", other.names.sketches, 1) == wanted, "the second has judged all")
    other.stop()
    return wanted


def test_generation_judges_and_follows_the_live_log(make: Make) -> None:
    line: Line = make()
    line.judge(story())
    line.settle()
    other = second(line, decider_values={"rule": "shingling", "b_min": 6})
    other.start("match")
    line.publish(story(8))  # while both run
    line.settle()
    judged(other)
    live = line.check()
    found, expected = other.verdicts(), other.expected()
    assert found == expected
    assert [v["page_id"] for v in found if v["n"] == 0] == [v["page_id"] for v in live if v["n"] == 0]
    assert {v["decider"] for v in found}.isdisjoint({v["decider"] for v in live})
    assert found != live


@pytest.mark.whole
def test_generation_that_is_killed_and_started_again_emits_each_verdict_once(make: Make) -> None:
    line: Line = make(flush_ms=1)
    line.judge(story())
    line.settle()
    other = second(line, decider_values={"rule": "tape"})
    other.start("match", step="3 committed", call=2).dead()
    other.start("match")
    judged(other)
    assert other.verdicts() == other.expected()
    line.check()


@pytest.mark.whole
def test_generation_that_judges_anew_has_no_sketchers_and_writes_nothing_into_the_live_log(make: Make) -> None:
    line: Line = make()
    line.judge(story(4))
    line.settle()
    other = second(line, decider_values={"rule": "tape"})
    refused: Role = other.start("sketch")
    assert refused.wait() == 1
    assert "it has no sketchers of its own" in refused.output()
    other.start("match")
    wanted = judged(other)
    changed = second(line, decider_values={"rule": "tape", "tape_min": 0.9})
    for options in ({}, {"new_decider": True}):
        role = changed.start("match", **options)
        assert role.wait() == 1
        assert "begin another generation" in role.output()
    assert line.ends(line.names.sketches) == wanted
    line.check()


@pytest.mark.whole
def test_a_backfill_does_not_fill_a_live_one_that_it_has_not_begun_and_its_advice_serves_it(make: Make) -> None:
    line: Line = make()
    line.judge(story(6))
    line.settle()
    other = second(line, decider_values={"rule": "tape"})
    other.start("match")
    judged(other)
    assert cut_over(line.settings, "second", force=True) == ""  # nothing records whose sketches it judges
    advice = "to continue serving it: neardup match --generation second --sketches-of OTHER"
    assert advice in other.start("backfill").refused()
    other.start("match")
    line.publish(story(8))
    line.settle()
    judged(other)
    assert other.verdicts() == other.expected()
    line.check()
