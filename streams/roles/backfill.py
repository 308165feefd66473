"""A backfill: history judged once more, into a generation of its own, beside the live one.

Where the sketches of the live generation can be used, its log is folded by another decider, and no page is read. Else
`pages` is read from its begin on, partitions merged by fetch time (`streams.kafka.merged`), by the same two roles that
serve the live stream: what is committed is never read again, what is not is sent again and dropped by its marks. So it
may be stopped and killed at any moment, and the same call goes on. Once it has caught up it follows the live topic.

What was taken down stays down: once history is read, all takedowns that the control topic keeps are repeated behind
it, at one position of the log, which the control topic then holds. Without them it has not caught up.

The control topic says what the generation was made with, so that a call that goes on is held to it. It may go on once
the generation is live, too.
"""

import threading
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version

from neardup.errors import BadInput, CorruptRecord, NeardupError, StateError
from streams.config.settings import Settings
from streams.formats.codecs import fetch_time
from streams.formats.message import decode_entry
from streams.kafka import Admin, Connection, ControlTopic, Generation, Generations, KafkaLog, MergedPages, Stage, Topic
from streams.kafka.generations import now_ms
from streams.kafka.topics import Sizes, compacted, create
from streams.process import logs
from streams.roles.archives import ArchivesRole, known_of, open_archives
from streams.roles.both import run_both
from streams.roles.generations import check_own, control_topic, settings_of, shown
from streams.roles.operator import repeat_takedowns
from streams.roles.runtime import STOP_SECONDS_MAX, Runtime, connect, serving
from streams.roles.telling import Shown, Telling
from streams.roles.wiring import run_matcher, run_sketcher

_log = logs.get("backfill")

#: Between two looks at how far it is.
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Wishes:
    """rate: pages a second at most; 0: no limit. once: ends at the ends of now, instead of following the live topic.
    read_pages: also where there are sketches that could be used. archives: paths and URLs of what is read before them.
    """

    rate: float = 0.0
    once: bool = False
    read_pages: bool = False
    archives: tuple[str, ...] = ()


def run_backfill(
    settings: Settings, wishes: Wishes = Wishes(), runtime: Runtime | None = None, *, shown: Shown | None = None
) -> bool:
    """Fills `settings.generation` until it is stopped, or, with `once`, has caught up; whether it has: without `once`
    also if an earlier call has.

    settings: of the new generation: its scheme, decider and state directory. runtime: by default one with logs, metrics
    and signals of its own. shown: tells a person how far it is; by default the log does. Raises BadInput for a
    generation that is live, or exists, and was not begun by a backfill; StateError where it was begun with another
    scheme or decider; and what the roles raise.
    """
    if runtime is None:
        with serving(settings, "backfill") as made:
            return run_backfill(settings, wishes, made, shown=shown)
        return False  # it was told to stop while it waited for Kafka
    sources = open_archives(wishes.archives, settings) if settings.generation else []
    settings, generation, control = _begun(settings, wishes, tuple(source.record.id for source in sources))
    runtime = replace(runtime, settings=settings)
    known = known_of(sources, settings) if sources else ({}, 0)
    archives = ArchivesRole(sources, known, settings, wishes.rate)
    watch = _Watch(settings, wishes, runtime, control, generation, Telling(shown))
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
            run_both(settings, runtime, sketcher=sketch)
    finally:
        runtime.stop.set()
        thread.join(LOOK_SECONDS + STOP_SECONDS_MAX)
    return watch.caught_up or not (wishes.once or generation.filling)


