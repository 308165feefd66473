"""Simulates the queues of a log, its shards and its judge, with measured service times.

    python -m tests.measure.bench.queues --judge-us 70 --shard-us 20 [--shards 16] [--epoch 16] [--rate 10000 ...]

A shard answers a message once the judge is done with the messages before `Sharding.stable_to`. The judge takes a
message once all shards have answered it. Each step is the recurrence of a queue with one server (Lindley 1952).
Service times are drawn from a gamma distribution around their mean.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from neardup.sharded.epochs import Sharding

#: After an outage messages are level again if they are no later than this. Seconds.
_LEVEL_S = 0.01


@dataclass(frozen=True)
class Service:
    """Times of one message. judge_s, shard_s: seconds of service. hop_s: from one process to the next. spread:
    coefficient of variation of service.
    """

    judge_s: float
    shard_s: float
    hop_s: float = 0.005
    spread: float = 0.3


def latencies(
    arrivals: np.ndarray,
    sharding: Sharding,
    service: Service,
    *,
    seed: int = 1,
    outage: tuple[float, float] = (0.0, 0.0),
) -> np.ndarray:
    """float64[messages]: seconds from a message's arrival in the log to its verdicts.

    outage: from when to when one shard is away, seconds.
    """
    random = np.random.default_rng(seed)
    shape = 1 / service.spread**2
    noise = random.gamma(shape, 1 / shape, size=(len(arrivals), sharding.shards + 1))
    shard_free, judge_free = np.zeros(sharding.shards), 0.0
    judged, out = np.zeros(len(arrivals)), np.zeros(len(arrivals))
    for m, arrived in enumerate(arrivals.tolist()):
        stable_to = sharding.stable_to(m)
        known = judged[stable_to - 1] + service.hop_s if stable_to else 0.0
        begin = np.maximum(shard_free, max(arrived, known))
        if outage[0] <= begin[0] < outage[1]:
            begin[0] = outage[1]
        shard_free = begin + service.shard_s * noise[m, 1:]
        judge_free = max(judge_free, float(shard_free.max()) + service.hop_s) + service.judge_s * noise[m, 0]
        judged[m], out[m] = judge_free, judge_free + service.hop_s - arrived
    return out


def arrivals(rate: float, message_pages: int, seconds: float, seed: int = 2) -> np.ndarray:
    """float64[messages]: times at which messages enter the log, at random (Poisson). rate: pages per second."""
    count = max(1, int(rate * seconds / message_pages))
    return np.random.default_rng(seed).exponential(message_pages / rate, count).cumsum()


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.queues", description=__doc__)
    parser.add_argument("--judge-us", type=float, required=True, help="processor time of the judge for a page")
    parser.add_argument("--shard-us", type=float, required=True, help="processor time of one shard for a page")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--epoch", type=int, default=16)
    parser.add_argument("--message-pages", type=int, default=512)
    parser.add_argument("--rate", type=float, nargs="+", default=[1000.0, 5000.0, 10000.0], help="pages per second")
    parser.add_argument("--outage", type=float, default=60.0, help="seconds for which one shard is away")
    asked = parser.parse_args()
    pages, sharding = asked.message_pages, Sharding(asked.shards, asked.epoch)
    service = Service(asked.judge_us * pages / 1e6, asked.shard_us * pages / 1e6)
    print(f"the slowest role carries {1e6 / max(asked.judge_us, asked.shard_us):,.0f} pages/s")
    for rate in asked.rate:
        some = arrivals(rate, pages, 1800)
        found = latencies(some, sharding, service)
        late = latencies(some, sharding, service, outage=(600.0, 600.0 + asked.outage))
        level = some[late > found + _LEVEL_S].max(initial=600.0) - 600  # the same arrivals and services
        print(
            f"{rate:,.0f} pages/s: p50 {1e3 * np.median(found):.0f} ms, p99 {1e3 * np.quantile(found, 0.99):.0f} ms; "
            f"one shard away for {asked.outage:.0f} s: level again after {level:.0f} s"
        )


if __name__ == "__main__":
    main()
