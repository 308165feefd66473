"""A worker that was paused beyond its session writes after its successor, and older rows never come back."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from broker import eventually
from confluent_kafka import Producer
from test_views import Worker, assert_alike, publish

from streams.config.settings import Settings, Topics
from streams.kafka import Admin, Connection
from streams.views.stream_source import changelogs, name_of
from tests.streams.views.random_verdicts import random_verdicts

pytestmark = pytest.mark.whole

pytest.importorskip("faust", reason="faust-streaming is not installed")

#: With rows in hand it stops, once, as soon as a file is there.
FROZEN = """
import os, signal
from pathlib import Path
from aiokafka import AIOKafkaProducer
send, flag = AIOKafkaProducer.send_batch, Path({flag!r})
async def frozen(self, batch, topic, *, partition):
    if flag.exists():
        flag.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
    return await send(self, batch, topic, partition=partition)
AIOKafkaProducer.send_batch = frozen
"""
#: It commits nothing: a worker may stop before its first commit.
UNCOMMITTED = """
import os
os.environ["BROKER_COMMIT_INTERVAL"] = "3600"
"""
#: Between the end of the recovery and the seek to the commits, verdicts are fetched that no agent may have yet. Faust
#: does so if it pauses the last changelog while a fetch is under way: for aiokafka an empty set means all partitions.
FETCHED_TOO_EARLY = """
from faust.tables.recovery import Recovery
complete = Recovery.on_recovery_completed
async def completed(self, generation_id=0):
    await self.app.consumer._thread.getmany(set(), 5.0)
    await complete(self, generation_id)
Recovery.on_recovery_completed = completed
"""


def stopped(process: Any) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.slow
def test_rows_of_a_paused_worker_do_not_come_back(
    broker: str, made: Topics, tmp_path: Path, connection: Connection
) -> None:
    verdicts, admin = random_verdicts(300, 5), Admin(connection)
    producer = Producer({"bootstrap.servers": broker, "transactional.id": made.verdicts})
    producer.init_transactions(60)
    publish(producer, made.verdicts, verdicts[:100], committed=True)
    workers: list[Worker] = []
    flag = tmp_path / "flag"
    try:

        def start(number: int, *more: str, before: str = "") -> Worker:
            (tmp_path / str(number)).mkdir(exist_ok=True)
            workers.append(Worker(broker, made, tmp_path / str(number) / "tables", *more, before=before))
            return workers[-1]

        def has_taken(count: int) -> bool:
            """Whether the successor has them, without lag. Like a supervisor, restarts it when it ends."""
            if workers[-1].process.poll() is not None:
                assert re.search("none was applied|a rebalance of the group goes on", workers[-1].log())
                succeeds()
            try:
                seen = workers[-1]("/overview.json")
            except OSError:  # at this moment
                return False
            return seen["verdicts"] >= count and not seen["behind"]

        def succeeds() -> None:
            start(2, "--stall-ms", "20000", before=FETCHED_TOO_EARLY)  # on a crowded machine it may stand still

        paused = start(1, before=UNCOMMITTED + FROZEN.format(flag=str(flag)))
        paused.takes(100)
        flag.touch()
        publish(producer, made.verdicts, verdicts[100:200], committed=True)
        eventually(lambda: stopped(paused.process), "a pause with rows in hand")

        succeeds()
        eventually(lambda: has_taken(200), "200 verdicts taken in")
        publish(producer, made.verdicts, verdicts[200:], committed=True)
        eventually(lambda: has_taken(300), "300 verdicts taken in")
        assert workers[-1].end(signal.SIGTERM) == 0  # all it has is in the changelogs
        names = changelogs(name_of(Settings(group=made.verdicts), admin.topic(made.verdicts)))
        before = {name: admin.offsets(admin.topic(name), "latest") for name in names}
        os.kill(paused.process.pid, signal.SIGCONT)
        eventually(
            lambda: any(admin.offsets(admin.topic(name), "latest") != before[name] for name in names),
            "rows of the one that was paused",
        )
        assert paused.end(signal.SIGKILL) != 0

        third = start(3)  # from the changelogs alone
        third.takes(300)
        assert_alike(third, verdicts)
    finally:
        for worker in workers:
            print(worker.log())
            worker.kill()
            worker.process.wait(60)
