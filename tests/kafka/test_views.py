"""The views on a real broker: committed verdicts only, and the same rows after kill -9 and after a rebuild."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from broker import eventually, kafka
from confluent_kafka import Producer

from neardup.decider import Decider
from streams.config.settings import Settings, Topics
from streams.kafka import Admin, Connection
from streams.views import counts, url_pages
from streams.views.stream_source import name_of
from streams.views.view_rows import EVERYTHING, counts_of
from tests import forked
from tests.streams.views.random_verdicts import Held, emitted_at, random_verdicts

pytest.importorskip("faust", reason="faust-streaming is not installed")

for each in ("streams.commands", "streams.commands.serve", "streams.views.stream_source", "streams.views.web"):
    forked.preload(each)

#: Lets the tables be restored for ever.
SLOW_START = """
import asyncio
from faust.tables.manager import TableManager

async def wait_until_recovery_completed(self):
    print("is restoring", flush=True)
    await asyncio.sleep(3600)

TableManager.wait_until_recovery_completed = wait_until_recovery_completed

"""

#: The partitions of a worker that was killed go to another one after this time, the shortest that brokers take.
SESSION = """
from streams.views import stream_source
stream_source.SESSION_SECONDS = 6.0
"""

DECIDER = Decider(scheme="")
CLUSTERS = range(9)


class Worker:
    """`neardup views` as a process of its own, with its tables in `folder`."""

    def __init__(
        self,
        broker: str,
        names: Topics,
        folder: Path,
        *more: str,
        before: str = "",
        token: str | None = None,
    ) -> None:
        """before: code that runs first."""
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._log = folder.parent / "views.log"
        began = len(self.log()) if self._log.exists() else 0
        arguments = ["--bootstrap", broker, "--group", names.verdicts, "--verdicts-topic", names.verdicts]
        self.metrics_port = kafka.free_ports(1)[0]
        arguments += ["--views-state", str(folder), "--port", "0", "--metrics-port", str(self.metrics_port), *more]
        environment = {**os.environ, **({"NEARDUP_VIEWS_TOKEN": token} if token else {})}
        code = before + SESSION
        self.process = forked.Command(["views", *arguments], self._log, before=code, environment=environment)
        try:
            self.port = int(eventually(lambda: self._port(began), "the views serve"))
        except BaseException:
            self.kill()
            raise

    def _port(self, began: int) -> str:
        text = self.log()[began:]
        assert self.process.poll() is None, text
        port, whole, _ = text.partition("serving http://127.0.0.1:")[2].partition("/")
        return port if whole else ""

    def __call__(self, path: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers=self.headers)
            return dict(orjson.loads(connection.getresponse().read()))
        finally:
            connection.close()

    def takes(self, count: float) -> None:
        """Returns when it has taken in so many verdicts."""
        eventually(lambda: self("/overview.json")["verdicts"] >= count, f"{count} verdicts taken in")

    def log(self) -> str:
        return self._log.read_text()

    def get_health(self, path: str) -> tuple[int, str]:
        """Status and body of /ready, /live or /metrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def behind(self) -> float | None:
        """The lag in the metrics."""
        found = re.search(r'^neardup_lag_records\{role="views"\} (\S+)$', self.get_health("/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def assert_alike(worker: Worker, verdicts: list[dict[str, Any]]) -> None:
    model = Held(verdicts)
    overview, (kinds, reasons) = worker("/overview.json"), counts_of(model.rows("counts", EVERYTHING))
    assert overview["kinds"] == kinds
    assert overview["rejected"] == reasons
    expected = counts.overview(model, None)
    assert not isinstance(expected, str)
    for name in ("time", "sites", "duplicates", "clusters", "kept_apart"):
        assert overview[name] == expected[name]
    for site in {verdict["site"] for verdict in verdicts}:
        assert worker(f"/site.json?name={site}") == counts.site(model, site)
    for number in CLUSTERS:
        assert worker(f"/cluster.json?id={number}") == url_pages.cluster(model, number)
    for url in {verdict["url"] for verdict in verdicts}:
        assert worker(f"/url.json?url={quote(url)}") == url_pages.url(model, url, DECIDER)


def publish(producer: Producer, topic: str, verdicts: list[dict[str, Any]], *, committed: bool) -> None:
    producer.begin_transaction()
    for verdict in verdicts:
        producer.produce(topic, orjson.dumps(verdict), verdict["url"].encode(), timestamp=emitted_at(verdict))
    if committed:
        producer.commit_transaction(60)
    else:
        assert producer.flush(60) == 0  # on the broker, where uncommitted readers see it
        producer.abort_transaction(60)


#: After one batch no row reaches the changelogs any more.
HELD = """
import asyncio, os
os.environ["BROKER_COMMIT_INTERVAL"] = "0.5"
from aiokafka import AIOKafkaProducer
send, batches = AIOKafkaProducer.send_batch, []
async def held(self, batch, topic, *, partition):
    batches.append(batch)
    if len(batches) > 1:
        return asyncio.get_running_loop().create_future()
    return await send(self, batch, topic, partition=partition)
AIOKafkaProducer.send_batch = held
"""
#: Its partitions are on their way to another worker, and come back, while the first batch is at hand.
AWAY = """
from streams.views import monitoring
from streams.views.stream_source import StreamSource
monitoring.LAG_SECONDS = 0.5
take, batches = StreamSource._apply, []
async def away(self, events):
    batches.append(len(events))
    if len(batches) == 1:
        print("left out of partitions", *{event.message.partition for event in events}, flush=True)
        self.app.consumer.assignment = set
    await take(self, events)
    if len(batches) == 1:
        del self.app.consumer.assignment
StreamSource._apply = away
"""
#: No row ever leaves: the batch that it is of does not end.
STANDING = """
import asyncio
from aiokafka import AIOKafkaProducer
from streams.views import monitoring
async def standing(self, batch, topic, *, partition):
    await asyncio.Event().wait()
AIOKafkaProducer.send_batch = standing
monitoring.LAG_SECONDS = 0.5
"""
#: The broker appends the first rows, and answers that it is not the leader: seen after a silence of 20 s.
LOST_ANSWER = """
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import NotLeaderForPartitionError
from aiokafka.protocol.produce import ProduceRequest
send, lost = AIOKafkaClient.send, []
async def answer_lost(self, node, request, **more):
    response = await send(self, node, request, **more)
    if isinstance(request, ProduceRequest) and not lost:
        lost.append(True)
        raise NotLeaderForPartitionError()
    return response
AIOKafkaClient.send = answer_lost
"""
#: So long Faust's timer of commits is given: it tries every 0.5 s.
COMMITS_SECONDS = 2.5


@pytest.mark.whole
@pytest.mark.slow
def test_views_commit_no_verdict_left_out_in_a_rebalance(
    broker: str, made: Topics, tmp_path: Path, connection: Connection
) -> None:
    """It would not be consumed again."""
    verdicts = random_verdicts(120, 3)
    producer = Producer({"bootstrap.servers": broker, "transactional.id": made.verdicts})
    producer.init_transactions(60)
    publish(producer, made.verdicts, verdicts[:60], committed=True)
    topic = Admin(connection).topic(made.verdicts)
    group = name_of(Settings(group=made.verdicts), topic)
    worker = Worker(broker, made, tmp_path / "tables", "--stall-ms", "8000", before=AWAY)
    try:
        until = time.monotonic() + 120
        for verdict in verdicts[60:]:  # what comes behind them is left out, too, and is no sign of work
            if worker.process.poll() is not None:
                break
            assert time.monotonic() < until
            publish(producer, made.verdicts, [verdict], committed=True)
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(0.5)
        assert worker.process.wait(60) == 1
        assert "none was applied for 8 s" in worker.log()
        (places,) = re.findall("^left out of partitions (.*)", worker.log(), re.MULTILINE)  # a batch may lack some
        assert not any(Admin(connection).committed(group, topic.name, int(place)) for place in places.split())

        worker = Worker(broker, made, tmp_path / "tables")
        publish(producer, made.verdicts, verdicts[60:], committed=True)  # once more, or for the first time
        worker.takes(len(verdicts))
        eventually(lambda: not worker("/overview.json")["behind"], "nothing behind")
        assert_alike(worker, verdicts)
    finally:
        print(worker.log())
        worker.end(signal.SIGKILL)


@pytest.mark.whole
@pytest.mark.slow
def test_kill_9_and_a_rebuild_give_the_same_pages(
    broker: str, made: Topics, tmp_path: Path, connection: Connection
) -> None:
    verdicts, never = random_verdicts(600, 1), random_verdicts(200, 2)
    more = random_verdicts(800, 1)[600:]
    folder = tmp_path / "tables"
    producer = Producer(
        {
            "bootstrap.servers": broker,
            "transactional.id": made.verdicts,
            "partitioner": "murmur2_random",
            "compression.type": "zstd",  # as the matcher writes
        }
    )
    producer.init_transactions(60)
    step = 100
    producer.begin_transaction()
    producer.produce(made.verdicts, b"no verdict", b"oops")
    producer.commit_transaction(60)
    publish(producer, made.verdicts, never, committed=False)
    for at in range(0, len(verdicts) // 2, step):
        publish(producer, made.verdicts, verdicts[at : at + step], committed=True)

    # Verdicts whose rows are not in the changelogs yet must not be committed: they would not be consumed again.
    worker = Worker(broker, made, folder, before=HELD)
    try:
        worker.takes(len(verdicts) // 2)
        topic = Admin(connection).topic(made.verdicts)
        group, until = name_of(Settings(group=made.verdicts), topic), time.monotonic() + COMMITS_SECONDS

        def committed() -> bool:
            return any(Admin(connection).committed(group, topic.name, place) for place in range(topic.partitions))

        eventually(lambda: committed() or time.monotonic() > until, "Faust's commit")
        assert not committed()
        assert worker.end(signal.SIGKILL) == -signal.SIGKILL

        worker = Worker(broker, made, folder)
        publish(producer, made.verdicts, never, committed=False)
        for at in range(len(verdicts) // 2, len(verdicts), step):
            publish(producer, made.verdicts, verdicts[at : at + step], committed=True)
        worker.takes(0.6 * len(verdicts))
        assert worker.end(signal.SIGKILL) == -signal.SIGKILL
        worker = Worker(broker, made, folder, before=LOST_ANSWER)
        worker.takes(len(verdicts))
        publish(producer, made.verdicts, more[:100], committed=True)
        verdicts += more[:100]
        eventually(lambda: "NotLeaderForPartitionError" in worker.log(), "an answer is lost")
        worker.takes(len(verdicts))
        eventually(lambda: not worker("/overview.json")["behind"], "nothing behind")
        assert_alike(worker, verdicts)
        assert worker.get_health("/ready")[0] == 200
        assert "serves" in worker.get_health("/ready")[1]
        assert worker.get_health("/live")[0] == 200
        publish(producer, made.verdicts, never, committed=False)  # at the end: no lag
        eventually(lambda: worker.behind() == 0, "the lag in the metrics")
        assert worker.end(signal.SIGTERM) == 0

        worker = Worker(broker, made, folder, "--rebuild")
        worker.takes(len(verdicts))
        assert_alike(worker, verdicts)
        assert worker.end(signal.SIGTERM) == 0

        other = tmp_path / "another disk"
        worker = Worker(broker, made, other, "--stall-ms", "8000", before=STANDING)  # from the changelogs
        worker.takes(len(verdicts))
        assert_alike(worker, verdicts)
        publish(producer, made.verdicts, more[100:], committed=True)
        assert worker.process.wait(120) == 1
        assert "none was applied for 8 s" in worker.log()
        assert "restarting is safe" in worker.log()
    finally:
        print(worker.log())
        worker.end(signal.SIGKILL)


@pytest.mark.whole
def test_views_stop_on_request_while_they_start(broker: str, made: Topics, tmp_path: Path) -> None:
    arguments = ["--bootstrap", broker, "--group", made.verdicts, "--verdicts-topic", made.verdicts, "--port", "0"]
    arguments += ["--views-state", str(tmp_path / "tables"), "--metrics-port", str(kafka.free_ports(1)[0])]
    main = [sys.executable, "-c", SLOW_START + "from streams.commands import main; main()", "views"]
    log = tmp_path / "views.log"
    with log.open("wb") as output:
        process = subprocess.Popen([*main, *arguments], stdout=output, stderr=output)
    try:
        eventually(lambda: "is restoring" in log.read_text(), "their start")
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert "serving" not in log.read_text()
