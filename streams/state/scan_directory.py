"""The state directory of a scan, and of the library (`streams.library`).

Besides the files of every state directory (`streams.state.directory`; the index may be deleted, and is then folded from
the log):

    log/            the sketch log, `streams.state.segments`: all else can be rebuilt from it
    verdicts/       the verdicts: one frame per message of the log, at the same offset
    sources/        one file per source: path, digest, options, finished or not

Opening recovers from a crash: it cuts torn tails and the verdicts of messages that the store does not have, and folds
the rest of the log.
"""

import json
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.column_families import Store
from neardup.index.memory import MemoryStore
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.scheme import Scheme
from neardup.sketch.takedown_hashes import Takedown
from streams.files.sources import LocalSource, SourceRecord, digest_of
from streams.formats.message import (
    MANY_SOURCES,
    Forget,
    NewDecider,
    encode_control,
    encode_verdicts,
)
from streams.pipeline.control_records import decider_changes_in, describe_change, incompatibility
from streams.pipeline.folded_takedowns import FoldedTakedown, takedowns_of
from streams.pipeline.follow import Batch, batched, follow
from streams.pipeline.matcher import Matcher, Prepared, folded_to
from streams.process.disk import state_errors
from streams.state.directory import Directory, Run
from streams.state.scan_reader import ScanReader, read_sources
from streams.state.segments import SegmentLog
from streams.state.view_tables import delete_tables

#: Messages between two flushes of the store: at most so many are folded again after a crash.
FLUSH_MESSAGES = 64


class VerdictLog:
    """The log of verdicts: one frame for each message of the sketch log, at the same offset.

    listener: called with (source, JSON lines) of each new frame.
    """

    def __init__(self, log: SegmentLog) -> None:
        self.log = log
        self.listener: Callable[[bytes, bytes], None] | None = None

    def emit(self, prepared: Prepared) -> None:
        """Append the frames of the messages that were folded. They are durable after the log's `sync`."""
        first = self.log.end()
        if prepared.next_offset == first + 1:
            self._append(prepared.verdicts)
            return
        verdicts = prepared.verdicts.by_message()
        for offset in range(first, prepared.next_offset):
            self._append(verdicts.pop(offset, BatchVerdicts()))
        assert not verdicts, "a message has one frame"

    def _append(self, verdicts: BatchVerdicts) -> None:
        sources, lines = verdicts.sources(), verdicts.text()
        if verdicts and not sources:  # of a takedown or a sweep
            sources = {verdicts[0].coordinates.source}
        source = bytes.fromhex(sources.pop()) if len(sources) == 1 else MANY_SOURCES
        self.log.append(encode_verdicts(source, lines))
        if self.listener is not None:
            self.listener(source, lines)


