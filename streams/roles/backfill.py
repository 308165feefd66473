"""Backfill: judges history again, into a generation of its own, beside the live one.

If the sketches of the live generation fit, its log is folded by another decider, and no page is read. Else `pages` is
read from its start, with partitions merged by fetch time (`streams.kafka.merged_pages`), by both roles that serve the
live stream. Committed input is never read again; the rest is sent again, and the matcher drops it by its marks. So a
backfill may be stopped or killed at any moment, and the same call continues. Once it has caught up it follows the live
topic.

Taken-down pages stay down: once history is read, all takedowns of the control topic are repeated behind it, at one
position of the log, which the control topic then holds. Before that the generation has not caught up.

The control topic records the settings of the generation, and a call that continues must have the same. It may also
continue once the generation is live.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version

from neardup.errors import BadInput, CorruptRecord, NeardupError, StateError
from neardup.sketch.takedown_hashes import Takedown
from streams.config.settings import Settings
from streams.formats.codecs import fetch_time
from streams.formats.message import Forget, decode_entry, encode_control
from streams.kafka import (
    Admin,
    Connection,
    ControlTopic,
    Generation,
    Generations,
    KafkaLog,
    KafkaTopic,
    MergedPages,
    Stage,
)
from streams.kafka.topics import Sizes, compacted, create
from streams.process import logs
from streams.process.shutdown import now_ms
from streams.roles.archives_role import ArchivesRole, known_of, open_archives
from streams.roles.match_start import run_matcher
from streams.roles.own_generation import check_own, settings_of, shown
from streams.roles.runtime import STOP_SECONDS_MAX, Runtime, connect, connect_before, write_control
from streams.roles.single_process import run_single_process
from streams.roles.sketch_role import run_sketcher

_log = logs.get("backfill")

#: Between two lines of the log.
LOG_SECONDS = 10.0

#: Shows what is counted, the number done, the total (0: unknown), and the number per second.
Shown = Callable[[str, int, int, float], None]
#: Between two updates of the progress.
LOOK_SECONDS = 1.0


class BackfillProgress:
    """shown: updates a bar; None: progress is logged. Rate and remaining time are those of the current phase."""

    def __init__(self, shown: Shown | None, steady_s: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._steady_s = shown, steady_s
        self._first: tuple[float, int, str] | None = None
        self._logged = steady_s()

    def report(self, what: str, done: int, total: int) -> None:
        now = self._steady_s()
        if self._first is None or self._first[2] != what:
            self._first = now, done, what
        seconds = now - self._first[0]
        per_s = (done - self._first[1]) / seconds if seconds else 0.0
        if self._shown is not None:
            self._shown(what, done, total, per_s)
        elif now - self._logged >= LOG_SECONDS:
            self._logged = now
            left = {"left_s": round((total - done) / per_s)} if per_s else {}
            _log.info("backfill", of=what, done=done, total=total, per_s=round(per_s), **left)

    def report_live(self) -> None:
        """Shows that the live topic is followed, which has no end."""
        if self._shown is not None:
            self._shown("caught up, follows the live topic", 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """Options of a backfill.

    rate: greatest number of pages per second; 0: no limit.
    once: whether to end at the present end of the topic instead of following it.
    read_pages: whether to read pages even if existing sketches fit.
    archives: paths and URLs of archives to read before the pages.
    """

    rate: float = 0.0
    once: bool = False
    read_pages: bool = False
    archives: tuple[str, ...] = ()


def run_backfill(
    settings: Settings,
    options: BackfillOptions,
    runtime: Runtime,
    *,
    shown: Shown | None = None,
) -> bool:
    """Fill `settings.generation` until the runtime is stopped or, with `once`, the generation has caught up.

    Args:
        settings: settings of the new generation, with its scheme, decider and state directory.
        options: options of the backfill.
        runtime: stop request, health and metrics of the process.
        shown: display of the progress; by default the log has it.

    Returns:
        Whether the generation has caught up; without `once`, also if an earlier call has caught up.

    Raises:
        BadInput: if the generation is live or exists, and no backfill began it.
        StateError: if the generation was begun with another scheme or decider.
        NeardupError: the errors of the roles.
    """
    sources = open_archives(options.archives, settings) if settings.generation else []
    archived = tuple(source.record.id for source in sources)
    connection = connect_before(settings, "topics", runtime)
    settings, generation, control = _begun(settings, options, archived, connection)
    runtime = replace(runtime, settings=settings)
    known = known_of(sources, settings) if sources else ({}, 0)
    archives = ArchivesRole(sources, known, settings, options.rate)
    watch = _Watch(settings, options, runtime, control, generation, BackfillProgress(shown))
    watch.archives = archives

    def sketch(settings: Settings, runtime: Runtime) -> None:
        if not archives.done:
            archives.run(runtime)
        if archives.done:
            run_sketcher(settings, runtime, reader=watch.make_reader)

    thread = threading.Thread(target=watch.run, name="neardup-backfill", daemon=True)
    thread.start()
    try:
        if settings.judges_anew:
            run_matcher(settings, runtime)
        else:
            run_single_process(settings, runtime, sketcher=sketch)
    finally:
        runtime.stop.set()
        thread.join(LOOK_SECONDS + STOP_SECONDS_MAX)
    return watch.caught_up or not (options.once or generation.filling)


def _begun(
    settings: Settings, options: BackfillOptions, archives: tuple[str, ...], connection: Connection
) -> tuple[Settings, Generation, ControlTopic]:
    """Creates the topics, records the generation, and returns its settings and record."""
    name = settings.generation
    if not name:
        raise BadInput("a backfill fills a generation of its own: name it, as --generation second")
    admin, control = Admin(connection), ControlTopic(connection, settings.generations_topic)
    recorded = control.read()
    known = recorded.known.get(name)
    if known is None and recorded.live == name:
        own = replace(settings, sketches_of=None)
        roles = f"run --generation {name}"
        if own.topics.sketches not in admin.topics([own.topics.sketches]):
            roles = f"match --generation {name} --sketches-of OTHER, the one whose sketches it judges"
        raise BadInput(
            f"generation {name} is the live one, and no backfill began it: each page would be judged a copy of itself; "
            f"name another one (to continue serving it: neardup {roles})"
        )
    if known is None:
        _must_be_new(admin, replace(settings, sketches_of=None))
        known = replace(_described(settings, recorded, options), archives=archives)
    settings = replace(settings, sketches_of=known.sketches_of)
    if settings.judges_anew and (options.read_pages or archives):
        raise BadInput(
            f"generation {name} judges the sketches of {shown(settings.sketches_of or '')} and reads no page, and "
            "--read-pages or archives are given: leave out sketches_of, and name another generation if this one exists"
        )
    check_own(settings, known)
    decider = settings.decider(settings.scheme()).digest
    if known.decider != decider:
        raise StateError(
            f"generation {name} was begun with decider {known.decider}, and {decider} is set: one generation is judged "
            f"by one rule; set the former one, or remove the generation: neardup generation remove {name}",
        )
    if known.archives != archives:
        raise StateError(
            f"generation {name} was begun with {len(known.archives)} archives, and others are named now: the order "
            "would change; name the same ones, in the same order"
        )
    sizes = _sizes(admin, settings, recorded)
    control.create(sizes.replicas)
    create(admin, settings.topics, sizes)
    if known.stage is Stage.MADE:
        control.describe(known := known.in_stage(Stage.FILLING))
    return settings, known, control


def _must_be_new(admin: Admin, settings: Settings) -> None:
    """Raises BadInput if topics of the generation hold records."""
    names = settings.topics
    for topic in admin.topics([names.sketches, names.verdicts]).values():
        if sum(admin.offsets(topic, "latest").values()):
            raise BadInput(
                f"topic {topic.name} holds records, and {settings.generations_topic} has no generation "
                f"{settings.generation}: other roles serve it; name another one"
            )


def _described(settings: Settings, recorded: Generations, options: BackfillOptions) -> Generation:
    scheme = settings.scheme()
    of = settings.sketches_of
    if of is None:
        of = recorded.log_of(recorded.live)
        asked = options.read_pages or options.archives
        why = "--read-pages or archives were given" if asked else _why_not_reused(settings, of, scheme.digest)
        if why:
            _log.info("reads and sketches the pages", reason=why)
            of = None
        else:
            _log.info("reuses sketches: folds their log, and reads no page", sketches_of=shown(of))
    decider, now = settings.decider(scheme).digest, now_ms()
    return Generation(
        settings.generation, scheme.digest, decider, of, created_ms=now, staged_ms=now, version=version("neardup")
    )


def _why_not_reused(settings: Settings, of: str, scheme: str) -> str:
    """Why a generation's sketches cannot be reused; "" if they can."""
    topic = replace(settings, sketches_of=of).topics.sketches
    if not Admin(connect(settings, "match")).topics([topic]):
        return f"there is no topic {topic}"
    with closing(KafkaLog(connect(settings, "match", reading=True), topic)) as log:
        begin, newest = log.first_offset(), log.last().get(0)
    if newest is None:
        return f"topic {topic} is empty"
    if begin:
        return f"topic {topic} begins at offset {begin}: earlier sketches are gone"
    try:
        held = decode_entry(newest.value() or b"", newest.offset()).scheme.hex()
    except CorruptRecord as error:
        return str(error)
    return "" if held == scheme else f"topic {topic} holds sketches of scheme {held}, and {scheme} is set"


