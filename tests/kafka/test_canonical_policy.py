"""The policy of canonical pages on a real broker: one record, by which views and clients choose anew."""

import signal
from pathlib import Path
from typing import Any

import pytest
from broker import PATIENCE_SECONDS, eventually
from confluent_kafka import Producer
from test_views import Worker, publish

from neardup.canonical import Member, choose
from neardup.errors import BadInput
from streams.client import LiveVerdicts
from streams.config.settings import Settings, Topics
from streams.kafka import Admin, Connection
from streams.operate.generations import hold_stream
from streams.roles.own_generation import control_topic
from tests.streams.views.random_verdicts import random_verdicts

pytestmark = pytest.mark.whole

pytest.importorskip("faust", reason="faust-streaming is not installed")

#: Before the views begin: what they show is waited for, however busy the machine is.
PATIENT = f"from streams.views import stream_topics; stream_topics.ANSWER_SECONDS_MAX = {PATIENCE_SECONDS}\n"
OLD, SAFE, SHORT = "http://old.example/a/page", "https://safe.example/a/page", "http://s.example/"


def three() -> list[dict[str, Any]]:
    """A cluster of three; the oldest names the shortest by rel=canonical, another has a score."""
    first = {**random_verdicts(1)[0], "cluster": 5, "site": "old.example"}
    return [
        {**first, "page_id": 5, "url": OLD, "verdict": "unique", "canonical": OLD, "cluster_size": 1, "revision": 1,
         "rel_canonical": SHORT},
        {**first, "page_id": 6, "url": SAFE, "verdict": "near_duplicate", "canonical": OLD, "cluster_size": 2,
         "revision": 2, "site": "safe.example", "score": 0.9},
        {**first, "page_id": 7, "url": SHORT, "verdict": "near_duplicate", "canonical": SHORT, "cluster_size": 3,
         "revision": 3, "site": "s.example"},
    ]  # fmt: skip


def choices(settings: Settings) -> str:
    """The pages that an indexer shows that applies verdicts."""

    class Empty:
        def load(self) -> dict[str, int]:
            return {}

    with LiveVerdicts(settings.bootstrap, Empty(), settings.verdicts_topic, group=settings.group) as verdicts:
        emitted = [verdict for batch in verdicts.batches(follow=False) for verdict in batch.verdicts]
        members = [Member(v["url"], v["page_id"], v["site"], v.get("rel_canonical"), v.get("score")) for v in emitted]
        choice = choose(members, verdicts.canonical) if verdicts.canonical else None
    newest = max(emitted, key=lambda verdict: verdict["page_id"])
    return choice.url if choice else str(newest["canonical"])


@pytest.mark.slow
def test_another_policy_is_one_record_and_no_verdict(
    broker: str, made: Topics, tmp_path: Path, connection: Connection
) -> None:
    settings = Settings(bootstrap=broker, group=made.verdicts, verdicts_topic=made.verdicts)
    producer = Producer({"bootstrap.servers": broker, "transactional.id": made.verdicts})
    producer.init_transactions(60)
    publish(producer, made.verdicts, three(), committed=True)
    admin = Admin(connection)

    def ends(name: str) -> int:
        return sum(admin.offsets(admin.topic(name), "latest").values())

    worker = Worker(broker, made, tmp_path / "tables", before=PATIENT)
    try:
        worker.takes(3)
        before = ends(made.verdicts)
        answer = worker("/cluster.json?id=5")
        assert (answer["canonical"], answer["policy"], answer["why"]["by"]) == (SHORT, [], "verdict")
        assert choices(settings) == SHORT
        assert hold_stream(settings, None) == ()
        for count, (policy, url) in enumerate(
            [("https", SAFE), ("first-seen", OLD), ("score", SAFE), ("rel-canonical,https", SHORT)], 1
        ):
            assert ",".join(hold_stream(settings, policy)) == policy
            assert ends(settings.generations_topic) == count
            answer = worker("/cluster.json?id=5")
            assert (answer["canonical"], ",".join(answer["policy"])) == (url, policy)
            assert (answer["revision"], answer["size"]) == (3, 3)
            assert [member["url"] for member in answer["members"] if member["canonical"]] == [url]
            assert choices(settings) == url
        control_topic(settings, "topics").choose_canonical("of-a-newer-program,https")
        answer = worker("/cluster.json?id=5")
        assert (answer["canonical"], answer["policy"]) == (SHORT, [])
        assert "the policy is unknown: canonical policy: no criterion 'of-a-newer-program'" in answer["why"]["words"]
        with pytest.raises(BadInput, match="of-a-newer-program"):
            choices(settings)
        assert hold_stream(settings, "") == ()
        eventually(lambda: worker("/cluster.json?id=5")["canonical"] == SHORT, "as verdicts have it again")
        assert choices(settings) == SHORT
        with pytest.raises(BadInput, match="no criterion 'cheaper'"):
            hold_stream(settings, "cheaper")
        assert ends(settings.generations_topic) == 6
        assert ends(made.verdicts) == before, "no verdict was repeated"
    finally:
        print(worker.log())
        worker.end(signal.SIGKILL)
