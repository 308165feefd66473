"""One scan: files through sketcher and matcher into a state directory.

Sources are read and sketched in processes of their own (`streams.scan.sketch_processes`), or in this one. A reading
thread takes the sketches in the order of the log and appends them, up to QUEUE_MESSAGES ahead of the calling thread,
which folds, emits and writes (`streams.pipeline.follow`). So neither timing nor the number of processes changes
anything. The log is synced before a message is folded.
"""

import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import orjson

from neardup.errors import BadInput, InvariantBroken
from neardup.verdict import Kind
from streams.files.fetching import fetched
from streams.files.not_read import NotRead
from streams.files.parts import Part, parts_of
from streams.files.sources import BY_DEFAULT, LocalSource, ReadOptions, SourceRecord, open_all
from streams.formats.message import MANY_SOURCES, verdict_lines, verdicts_source
from streams.pipeline.accounting import Mark
from streams.pipeline.audit import Audit
from streams.pipeline.follow import Batch
from streams.ports import SourceProgress
from streams.process.disk import state_error, state_errors, written_alone
from streams.process.shutdown import stopped_by_signals
from streams.scan.archive_time import ArchiveTime
from streams.scan.archives import ARCHIVES_MAX, SketchedArchives
from streams.scan.blocks import Block, MessagePacker
from streams.scan.reading import NoRelay, PartSketches, SourceToRead
from streams.scan.scan_result import ScanResult, VerdictCounts
from streams.scan.sketch_processes import SketchProcesses, Task
from streams.scan.sketcher import Sketcher
from streams.state.scan_directory import ScanDirectory

#: Messages between the two threads: 0.9 MB each.
QUEUE_MESSAGES = 4
#: Problems kept with their text, per source; all are counted.
PROBLEMS_MAX = 100


@dataclass(frozen=True, slots=True)
class _Message:
    offset: int
    data: bytes
    path: str
    bytes_done: int


@dataclass(frozen=True, slots=True)
class _Finished:
    source: LocalSource
    whole: bool


class Verdicts:
    """`--out`: the verdict lines of some sources, in the log's order. `-` is standard output."""

    def __init__(self, target: str, sources: set[bytes], state: ScanDirectory) -> None:
        """Empties the file and writes the earlier verdicts of these sources.

        Raises StateError if another process writes the file, or it cannot be written.
        """
        self._sources = sources
        self._path = Path("standard output" if target == "-" else target)
        self._file: BinaryIO = sys.stdout.buffer if target == "-" else written_alone(self._path)
        try:
            for offset, frame in state.verdict_log.log.read():
                if (source := verdicts_source(frame)) in sources or source == MANY_SOURCES:
                    self.write(source, verdict_lines(frame, offset))
        except BaseException:
            self.close()
            raise

    def write(self, source: bytes, lines: bytes) -> None:
        """Writes the verdicts of one message. Raises StateError, and BrokenPipeError if the reader is gone."""
        if source == MANY_SOURCES:
            lines = b"".join(line for line in lines.splitlines(keepends=True) if self._wanted(line))
        elif source not in self._sources:
            return
        try:
            self._file.write(lines)
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise state_error("write", self._path, error) from error

    def _wanted(self, line: bytes) -> bool:
        return bytes.fromhex(orjson.loads(line)["coordinates"]["source"]) in self._sources

    def close(self) -> None:
        if self._file is sys.stdout.buffer:
            return
        with state_errors("write", self._path):
            self._file.close()