def _sizes(admin: Admin, settings: Settings, recorded: Generations) -> Sizes:
    """Sizes of the live generation's topics."""
    live = settings_of(settings, recorded, recorded.live).topics
    pages = admin.topic(settings.topics.pages)
    sizes = Sizes(
        partitions=pages.partitions,
        replicas=pages.replicas,
        page_bytes_max=int(admin.settings(pages.name)["max.message.bytes"]),
    )
    there = admin.topics([live.sketches, live.verdicts])
    kept = {name: int(admin.settings(name)["retention.ms"]) for name in there}
    return replace(
        sizes,
        sketches_retention_ms=kept.get(live.sketches, sizes.sketches_retention_ms),
        verdicts_retention_ms=kept.get(live.verdicts, sizes.verdicts_retention_ms),
        compact_verdicts=compacted(admin, live.verdicts),
    )


def repeat_takedowns(settings: Settings, takedowns: Sequence[Takedown]) -> int:
    """Writes takedowns into the settings' log alone. Returns the offset behind them, or the log's end.

    Raises BrokerError, TopicError.
    """
    topic = settings.topics.sketches
    if takedowns:
        scheme = bytes.fromhex(settings.scheme().digest)
        return write_control(settings, topic, [encode_control(Forget(scheme, takedown)) for takedown in takedowns]) + 1
    with closing(KafkaLog(connect(settings, "match"), topic)) as log:
        return log.end()


