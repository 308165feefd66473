"""One scan: files through sketcher and matcher into a state directory, in one process.

A reading thread polls, sketches and appends to the log, up to QUEUE_MESSAGES ahead of the calling thread, which
folds, emits and writes. Both take messages in the log's order, so timing changes nothing. The log is synced before a
message is folded; verdicts are written before the store, which is flushed every FLUSH_MESSAGES messages and at the end.
"""

import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import orjson

from neardup.clusters.batch_verdicts import BatchVerdicts
from neardup.errors import BadInput, InvariantBroken
from neardup.limits import MESSAGE_PAGES_MAX
from neardup.report.evidence_sentences import reason_kind
from neardup.standing import DUPLICATES
from neardup.urls import ID_SCHEME
from neardup.verdict import Kind
from streams.files.fetching import fetched
from streams.files.not_read import NotRead
from streams.files.sources import BY_DEFAULT, LocalSource, ReadOptions, SourceRecord, open_all
from streams.formats.message import MANY_SOURCES, verdict_lines, verdicts_source
from streams.pipeline.accounting import Mark
from streams.pipeline.audit import Audit
from streams.ports import SourcedPage
from streams.process.disk import state_error, state_errors, written_alone
from streams.process.shutdown import stopped_by_signals
from streams.scan.archive_time import ArchiveTime
from streams.scan.archives import ARCHIVES_MAX, SketchedArchives, messages_of
from streams.scan.sketcher import Sketcher
from streams.state.scan_directory import FLUSH_MESSAGES, ScanDirectory

