"""Two workers of the same views: each answers for all partitions, also once the other is killed."""

import http.client
import signal
from pathlib import Path

import pytest
from broker import eventually
from confluent_kafka import Producer
from test_views import Worker, assert_alike, publish

from streams.config.settings import Topics
from tests.streams.views.random_verdicts import random_verdicts

pytestmark = pytest.mark.whole

pytest.importorskip("faust", reason="faust-streaming is not installed")

TOKEN = "0123456789abcdef"


def parts_of(worker: Worker) -> set[str]:
    return set(worker("/own.json")["lag"])


@pytest.mark.slow
def test_two_workers_answer_for_each_other(broker: str, made: Topics, tmp_path: Path) -> None:
    verdicts = random_verdicts(300, 3)
    producer = Producer({"bootstrap.servers": broker, "transactional.id": made.verdicts})
    producer.init_transactions(60)
    publish(producer, made.verdicts, verdicts[:200], committed=True)
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    one = Worker(broker, made, tmp_path / "1" / "tables", token=TOKEN)
    try:
        one.takes(200)
        two = Worker(broker, made, tmp_path / "2" / "tables", token=TOKEN)
        try:
            eventually(lambda: (len(parts_of(one)), len(parts_of(two))) == (1, 1), "a partition each")
            assert parts_of(one) | parts_of(two) == {"0", "1"}
            publish(producer, made.verdicts, verdicts[200:], committed=True)
            for worker in (one, two):
                worker.takes(len(verdicts))
                eventually(lambda w=worker: w("/overview.json")["behind"] == 0, "nothing behind, of both partitions")
                assert_alike(worker, verdicts)
            assert two.end(signal.SIGKILL) == -signal.SIGKILL
            assert_reported(one)
            eventually(lambda: len(parts_of(one)) == 2, "the partition is taken over")
            one.takes(len(verdicts))
            assert_alike(one, verdicts)
        finally:
            print(two.log())
            two.kill()
            two.process.wait(60)
    finally:
        print(one.log())
        one.end(signal.SIGKILL)


def assert_reported(worker: Worker) -> None:
    """Until the other one is missed, its rows are not to be had, and in words."""
    connection = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=60)
    try:
        connection.request("GET", "/site?name=site1.example", headers=worker.headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 503
        assert "do not answer" in text
    finally:
        connection.close()
