"""The health page of a real stream: consumers, lag, and problems as sentences."""

from dataclasses import replace

import pytest
from broker import PATIENCE_SECONDS, eventually
from line import Make

from neardup.page import Page
from streams.kafka import Generation, Stage
from streams.roles.own_generation import control_topic
from streams.views import stream_topics as controlling
from streams.views.health import of_stream
from streams.views.peers import Peers
from streams.views.stream_health import StreamHealth
from streams.views.stream_topics import ControlView
from tests.streams.shell import words


@pytest.mark.slow
def test_health_reports_a_stopped_role_until_it_runs(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controlling, "ANSWER_SECONDS_MAX", PATIENCE_SECONDS)
    line = make()
    settings = replace(line.settings, bootstrap=line.bootstrap)
    line.publish([Page(f"http://a.example/{number}", f"<p>{words('a')}".encode()) for number in range(3)])
    control = ControlView(settings)
    asked = StreamHealth(settings, control, "", Peers("", None))

    def problems() -> list[str]:
        return [str(problem) for problem in of_stream("a test", asked.kafka_facts(), [], 0, [], None)["problems"]]

    try:
        sketch, match = asked.kafka_facts()["steps"]
        assert (sketch["behind"], sketch["readers"], sum(sketch["partitions"].values())) == (3, [], 3)
        assert sketch["newest"] is not None
        assert (match["behind"], match["newest"]) == (0, None)
        assert asked.kafka_facts()["newest_verdict"] is None
        (values,) = problems()
        assert "start neardup sketch" in values

        line.start("sketch")
        line.settle(judged=False)
        eventually(lambda: asked.kafka_facts()["steps"][0]["behind"] == 0, "the sketcher's commit")
        (reader,) = asked.kafka_facts()["steps"][0]["readers"]
        assert reader["partitions"] == [0, 1]
        (values,) = problems()
        assert "no verdict was emitted at all: check that neardup match runs." in values

        line.start("match")
        line.settle()
        found = asked.kafka_facts()
        assert [step["behind"] for step in found["steps"]] == [0, 0]
        assert found["newest_verdict"] is not None
        assert problems() == []

        topic = control_topic(settings, "topics")
        topic.create()
        topic.describe(Generation("next", "5" * 32, "d" * 32, stage=Stage.FILLING))
        topic.cut_over("next", "")
        found = asked.kafka_facts()
        assert found["live"] == "next"
        assert [(one["name"], one["stage"], one["live"]) for one in found["generations"]] == [
            ("next", "live", True),
            ("", "", False),
        ]
    finally:
        control.close()
