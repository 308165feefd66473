"""What a role knows of generations: how its own is described, and which one is live."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from neardup.errors import NeardupError, StateError
from streams.config.settings import Role, Settings
from streams.errors import SET_THE_SCHEME, BrokerError
from streams.kafka import ControlReader, ControlTopic, Generation, Generations
from streams.kafka.leader import Leader
from streams.process import logs
from streams.roles.runtime import Runtime, connect

_log = logs.get("generations")

#: Between two looks at the control topic; one that is missing is asked for less often.
_LOOK_SECONDS = 5.0
_MISSING_LOOKS = 6


def shown(name: str) -> str:
    """A generation's name for people."""
    return name or "(unnamed)"


def control_topic(settings: Settings, role: Role, runtime: Runtime | None = None) -> ControlTopic:
    """The control topic, by a role's connection. Raises BrokerError."""
    return ControlTopic(connect(settings, role, runtime), settings.generations_topic)


def settings_of(settings: Settings, said: Generations, name: str) -> Settings:
    """The settings with which a generation's topics and groups are named, as the control topic describes it.

    One that the control topic does not know is as the settings say, if it is theirs, and else has a log of its own.
    """
    if name == settings.generation and name not in said.known:
        return settings
    log = said.log_of(name)
    return replace(settings, generation=name, sketches_of=None if log == name else log)


def presence_of(settings: Settings) -> str:
    """The group whose members are the matchers of a generation that run, standbys too: their offsets are committed by
    transactions, in a group that has no members."""
    return f"{settings.group_of('match')}:present"


def check_own(settings: Settings, known: Generation | None) -> None:
    """Raises StateError where the settings are not those that the generation was made with. known: None: not said."""
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
    """Checks the role's own generation, and reports to health and metrics meanwhile which one is live. Yields what the
    control topic knows of the role's own. A matcher is a member of `presence_of` meanwhile.

    Raises StateError as `check_own`, CorruptRecord, BrokerError.
    """
    said = _said(settings, role, runtime)
    known = said.known.get(settings.generation)
    check_own(settings, known)
    _tell(settings, runtime, said.live)
    over = threading.Event()
    present = None
    if role == "match":
        present = Leader(connect(settings, role), settings.topics.sketches, presence_of(settings))
    watch = threading.Thread(
        target=_watch, args=(settings, role, runtime, over, said.live, present), name="neardup-generations", daemon=True
    )
    watch.start()
    try:
        yield known
    finally:
        over.set()
        watch.join(_LOOK_SECONDS)


def _said(settings: Settings, role: Role, runtime: Runtime) -> Generations:
    try:
        return control_topic(settings, role, runtime).read()
    except BrokerError as error:
        if "AUTHORIZATION" not in str(error):
            raise
        _log.warning("which generation is live is not known: this user may not read it", reason=str(error))
        return Generations()


def _tell(settings: Settings, runtime: Runtime, live: str) -> None:
    runtime.metrics.generation_live.set(settings.generation == live)
    runtime.health.facts = {"generation": settings.generation, "live": live}


def _watch(
    settings: Settings, role: Role, runtime: Runtime, over: threading.Event, live: str, present: Leader | None
) -> None:
    """A role goes on whatever comes of this: what cannot be read is asked for again."""
    reader: ControlReader | None = None
    connection = replace(connect(settings, role), stop=runtime.stop)  # it must not beat for the role
    control = ControlTopic(connection, settings.generations_topic)
    missing, said = 0, ""
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
                _tell(settings, runtime, found)
            live, said = found, ""
        except NeardupError as error:
            if str(error) != said:
                _log.warning("the control topic cannot be read", reason=str(error))
            said = str(error)
            if reader is not None:
                with suppress(NeardupError):
                    reader.close()
            reader = None
    if present is not None:
        present.close()
    if reader is not None:
        reader.close()