def _begun(settings: Settings, wishes: Wishes, archives: tuple[str, ...]) -> tuple[Settings, Generation, ControlTopic]:
    """The generation's settings and description; its topics are made, and the control topic knows of it."""
    name = settings.generation
    if not name:
        raise BadInput("a backfill fills a generation of its own: name it, as --generation second")
    admin = Admin(connect(settings, "topics"))
    control = control_topic(settings, "topics")
    said = control.read()
    known = said.known.get(name)
    if known is None and said.live == name:
        own = replace(settings, sketches_of=None)
        roles = f"run --generation {name}"
        if own.topics.sketches not in admin.topics([own.topics.sketches]):
            roles = f"match --generation {name} --sketches-of OTHER, the one whose sketches it judges"
        raise BadInput(
            f"generation {name} is the live one, and no backfill began it: each page would be judged a copy of itself; "
            f"name another one (to go on serving it: neardup {roles})"
        )
    if known is None:
        _must_be_new(admin, replace(settings, sketches_of=None))
        known = replace(_described(settings, said, wishes), archives=archives)
    settings = replace(settings, sketches_of=known.sketches_of)
    check_own(settings, known)
    decider = settings.decider(settings.scheme()).digest
    if known.decider != decider:
        raise StateError(
            f"generation {name} was begun with decider {known.decider}, and {decider} is set: one generation is judged "
            f"by one rule; set what it was, or remove it: neardup generations remove {name}",
        )
    if known.archives != archives:
        raise StateError(
            f"generation {name} was begun with {len(known.archives)} archives, and others are named now: the order "
            "would be another one; name the same ones, in the same order"
        )
    sizes = _sizes(admin, settings, said)
    control.create(sizes.replicas)
    create(admin, settings.topics, sizes)
    if known.stage is Stage.MADE:
        control.describe(known := known.at(Stage.FILLING))
    return settings, known, control


def _must_be_new(admin: Admin, settings: Settings) -> None:
    """Raises BadInput if the generation has topics that hold something already."""
    names = settings.topics
    for topic in admin.topics([names.sketches, names.verdicts]).values():
        if sum(admin.offsets(topic, "latest").values()):
            raise BadInput(
                f"topic {topic.name} holds something, and {settings.generations_topic} knows of no generation "
                f"{settings.generation}: somebody else's roles serve it; name another one"
            )


def _described(settings: Settings, said: Generations, wishes: Wishes) -> Generation:
    scheme = settings.scheme()
    of = settings.sketches_of
    if of is None:
        of = said.log_of(said.live)
        asked = wishes.read_pages or wishes.archives
        why = "so it was asked for" if asked else _why_not_reused(settings, of, scheme.digest)
        if why:
            _log.info("pages are read, and sketched anew", reason=why)
            of = None
        else:
            _log.info("sketches are reused: their log is folded, and no page is read", sketches_of=shown(of))
    decider, now = settings.decider(scheme).digest, now_ms()
    return Generation(
        settings.generation, scheme.digest, decider, of, created_ms=now, staged_ms=now, version=version("neardup")
    )


def _why_not_reused(settings: Settings, of: str, scheme: str) -> str:
    """Why a generation's sketches cannot be judged by another decider; empty if they can."""
    topic = replace(settings, sketches_of=of).topics.sketches
    if not Admin(connect(settings, "match")).topics([topic]):
        return f"there is no topic {topic}"
    with closing(KafkaLog(connect(settings, "match", reading=True), topic)) as log:
        begin, newest = log.begin(), log.last().get(0)
    if newest is None:
        return f"topic {topic} is empty"
    if begin:
        return f"topic {topic} begins at offset {begin}: what was before is gone"
    try:
        held = decode_entry(newest.value() or b"", newest.offset()).scheme.hex()
    except CorruptRecord as error:
        return str(error)
    return "" if held == scheme else f"topic {topic} holds sketches of scheme {held}, and {scheme} is set"


def _sizes(admin: Admin, settings: Settings, said: Generations) -> Sizes:
    """As the topics of the live generation are."""
    live = settings_of(settings, said, said.live).topics
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


