"""What `neardup plan` says: multiplied out by hand, and refused where the question makes no sense."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from streams.config import plan_figures
from streams.config.plan import Crawl, match_us, plan, size_of, time_of
from streams.config.settings import Settings
from streams.kafka.topics import Sizes
from tests.streams.shell import Shell

REPOSITORY = Path(__file__).parents[3]
DAY_MS = 24 * 3600 * 1000
ASKED = Crawl(
    8_640_000,
    retention=10,
    page_kb=52,
    peak=2,
    replicas=3,
    pages_retention=7,
    sketches_retention=30,
    verdicts_retention=30,
)


def test_the_arithmetic_by_hand() -> None:
    found = plan(ASKED)
    assert found.index_pages == 86_400_000
    assert (found.pages_per_second, found.peak_pages_per_second) == (100, 200)
    assert found.peak_bytes_per_second == 200 * 52_000
    assert found.index_bytes == pytest.approx(86.4e6 * plan_figures.INDEX_BYTES.value)
    assert found.claim_bytes == 2 * found.index_bytes
    assert found.checkpoints_bytes == Settings.checkpoints_kept * found.index_bytes
    assert found.kafka_sketches_bytes == pytest.approx(8.64e6 * 30 * 3 * plan_figures.SKETCHES_BYTES.value)
    assert found.kafka_bytes == pytest.approx(
        found.kafka_pages_bytes + found.kafka_sketches_bytes + found.kafka_verdicts_bytes, abs=2
    )
    assert found.sketcher_cores == pytest.approx(200 * plan_figures.SKETCH_US.value / 1e6 / 0.7)
    assert found.fold_all_seconds == pytest.approx(86.4e6 / plan_figures.FOLD_RATE.value)
    assert found.checkpoint_seconds == Settings.checkpoint_messages * 512 / 100


def test_more_asks_for_more_of_what_it_is_made_of_and_of_nothing_else() -> None:
    base = plan(ASKED)
    later, larger, busier = (
        plan(replace(ASKED, retention=20)),
        plan(replace(ASKED, page_kb=104)),
        plan(replace(ASKED, peak=4)),
    )
    assert later.index_bytes == 2 * base.index_bytes
    assert later.matcher_memory_bytes > base.matcher_memory_bytes
    assert later.kafka_bytes == base.kafka_bytes
    assert larger.sketcher_cores == pytest.approx(2 * base.sketcher_cores)
    assert larger.kafka_pages_bytes == pytest.approx(2 * base.kafka_pages_bytes, rel=1e-6)
    assert (larger.index_bytes, larger.matcher_cores) == (base.index_bytes, base.matcher_cores)
    assert busier.matcher_cores == pytest.approx(2 * base.matcher_cores)
    assert busier.kafka_bytes == base.kafka_bytes


def test_the_matcher_goes_through_its_measured_points_and_on() -> None:
    own = plan_figures.MATCH_STREAM_US.value
    for pages, us in plan_figures.MATCH_US:
        assert match_us(pages) == pytest.approx(own + us)
    times = [match_us(10**power) for power in range(2, 12)]
    assert times == sorted(times)
    assert times[-1] > own + plan_figures.MATCH_US[-1][1]


def test_shards_split_the_work_and_read_the_log_once_each() -> None:
    one, four, eight, many = (plan(replace(ASKED, shards=shards)) for shards in (0, 4, 8, 16))
    judging = match_us(one.index_pages) - plan_figures.MATCH_STREAM_US.value
    per_core = one.peak_pages_per_second / 1e6 / 0.7
    shard_us = plan_figures.MATCH_STREAM_US.value + dict(plan_figures.SHARD_SHARE)[4] * judging
    spared_us = (1 - plan_figures.JUDGE_SHARE.value) * judging
    assert four.shard_cores == pytest.approx(per_core * shard_us)
    assert one.matcher_cores - four.matcher_cores == pytest.approx(per_core * spared_us)
    assert one.shard_cores == 0
    assert plan(replace(ASKED, shards=5)).shard_cores == four.shard_cores > eight.shard_cores == many.shard_cores
    assert eight.log_read_bytes_per_second == pytest.approx(9 * one.log_read_bytes_per_second)
    assert eight.kafka_bytes - one.kafka_bytes == pytest.approx(8_640_000 * 3 * 30 * (29 + 75))
    assert eight.matcher_memory_bytes - one.matcher_memory_bytes == 8 * plan_figures.MATCHER_MEMORY.value
    assert "More than 8 shards were not measured" in " ".join(many.notes)
    assert "More than 8 shards" not in " ".join(eight.notes)


def test_what_is_drawn_out_too_fast_or_lost_for_good_is_reported() -> None:
    def notes(crawl: Crawl) -> str:
        return " ".join(plan(crawl).notes)

    small = replace(ASKED, pages_per_day=100_000, retention=5, checkpoint_messages=100)
    assert notes(small) == ""
    assert "drawn on" in notes(replace(ASKED, retention=1000))
    assert "faster than" in notes(replace(ASKED, pages_per_day=10**9))
    assert "more than half" in notes(replace(ASKED, peak=80))
    assert "without a checkpoint" in notes(replace(small, retention=31))
    assert "replicas" in notes(replace(small, replicas=2))
    few = re.search(r"checkpoint_messages=(\d+)", notes(replace(small, checkpoint_messages=5000)))
    assert few is not None
    assert "checkpoint_messages" not in notes(replace(small, checkpoint_messages=int(few[1])))


def test_amounts_are_written_as_a_person_would() -> None:
    written = [size_of(value) for value in (0, 999, 1_500, 23_000, 234_000, 5e6, 2e11, 3.4e12, 2e15)]
    assert written == ["0 B", "999 B", "1.5 kB", "23 kB", "234 kB", "5 MB", "200 GB", "3.4 TB", "2000 TB"]
    assert [time_of(value) for value in (0.2, 90, 150, 7_200, 90_000, 1e6)] == [
        *("1 s", "90 s", "2.5 min", "2 h", "25 h", "12 days"),
    ]


def test_topics_are_kept_as_they_are_made(shell: Shell) -> None:
    result = json.loads(shell("plan", "--pages-per-day", "1M", "--retention", "30d", "--json").out)
    asked, sizes = result["asked"], Sizes()
    for name in ("pages", "sketches", "verdicts"):
        assert asked[f"{name}_retention"] * DAY_MS == getattr(sizes, f"{name}_retention_ms")
    assert (asked["pages_per_day"], asked["retention"]) == (1_000_000, 30)
    assert result["plan"]["index_pages"] == 30_000_000
    for name, figure in result["measured"].items():
        assert figure["unit"] is not None, name
        assert figure["meaning"], name
        assert figure["command"], name


def test_each_figure_names_a_command_that_there_is() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    for name, command in {
        **{name: figure.command for name, figure in plan_figures.figures().items()},
        "match_us": plan_figures.MATCH_US_OF["command"],
        "shard_share": plan_figures.SHARD_SHARE_OF["command"],
    }.items():
        first, second, *_ = command.split()
        if first == "make":
            assert second in targets, name
        elif second == "-m":
            module = REPOSITORY / command.split()[2].replace(".", "/")
            assert (module / "__main__.py").is_file() or module.with_suffix(".py").is_file(), name
        else:
            assert (REPOSITORY / second).is_file(), name


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "--pages-per-day"),
        (("--pages-per-day", "1M"), "--retention"),
        (("--pages-per-day", "many", "--retention", "1y"), "a number from 1 to 100G"),
        (("--pages-per-day", "0", "--retention", "1y"), "a number from 1 to 100G"),
        (("--pages-per-day", "1e400", "--retention", "1y"), "a number from 1 to 100G"),
        (("--pages-per-day", "101G", "--retention", "1y"), "a number from 1 to 100G"),
        (("--pages-per-day", "1M", "--retention", "90"), "a time up to 100y"),
        (("--pages-per-day", "1M", "--retention", "0d"), "a time up to 100y"),
        (("--pages-per-day", "1M", "--retention", "101y"), "a time up to 100y"),
        (("--pages-per-day", "1M", "--retention", "1y", "--peak", "0.5"), "--peak"),
        (("--pages-per-day", "1M", "--retention", "1y", "--page-kb", "nan"), "--page-kb"),
        (("--pages-per-day", "1M", "--retention", "1y", "--sketches-retention", "-1d"), "--sketches-retention"),
    ],
)
def test_a_question_without_sense_is_wrong_usage(shell: Shell, arguments: tuple[str, ...], expected: str) -> None:
    ended = shell("plan", *arguments)
    assert ended.code == 2
    assert expected in ended.err
    assert ended.out == ""


def test_it_is_printed_for_people_too(shell: Shell) -> None:
    ended = shell("plan", "--pages-per-day", "10k", "--retention", "100d")
    assert ended.code == 0
    assert re.search(r"pages in the index +1,000,000", ended.out)
