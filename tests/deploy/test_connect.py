"""The example of Kafka Connect, by a real worker on a real broker: each committed verdict becomes a flat row."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from broker import PATIENCE_SECONDS, eventually, kafka
from confluent_kafka import Producer

from streams.config.settings import Topics
from streams.kafka import Admin, Connection, topics
from streams.kafka.topics import Sizes
from tests.processes import start
from tests.streams.views.random_verdicts import random_verdicts

pytestmark = pytest.mark.whole

CONNECT = Path(__file__).parents[2] / "deploy" / "walks" / "connect"
#: A worker whose port is unused.
WORKER = "org.apache.kafka.connect.cli.ConnectStandalone"


@pytest.fixture(scope="module")
def libs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connect") / "libs"
    maven = shutil.which("mvn")
    assert maven, "Maven is missing; on Debian: apt-get install maven"
    fetch = [maven, "-q", "-B", "-f", str(CONNECT / "pom.xml"), "dependency:copy-dependencies"]
    subprocess.run([*fetch, f"-DoutputDirectory={folder}"], check=True, timeout=600)
    return folder


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with kafka.Cluster(tmp_path / "kafka") as cluster:
        yield cluster.bootstrap


def publish(bootstrap: str, verdicts: list[dict[str, object]], *, commit: bool, name: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    for verdict in verdicts:
        producer.produce("verdicts", orjson.dumps(verdict), str(verdict["url"]).encode())
    assert producer.flush(60) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(60)


def test_a_worker_writes_committed_verdicts_as_flat_rows(bootstrap: str, libs: Path, tmp_path: Path) -> None:
    topics.create(Admin(Connection(bootstrap)), Topics(), Sizes(partitions=1))
    verdicts = random_verdicts(40, 5)
    publish(bootstrap, [{**verdict, "cluster": 99} for verdict in verdicts[:5]], commit=False, name="aborted")
    publish(bootstrap, verdicts, commit=True, name="committed")
    worker = (CONNECT / "worker.properties").read_text().replace("127.0.0.1:9092", bootstrap)
    (tmp_path / "worker.properties").write_text(worker + "listeners=http://127.0.0.1:0\n")
    command = [
        "java",
        "-Xmx256m",
        "-cp",
        f"{libs}/*",
        WORKER,
        "worker.properties",
        str(CONNECT / "verdicts.properties"),
    ]
    out = tmp_path / "verdicts.txt"
    with (tmp_path / "worker.log").open("w") as log:
        process = start(command, cwd=tmp_path, stdout=log, stderr=log)
        try:
            eventually(
                lambda: (
                    (out.exists() and len(out.read_text().splitlines()) >= len(verdicts)) or process.poll() is not None
                ),
                "all verdicts are rows",
            )
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
    rows = out.read_text().splitlines()
    assert [re.findall(r"\burl=([^,}]+)", row) for row in rows] == [[verdict["url"]] for verdict in verdicts]
    assert not any("cluster=99," in row for row in rows), "aborted records are no verdicts"
    for row, verdict in zip(rows, verdicts, strict=True):
        assert f"verdict={verdict['verdict']}" in row
        assert "coordinates" not in row
        if isinstance(verdict.get("representative"), dict):
            assert f"representative_url={verdict['representative']['url']}" in row
