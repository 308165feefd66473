"""`neardup generations`, `cutover`: which generations there are, which one is live, and how that changes."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rich.table import Table

from neardup.errors import BadInput, StateError
from streams.config.settings import Settings
from streams.kafka import Admin, Generation, Generations, Stage
from streams.roles.generations import control_topic, presence_of, settings_of, shown
from streams.roles.runtime import connect

#: A live crawl is never quite still: so many records and messages behind count as caught up.
BEHIND_PAGES_MAX = 10_000
BEHIND_MESSAGES_MAX = 100


@dataclass(frozen=True, slots=True)
class Described:
    """One generation, as `neardup generations` tells it.

    stage: `live`, or a Stage; "" where nothing is known of it. pages_behind: records of `pages` that its sketchers (or
    those whose sketches it judges) have not read; messages_behind: of the log, not judged; None: it has no such topics.
    """

    name: str
    stage: str
    live: bool
    scheme: str
    decider: str
    sketches_of: str | None
    created_ms: int
    staged_ms: int
    pages_behind: int | None
    messages_behind: int | None


def described(settings: Settings) -> list[Described]:
    """All generations that are known of, the live one first, then by name. Raises BrokerError, CorruptRecord."""
    return described_by(settings, Admin(connect(settings, "topics")), control_topic(settings, "topics").read())


def described_by(settings: Settings, admin: Admin, said: Generations) -> list[Described]:
    """The same, of what the control topic said. Raises BrokerError."""
    names = sorted({said.live, *said.known, *([said.before] if said.before is not None else [])} | {""})
    rows = [_described(settings, admin, said, name) for name in names]
    return sorted(rows, key=lambda row: (not row.live, row.name))


def _described(settings: Settings, admin: Admin, said: Generations, name: str) -> Described:
    known = said.known.get(name)
    pages, messages = _behind(settings_of(settings, said, name), admin)
    return Described(
        name=name,
        stage="live" if name == said.live else known.stage if known else "",
        live=name == said.live,
        scheme=known.scheme if known else "",
        decider=known.decider if known else "",
        sketches_of=known.sketches_of if known else None,
        created_ms=known.created_ms if known else 0,
        staged_ms=said.since_ms if name == said.live else known.staged_ms if known else 0,
        pages_behind=pages,
        messages_behind=messages,
    )


def sketchers_of(settings: Settings) -> Settings:
    """The settings of those who sketch for this generation, which may be another one's."""
    return replace(settings, generation=settings.sketches_of or "") if settings.judges_anew else settings


def _behind(settings: Settings, admin: Admin) -> tuple[int | None, int | None]:
    """Records of `pages` that are not sketched, and messages of the log that are not judged."""
    topics = settings.topics
    there = admin.topics([topics.pages, topics.sketches, topics.verdicts])
    pages = messages = None
    sketching = sketchers_of(settings)
    if topics.pages in there and topics.sketches in there:
        begins, ends = (admin.offsets(there[topics.pages], when) for when in ("earliest", "latest"))
        pages = 0
        committed = admin.all_committed(sketching.group_of("sketch"), topics.pages, ends)
        for partition, end in ends.items():
            known = committed[partition]
            pages += max(0, end - (known.offset if known else begins[partition]))
    if topics.sketches in there and topics.verdicts in there:
        known = admin.committed(settings.group_of("match"), topics.sketches, 0)
        messages = max(0, admin.offsets(there[topics.sketches], "latest")[0] - (known.offset if known else 0))
    return pages, messages


def cut_over(settings: Settings, name: str, *, force: bool = False) -> str:
    """Makes a generation the live one and returns which one was.

    Raises BadInput for one that is not known, StateError for one that has not caught up, or that was never live and
    lacks verdicts that retention has removed; BrokerError.
    """
    control = control_topic(settings, "topics")
    said = control.read()
    if name == said.live:
        raise BadInput(f"generation {shown(name)} is live already")
    known = said.known.get(name)
    admin = Admin(connect(settings, "topics"))
    own = settings_of(settings, said, name)
    if known is None and own.topics.verdicts not in admin.topics([own.topics.verdicts]):
        raise BadInput(f"there is no generation {shown(name)}; neardup generations lists them")
    if not force:
        _must_have_caught_up(own, admin, known)
        if name and (known is None or known.stage is not Stage.RETIRED):  # no client has read it yet
            _must_be_whole(own, admin)
    control.create()
    before = said.known.get(said.live)
    control.cut_over(name, said.live)  # from here on it is done, whatever becomes of what follows
    if before is not None and not before.filling:  # else its backfill has still to go on
        control.describe(before.at(Stage.RETIRED))
    return said.live