def scan(
    paths: Sequence[str | Path],
    state: ScanDirectory,
    *,
    reading: ReadOptions = BY_DEFAULT,
    out: str | None = None,
    written: Sequence[Path] = (),
    again: bool = False,
    threads: int = 1,
    progress: Callable[[SourceProgress], None] = lambda now: None,
    audit: Audit | None = None,
    merge: bool = False,
    processes: SketchProcesses | None = None,
) -> ScanResult:
    """Judges every page of `paths` that `state` has not judged yet, each against all before it.

    Args:
        paths: files, folders, fsspec URLs, and `-` for standard input; remote input is first copied into the state
            directory.
        out: file for the verdicts of these sources as JSON lines, emptied first; `-` for standard output.
        written: other files that the caller writes.
        again: whether to scan finished sources again.
        threads: number of threads of the kernels, and of those that digest files.
        audit: observer, which changes no verdict and no stored byte.
        merge: whether to read all sources side by side, in the order of fetch times (`streams.scan.archives`).
        processes: processes that read and sketch, started before the state was opened; by default this process does.

    SIGINT and SIGTERM end the scan after the current message; the same call continues. Raises BadInput for paths that
    are no sources, and if `out` or `written` is one of them, before anything is changed; StateError if state or `out`
    cannot be written; InvariantBroken if the numbers of pages and verdicts differ; ReaderLost if one of the processes
    was killed: what was judged is kept, and the same call continues.
    """
    state.catch_up()  # what an interrupted scan on this state left in the log
    run = _Scan(state, threads, progress, merge, processes, audit)
    run.enlist(paths, reading, again, [*written, *([Path(out)] if out else [])])
    listener = Verdicts(out, {bytes.fromhex(s.record.id) for s in run.sources}, state) if out else None
    try:
        state.verdict_log.listener = listener.write if listener else None
        state.matcher.keeps_compared = audit is not None
        run.go()
    finally:
        state.verdict_log.listener = None
        state.matcher.keeps_compared = False
        if listener:
            listener.close()
    if audit is not None:
        audit.write_counts()
        run.result.audit = audit.to_json()
    return run.result


