"""The views beside a topic of many verdicts: how fast they take them in, and how long each page takes.

    python tests/measure/bench/views.py [--verdicts 100000] [--out build/views.md]

A real broker with 4 partitions; verdicts are made up, of about 1 kB, of some thousand sites: nearly all in the topic
before the views start, the last ones at a given rate while pages are asked for. Prints Markdown.
"""

import argparse
import http.client
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[3]
# In front: some package installs a `tests` of its own.
sys.path[:0] = map(str, (ROOT, ROOT / "tests" / "kafka", ROOT / "tests" / "measure" / "bench"))

import orjson  # noqa: E402
from broker import kafka  # noqa: E402
from confluent_kafka import Producer  # noqa: E402
from stream import cpu_of, memory_of  # noqa: E402
from test_views import Worker  # noqa: E402

from neardup.decider import Decider  # noqa: E402
from streams.config.settings import Topics  # noqa: E402
from streams.kafka import Admin, Connection, topics  # noqa: E402
from streams.kafka.topics import Sizes  # noqa: E402

PARTITIONS = 4
#: Verdicts speak of pages of late: the last so many of them, and up to twice as many.
PAGES_SPOKEN_OF = 50_000
DECIDER = Decider(scheme="5" * 32)
ROUNDS = 30
#: What the views should keep up with, and what may be too much for them.
LIVE_RATES, LIVE_SECONDS = (1_000, 3_000), 10
WAIT_SECONDS_MAX = 3_600.0


def forget(entries: list[Any]) -> None:
    if len(entries) > 2 * PAGES_SPOKEN_OF:
        del entries[:PAGES_SPOKEN_OF]


