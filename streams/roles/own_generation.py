"""The generation that a role serves, by the control topic: its settings, its check, and whether it is the live one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from neardup.errors import NeardupError, StateError
from streams.config.settings import Role, Settings
from streams.errors import SET_THE_SCHEME, BrokerError
from streams.kafka import ControlReader, ControlTopic, Generation, Generations
from streams.kafka.assignment import Assignment
from streams.process import logs
from streams.roles.runtime import Runtime, connect

_log = logs.get("generations")

#: Between two reads of the control topic; a missing topic is requested once in so many.
_LOOK_SECONDS = 5.0
_MISSING_LOOKS = 6
#: Roles that are members of a group while they run. The others have a group in any case.
PRESENT: tuple[Role, ...] = ("match",)


def shown(name: str) -> str:
    """A generation's name in texts."""
    return name or "(unnamed)"


def control_topic(settings: Settings, role: Role, runtime: Runtime | None = None) -> ControlTopic:
    """The control topic, by a role's connection. Raises BrokerError."""
    return ControlTopic(connect(settings, role, runtime), settings.generations_topic)


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
    """The settings that name the topics of a generation, by default of the live one.

    Raises BrokerError, CorruptRecord.
    """
    recorded = _recorded(settings, "verdicts", None)
    return settings_of(settings, recorded, recorded.live if name is None else name)


def presence_of(settings: Settings, role: Role) -> str:
    """The group whose members are the running processes of a role: matchers with standbys.

    The offsets of matchers are committed by transactions, in another group, which has no members.
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

    A matcher is meanwhile a member of the group `presence_of`. Raises StateError as `check_own`,
    CorruptRecord, BrokerError.
    """
    recorded = _recorded(settings, role, runtime)
    known = recorded.known.get(settings.generation)
    check_own(settings, known)
    _report(settings, runtime, recorded.live)
    over = threading.Event()
    present = None
    if role in PRESENT:
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
