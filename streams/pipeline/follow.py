"""The loop over the sketch log: poll, fold, emit, write, flush. Whatever folds a log drives this one.

| driver | log | verdicts | flush |
|---|---|---|---|
| a matcher on Kafka (`roles.match_role`) | its topic | one transaction, with the next offset | by time |
| its standby (`roles.standby`) | its topic, up to the committed offset | none | none |
| a scan (`scan.scan`) | each message when it has been appended | segments | by number of messages |
| an opened state directory (`state.scan_directory`) | what its index lacks | segments | by number of messages |
| the library (`state.scan_directory`) | the pages of one call | log and segments | the caller's |
| a replay (`verdicts.replay`), `explain` | from its start or a checkpoint | the caller's | none |

The library's log has one batch. It is appended in step 3, so that pages which cannot be judged leave nothing in it.
A backfill runs a matcher. `neardup ask` and `query` of the library fold no log: `Matcher.query` judges one page.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from streams.formats.message import is_control
from streams.pipeline.matcher import FOLD_BYTES_MAX, Prepared

#: Most messages that `batched` puts together. No verdict depends on it.
BATCH_MESSAGES_MAX = 16


class Batch(NamedTuple):
    """Messages that were polled together, as (offset, bytes), in the log's order.

    messages: none if nothing came within the poll's wait.
    emit: False if the verdicts of the messages are committed, or not wanted.
    """

    messages: Sequence[tuple[int, bytes]]
    emit: bool = True


class Folding(Protocol):
    """A matcher: see `Matcher.prepare` and `Matcher.apply`."""

    def prepare(self, messages: Sequence[tuple[int, bytes]], *, emit: bool = True) -> Prepared: ...
    def apply(self, prepared: Prepared) -> None: ...


def follow(
    log: Iterable[Batch],
    matcher: Folding,
    emit: Callable[[Prepared], None] = lambda prepared: None,
    flush: Callable[[int], None] = lambda messages: None,
) -> Iterator[Prepared | None]:
    """Fold a log into an index and emit its verdicts, batch by batch, in five steps.

    A crash after step 1 or 2 leaves nothing behind: the next start polls and folds the messages again, with the same
    verdicts. After 3 the verdicts are out, and the index lacks their messages: the next start folds these without
    emitting (Kafka), or cuts the verdicts and emits them again (segments). After 4 the same holds for what the store
    has not flushed. After 5 nothing is missing.

    Step 4 never comes before step 3: after a crash, a page would match itself. If step 3 fails, its outcome may be
    unknown. So a loop that has raised is over; the next start finds out what was emitted.

    Args:
        log: batches of messages, from the index's next offset on. The loop ends with it.
        matcher: folds messages into the index.
        emit: makes the verdicts of a batch durable, if the batch emits.
        flush: makes the index durable when it is due. It is called in each round, with the number of messages.

    Yields:
        What was folded in a round, after it was written; None for a round without messages. It holds all rows of the
        batch, tens of MB: a driver of large batches drops it before the next round.

    Raises:
        NeardupError: the errors of `Matcher.prepare`, and those of the ports.
    """
    prepared: Prepared | None = None
    for batch in log:  # Step 1. Poll.
        for messages in _parts(batch.messages):
            if messages:
                # Step 2. Fold: a pure function of the messages and the index.
                prepared = matcher.prepare(messages, emit=batch.emit)
                # Step 3. Emit the verdicts.
                if batch.emit:
                    emit(prepared)
                # Step 4. Write the index and its next offset, in one atomic batch.
                matcher.apply(prepared)
            # Step 5. Flush the index, if it is due.
            flush(len(messages))
            yield prepared
            prepared = None


def _parts(messages: Sequence[tuple[int, bytes]]) -> Iterator[Sequence[tuple[int, bytes]]]:
    """Cut messages behind each control record, which may change the decider. No messages are one part."""
    first = 0
    for number, (_, data) in enumerate(messages, 1):
        if is_control(data):
            yield messages[first:number]
            first = number
    if first < len(messages) or not messages:
        yield messages[first:]


def batched(messages: Iterable[tuple[int, bytes, bool]]) -> Iterator[Batch]:
    """Put (offset, bytes, emit) of messages together: those that follow each other and have one `emit`.

    A batch has at most BATCH_MESSAGES_MAX messages and FOLD_BYTES_MAX bytes, or one message.
    """
    held: list[tuple[int, bytes]] = []
    size, emits = 0, False
    for offset, data, emit in messages:
        if held and (emit != emits or len(held) >= BATCH_MESSAGES_MAX or size + len(data) > FOLD_BYTES_MAX):
            yield Batch(held, emits)
            held, size = [], 0
        held.append((offset, data))
        size, emits = size + len(data), emit
    if held:
        yield Batch(held, emits)
