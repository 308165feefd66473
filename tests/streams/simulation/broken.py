"""The line, broken on purpose: each of these loses, repeats or changes verdicts, and a simulation must say so.

Each replaces one thing of the program; `patch` is pytest's `MonkeyPatch`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neardup.index.layered import Layered
from neardup.matching.takedown_and_expiry import Removed
from neardup.sketch.takedown_hashes import Takedown
from streams.errors import Unsettled
from streams.formats.message import Forget, Message, decode_entry, is_control
from streams.kafka.positions import Positions
from streams.pipeline import accounting, follow, matcher
from streams.pipeline.batch_fold import BatchFold
from streams.pipeline.follow import Batch
from streams.pipeline.matcher import Prepared
from streams.roles import match_start, match_start_checks, standby
from streams.roles.match_ports import ReportedMatcher, VerdictTransactions
from streams.state.checkpoint_manifest import Checkpoint, Manifest, StoredFile
from streams.state.checkpoint_store import CheckpointStore
from tests.streams.scripted import ScriptedWriter
from tests.streams.simulation import run

Broken = Callable[[pytest.MonkeyPatch], None]


def pages_that_come_again_are_judged_again(patch: pytest.MonkeyPatch) -> None:
    account = accounting.account
    patch.setattr(matcher, "account", lambda message, offset, known, **how: account(message, offset, {}, **how))


def gaps_are_passed_over(patch: pytest.MonkeyPatch) -> None:
    account = accounting.account

    def lenient(message: Message, offset: int, known: Any, **how: Any) -> Any:
        return account(message, offset, known, **{**how, "accept_gaps": lambda: True})

    patch.setattr(matcher, "account", lenient)


def a_page_of_each_message_is_lost(patch: pytest.MonkeyPatch) -> None:
    """The last one of a batch of pages that has several; its range still accounts for it."""
    pack = run.pack

    def forgetful(scheme: bytes, ranges: Any, places: Sequence[Any], sketches: Sequence[bytes], **how: Any) -> Any:
        kept = len(places) - (len(places) > 2)
        return pack(scheme, ranges, places[:kept], sketches[:kept], **how)

    patch.setattr(run, "pack", forgetful)


def pages_are_committed_before_the_log_has_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        ScriptedWriter, "acknowledged", property(lambda self: self.sent, lambda self, value: None), raising=False
    )


def a_place_in_another_topic_of_pages_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Positions, "_offset", lambda self, known: known.offset if known else None)


def a_partition_that_comes_again_is_committed_back(patch: pytest.MonkeyPatch) -> None:
    """No floors; what is due of a partition that went is committed, too."""

    def acknowledge(self: Positions, ranges: Any) -> None:
        self.due.update({span.partition: span.stop for span in ranges})

    patch.setattr(Positions, "acknowledge", acknowledge)
    patch.setattr(Positions, "drop", lambda self, partitions: [self._starts.pop(each, None) for each in partitions])


def the_index_is_written_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    prepare, apply = ReportedMatcher.prepare, ReportedMatcher.apply

    def hasty(self: ReportedMatcher, messages: Sequence[tuple[int, bytes]], *, emit: bool = True) -> Prepared:
        prepared = prepare(self, messages, emit=emit)
        apply(self, prepared)
        self.matcher._store.flush()
        return prepared

    patch.setattr(ReportedMatcher, "prepare", hasty)
    patch.setattr(ReportedMatcher, "apply", lambda self, prepared: None)


def the_committed_place_is_one_too_far(patch: pytest.MonkeyPatch) -> None:
    emit = VerdictTransactions.emit

    def further(self: VerdictTransactions, prepared: Prepared) -> None:
        emit(self, replace(prepared, next_offset=prepared.next_offset + 1))

    patch.setattr(VerdictTransactions, "emit", further)


def a_failed_transaction_is_repeated_by_its_producer(patch: pytest.MonkeyPatch) -> None:
    emit = VerdictTransactions.emit

    def twice(self: VerdictTransactions, prepared: Prepared) -> None:
        try:
            emit(self, prepared)
        except Unsettled:
            emit(self, prepared)

    patch.setattr(VerdictTransactions, "emit", twice)


def a_start_believes_the_index_alone(patch: pytest.MonkeyPatch) -> None:
    """Emits verdicts again whose index was not flushed."""
    resume_at = match_start_checks.resume_at

    def believing(found: match_start_checks.StartState, **how: Any) -> int:
        return min(found.store, resume_at(found, **how))

    patch.setattr(match_start, "resume_at", believing)


def another_log_is_taken_for_the_one_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(match_start_checks, "_check_log", lambda found: None)


def another_topic_of_verdicts_is_taken_for_the_one_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        match_start_checks, "_committed", lambda found, lost: found.committed.offset if found.committed else 0
    )


def an_expired_place_is_a_new_line(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(match_start_checks, "_recovered", lambda found, lost: 0)


def a_takedown_is_passed_over_where_its_verdicts_are_out(patch: pytest.MonkeyPatch) -> None:
    take_down = BatchFold.take_down

    def forgetful(self: BatchFold, takedown: Takedown, offset: int) -> Removed:
        return take_down(self, takedown, offset) if self._emit else Removed()

    patch.setattr(BatchFold, "take_down", forgetful)


def a_takedown_is_folded_before_the_pages_of_its_batch(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: BatchFold) -> Layered:
        pending, self._pending = self._pending, []
        index = layered(self)
        self._pending = pending
        return index

    layered = BatchFold._layered
    patch.setattr(BatchFold, "_layered", hasty)


def a_standby_folds_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    batches = standby.batches_before
    patch.setattr(standby, "batches_before", lambda log, upto, *given: batches(log, upto + 1, *given))


def a_standby_passes_takedowns_over(patch: pytest.MonkeyPatch) -> None:
    batches = standby.batches_before

    def forgetful(*given: Any) -> Iterator[Batch]:
        for batch in batches(*given):
            yield batch._replace(messages=[pair for pair in batch.messages if not _is_takedown(*pair)])

    patch.setattr(standby, "batches_before", forgetful)


def _is_takedown(offset: int, data: bytes) -> bool:
    return is_control(data) and isinstance(decode_entry(data, offset), Forget)


def control_records_end_no_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(follow, "_parts", lambda messages: [messages])


def a_damaged_checkpoint_is_restored(patch: pytest.MonkeyPatch) -> None:
    """Whatever its files hold."""

    def get(self: CheckpointStore, checkpoint: Checkpoint, file: StoredFile, target: Path) -> None:
        target.write_bytes(self._fs.cat_file(f"{self._root}/files/{file.digest}"))

    patch.setattr(CheckpointStore, "_get", get)


def checkpoints_outlive_takedowns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Manifest, "is_stale", lambda self, newest: False)


BROKEN: Sequence[Broken] = [
    pages_that_come_again_are_judged_again,
    gaps_are_passed_over,
    a_page_of_each_message_is_lost,
    pages_are_committed_before_the_log_has_them,
    a_place_in_another_topic_of_pages_is_believed,
    a_partition_that_comes_again_is_committed_back,
    the_index_is_written_before_the_commit,
    the_committed_place_is_one_too_far,
    a_failed_transaction_is_repeated_by_its_producer,
    a_start_believes_the_index_alone,
    another_log_is_taken_for_the_one_before,
    another_topic_of_verdicts_is_taken_for_the_one_before,
    an_expired_place_is_a_new_line,
    a_takedown_is_passed_over_where_its_verdicts_are_out,
    a_takedown_is_folded_before_the_pages_of_its_batch,
    a_standby_folds_what_is_not_committed,
    a_standby_passes_takedowns_over,
    control_records_end_no_batch,
    a_damaged_checkpoint_is_restored,
    checkpoints_outlive_takedowns,
]
