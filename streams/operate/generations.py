"""Generations, by the control topic: lists them, and removes one with its topics.

The topic has the policy of canonical pages, too.
"""

from dataclasses import dataclass, replace

from neardup.canonical import policy_of, policy_text
from neardup.errors import BadInput, StateError
from streams.config.settings import Settings
from streams.kafka import Admin, Generations
from streams.kafka.reader import behind
from streams.roles.own_generation import PRESENT, control_topic, presence_of, settings_of, shown
from streams.roles.runtime import connect, greet


def hold_stream(settings: Settings, text: str | None) -> tuple[str, ...]:
    """Returns the stream's policy. text: a new policy to set first, as a record of the control topic; None: none.

    Raises BadInput, BrokerError, CorruptRecord.
    """
    required = None if text is None else policy_of(text)
    greet(settings, "topics")
    control = control_topic(settings, "topics")
    if required is not None:
        control.create()
        control.choose_canonical(policy_text(required))
    return policy_of(control.read().canonical)


@dataclass(frozen=True, slots=True)
class Described:
    """One generation, as `neardup generation list` lists it.

    stage: `live`, or a Stage; "" if no stage is recorded.
    pages_behind: number of records of `pages` that the sketchers of the generation (or of the generation whose sketches
        are judged) have not read. messages_behind: number of messages of the log that are not judged. None: the
        generation has no such topics.
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
    """All recorded generations, the live one first, then by name; without a removed one, although it was live before.

    Raises BrokerError, CorruptRecord.
    """
    return described_by(settings, Admin(connect(settings, "topics")), control_topic(settings, "topics").read())


def described_by(settings: Settings, admin: Admin, recorded: Generations) -> list[Described]:
    """The same, from the content of the control topic. Raises BrokerError."""
    names = sorted({recorded.live, *recorded.known, *([recorded.before] if recorded.before is not None else [])} | {""})
    rows = [_described(settings, admin, recorded, name) for name in names]
    there = [row for row in rows if row.live or row.stage or not row.name or row.messages_behind is not None]
    return sorted(there, key=lambda row: (not row.live, row.name))


def _described(settings: Settings, admin: Admin, recorded: Generations, name: str) -> Described:
    known = recorded.known.get(name)
    pages, messages = behind_of(settings_of(settings, recorded, name), admin)
    return Described(
        name=name,
        stage="live" if name == recorded.live else known.stage if known else "",
        live=name == recorded.live,
        scheme=known.scheme if known else "",
        decider=known.decider if known else "",
        sketches_of=known.sketches_of if known else None,
        created_ms=known.created_ms if known else 0,
        staged_ms=recorded.since_ms if name == recorded.live else known.staged_ms if known else 0,
        pages_behind=pages,
        messages_behind=messages,
    )


def sketchers_of(settings: Settings) -> Settings:
    """The settings of the sketchers that this generation depends on, which may be another one's."""
    return replace(settings, generation=settings.sketches_of or "") if settings.judges_anew else settings


def behind_of(settings: Settings, admin: Admin) -> tuple[int | None, int | None]:
    """Returns the records of `pages` that are not sketched, and the messages of the log that are not judged."""
    topics = settings.topics
    there = admin.topics([topics.pages, topics.sketches, topics.verdicts])
    pages = messages = None
    if topics.pages in there and topics.sketches in there:
        pages = sum(behind(admin, sketchers_of(settings).group_of("sketch"), there[topics.pages]).values())
    if topics.sketches in there and topics.verdicts in there:
        known = admin.committed(settings.group_of("match"), topics.sketches, 0)
        messages = max(0, admin.offsets(there[topics.sketches], "latest")[0] - (known.offset if known else 0))
    return pages, messages


def removed(settings: Settings, name: str) -> list[str]:
    """Deletes a generation's topics and offsets, then its record, and returns the topics' names.

    Before it deletes anything, raises BadInput for the live generation, an unknown one, and one whose sketches another
    one judges; StateError if its roles run. Raises BrokerError.
    """
    control = control_topic(settings, "topics")
    recorded = control.read()
    if name == recorded.live:
        raise BadInput(
            f"generation {shown(name)} is live; first cut over to another one: neardup generation cutover NAME"
        )
    known = recorded.known.get(name)
    if known is None and name:
        raise BadInput(f"there is no generation {shown(name)}; neardup generation list lists them")
    users = [other for other, each in recorded.known.items() if each.sketches_of == name]
    if users:
        raise BadInput(f"generation {shown(name)}: its sketches are judged by {', '.join(users)}; remove these first")
    own, admin = settings_of(settings, recorded, name), Admin(connect(settings, "topics"))
    topics = [own.topics.verdicts]
    if known is None or known.sketches_of is None:
        topics += [own.topics.rejected, own.topics.sketches]
    groups = [own.group_of(role) for role in ("sketch", "views", "match")]
    groups += [presence_of(own, role) for role in PRESENT]
    served = [f"{member.client_id} at {member.host}" for group in groups for member in admin.members(group)]
    if served:
        raise StateError(
            f"generation {shown(name)} is served by {', '.join(served)}: stop its roles first (a killed one counts "
            "until its session ends, after 10 s)"
        )
    for group in groups:
        admin.forget(group, [])
    admin.forget(own.group_of("match"), topics)
    control.forget(name)
    return topics