def made_up(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(URL, verdict): two thirds of the URLs are new, four in ten duplicates, a few large sites and many small ones."""
    chance, clusters, urls = random.Random(7), [0], ["https://www.site0.example/0"]
    for number in range(1, count + 1):
        site = f"site{int(chance.paretovariate(0.7)) % 5_000}.example"
        known = chance.random() < 0.33
        url = chance.choice(urls) if known else f"https://www.{site}/some/path/of/usual/length/{number}.html"
        verdict: dict[str, Any] = {
            "version": 1, "verdict": "unique", "page_id": number << 3, "n": 0, "url": url, "site": site, "lang": "en",
            "fetched_at": 1_790_000_000_000 + number, "coordinates": {"source": "a" * 32, "partition": 0,
            "offset": number, "position": 0}, "scheme": DECIDER.scheme, "decider": DECIDER.digest, "log": "b" * 32,
            "title": "A title of a few usual words",
        }  # fmt: skip
        draw = chance.random()
        if known and draw < 0.7:
            verdict |= {"verdict": "unchanged", "standing": {"verdict": "unique", "cluster": chance.choice(clusters)}}
        elif draw < 0.02:
            verdict |= {"verdict": "rejected", "reason": f"HTTP status {chance.choice((403, 500, 503))}"}
        else:
            duplicate = draw < 0.45
            cluster = chance.choice(clusters) if duplicate else number << 3
            if not duplicate:
                clusters.append(cluster)
                forget(clusters)
            place = {"page_id": cluster, "url": chance.choice(urls), "fetched_at": 1_790_000_000_000,
                     "coordinates": verdict["coordinates"]}  # fmt: skip
            score = round(0.74 + 0.26 * chance.random(), 4) if duplicate else round(0.74 * chance.random(), 4)
            evidence = {"by": "tape", "b_similarity": 3, "c_similarity": 370, "tape_score": score, "content_score": 0.5,
                        "same_site": False, "tokens": [900, 1000], "gaps": [3, 2, 9], "keys": {"wide": 3, "head": 1},
                        "candidates": 5, "siblings": [0, 2]}  # fmt: skip
            verdict |= {"verdict": "near_duplicate" if duplicate else "unique", "cluster": cluster, "representative":
                        place, "cluster_size": 3, "canonical": place["url"], "revision": number,
                        "evidence": evidence if duplicate else {"nearest": {**evidence, **place}}}  # fmt: skip
        if not known:
            urls.append(url)
            forget(urls)
        yield url, verdict


def publish(producer: Producer, topic: str, verdicts: Iterator[tuple[str, dict[str, Any]]], count: int) -> list[str]:
    urls = []
    for _ in range(count):
        url, verdict = next(verdicts)
        while True:
            try:
                producer.produce(topic, orjson.dumps(verdict), url.encode())
                break
            except BufferError:
                producer.poll(0.1)
        urls.append(url)
        producer.poll(0)
    return urls


def timed(worker: Worker, path: str) -> tuple[float, float]:
    """Milliseconds of a page: the median, and the slowest but one of ten."""
    seconds = []
    for _ in range(ROUNDS):
        connection = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=60)
        began = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.monotonic() - began)
        connection.close()
        assert answer.status == 200, path
    return statistics.median(seconds) * 1000, sorted(seconds)[int(0.9 * ROUNDS)] * 1000


def wait_for(worker: Worker, count: int) -> float:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while worker("/overview.json")["verdicts"] < count:
        assert time.monotonic() < until, "the views do not get there"
        time.sleep(0.2)
    return time.monotonic()


def live(
    worker: Worker, producer: Producer, topic: str, verdicts: Iterator[tuple[str, dict[str, Any]]], rate: int, past: int
) -> str:
    """Measures verdicts at a rate while the overview is requested. past: verdicts before. None is dropped."""
    count = rate * LIVE_SECONDS
    cpu, began, worst = cpu_of(worker.process.pid), time.monotonic(), 0.0
    for second in range(LIVE_SECONDS):
        publish(producer, topic, verdicts, rate)
        producer.flush(60)
        asked = time.monotonic()
        behind = worker("/overview.json")["behind"]
        worst = max(worst, time.monotonic() - asked)
        time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    offered = count / (time.monotonic() - began)
    late = wait_for(worker, past + count) - began - LIVE_SECONDS
    spent = (cpu_of(worker.process.pid) - cpu) / count
    return (
        f"| at {offered:,.0f} verdicts/s | {behind:,} behind in the last second, level {max(0.0, late):.1f} s after "
        f"the last, {spent * 1e6:,.0f} us of processor time each; the slowest overview took {worst * 1000:.0f} ms |"
    )


def measure(bootstrap: str, folder: Path, count: int) -> Iterator[str]:
    names = Topics("v.pages", "v.rejected", "v.sketches", "v.verdicts")
    topics.create(Admin(Connection(bootstrap)), names, Sizes(partitions=PARTITIONS))
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "zstd", "linger.ms": 20})
    verdicts = made_up(count + sum(LIVE_RATES) * LIVE_SECONDS)
    urls = publish(producer, names.verdicts, verdicts, count)
    producer.flush(60)
    worker = Worker(bootstrap, names, folder / "tables")
    try:
        cpu, began = cpu_of(worker.process.pid), time.monotonic()
        seconds = wait_for(worker, count) - began
        spent = cpu_of(worker.process.pid) - cpu
        each = f"{spent / count * 1e6:,.0f} us of processor time each"
        yield f"| taken in, one after another | {count / seconds:,.0f}/s, {each} |"
        paths = {
            "overview": "/",
            "a URL": f"/url?url={quote(urls[count // 2])}",
            "a cluster": f"/cluster?id={worker('/url.json?url=' + quote(urls[0]))['cluster'] or 8}",
            "the largest site": "/site?name=site1.example",
            "all sites": "/sites",
            "closest calls": "/close",
            "rejected, of one reason": f"/rejects?reason={quote('HTTP status 503')}",
            "health": "/health",
        }
        for name, path in paths.items():
            middle, late = timed(worker, path)
            yield f"| {name} | {middle:.0f} ms, 9 of 10 within {late:.0f} ms |"
        applied = count
        for rate in LIVE_RATES:
            yield live(worker, producer, names.verdicts, verdicts, rate, applied)
            applied += rate * LIVE_SECONDS
        yield f"| memory | {memory_of(worker.process.pid):,.0f} MB |"
    finally:
        worker.end(15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    machine = f"{given.verdicts:,} verdicts, {os.cpu_count()} shared cores, {PARTITIONS} partitions"
    lines = [machine, "", "| what | |", "|---|---|"]
    with (
        tempfile.TemporaryDirectory(prefix="neardup-views-", ignore_cleanup_errors=True) as name,
        kafka.shared(Path(name) / "kafka") as bootstrap,
    ):
        for line in measure(bootstrap, Path(name), given.verdicts):
            lines.append(line)
            print(line, flush=True)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