#: Messages between the two threads: 0.9 MB each.
QUEUE_MESSAGES = 4
#: Problems kept with their text, per source; all are counted.
PROBLEMS_MAX = 100
#: Most distinct reasons of rejections; later ones are counted as others.
REASONS_MAX = 100
OTHER_REASONS = "other reasons"
#: Site of all documents whose ids are no URLs.
NO_SITE = "(no site)"


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a scan. phase: `digest` (bytes_total unknown) or `scan`. path: the source being read."""

    phase: str
    path: str
    pages: int
    bytes_done: int
    bytes_total: int
    seconds: float


@dataclass
class SiteCount:
    """Pages of one registrable domain in this scan, and how many of them are exact or near duplicates."""

    site: str
    pages: int = 0
    duplicates: int = 0


@dataclass
class ScanResult:
    """Result of a scan.

    pages: number of pages that this scan judged. bytes: bytes of the stored sources that were read.
    counts: number of verdicts by kind, also of `promoted`, which are no pages.
    sites: counts of sites, ordered by duplicates, then pages.
    reasons: counts of the reasons of rejections, the most frequent first.
    left_out: counts of records of archives that are no pages, by kind.
    kept_apart: counts of unique pages with a similar earlier page, by the step that refused the pair, the most frequent
        first.
    sources: ids (32 hex digits) of all named sources.
    fields_taken: guessed fields of ids and texts of each file.
    skipped: paths of sources that were finished before, or named twice.
    passed_over: number and suffixes of files of folders whose names say that they contain no pages.
    problems: files of the inputs that are not read; then unreadable parts of the sources that ended, also in earlier
        scans, PROBLEMS_MAX per source at most. problems_total: number of all problems.
    interrupted: whether a signal ended the scan.
    audit: counts of the shadow rule and of the sampled pairs; empty without an audit.
    times: counts of this run's pages by the form of their fetch times, as `LocalSource.times`.
    """

    pages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    sites: list[SiteCount] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    kept_apart: dict[str, int] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    fields_taken: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    passed_over: str = ""
    resumed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problems_total: int = 0
    interrupted: bool = False
    audit: dict[str, int] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)


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
    progress: Callable[[Progress], None] = lambda now: None,
    audit: Audit | None = None,
    merge: bool = False,
) -> ScanResult:
    """Judges every page of `paths` that `state` has not judged yet, each against all before it.

    Args:
        paths: files, folders, fsspec URLs, and `-` for standard input; remote input is first copied into the state
            directory.
        out: file for the verdicts of these sources as JSON lines, emptied first; `-` for standard output.
        written: other files that the caller writes.
        again: whether to scan finished sources again.
        threads: number of threads of the kernels; with `merge`, number of processes.
        audit: observer, which changes no verdict and no stored byte.
        merge: whether to read all sources side by side, in the order of fetch times (`streams.scan.archives`).

    SIGINT and SIGTERM end the scan after the current message; the same call continues. Raises BadInput for paths that
    are no sources, and if `out` or `written` is one of them, before anything is changed; StateError if state or `out`
    cannot be written; InvariantBroken if the numbers of pages and verdicts differ.
    """
    state.catch_up()  # what an interrupted scan on this state left in the log
    run = _Scan(state, threads, progress, merge)
    run.enlist(paths, reading, again, [*written, *([Path(out)] if out else [])])
    listener = Verdicts(out, {bytes.fromhex(s.record.id) for s in run.sources}, state) if out else None
    try:
        state.verdict_log.listener = listener.write if listener else None
        state.matcher.audit = audit.record if audit else None
        run.go()
    finally:
        state.verdict_log.listener = None
        state.matcher.audit = None
        if listener:
            listener.close()
    if audit is not None:
        audit.write_counts()
        run.result.audit = audit.to_json()
    return run.result


class _Scan:
    def __init__(self, state: ScanDirectory, threads: int, progress: Callable[[Progress], None], merge: bool) -> None:
        self.state = state
        self._threads, self._merge = threads, merge
        self.sources: list[LocalSource] = []
        self.result = ScanResult()
        self._progress = progress
        self._started = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._sites: dict[str, SiteCount] = {}
        self._reasons: Counter[str] = Counter()
        self._kept_apart: Counter[str] = Counter()
        self._times: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._marks: dict[str, Mark] = {}
        self._pages_in = 0
        self._bytes_total = 0
        self._bytes_done = 0
        self._readable: set[str] = set()  # sources of which a page was read
        self._noted: dict[str, int] = {}  # by source: how many of its problems its record holds
        self._stop = threading.Event()
        self._queue: queue.Queue[_Message | _Finished | BaseException | None] = queue.Queue(QUEUE_MESSAGES)
        state.matcher.threads = threads
        self._time = ArchiveTime.of_log(state.log, state.matcher.log_time)
        self._sketcher = Sketcher(state.scheme, state.log, self._time, threads=threads, first=not state.log.end())

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
            if self._merge:
                if not self._read_merged(left):
                    return
            elif not all(map(self._read_source, left)):
                return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - raised again by the other thread
            self._put(error)

    def _read_source(self, source: LocalSource) -> bool:
        """Sketches one source to its end; False if the scan was stopped."""
        mark, path = self._marks[source.record.id], source.record.path
        failures: list[OSError] = []

        def pages() -> Iterator[SourcedPage]:
            """Up to an error of the file. What went wrong before a page is noted before the log holds the page."""
            try:
                for page in source.read(mark.offset, mark.position):
                    self._note(source)
                    yield page
            except OSError as error:  # the next source is read all the same
                failures.append(error)

        for offset, data in self._sketcher.run(pages()):
            if not self._put(_Message(offset, data, path, self._bytes_done + source.bytes_read)):
                return False
        for failure in failures:
            self._note(source)
            source.cannot_go_on(failure)
        self._bytes_done += source.bytes_total
        return self._put(_Finished(source, not failures))

    def _read_merged(self, sources: list[LocalSource]) -> bool:
        """The same of all of them, side by side."""
        by_id = {source.record.id: source for source in sources}
        noted = 0

        def note(problems: Sequence[tuple[str, str]]) -> None:
            nonlocal noted
            for identity, text in problems[noted:]:
                self._keep_problems(by_id[identity].record, [text])
            noted = len(problems)

        if len(sources) > ARCHIVES_MAX:
            raise BadInput(f"{len(sources):,} sources, and {ARCHIVES_MAX:,} can be read side by side; name fewer")
        scheme = self.state.scheme
        with SketchedArchives(sources, self._marks, scheme, self._threads, self._time) as pages:
            for _, data in messages_of(pages, scheme, pages_max=MESSAGE_PAGES_MAX):
                note(pages.problems)
                offset, message = self._sketcher.append(data)
                if not self._put(_Message(offset, message, sources[0].record.path, pages.bytes_read)):
                    return False
            note(pages.problems)
            self._times.update(pages.times)
            self._left_out += pages.left_out
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
        new = [text for text in new if text not in record.problems]
        if new:
            room = PROBLEMS_MAX - len(record.problems)
            record.problems += new[:room]
            record.problems_total += len(new)
            if room:
                self.state.save_source(record)

    def _put(self, item: _Message | _Finished | BaseException | None) -> bool:
        if isinstance(item, _Message) and self.state.shards is not None:
            self.state.shards.send_ahead(item.offset, item.data)
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
        unflushed = 0
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
            self._count(self.state.matcher.step(item.offset, item.data))
            self._report("scan", item.path, item.bytes_done)
            unflushed += 1
            if unflushed == FLUSH_MESSAGES:
                self.state.flush()
                unflushed = 0
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
        record.rejected = bool(record.pages) and not self._marks[record.id].offset and record.id not in self._readable
        self.state.save_source(record)
        self._recall_problems(record)

    def _recall_problems(self, record: SourceRecord) -> None:
        """Adds the problems of an ended source, from this run and earlier ones."""
        self.result.problems += record.problems
        self.result.problems_total += record.problems_total

    def _count(self, verdicts: BatchVerdicts) -> None:
        for verdict in verdicts:
            if not verdict.n or verdict.verdict is Kind.PROMOTED:
                self._counts[verdict.verdict.value] += 1
            if verdict.n:
                continue
            self._pages_in += 1
            self._readable.update([verdict.coordinates.source] if verdict.verdict is not Kind.REJECTED else [])
            self._count_site(verdict.url, verdict.site or "", is_duplicate=verdict.verdict in DUPLICATES)
            if by := verdict.evidence.get("kept_apart"):
                self._kept_apart[by] += 1
            if verdict.verdict is Kind.REJECTED:
                reason = reason_kind(verdict.reason)
                known = reason in self._reasons or len(self._reasons) < REASONS_MAX
                self._reasons[reason if known else OTHER_REASONS] += 1

    def _count_site(self, url: str, name: str, *, is_duplicate: bool) -> None:
        if url.startswith(ID_SCHEME):
            name = NO_SITE
        site = self._sites.setdefault(name, SiteCount(name))
        site.pages += 1
        site.duplicates += is_duplicate

    def _report(self, phase: str, path: str, bytes_done: int) -> None:
        seconds = time.monotonic() - self._started
        self._progress(Progress(phase, path, self._pages_in, bytes_done, self._bytes_total, seconds))

    def _sum_up(self) -> None:
        result = self.result
        result.pages = self._pages_in
        result.bytes = sum(min(source.bytes_read, source.bytes_total) for source in self.sources)
        result.counts = {kind.value: self._counts[kind.value] for kind in Kind if self._counts[kind.value]}
        result.sites = sorted(self._sites.values(), key=lambda s: (-s.duplicates, -s.pages, s.site))
        result.reasons = dict(sorted(self._reasons.items(), key=lambda item: (-item[1], item[0])))
        for source in self.sources:
            self._times.update(source.times)
        result.times = dict(sorted(self._times.items()))
        result.kept_apart = dict(self._kept_apart.most_common())
        result.left_out = dict(sum((source.left_out for source in self.sources), self._left_out).most_common())
        result.seconds = time.monotonic() - self._started
        emitted = sum(count for kind, count in result.counts.items() if kind != Kind.PROMOTED)
        before = sum(mark.offset for mark in self._marks.values())
        after = sum(self.state.matcher.mark(source).offset for source in self._marks)
        if not emitted == result.pages == after - before:
            raise InvariantBroken(
                f"the log has {after - before} pages of this scan, {result.pages} were judged, {emitted} emitted"
            )