class ScanDirectory(ScanReader):
    """One open state directory. Use `ScanDirectory.open`; close it, or use it as a context manager.

    messages: repairs made by opening, for the operator.
    """

    _directory: Directory
    log: SegmentLog
    matcher: Matcher

    def __init__(self, path: Path, *, in_memory: bool) -> None:
        super().__init__()
        self.path = path
        self.messages: list[str] = []
        self.sources: dict[str, SourceRecord] = {}
        self._in_memory = in_memory
        self._unflushed = 0  # messages since the last flush
        self._held = ExitStack()

    @classmethod
    def open(
        cls,
        path: Path | None,
        *,
        scheme: Scheme | None = None,
        decider: Callable[[Scheme], Decider] | None = None,
        new_decider: bool = False,
    ) -> "ScanDirectory":
        """Opens the directory `path`, which is created if it is missing; with None, a state in memory.

        Args:
            path: the state directory; None: a state in memory.
            scheme: parameters of the sketches; by default the scheme of the directory, or a new one with a random seed.
            decider: function that makes the decider for the scheme; by default the decider of the directory, or the
                default rule.
            new_decider: if the directory has another decider, this one decides from here on.

        Raises StateError if the directory is in use, cannot be written, belongs to a matcher on Kafka, or was made with
        another scheme or decider; CorruptRecord if its log is damaged.
        """
        if path is None:
            path = Path(tempfile.mkdtemp(prefix="neardup-"))
            state = cls(path, in_memory=True)
            state._held.callback(shutil.rmtree, path, ignore_errors=True)
        else:
            state = cls(path.absolute(), in_memory=False)
        try:
            state._directory = Directory(state.path, state._held, Run.SCAN)
            state._load(scheme, decider)
            state._recover()
            if decider is not None:
                state._decide_by(decider(state.scheme), new_decider)
        except BaseException:
            state.close()
            raise
        return state

    @property
    def decider(self) -> Decider:
        """The current decider."""
        return self.matcher.decider

    def enlist(self, source: LocalSource, *, again: bool = False) -> SourceRecord:
        """Record the source, and return its record with the id of its pages.

        A finished source keeps its record. With `again`, or if all its pages were rejected, it gets a new run and a new
        id. The pages of each run have the same URLs. Raises OSError for a file that cannot be read.
        """
        found = source.record
        runs = [known for known in self.sources.values() if known.content == found.content]
        if not runs:  # ids of a file that belong to none may do so without being asked
            other = source.also_known_as
            runs = [known for known in self.sources.values() if known.content == other and known.ids_across_files]
        latest = max(runs, key=lambda known: known.run, default=None)
        if latest is None:
            source.settle_ids()
            record = found
        elif latest.finished and not again and not latest.rejected:
            # Its present path, which may have changed: reports read pages again.
            record = replace(latest, path=found.path, size=found.size, mtime_ns=found.mtime_ns)
            self._readable.clear()
        elif latest.finished:
            run = latest.run + 1
            name = digest_of(f"{latest.content} run {run}".encode())
            record = replace(found, run=run, id=name, content=latest.content, **latest.reading)
        else:  # continues where it stopped; the file may have moved
            record = replace(found, run=latest.run, id=latest.id, content=latest.content, **latest.reading)
            record.problems, record.problems_total = latest.problems, latest.problems_total
        for known in runs:  # reports and copies read the pages of all runs, and the file may have moved
            if known.id != record.id and known.path != found.path:
                self.save_source(replace(known, path=found.path, size=found.size, mtime_ns=found.mtime_ns))
        source.record = record
        self.save_source(record)
        return record

    def save_source(self, record: SourceRecord) -> None:
        """Write a source's record, whole or not at all. Raises StateError."""
        self.sources[record.id] = record
        self._directory.write(f"sources/{record.id}.json", json.dumps(asdict(record)))

    def forget(self, takedown: Takedown) -> FoldedTakedown:
        """Take pages down: append the control record, and remove them from the index. Raises StateError."""
        scheme = bytes.fromhex(self.scheme.digest)
        offset = self.log.append(encode_control(Forget(scheme, takedown)))
        self.log.sync()
        self.catch_up()
        self.flush()
        delete_tables(self.path)
        return next(done for done in takedowns_of(self.store) if done.offset == offset)

    def add(self, messages: Sequence[bytes], judged: Callable[[Prepared], None]) -> Prepared:
        """Fold messages, append them to the log, and emit and write what they give.

        The log gets them only once they are judged, so that a message which cannot be folded leaves nothing behind.

        judged: called before anything is written.

        Raises StateError; then none of the messages is kept.
        """
        first = self.log.end()

        def emit(prepared: Prepared) -> None:
            judged(prepared)
            for message in messages:
                self.log.append(message)
            self.log.sync()
            self.verdict_log.emit(prepared)

        try:
            (prepared,) = follow([Batch(list(enumerate(messages, first)))], self.matcher, emit)
        except StateError:
            self.verdict_log.log.truncate(first)
            self.log.truncate(first)
            raise
        assert prepared is not None
        return prepared

    def settle(self) -> None:
        """Fold the messages that an interrupted `add` (Ctrl-C in a notebook) left in the log."""
        if self.matcher.next_offset != self.log.end():
            self._fold_on()

    def _fold_on(self) -> None:
        self.verdict_log.log.truncate(folded_to(self.store))
        self.matcher = Matcher(self.store, self.first_decider)
        self.catch_up()

    def catch_up(self) -> None:
        """Fold the messages that the store does not have."""
        lacking = self.log.read(self.matcher.next_offset)
        deque(self.follow(batched((offset, message, True) for offset, message in lacking)), maxlen=0)

    def follow(self, batches: Iterable[Batch]) -> Iterator[Prepared | None]:
        """Fold batches of the log, emit their verdicts, and write the index, which is flushed at intervals."""
        return follow(batches, self.matcher, self.verdict_log.emit, self._flush_when_due)

    def _flush_when_due(self, messages: int) -> None:
        self._unflushed += messages
        if self._unflushed >= FLUSH_MESSAGES:
            self.flush()

    def flush(self) -> None:
        """Make all data durable, the verdicts first: an index ahead of them would have to be rebuilt."""
        self.verdict_log.log.sync()
        self.store.flush()
        self._unflushed = 0

    def close(self) -> None:
        """Flush and unlock the directory; closing twice is harmless."""
        self._held.close()

    def __enter__(self) -> "ScanDirectory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self, scheme: Scheme | None, decider: Callable[[Scheme], Decider] | None) -> None:
        path = self.path
        self.log = SegmentLog(path / "log")
        self._held.callback(self.log.close)
        verdicts = SegmentLog(path / "verdicts")
        self._held.callback(verdicts.close)
        self.verdict_log, self.verdict_frames = VerdictLog(verdicts), verdicts
        self.messages += self.log.warnings + verdicts.warnings
        self.scheme = self._load_scheme(scheme)
        self.first_decider = self._load_decider(decider)
        with state_errors("open", path / "sources"):
            (path / "sources").mkdir(exist_ok=True)
        self.sources.update(read_sources(path))

    def _load_scheme(self, required: Scheme | None) -> Scheme:
        file = self.path / "scheme.json"
        if self.log.end() and not file.exists():
            raise StateError(f"{file} is missing, and without its seed {self.path} cannot go on; restore it")
        return self._directory.scheme_for(
            required, "use another directory, or leave the seed and the scheme's options out"
        )

    def _load_decider(self, make: Callable[[Scheme], Decider] | None) -> Decider:
        def required() -> Decider:
            decider = make(self.scheme) if make else Decider(scheme=self.scheme.digest)
            changes = decider_changes_in(self.log.read())
            return changes[0][1].before if changes else decider

        return self._directory.first_decider(required, begun=make is None or self.log.end() > 0)

    def _decide_by(self, required: Decider, new_decider: bool) -> None:
        held = self.decider
        if held.digest == required.digest:
            return
        reason = incompatibility(held, required)
        if reason or not new_decider:
            difference = describe_change(held, required) + (f": {reason}" if reason else "")
            advice = "use another directory, or leave the rule and its options out"
            if not reason:
                advice += ", or add --new-decider (open_index: new_decider=True), and it decides from here on"
            raise StateError(
                f"{self.path} was decided by rule {held.rule} (decider {held.digest}), and {required.rule} "
                f"({required.digest}) is asked for ({difference}); {advice}"
            )
        self.log.append(encode_control(NewDecider(held, required)))
        self.log.sync()
        self.catch_up()
        self.flush()
        self.messages.append(f"from here on it is decided otherwise: {describe_change(held, required)}")

    def _recover(self) -> None:
        missing = not (self.path / "index").exists()
        self.store = self._open_store()
        held, verdicts = folded_to(self.store), self.verdict_log.log
        end = self.log.end()
        if held > end:
            raise StateError(
                f"{self.path / 'log'} ends at offset {end}, and the index was folded up to {held}: messages are lost; "
                f"restore the log; or scan everything again into another directory, which leaves this one as it is"
            )
        if missing and end and not self._in_memory:
            self.messages.append(f"{self.path / 'index'} is missing: made again from the log ({end} messages)")
        elif verdicts.end() < held:
            self.messages.append(f"{self.path / 'verdicts'} has lost frames: folding the log again ({end} messages)")
            self._drop_index()
        self._fold_on()

    def _open_store(self) -> Store:
        store: Store
        if self._in_memory:
            store = MemoryStore()
            self._held.callback(store.close)
        else:
            store = self._directory.open_index()
        # The store must not be durable ahead of the verdicts.
        self._held.callback(self.verdict_log.log.sync)
        return store

    def _drop_index(self) -> None:
        self.store.close()
        with state_errors("delete", self.path / "index"):
            shutil.rmtree(self.path / "index")
        self.store = self._open_store()
