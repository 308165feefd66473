"""One page through the line, from a terminal: what a person, and an installation's own test, asks first."""

import pytest
from broker import PATIENCE_SECONDS, eventually
from line import Make

from streams.config.settings import Settings
from streams.errors import NoVerdict, TopicError
from streams.operate.ping import ping


def test_a_page_comes_back_as_a_verdict_and_is_taken_back(make: Make) -> None:
    line = make()
    line.start("run")
    first = ping(line.settings, timeout_s=PATIENCE_SECONDS)
    second = ping(line.settings, timeout_s=PATIENCE_SECONDS)

    def output() -> list[tuple[str, str]]:
        return [(row["url"], row["verdict"]) for row in line.verdicts()]

    eventually(lambda: len(output()) == 4, "the end of both pages")
    assert sorted(output()) == sorted((pong.url, kind) for pong in (first, second) for kind in ("unique", "gone"))
    assert (first.verdict, second.verdict) == ("unique", "unique")
    assert first.page_id < second.page_id


def test_ping_without_a_matcher_names_the_matcher_and_removes_the_page(make: Make) -> None:
    line = make()
    wanted = r"no verdict for https://ping\.neardup\.invalid/\w+ within 0\.5 s: .* is the matcher ready\?"
    with pytest.raises(NoVerdict, match=wanted):
        ping(line.settings, timeout_s=0.5)
    assert sum(line.ends(line.names.pages).values()) == 2


def test_ping_names_a_missing_topic(broker: str) -> None:
    with pytest.raises(TopicError, match="nobodys"):
        ping(Settings(bootstrap=broker, verdicts_topic="nobodys.verdicts"), timeout_s=1)
