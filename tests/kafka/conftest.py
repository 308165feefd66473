"""Real brokers: one for the whole suite, and one for tests that kill it."""

import os
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import Own, alter, kafka
from confluent_kafka import KafkaException
from line import Line, Make, auditing

from neardup.errors import NeardupError
from streams.config.settings import Topics
from streams.kafka import Admin, Connection, topics
from streams.kafka.topics import Sizes


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that all workers of the run share; NEARDUP_TEST_BOOTSTRAP names another one."""
    given = os.environ.get("NEARDUP_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    try:
        with kafka.shared(folder / "kafka") as address:
            yield address
    except kafka.BrokerFailed as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def connection(broker: str) -> Connection:
    return Connection(broker)


@pytest.fixture
def admin(connection: Connection) -> Admin:
    return Admin(connection)


@pytest.fixture
def names() -> Topics:
    """Topics that no other test has; their prefix also serves for groups and transactional ids."""
    return _names()


def _names() -> Topics:
    prefix = uuid.uuid4().hex[:12]
    return Topics(f"{prefix}.pages", f"{prefix}.rejected", f"{prefix}.sketches", f"{prefix}.verdicts")


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    made = Own(lambda: tmp_path_factory.mktemp("kafka"))
    yield made
    made.end()


@pytest.fixture
def own_broker(own: Own) -> Iterator[Any]:
    """A `Cluster` of one node for this test alone: it may be killed, paused, stopped, set otherwise and restarted.

    What earlier tests wrote is still there, so topics and groups need names of their own. It does not look for
    transactions that have timed out.
    """
    try:
        cluster = own.get()
    except kafka.BrokerFailed as error:
        pytest.fail(str(error), pytrace=False)
    settings = dict(cluster.settings)
    yield cluster
    if cluster.running():
        cluster.resume()
    if cluster.settings != settings:
        own.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports where topics, groups and processes were when a test failed; what processes wrote follows at its end."""
    report = yield
    if call.when == "call" and report.failed:
        for line in Line.open:
            try:
                report.sections.append(("topics and roles", line.describe()))
            except (KafkaException, NeardupError) as error:
                report.sections.append(("topics and roles", f"unknown: {error}"))
    return report


@pytest.hookimpl(trylast=True)  # after the fixtures of the test
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Ends the broker after the last test of its group, see tests/conftest.py: an idle one takes 3 % of a core."""
    grouped = hasattr(item.config, "workerinput")
    own = item.funcargs.get("own")  # a skipped test has no fixtures
    if grouped and own is not None and "own" not in getattr(nextitem, "fixturenames", ()):
        own.end()


@pytest.fixture
def made(broker: str, admin: Admin, names: Topics) -> Topics:
    """Topics of this test's own, with two partitions; a test may stamp verdicts with times of its own."""
    topics.create(admin, names, Sizes(partitions=2))
    alter(broker, names.verdicts, "message.timestamp.type", "CreateTime")
    return names


@pytest.fixture
def make(broker: str, names: Topics, tmp_path: Path) -> Iterator[Make]:
    """Makes lines, with settings and a bootstrap of their own if given; their output is shown if the test fails."""
    made: list[Line] = []

    def line(**settings: Any) -> Line:
        made.append(Line(settings.pop("bootstrap", broker), names, tmp_path, **settings))
        return made[-1]

    yield line
    for each in made:
        each.close()


@pytest.fixture
def audited(broker: str, names: Topics, tmp_path: Path) -> Iterator[Line]:
    names, wanted = auditing(names)
    made = Line(broker, names, tmp_path, **wanted)
    yield made
    made.close()