class _Scan:
    def __init__(
        self,
        state: ScanDirectory,
        threads: int,
        progress: Callable[[SourceProgress], None],
        merge: bool,
        processes: SketchProcesses | None,
        audit: Audit | None,
    ) -> None:
        self.state = state
        self._audit = audit
        self._threads, self._merge, self._processes = threads, merge, processes
        self.sources: list[LocalSource] = []
        self.result = ScanResult()
        self._progress = progress
        self._started = time.monotonic()
        self._counts = VerdictCounts()
        self._marks: dict[str, Mark] = {}
        self._bytes_total = 0
        self._bytes_done = 0
        self._reached = "", 0  # path and bytes of the last message
        self._noted: dict[str, int] = {}  # by source: how many of its problems its record holds
        self._stop = threading.Event()
        self._queue: queue.Queue[_Message | _Finished | BaseException | None] = queue.Queue(QUEUE_MESSAGES)
        state.matcher.threads = threads
        self._time = ArchiveTime.of_log(state.log, state.matcher.log_time)
        self._sketcher = Sketcher(state.scheme, state.log, self._time, first=not state.log.end())

    def enlist(self, paths: Sequence[str | Path], reading: ReadOptions, again: bool, written: Sequence[Path]) -> None:
        """Opens all sources before any is read, and finds where each continues."""
        digested, one_at_a_time = 0, threading.Lock()

        def on_bytes(path: Path, count: int) -> None:
            nonlocal digested
            with one_at_a_time:
                digested += count
                self._report("digest", str(path), digested)

        copies, not_read = self.state.path / "inputs", NotRead()
        local = fetched(paths, copies, not_read, partial(on_bytes, Path()))
        found = open_all(
            local,
            replace(reading, copies=copies),
            body_bytes_max=self.state.scheme.body_bytes_max,
            not_read=not_read,
            threads=self._threads,
            on_bytes=on_bytes,
        )
        self.result.passed_over = not_read.passed_over
        self.result.problems += not_read.lines
        self.result.problems_total += len(not_read.lines)
        for file in written:
            if any(source.holds(file) for source in found):
                raise BadInput(f"{file} is one of the files to scan, and would be overwritten; name another one")
        for source in found:
            if any(source.record.content == other.record.content for other in self.sources):
                self.result.skipped.append(source.record.path)  # named twice
                continue
            before = source.record
            source.record = known = self.state.enlist(source, again=again)
            self.sources.append(source)
            self.result.sources.append(known.id)
            self.result.fields_taken += [known.fields_taken] if known.fields else []
            if known.finished:
                self.result.skipped.append(before.path)
                self._recall_problems(known)
                continue
            mark = self._marks[known.id] = self.state.matcher.mark(known.id)
            if mark.offset:
                self.result.resumed.append(known.path)
            self._bytes_total += source.bytes_total

    def go(self) -> None:
        """Runs both threads to their end; errors of either are raised here, after both have ended."""
        reader = threading.Thread(target=self._read, name="neardup-sketcher", daemon=True)
        with stopped_by_signals(self._stop):
            reader.start()
            try:
                self._match()
            finally:
                self._stop.set()
                while reader.is_alive():  # it may wait for room in the queue
                    self._drain()
                    reader.join(0.05)
        self.state.flush()
        self._sum_up()

    def _read(self) -> None:
        """The reading thread."""
        try:
            left = [source for source in self.sources if not source.record.finished]
            if self._read_merged(left) if self._merge else self._read_in_order(left):
                self._put(None)
        except BaseException as error:  # noqa: BLE001 - raised again by the other thread
            self._put(error)

    def _read_in_order(self, sources: list[LocalSource]) -> bool:
        """Takes the sketches of one source after the other; False if the scan was stopped."""
        given = [SourceToRead(source.record, self._marks[source.record.id]) for source in sources]
        packer = self._sketcher.packer([each.record.id for each in given], [each.mark.offset for each in given])
        parts = [self._parts(source, each.mark) for source, each in zip(sources, given, strict=True)]
        tasks = [(number, part) for number, some in enumerate(parts) for part in some]
        blocks = self._blocks(given, tasks)
        both = zip(sources, parts, strict=True)
        return all(self._read_source(source, some, blocks, packer) for source, some in both)

    def _parts(self, source: LocalSource, mark: Mark) -> list[Part]:
        if self._processes is None:
            start, ordinal = source.start_of(mark.offset, mark.position)
            return [Part(start, None, ordinal)]
        try:
            return parts_of(source, mark.offset, mark.position)
        except OSError:  # it is met again, and reported, when the source is read
            return [Part(0, None, 0)]

    def _blocks(self, given: list[SourceToRead], tasks: list[Task]) -> Iterator[Block]:
        scheme = self.state.scheme
        if self._processes is not None:
            yield from self._processes.in_order(scheme, given, tasks, self._stop.is_set)
            return
        for number, part in tasks:
            yield from PartSketches(number, given[number], part, NoRelay(), scheme, threads=self._threads).blocks()

    def _read_source(
        self, source: LocalSource, parts: list[Part], blocks: Iterator[Block], packer: MessagePacker
    ) -> bool:
        """Appends the sketches of one source. False if the scan was stopped."""
        failure: OSError | None = None
        left, ordinal, first = len(parts), parts[0].ordinal or 0, self._marks[source.record.id].offset
        ended = False  # what is behind damage is read by other processes, and does not count
        while left:
            block = next(blocks, None)
            if block is None:
                return False
            left -= block.notes.last
            if ended:
                continue
            for notes in block.notes.sources:
                notes.add_to(source)
            self._note(source)  # before the log holds the pages behind
            ordinal += block.notes.skipped
            known, ordinal = min(max(first - ordinal, 0), len(block)), ordinal + len(block)
            if not self._append(packer.add(block.without(known)), source):
                return False
            if isinstance(block.notes.error, OSError):
                failure = block.notes.error
            ended = failure is not None or block.notes.damaged
        if failure is None and source.record.format is not None:
            source.bytes_read = source.bytes_total
        if not self._append(packer.flush(), source):
            return False
        if failure is None:
            source.note_if_empty(ordinal)
        else:  # the next source is read all the same
            source.cannot_go_on(failure)
        self._bytes_done += source.bytes_total
        return self._put(_Finished(source, failure is None))

    def _append(self, messages: Iterator[tuple[int, bytes]], source: LocalSource) -> bool:
        for _, data in messages:
            offset, message = self._sketcher.append(data)
            if not self._put(_Message(offset, message, source.record.path, self._bytes_done + source.bytes_read)):
                return False
        return True

    def _read_merged(self, sources: list[LocalSource]) -> bool:
        """Takes the sketches of all sources, side by side; False if the scan was stopped."""
        if len(sources) > ARCHIVES_MAX:
            raise BadInput(f"{len(sources):,} sources, and {ARCHIVES_MAX:,} can be read side by side; name fewer")
        archives = SketchedArchives(sources, self._marks, self.state.scheme, self._processes, self._stop.is_set)
        ids = [source.record.id for source in sources]
        packer = self._sketcher.packer(ids, [self._marks[each].offset for each in ids], head_bytes_max=None)
        for messages in chain(map(packer.add, archives), [packer.flush()]):
            for source in sources:
                self._note(source)  # before the log holds the pages behind
            for _, data in messages:
                offset, message = self._sketcher.append(data)
                if not self._put(_Message(offset, message, sources[0].record.path, archives.bytes_read)):
                    return False
        if self._stop.is_set():
            return False
        for source in sources:
            source.bytes_read = source.bytes_total
        return all(self._put(_Finished(source, True)) for source in sources)

    def _note(self, source: LocalSource) -> None:
        """Keeps the new problems of a source, because a resumed scan does not read these parts again."""
        record, first = source.record, self._noted.get(source.record.id, 0)
        new = [str(problem) for problem in source.problems[first:]]
        self._noted[record.id] = len(source.problems)
        self._keep_problems(record, new)

    def _keep_problems(self, record: SourceRecord, new: Sequence[str]) -> None:
        """Adds problems to a record, one by one: what is counted must not depend on how many come together."""
        before = len(record.problems)
        for text in new:
            if text not in record.problems:
                record.problems_total += 1
                record.problems += [text][: PROBLEMS_MAX - len(record.problems)]
        if len(record.problems) > before:
            self.state.save_source(record)

    def _put(self, item: _Message | _Finished | BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def _drain(self) -> None:
        try:
            while True:
                self._queue.get_nowait()
        except queue.Empty:
            pass

    def _match(self) -> None:
        """The calling thread: folds until the sources end, an error comes, or a signal."""
        for prepared in self.state.follow(self._batches()):
            assert prepared is not None
            if self._audit is not None:
                self._audit.record(prepared.outcome.compared)
            self._counts.add(prepared.verdicts)
            self._report("scan", *self._reached)

    def _batches(self) -> Iterator[Batch]:
        """Yields each message that the other thread has appended. Notes the ends of sources between them."""
        while not self._stop.is_set():
            try:
                item = self._queue.get(timeout=0.1)
            except queue.Empty:
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, _Finished):
                self._finish(item)
                continue
            self._reached = item.path, item.bytes_done
            yield Batch([(item.offset, item.data)])
        self.result.interrupted = True

    def _finish(self, item: _Finished) -> None:
        record = item.source.record
        if item.whole:
            self._note(item.source)
        else:  # why it ended: of this run alone, the next one tries again
            self.result.problems.append(str(item.source.problems[-1]))
            self.result.problems_total += 1
        record.pages = self.state.matcher.mark(record.id).offset
        record.finished = item.whole
        # Read from its start to its end in this run: what an earlier run read is not known here.
        record.rejected = (
            bool(record.pages) and not self._marks[record.id].offset and record.id not in self._counts.readable
        )
        self.state.save_source(record)
        self._recall_problems(record)

    def _recall_problems(self, record: SourceRecord) -> None:
        """Adds the problems of an ended source, from this run and earlier ones."""
        self.result.problems += record.problems
        self.result.problems_total += record.problems_total

    def _report(self, phase: str, path: str, bytes_done: int) -> None:
        seconds = time.monotonic() - self._started
        self._progress(SourceProgress(phase, path, self._counts.pages, bytes_done, self._bytes_total, seconds))

    def _sum_up(self) -> None:
        result = self.result
        self._counts.add_to(result)
        result.bytes = sum(min(source.bytes_read, source.bytes_total) for source in self.sources)
        times: Counter[str] = Counter()
        for source in self.sources:
            times.update(source.times)
        result.times = dict(sorted(times.items()))
        result.left_out = dict(sum((source.left_out for source in self.sources), Counter[str]()).most_common())
        result.seconds = time.monotonic() - self._started
        emitted = sum(count for kind, count in result.counts.items() if kind != Kind.PROMOTED)
        before = sum(mark.offset for mark in self._marks.values())
        after = sum(self.state.matcher.mark(source).offset for source in self._marks)
        if not emitted == result.pages == after - before:
            raise InvariantBroken(
                f"the log has {after - before} pages of this scan, {result.pages} were judged, {emitted} emitted"
            )
