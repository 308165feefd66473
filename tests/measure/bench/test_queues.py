"""The simulated queues agree with what is known of them."""

import numpy as np
import pytest

from neardup.sharded.epochs import Sharding
from tests.measure.bench.queues import Service, arrivals, latencies

pytestmark = pytest.mark.whole


def test_a_message_alone_takes_its_services_and_hops() -> None:
    service = Service(0.03, 0.01, hop_s=0.002, spread=1e-3)
    found = latencies(np.array([0.0, 10.0, 20.0]), Sharding(4, 2), service)
    assert found == pytest.approx(0.044, rel=0.02)


def test_one_server_with_random_arrivals_waits_as_long_as_pollaczek_and_khinchine_say() -> None:
    service = Service(0.01, 1e-9, hop_s=0.0, spread=1.0)
    load = 0.5
    found = latencies(arrivals(load / 0.01, 1, 4000), Sharding(1, 1_000_000), service)
    assert found.mean() == pytest.approx(0.01 / (1 - load), rel=0.1)  # M/M/1


def test_short_epochs_hold_the_shards_up_where_the_judge_is_far() -> None:
    service, some = Service(0.001, 0.001, hop_s=0.05), arrivals(200, 1, 60)
    means = [latencies(some, Sharding(4, epoch), service).mean() for epoch in (1, 4, 64)]
    assert means[0] > 10 * means[2]
    assert means[0] > means[1] > means[2]


def test_after_an_outage_the_backlog_goes_at_the_rate_that_is_left() -> None:
    service, some = Service(0.005, 0.001), arrivals(100, 1, 400)
    late = latencies(some, Sharding(2, 16), service, outage=(100.0, 130.0))
    behind = some[late > 0.5]
    # 30 s of a load of one half: as long again, and the outage itself.
    assert behind.min() == pytest.approx(100, abs=3)
    assert behind.max() == pytest.approx(160, abs=6)
