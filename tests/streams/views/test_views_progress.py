"""Nothing behind a verdict that was left out is taken in, or committed, before it was read anew."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("faust", reason="faust-streaming is not installed")

import faust
from faust.types import TP

from streams.views.driver import SCHEME, CommittedConsumer, PartitionProgress

A, B = TP("verdicts", 0), TP("verdicts", 1)


def verdict(place: TP, offset: int, generation: int) -> Any:
    return SimpleNamespace(topic=place.topic, partition=place.partition, offset=offset, generation_id=generation)


def test_verdicts_behind_a_left_out_one_wait_until_it_is_read_again() -> None:
    progress = PartitionProgress()
    assert progress.accepts(verdict(A, 5, 1), {A, B}, 1)
    progress.applied(A, 1, 6)
    assert not progress.accepts(verdict(A, 6, 1), {B}, 1)  # its partition is being reassigned
    assert progress.accepts(verdict(B, 9, 1), {B}, 1)
    assert progress.waiting(A, 1) == 6
    # It comes back, and the group's new generation is not known here yet.
    assert not progress.accepts(verdict(A, 7, 1), {A, B}, 1)
    assert progress.ends(1) == {A: 6}
    # Known now: what was read before is left out, what is read anew comes in order.
    assert not progress.accepts(verdict(A, 8, 1), {A, B}, 2)
    assert progress.waiting(A, 2) is None
    assert progress.ends(2) == {}
    assert [progress.accepts(verdict(A, offset, 2), {A, B}, 2) for offset in (6, 7, 8)] == [True] * 3
    progress.applied(A, 2, 9)
    assert progress.ends(2) == {A: 9}


def test_batch_of_a_revoked_partition_is_taken_from_its_first_verdict() -> None:
    progress = PartitionProgress()
    assert progress.accepts(verdict(A, 3, 4), {A}, 4)
    progress.skipped(A, 4, 3)
    assert not progress.accepts(verdict(A, 4, 4), {A}, 4)
    assert progress.waiting(A, 4) == 3
    assert progress.ends(4) == {}
    assert progress.accepts(verdict(A, 3, 5), {A}, 5)


def test_nothing_is_fetched_from_a_partition_between_its_assignment_and_the_flow_of_its_verdicts() -> None:
    async def active() -> list[set[TP]]:
        app = faust.App("views", broker=f"{SCHEME}://127.0.0.1:1", store="memory://")
        app.finalize()
        consumer, seen = app.consumer, []
        assert isinstance(consumer, CommittedConsumer)

        def see(*_: Any) -> None:
            seen.append(set(consumer._get_active_partitions()))

        async def assigned(*_: Any) -> None:
            see()

        consumer._on_partitions_assigned = assigned
        await consumer.on_partitions_assigned({A, B}, 1)
        consumer.resume_partitions({A})
        app.flow_control.resume()  # clears the queues of fetched verdicts
        see()
        consumer.resume_flow()
        see()
        consumer.resume_partitions({B})
        consumer.pause_partitions({A, B})  # the group has moved them before the flow
        consumer.resume_flow()
        see()
        return seen

    assert asyncio.run(active()) == [set(), set(), {A}, set()]
