"""The figures of `neardup plan`, each with the command that measured it.

They were measured on a shared virtual machine of two cores, so processor times are some tenths higher than on a quiet
machine, which makes a plan cautious. To use figures of your own machines, change them here, and update the guide with
`python deploy/guide.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_STREAM = "python tests/measure/bench/stream.py --pages 3000 --rounds 2"
_SHARDED = "python -m tests.measure.bench.sharded --pages 20000 --shards 1,2,4,8 --epoch 4"
_GROWTH = "python -m tests.measure.bench --only growth --sizes 10000,100000,1000000"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. value: for a mean page, in `unit`. meaning: in words. command: the command that measured it."""

    value: float
    unit: str
    meaning: str
    command: str


PAGE_BYTES = Figure(52_000, "bytes", "body of the pages that the stream was measured with", _STREAM)
SKETCH_US = Figure(420, "us", "processor of a sketcher for such a page, Kafka's client included", _STREAM)
BROKER_US = Figure(700, "us", "processor of a broker for such a page, all topics, in and out", _STREAM)
SKETCHER_MEMORY = Figure(231_000_000, "bytes", "of a sketcher that is not behind, with one thread", _STREAM)
PAGES_RATIO = Figure(0.32, "", "of a page's bytes that Kafka keeps, in zstd", _STREAM)
SKETCHES_BYTES = Figure(1_303, "bytes", "of a sketch in the log, in zstd", _STREAM)
VERDICTS_BYTES = Figure(61, "bytes", "of a verdict in its topic, in zstd", _STREAM)
INDEX_BYTES = Figure(2_000, "bytes", "of the index on disk, a page", _GROWTH)
INDEX_MEMORY = Figure(23, "bytes", "of filters and indexes in memory, a page", _GROWTH)
MATCHER_MEMORY = Figure(483_000_000, "bytes", "of a matcher, without those", _GROWTH)
MATCH_RATE = Figure(
    11_600, "pages/s", "that one matcher took into an index of a million pages, four cores", "make bench"
)
MATCH_STREAM_US = Figure(150, "us", "processor of the matcher for a page beyond judging: Kafka, transactions", _STREAM)
FOLD_RATE = Figure(24_900, "pages/s", "folded again from the log, four cores", "make bench")

#: Processor microseconds of judging and writing a further page, by pages in the index.
MATCH_US: tuple[tuple[int, float], ...] = ((10_000, 77), (100_000, 97), (1_000_000, 145))
MATCH_US_OF: Mapping[str, str] = {
    "meaning": "processor of judging and writing a page, by pages in the index",
    "command": _GROWTH,
}

JUDGE_SHARE = Figure(0.85, "", "of the time in which one matcher judges a page, for a judge of shards", _SHARDED)
CANDIDATES_BYTES = Figure(29, "bytes", "of the answers of all shards to a page, uncompressed", _SHARDED)
EFFECTS_BYTES = Figure(75, "bytes", "of a page's effects on the shards, uncompressed", _SHARDED)
#: Time of each shard for a page, against that in which one matcher judges it, by number of shards.
SHARD_SHARE: tuple[tuple[int, float], ...] = ((1, 0.53), (2, 0.35), (4, 0.26), (8, 0.21))
SHARD_SHARE_OF: Mapping[str, str] = {
    "meaning": "time of each shard for a page, against that of one matcher, by number of shards",
    "command": _SHARDED,
}


def figures() -> dict[str, Figure]:
    """All figures, by their names in this module."""
    return {name: value for name, value in globals().items() if isinstance(value, Figure)}
