"""A sketcher for which no partition is left is ready all the same: it stands by."""

import pytest
from broker import eventually, kafka
from line import Make
from roles import readiness

pytestmark = pytest.mark.whole


def test_sketcher_without_a_partition_is_ready(make: Make) -> None:
    """An upgrade starts a new one before it stops an old one, which holds its partitions until then."""
    line = make(partitions=1)
    ports = kafka.free_ports(2)
    first = line.start("sketch", settings={"metrics_port": ports[0]})
    eventually(lambda: readiness("sketch", ports[0]) == "reads 1 partitions", "the first has it")
    line.start("sketch", settings={"metrics_port": ports[1]})
    eventually(
        lambda: readiness("sketch", ports[1]) == "stands by: all partitions are read by others", "the second stands by"
    )
    assert readiness("sketch", ports[0]) == "reads 1 partitions"
    first.stop()
    eventually(lambda: readiness("sketch", ports[1]) == "reads 1 partitions", "it takes over")