class _Watch:
    """Thread that reports progress, repeats takedowns, and records that the generation has caught up."""

    def __init__(
        self,
        settings: Settings,
        options: BackfillOptions,
        runtime: Runtime,
        control: ControlTopic,
        generation: Generation,
        progress: BackfillProgress,
    ) -> None:
        self._settings, self._options, self._runtime = settings, options, runtime
        self._progress = progress
        self._control, self._generation = control, generation
        self._admin = Admin(replace(connect(settings, "match"), stop=runtime.stop))
        self.archives: ArchivesRole | None = None
        self._reader: MergedPages | None = None
        self._end = -1  # of the log at the last look; a matcher that reaches it has caught up
        self._taken_down = False
        self.caught_up = False

    def make_reader(self, connection: Connection, log: KafkaTopic) -> MergedPages:
        settings = self._settings
        self._reader = MergedPages(
            connection,
            settings.topics.pages,
            settings.group_of("sketch"),
            log,
            time_of=partial(fetch_time, codec=settings.codec),
            rate=self._options.rate,
            once=self._options.once,
        )
        return self._reader

    def run(self) -> None:
        warned = ""
        while not self._runtime.stop.wait(LOOK_SECONDS):
            try:
                self._look()
                warned = ""
            except NeardupError as error:  # the roles report it, too
                if str(error) != warned:
                    _log.warning("the progress of the backfill is unknown", reason=str(error))
                warned = str(error)

    def _look(self) -> None:
        judged, end = self._judged()
        if not self.caught_up:
            read = self._all_read()
            if read and not self._settings.judges_anew and not self._taken_down:
                self._repeat_takedowns()
                return  # the log's end has changed
            if read and 0 <= self._end <= judged:
                self._catch_up()
            # With `once`, the first end counts, although other roles may write more.
            if not (read and self._end >= 0 and self._options.once):
                self._end = end if read else -1
        self._report_progress(judged, end)

    def _judged(self) -> tuple[int, int]:
        """Returns the offset before which the log is judged, and its end."""
        settings = self._settings
        log = self._admin.topic(settings.topics.sketches)
        known = self._admin.committed(settings.group_of("match"), log.name, 0)
        return (known.offset if known else 0), self._admin.offsets(log, "latest")[0]

    def _all_read(self) -> bool:
        """Whether the sketches of all pages before the topic's ends are acknowledged."""
        if self._settings.judges_anew:
            return True
        reader = self._reader
        if reader is None or reader.stops is None:
            return False
        stops = reader.stops
        committed = self._admin.all_committed(self._settings.group_of("sketch"), reader.topic.name, stops)
        return all((known.offset if known else 0) >= stops[partition] for partition, known in committed.items())

    def _repeat_takedowns(self) -> None:
        """Repeats the takedowns, because taken-down pages may have been read again from `pages` or archives.

        (1) Write them into the log; (2) record their position. After a kill between the steps they are written once
        more, behind later messages. Raises StateError if the control topic does not have the generation: then it lacks
        the takedowns, too.
        """
        recorded, name = self._control.read(), self._generation.name
        known = recorded.known.get(name)
        if known is None:
            raise StateError(
                f"topic {self._control.name} has neither generation {name} nor takedowns: the generation was removed, "
                "or the topic was recreated; the generation has not caught up"
            )
        if known.takedowns_at is None:
            at = repeat_takedowns(self._settings, recorded.takedowns)  # (1)
            self._control.describe(replace(known, takedowns_at=at))  # (2)
            _log.info("repeated takedowns", count=len(recorded.takedowns), offset=at)
        self._taken_down = True

    def _report_progress(self, judged: int, end: int) -> None:
        reader = self._reader
        if self.caught_up:
            self._progress.report_live()
        elif self._settings.judges_anew:
            self._progress.report("messages", judged, end)
        elif self.archives is not None and not self.archives.done:
            self._progress.report("bytes of archives", self.archives.bytes_done, self.archives.bytes_total)
        else:
            self._progress.report("pages", reader.done if reader else 0, reader.total if reader else 0)

    def _catch_up(self) -> None:
        name = self._generation.name
        known = self._control.read().known.get(name, self._generation)
        if known.filling:
            self._control.describe(known.in_stage(Stage.CAUGHT_UP))
        self.caught_up = True
        ends, then = "follows the live topic", f"neardup generation cutover {name}"
        if self._options.once:
            ends = "ends: nothing judges its further pages"
            then = f"neardup backfill --generation {name} without --once, which serves it; beside it {then}"
        _log.info(f"caught up, and {ends}", generation=name, compare="neardup diff", then=then)
        if self._options.once:
            self._runtime.stop.set()
