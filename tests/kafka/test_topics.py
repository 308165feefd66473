"""Topics are made right, found wrong with the reason, and never altered."""

import pytest

from streams.config.settings import Topics
from streams.errors import TopicError
from streams.kafka import Admin, topics
from streams.kafka.topics import Sizes

SIZES = Sizes(partitions=2)


def test_made_topics_pass_their_own_check(admin: Admin, names: Topics) -> None:
    assert [problem.setting for problem in topics.check(admin, names, SIZES)] == ["the topic"] * 4

    assert topics.create(admin, names, SIZES) == [names.pages, names.rejected, names.sketches, names.verdicts]

    assert topics.check(admin, names, SIZES) == []
    assert admin.topic(names.pages).partitions == 2
    assert admin.topic(names.sketches).partitions == 1
    assert {admin.settings(name)["message.timestamp.type"] for name in names if name} == {"LogAppendTime"}
    assert topics.create(admin, names, SIZES) == []


def test_verdicts_may_be_compacted(admin: Admin, names: Topics) -> None:
    topics.create(admin, names, Sizes(partitions=2, compact_verdicts=True))

    assert admin.settings(names.verdicts)["cleanup.policy"] == "compact"
    assert [topics.compacted(admin, each) for each in (names.verdicts, names.pages, "nowhere")] == [True, False, False]
    assert topics.check(admin, names, SIZES) == []


@pytest.mark.parametrize(
    ("role", "setting", "value", "reason"),
    [
        ("pages", "message.timestamp.type", "CreateTime", "write the future"),
        ("pages", "cleanup.policy", "compact", "compaction"),
        ("pages", "max.message.bytes", "1048588", "refuse large pages"),
        ("pages", "retention.ms", "60000", "before a stopped sketcher"),
        ("rejected", "max.message.bytes", str(SIZES.page_bytes_max), "would not fit"),
        ("sketches", "message.timestamp.type", "CreateTime", "clock is behind"),
        ("sketches", "cleanup.policy", "compact,delete", "compaction"),
        ("sketches", "max.message.bytes", "900000", "would not fit"),
        ("sketches", "retention.ms", "86400000", "rebuilt"),
        ("sketches", "retention.bytes", "1000000000", "rebuild"),
        ("sketches", "unclean.leader.election.enable", "true", "lose what was acknowledged"),
        ("verdicts", "min.insync.replicas", "2", "no write is ever acknowledged"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_reason(
    admin: Admin, names: Topics, role: str, setting: str, value: str, reason: str
) -> None:
    right = names._replace(**{role: f"{getattr(names, role)}.right"})
    topics.create(admin, right, SIZES)
    wrong = getattr(names, role)
    settings = {key: admin.settings(getattr(right, role))[key] for key in RELEVANT} | {setting: value}
    admin.create(wrong, 1, 1, settings)

    problems = topics.check(admin, names, SIZES)

    assert [(problem.topic, problem.setting, problem.found) for problem in problems] == [(wrong, setting, value)]
    assert reason in str(problems[0])
    with pytest.raises(TopicError, match=reason):
        topics.create(admin, names, SIZES)
    assert admin.settings(wrong)[setting] == value


RELEVANT = (
    *("message.timestamp.type", "cleanup.policy", "max.message.bytes", "retention.ms", "retention.bytes"),
    *("unclean.leader.election.enable", "min.insync.replicas"),
)


def test_the_sketch_log_has_one_partition(admin: Admin, names: Topics) -> None:
    admin.create(names.sketches, 3, 1, {"retention.ms": "-1"})

    with pytest.raises(TopicError, match=r"partitions is 3, needed: 1; its one partition is the order of the crawl"):
        topics.create(admin, names, SIZES)

    # All or nothing: with one wrong topic the others are not made either.
    assert admin.topics([names.pages, names.verdicts]) == {}


def test_every_problem_is_reported_at_once(admin: Admin, names: Topics) -> None:
    admin.create(names.pages, 1, 1, {"cleanup.policy": "compact"})

    values = [problem.setting for problem in topics.check(admin, names, SIZES) if problem.topic == names.pages]

    assert values == ["message.timestamp.type", "max.message.bytes", "cleanup.policy"]
