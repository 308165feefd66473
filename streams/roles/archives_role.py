"""Reads archives into the sketch log of a backfill, before its pages.

Its messages carry ranges like a sketcher's. Each archive is a source, named by the digest of its content. It continues
behind the part of each archive that the index has; what the log holds beyond that is sent again, and the matcher drops
it by its marks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from neardup.errors import BadInput
from streams.config.settings import Settings
from streams.files.fetching import fetched
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, ReadOptions, open_all, times_text
from streams.formats.message import as_first
from streams.kafka import Admin, Writer
from streams.kafka.merged_pages import Pace
from streams.pipeline.accounting import Mark
from streams.pipeline.matcher import Matcher
from streams.process import logs
from streams.roles.runtime import WAIT_SECONDS, Runtime, connect
from streams.scan.archive_time import ArchiveTime
from streams.scan.archives import ARCHIVES_MAX, SketchedArchives
from streams.scan.blocks import MessagePacker
from streams.scan.sketch_processes import SketchProcesses
from streams.state.matcher_directory import MatcherDirectory, log_names

_log = logs.get("backfill")
_PROBLEMS_LOGGED_MAX = 20


def open_archives(paths: Sequence[str], settings: Settings) -> list[LocalSource]:
    """The archives that paths and URLs name, each once. Raises BadInput."""
    bound, folder = (
        settings.scheme().body_bytes_max,
        Path(settings.state).with_name(Path(settings.state).name + ".inputs"),
    )
    found: dict[str, LocalSource] = {}
    not_read = NotRead()
    local = fetched(paths, folder, not_read)
    reading = ReadOptions(copies=folder)
    for source in open_all(local, reading, body_bytes_max=bound, not_read=not_read, threads=settings.threads):
        found.setdefault(source.record.id, source)
    for problem in not_read.lines:
        _log.warning("a file is not read", problem=problem)
    if not_read.passed_over:
        _log.info("files are passed over, by their names", files=not_read.passed_over)
    if len(found) > ARCHIVES_MAX:
        raise BadInput(f"{len(found):,} archives; at most {ARCHIVES_MAX:,} are read side by side: name fewer")
    return list(found.values())


def known_of(sources: Sequence[LocalSource], settings: Settings) -> tuple[dict[str, Mark], int]:
    """The index's mark of each archive, by id, and its log time; empty for an index of another log.

    Raises StateError.
    """
    state, scheme = Path(settings.state), settings.scheme()
    if not (state / "index").exists():
        return {}, 0
    log = Admin(connect(settings, "match")).topic(settings.topics.sketches)
    with closing(MatcherDirectory(state, scheme)) as directory:
        held = log_names(directory.store)
        if held is None or held.topic_id != log.id.hex():
            return {}, 0
        matcher = Matcher(directory.store, directory.first_decider(settings.decider(scheme)))
        return {source.record.id: matcher.mark(source.record.id) for source in sources}, matcher.log_time


class ArchivesRole:
    """Reads archives and writes their sketches.

    bytes_done, bytes_total: bytes of the archives that were read, and all bytes. done: whether the log has acknowledged
    all sketches.
    """

    def __init__(
        self, sources: Sequence[LocalSource], known: tuple[Mapping[str, Mark], int], settings: Settings, rate: float
    ) -> None:
        """known: the result of `known_of`."""
        self._sources, self._settings = sources, settings
        self._marks, log_time = known
        self._time = ArchiveTime(log_time)
        self._pace = Pace(rate)
        self.bytes_done = 0
        self.bytes_total = sum(source.bytes_total for source in sources)
        self.done = not sources

    def run(self, runtime: Runtime) -> None:
        """Returns when all are read, or the runtime is stopped. Raises BrokerError, ReaderLost, BadInput."""
        settings, scheme = self._settings, self._settings.scheme()
        connection = connect(settings, "sketch")
        admin = Admin(connection)
        log = admin.topic(settings.topics.sketches)
        first = not admin.offsets(log, "latest")[0]
        health = runtime.health.role("sketch")
        with ExitStack() as held:
            processes = None
            if settings.threads > 1:  # spawned: the Kafka client has threads
                processes = held.enter_context(SketchProcesses(settings.threads, "spawn"))
            pages = SketchedArchives(self._sources, self._marks, scheme, processes, runtime.stop.is_set)
            writer = Writer(
                connection, log.name, message_bytes_max=settings.message_bytes_max, gapless=True, linger_ms=0
            )
            out = held.enter_context(closing(writer))
            logged = 0
            for count, message in self._messages(pages, log.id, runtime.stop.wait, health.turned):
                out.send(as_first(message) if first else message)
                first = False
                while out.poll(0.0) > settings.inflight_batches:
                    health.turned()
                    out.poll(0.02)
                runtime.metrics.pages["sketch"].inc(count)
                self.bytes_done = pages.bytes_read
                for _, problem in pages.problems[logged:_PROBLEMS_LOGGED_MAX]:
                    _log.warning("a part of an archive cannot be read", problem=problem)
                logged = len(pages.problems)
            out.flush()
            self.bytes_done = pages.bytes_read
            self.done = not runtime.stop.is_set()
            if self.done:
                if pages.times:
                    _log.warning("fetch times were not in milliseconds", times=times_text(pages.times))
                _log.info("archives are read", archives=len(self._sources), problems=len(pages.problems))

    def _messages(
        self, pages: SketchedArchives, log: bytes, stopped: Callable[[float], bool], turned: Callable[[], None]
    ) -> Iterator[tuple[int, bytes]]:
        """Yields (number of pages, message), at the required rate; what is read so far if the role is stopped."""
        ids = [source.record.id for source in self._sources]
        offsets = [self._marks.get(each, Mark()).offset for each in ids]
        packer = MessagePacker(
            *(self._settings.scheme(), self._time, ids, offsets), pages_max=self._settings.batch_pages, log=log
        )
        for block in pages:
            if not self._may_go_on(len(block), stopped, turned):
                break
            yield from packer.add(block)
        yield from packer.flush()

    def _may_go_on(self, count: int, stopped: Callable[[float], bool], turned: Callable[[], None]) -> bool:
        turned()
        while not self._pace.allowed(1, 0.0):
            if stopped(min(WAIT_SECONDS, self._pace.wait_s)):
                return False
            turned()
        self._pace.took(count)
        return not stopped(0.0)
