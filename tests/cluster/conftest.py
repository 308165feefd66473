"""Three brokers, replication 3, two of them needed for a write. For minutes, so on demand: `make test-cluster`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_KAFKA_TESTS = str(Path(__file__).resolve().parents[1] / "kafka")
if _KAFKA_TESTS not in sys.path:
    sys.path.insert(0, _KAFKA_TESTS)

from broker import kafka  # noqa: E402


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A `Cluster` of three nodes for all tests, which leave it whole."""
    try:
        with kafka.Cluster(tmp_path_factory.mktemp("kafka"), nodes=3) as cluster:
            yield cluster
    except kafka.BrokerFailed as error:
        pytest.fail(str(error), pytrace=False)
