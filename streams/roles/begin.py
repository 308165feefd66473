"""How a matcher begins: what its directory, the log and the verdicts say is compared, and it goes on from there."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.base import Family, Store
from streams.config.settings import Settings
from streams.errors import NEW_GENERATION
from streams.formats.message import NewDecider, encode_control
from streams.pipeline.audit import Audit
from streams.pipeline.control_records import LogFrom
from streams.pipeline.deciders import decider_at, decider_changes_in, describe_change, incompatibility
from streams.pipeline.matcher import Matcher, folded_to
from streams.ports import Committed, Hop, SketchLog, VerdictTransactions
from streams.process import logs
from streams.roles.checkpoint import RoleCheckpoints
from streams.roles.match import Leading, MatchRole
from streams.roles.restart import Newest, Standing, resume_at
from streams.roles.runtime import Runtime

_log = logs.get("match")

#: What an index was folded from, and for: in its META family.
_CLUSTER, _LOG, _VERDICTS, _GENERATION = b"cluster_id", b"topic_id", b"verdicts_id", b"generation"


class Held(Protocol):
    """A matcher's directory, held by this process alone."""

    @property
    def path(self) -> Path: ...
    @property
    def store(self) -> Store: ...

    def first_decider(self, decider: Decider) -> Decider:
        """What decides from the log's begin on; `decider` if nothing is folded yet."""
        ...


@dataclass(frozen=True, slots=True)
class Line:
    """What a matcher begins on. newest: what the verdicts' topic ends with. say: writes an operator's word into the
    log, and returns its offset."""

    log: SketchLog
    ahead: LogFrom
    verdicts: VerdictTransactions
    newest: Callable[[], Newest]
    say: Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the operator wants of this start. decider: that of the settings. new_decider: it decides from here on, where
    the log says that another one did. accept_lost: verdicts that were told and are gone are not told again."""

    decider: Decider
    new_decider: bool = False
    accept_lost: bool = False


def begin(
    line: Line,
    directory: Held,
    wishes: Wishes,
    runtime: Runtime,
    *,
    audit: Audit | None = None,
    checkpoints: RoleCheckpoints | None = None,
    leader: Leading | None = None,
) -> MatchRole:
    """A matcher that goes on where the line and the directory say, all others fenced. Raises as run_matcher.

    (1) Fence; (2) read what is said in the log about the decider; (3) compare; (4) commit the place, where it is not
    committed so: bound to the topics, it outlives what it was derived from; (5) let the index know its topics.
    """
    log, verdicts, store, hop = line.log, line.verdicts, directory.store, line.verdicts.hop
    topics, generation = runtime.settings.topics, runtime.settings.generation
    same_generation(store, generation, str(directory.path))
    verdicts.init()  # (1)
    words = (
        () if runtime.settings.judges_anew else decider_changes_in(line.ahead(max(folded_to(store), log.begin())))
    )  # (2)
    first = directory.first_decider(words[0][1].before if words else wishes.decider)
    verdicts.first = first.digest
    matcher = Matcher(store, first)
    known = verdicts.committed()
    vouched = known is not None and known.hop is not None and matcher.next_offset >= known.offset > 0
    newest = Newest() if vouched else line.newest()
    found = Standing(
        log=topics.sketches,
        verdicts=topics.verdicts,
        state=str(directory.path),
        hop=hop,
        store=matcher.next_offset,
        store_told=matcher.emitted_to,
        store_hop=bound_to(store),
        committed=known,
        begin=log.begin(),
        end=log.end(),
        newest=newest,
    )
    then = decider_at(matcher.decider, words, newest.told.next_offset if newest.told else 0)
    at = resume_at(  # (3)
        found, scheme=first.scheme, first=first.digest, decider=then.digest, accept_lost=wishes.accept_lost
    )
    _log.info("resumes", store=found.store, committed=at, log_begin=found.begin, log_end=found.end)
    if known != Committed(at, hop, first.digest):
        verdicts.commit([], at)  # (4)
    if found.store_hop != hop:
        bind(line, store, generation)  # (5)
    role = MatchRole(
        log, line.ahead, verdicts, store, first, at, runtime, audit=audit, checkpoints=checkpoints, leader=leader
    )
    _decide_by(wishes, decider_at(role.matcher.decider, words, log.end()), runtime.settings, line.say)
    log.follow(role.matcher.next_offset)
    return role


def same_generation(store: Store, generation: str, state: str) -> None:
    """Raises StateError for an index of another generation; one that was made before they were noted is let pass."""
    (held,) = store.get_many(Family.META, [_GENERATION])
    if held is not None and held.decode() != generation:
        raise StateError(
            f"the index in {state} is of generation {held.decode() or '(unnamed)'}, and {generation or '(unnamed)'} is "
            "set: each has a `state` folder of its own; name that of this one",
        )


def bind(line: Line, store: Store, generation: str) -> None:
    """Lets an index know the topics that it is folded from, and for."""
    hop = line.verdicts.hop
    named = {_CLUSTER: line.log.cluster_id, _LOG: hop.source.hex(), _VERDICTS: hop.sink.hex(), _GENERATION: generation}
    store.write({Family.META: {name: value.encode() for name, value in named.items()}})
    store.flush()


def bound_to(store: Store) -> Hop | None:
    """The topics that an index was folded from, and for; None if it does not know."""
    log, verdicts = store.get_many(Family.META, [_LOG, _VERDICTS])
    return None if log is None or verdicts is None else Hop(*(bytes.fromhex(each.decode()) for each in (log, verdicts)))


def refusal(wishes: Wishes, held: Decider, settings: Settings) -> str:
    """Why a matcher must not begin where the log ends with the decider `held`, with what to do; or ""."""
    wanted = wishes.decider
    if wanted.digest == held.digest:
        return ""
    reason = incompatibility(held, wanted)
    if settings.judges_anew:
        reason = "this generation judges another one's sketches by one rule from their begin on"
    if wishes.new_decider and not reason:
        return ""
    advice = f"{reason}: {NEW_GENERATION}" if reason else "add --new-decider: it decides from here on"
    return (
        f"topic {settings.topics.sketches} is decided by rule {held.rule} (decider {held.digest}), and {wanted.rule} "
        f"({wanted.digest}) is set ({describe_change(held, wanted)}); set what it was, or {advice}"
    )


def _decide_by(wishes: Wishes, held: Decider, settings: Settings, say: Callable[[bytes], int]) -> None:
    """Raises StateError if the log ends with another decider than is wanted; or says there that it changes."""
    if refused := refusal(wishes, held, settings):
        raise StateError(refused)
    if wishes.decider.digest != held.digest:
        offset = say(encode_control(NewDecider(held, wishes.decider)))
        _log.info("a new decider is written into the log", offset=offset, change=describe_change(held, wishes.decider))