def _must_have_caught_up(settings: Settings, admin: Admin, known: Generation | None) -> None:
    name = shown(settings.generation)
    if known is not None and known.filling:
        raise StateError(
            f"generation {name} has not caught up ({known.stage}): let neardup backfill --generation "
            f"{settings.generation} go on until it says so, or add --force (then pages that were taken down show again "
            "until it has)"
        )
    pages, messages = _behind(settings, admin)
    if pages is None or messages is None:
        raise StateError(f"generation {name} lacks topics: see neardup topics check --generation {settings.generation}")
    if pages > BEHIND_PAGES_MAX or messages > BEHIND_MESSAGES_MAX:
        raise StateError(
            f"generation {name} is {pages:,} pages and {messages:,} messages behind: do its roles run? Clients would "
            "wait for what they have from the live one; start its roles, or add --force"
        )


def _must_be_whole(settings: Settings, admin: Admin) -> None:
    """Raises StateError if a client that reads the generation's verdicts for the first time would lack some."""
    topic, name = admin.topic(settings.topics.verdicts), settings.generation
    begin, partition = max((begin, partition) for partition, begin in admin.offsets(topic, "earliest").items())
    if not begin:
        return
    judges = f" --sketches-of {settings.sketches_of or chr(39) * 2}" if settings.judges_anew else ""
    raise StateError(
        f"retention has removed verdicts of generation {name} (topic {topic.name}, partition {partition} begins at "
        f"offset {begin}): clients that read it for the first time would lack them. Stop its matcher; write all its "
        f"verdicts again, with the matcher's other settings (neardup replay --generation {name}{judges} --to-topic "
        f"{topic.name}); start its matcher; then neardup cutover {name} --force"
    )


def removed(settings: Settings, name: str) -> list[str]:
    """Deletes a generation's topics and offsets, then the record of it; the topics' names.

    Raises, before anything is deleted, BadInput for the live one, one whose sketches another one judges, and one that
    is not known; StateError where its roles run. BrokerError.
    """
    control = control_topic(settings, "topics")
    said = control.read()
    if name == said.live:
        raise BadInput(f"generation {shown(name)} is live; cut over to another one before: neardup cutover NAME")
    known = said.known.get(name)
    if known is None and name:
        raise BadInput(f"nothing is known of a generation {shown(name)}; neardup generations lists them")
    users = [other for other, each in said.known.items() if each.sketches_of == name]
    if users:
        raise BadInput(f"generation {shown(name)}: its sketches are judged by {', '.join(users)}; remove these before")
    own = settings_of(settings, said, name)
    topics = [own.topics.verdicts]
    if known is None or known.sketches_of is None:
        topics += [own.topics.rejected, own.topics.sketches]
    admin = Admin(connect(settings, "topics"))
    groups = own.group_of("sketch"), own.group_of("views"), presence_of(own), own.group_of("match")
    served = [f"{member.client_id} at {member.host}" for group in groups for member in admin.members(group)]
    if served:
        raise StateError(
            f"generation {shown(name)} is served by {', '.join(served)}: stop its roles before (one that was killed "
            "counts until Kafka misses it, 10 s later)"
        )
    for group in groups:
        admin.forget(group, [])
    admin.forget(own.group_of("match"), topics)
    control.forget(name)
    return topics


def shown_table(rows: list[Described]) -> Table:
    """For a terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("generation", "stage", "since", "behind", "sketches of", "scheme", "decider"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(
            shown(row.name),
            row.stage or "(not said)",
            datetime.fromtimestamp(row.staged_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M") if row.staged_ms else "",
            f"{_count(row.pages_behind)} pages, {_count(row.messages_behind)} messages",
            "" if row.sketches_of is None else shown(row.sketches_of),
            row.scheme[:12],
            row.decider[:12],
        )
    return table


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
