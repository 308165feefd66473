"""A real broker: one for the whole suite, and one of its own for a test that kills it."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import kafka
from line import Line, Make

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


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Any]:
    """A `Cluster` of one node for this test alone: it may be killed, paused and restarted."""
    try:
        with kafka.Cluster(tmp_path / "kafka") as cluster:
            yield cluster
    except kafka.BrokerFailed as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def made(admin: Admin, names: Topics) -> Topics:
    """Topics of this test's own, with two partitions."""
    topics.create(admin, names, Sizes(partitions=2))
    return names


@pytest.fixture
def make(broker: str, names: Topics, tmp_path: Path) -> Iterator[Make]:
    """Makes lines, with settings and a bootstrap of their own if given; what they said is shown if the test fails."""
    made: list[Line] = []

    def line(**settings: Any) -> Line:
        made.append(Line(settings.pop("bootstrap", broker), names, tmp_path, **settings))
        return made[-1]

    yield line
    for each in made:
        each.close()