class _Watch:
    """Looks on from a thread of its own, tells how far it is, and writes down that it has caught up."""

    def __init__(
        self,
        settings: Settings,
        wishes: Wishes,
        runtime: Runtime,
        control: ControlTopic,
        generation: Generation,
        telling: Telling,
    ) -> None:
        self._settings, self._wishes, self._runtime = settings, wishes, runtime
        self._telling = telling
        self._control, self._generation = control, generation
        self._admin = Admin(replace(connect(settings, "match"), stop=runtime.stop))
        self.archives: ArchivesRole | None = None
        self._reader: MergedPages | None = None
        self._end = -1  # of the log, as it was seen last: whoever is there has caught up
        self._taken_down = False
        self.caught_up = False

    def make_reader(self, connection: Connection, log: Topic) -> MergedPages:
        settings = self._settings
        self._reader = MergedPages(
            connection,
            settings.topics.pages,
            settings.group_of("sketch"),
            log,
            time_of=partial(fetch_time, codec=settings.codec),
            rate=self._wishes.rate,
            once=self._wishes.once,
        )
        return self._reader

    def run(self) -> None:
        warned = ""
        while not self._runtime.stop.wait(LOOK_SECONDS):
            try:
                self._look()
                warned = ""
            except NeardupError as error:  # whoever does the work says so, too
                if str(error) != warned:
                    _log.warning("it cannot be told how far the backfill is", reason=str(error))
                warned = str(error)

    def _look(self) -> None:
        judged, end = self._judged()
        if not self.caught_up:
            read = self._all_read()
            if read and not self._settings.judges_anew and not self._taken_down:
                self._repeat_takedowns()
                return  # the end is another one now
            if read and 0 <= self._end <= judged:
                self._catch_up()
            # With `once` the end of a log that others write to stays what it was at first.
            if not (read and self._end >= 0 and self._wishes.once):
                self._end = end if read else -1
        self._tell_progress(judged, end)

    def _judged(self) -> tuple[int, int]:
        """Up to where the log is judged, and its end."""
        settings = self._settings
        log = self._admin.topic(settings.topics.sketches)
        known = self._admin.committed(settings.group_of("match"), log.name, 0)
        return (known.offset if known else 0), self._admin.offsets(log, "latest")[0]

    def _all_read(self) -> bool:
        """Whether sketches of everything up to the ends are acknowledged."""
        if self._settings.judges_anew:
            return True
        reader = self._reader
        if reader is None or reader.stops is None:
            return False
        stops = reader.stops
        committed = self._admin.all_committed(self._settings.group_of("sketch"), reader.topic.name, stops)
        return all((known.offset if known else 0) >= stops[partition] for partition, known in committed.items())

    def _repeat_takedowns(self) -> None:
        """Pages that were taken down may have been read again: they lie in `pages`, or in archives.

        A kill between the two steps repeats them once more behind what came meanwhile: (1) write them into the log;
        (2) remember their position. Raises StateError where the control topic does not know the generation: then it
        does not know the takedowns either.
        """
        said, name = self._control.read(), self._generation.name
        known = said.known.get(name)
        if known is None:
            raise StateError(
                f"topic {self._control.name} knows nothing of generation {name}, nor of takedowns: it was removed, or "
                "the topic was made anew; the generation has not caught up"
            )
        if known.takedowns_at is None:
            at = repeat_takedowns(self._settings, said.takedowns)  # (1)
            self._control.describe(replace(known, takedowns_at=at))  # (2)
            _log.info("takedowns are repeated", count=len(said.takedowns), offset=at)
        self._taken_down = True

    def _tell_progress(self, judged: int, end: int) -> None:
        reader = self._reader
        if self.caught_up:
            self._telling.follows()
        elif self._settings.judges_anew:
            self._telling.tell("messages", judged, end)
        elif self.archives is not None and not self.archives.done:
            self._telling.tell("bytes of archives", self.archives.bytes_done, self.archives.bytes_total)
        else:
            self._telling.tell("pages", reader.done if reader else 0, reader.total if reader else 0)

    def _catch_up(self) -> None:
        name = self._generation.name
        known = self._control.read().known.get(name, self._generation)
        if known.filling:
            self._control.describe(known.at(Stage.CAUGHT_UP))
        self.caught_up = True
        then = "ends" if self._wishes.once else "follows the live topic"
        _log.info(f"caught up, and {then}", generation=name, compare="neardup diff", then=f"neardup cutover {name}")
        if self._wishes.once:
            self._runtime.stop.set()
