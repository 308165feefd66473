"""Generations, by the control topic: checks a role's own, reports the live one, lists and removes them.

The topic has the policy of canonical pages, too.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from neardup.canonical import policy_of, policy_text
from neardup.errors import BadInput, NeardupError, StateError
from streams.config.settings import Role, Settings
from streams.errors import SET_THE_SCHEME, BrokerError
from streams.kafka import Admin, ControlReader, ControlTopic, Generation, Generations
from streams.kafka.assignment import Assignment
from streams.kafka.reader import behind
from streams.kafka.shard_answers import beats_of
from streams.process import logs
from streams.roles.runtime import Runtime, connect, greet

_log = logs.get("generations")

#: Between two reads of the control topic; a missing topic is requested once in so many.
_LOOK_SECONDS = 5.0
_MISSING_LOOKS = 6
#: Roles that are members of a group while they run. The others have a group in any case.
_PRESENT: tuple[Role, ...] = ("match", "shard")


def shown(name: str) -> str:
    """A generation's name in texts."""
    return name or "(unnamed)"


def control_topic(settings: Settings, role: Role, runtime: Runtime | None = None) -> ControlTopic:
    """The control topic, by a role's connection. Raises BrokerError."""
    return ControlTopic(connect(settings, role, runtime), settings.generations_topic)


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


def settings_of(settings: Settings, recorded: Generations, name: str) -> Settings:
    """The settings that name a generation's topics and groups.

    recorded: decides whose sketches it judges. A generation that is not recorded is as the settings describe it if it
    is theirs; else it has a log of its own.
    """
    if name == settings.generation and name not in recorded.known:
        return settings
    log = recorded.log_of(name)
    return replace(settings, generation=name, sketches_of=None if log == name else log)


def serving_settings(settings: Settings, name: str | None = None) -> Settings:
    """The settings that name the topics of a generation; None: of the live one. Raises BrokerError, CorruptRecord."""
    recorded = _recorded(settings, "verdicts", None)
    return settings_of(settings, recorded, recorded.live if name is None else name)


def presence_of(settings: Settings, role: Role) -> str:
    """The group whose members are the running processes of a role: matchers with standbys, or processes of shards.

    The offsets of matchers are committed by transactions, in another group, which has no members. Shards that are
    started by their numbers belong to no other group.
    """
    return f"{settings.group_of(role)}:present"


def check_own(settings: Settings, known: Generation | None) -> None:
    """Raises StateError if the generation was made with other settings. known: None if it is not recorded."""
    if known is None:
        return
    own = settings.sketches_of if settings.judges_anew else None
    name, scheme = shown(settings.generation), settings.scheme().digest
    if known.scheme != scheme:
        raise StateError(
            f"generation {name} was made with scheme {known.scheme}, and {scheme} is set: their sketches never meet; "
            f"{SET_THE_SCHEME} that it was made with, or name another generation",
        )
    if known.sketches_of != own:
        made = "its own sketches" if known.sketches_of is None else f"the sketches of {shown(known.sketches_of)}"
        how = "leave sketches_of out" if known.sketches_of is None else f"set sketches_of = {known.sketches_of!r}"
        raise StateError(f"generation {name} judges {made}: {how}, or name another generation")


@contextmanager
def generation_served(settings: Settings, role: Role, runtime: Runtime) -> Iterator[Generation | None]:
    """Checks the role's generation and yields its record. Meanwhile reports the live generation to health and metrics.

    A matcher or shard is meanwhile a member of the group `presence_of`. Raises StateError as `check_own`,
    CorruptRecord, BrokerError.
    """
    recorded = _recorded(settings, role, runtime)
    known = recorded.known.get(settings.generation)
    check_own(settings, known)
    _report(settings, runtime, recorded.live)
    over = threading.Event()
    present = None
    if role in _PRESENT:
        present = Assignment(connect(settings, role), settings.topics.sketches, presence_of(settings, role))
    watch = threading.Thread(
        target=_watch,
        args=(settings, role, runtime, over, recorded.live, present),
        name="neardup-generations",
        daemon=True,
    )
    watch.start()
    try:
        yield known
    finally:
        over.set()
        watch.join(_LOOK_SECONDS)


def _recorded(settings: Settings, role: Role, runtime: Runtime | None) -> Generations:
    try:
        return control_topic(settings, role, runtime).read()
    except BrokerError as error:
        if "AUTHORIZATION" not in str(error):
            raise
        _log.warning("the live generation is unknown: this user may not read the control topic", reason=str(error))
        return Generations()


def _report(settings: Settings, runtime: Runtime, live: str) -> None:
    runtime.metrics.generation_live.set(settings.generation == live)
    runtime.health.facts = {"generation": settings.generation, "live": live}


def _watch(
    settings: Settings, role: Role, runtime: Runtime, over: threading.Event, live: str, present: Assignment | None
) -> None:
    """Follows the control topic. An error does not stop the role: the read is repeated."""
    reader: ControlReader | None = None
    connection = replace(connect(settings, role), stop=runtime.stop)  # without a heartbeat for the role
    control = ControlTopic(connection, settings.generations_topic)
    missing, warned = 0, ""
    while not over.wait(_LOOK_SECONDS):
        if present is not None:
            present.look()
        try:
            if reader is None:
                missing += 1
                if missing % _MISSING_LOOKS != 1 or not control.exists():
                    continue
                reader = control.follow()
            found = reader.look().live
            if found != live:
                _log.info("live generation", live=shown(found), serves=shown(settings.generation))
                _report(settings, runtime, found)
            live, warned = found, ""
        except NeardupError as error:
            if str(error) != warned:
                _log.warning("the control topic cannot be read", reason=str(error))
            warned = str(error)
            if reader is not None:
                with suppress(NeardupError):
                    reader.close()
            reader = None
    if present is not None:
        present.close()
    if reader is not None:
        reader.close()


@dataclass(frozen=True, slots=True)
class Described:
    """One generation, as `neardup generation list` lists it.

    stage: `live`, or a Stage; "" if it is not recorded. pages_behind: records of `pages` that its sketchers
    (or those of the generation whose sketches it judges) have not read. messages_behind: of the log, not judged. None:
    it has no such topics.
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
    """All recorded generations, the live one first, then by name. Raises BrokerError, CorruptRecord."""
    return described_by(settings, Admin(connect(settings, "topics")), control_topic(settings, "topics").read())


def described_by(settings: Settings, admin: Admin, recorded: Generations) -> list[Described]:
    """The same, from the content of the control topic. Raises BrokerError."""
    names = sorted({recorded.live, *recorded.known, *([recorded.before] if recorded.before is not None else [])} | {""})
    rows = [_described(settings, admin, recorded, name) for name in names]
    return sorted(rows, key=lambda row: (not row.live, row.name))


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
    topics = [own.topics.verdicts, *topics_between(own, admin)]
    if known is None or known.sketches_of is None:
        topics += [own.topics.rejected, own.topics.sketches]
    groups = [own.group_of(role) for role in ("sketch", "views", "match", "shard")]
    groups += [presence_of(own, role) for role in _PRESENT]
    groups.append(beats_of(own.group_of("shard")))
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


def topics_between(settings: Settings, admin: Admin) -> list[str]:
    """The topics between shards and judge, if the generation has shards."""
    names = replace(settings, shards=1).topics
    return sorted(admin.topics([names.candidates, names.effects]))
