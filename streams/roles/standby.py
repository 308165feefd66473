"""A matcher that stands by: it folds what another one has told, in silence, until that one is gone.

(1) Ask up to where verdicts are committed; (2) fold the log up to there, no further: what is not told yet is not
decided yet; (3) look whether this one leads now. Then it begins like any matcher: it fences the other, and folds the
little that it lacks. A crash anywhere leaves an index behind that the log folds forward. That two never tell is the
transactional id's work, as ever: who was only slow is fenced at his next commit, and ends.

A standby is ready only if it could begin: what `begin` would refuse is compared all the time, and the health's reason
says it. It goes on folding meanwhile, for the operator may mend that at the active matcher.
"""

from collections.abc import Callable

from neardup.errors import StateError
from streams.errors import BrokerError, PositionLost
from streams.pipeline.control_records import OperatorDecisions, through_first_control
from streams.pipeline.deciders import decider_changes_in
from streams.pipeline.matcher import Matcher, folded_to
from streams.ports import Committed
from streams.process import logs
from streams.roles.begin import Held, Line, Wishes, bind, bound_to, refusal, same_generation
from streams.roles.match import Leading
from streams.roles.runtime import WAIT_SECONDS, Runtime

_log = logs.get("match")

_MESSAGES = 16
_BYTES_MAX = 16 << 20
#: Between two looks whether the topics are still those of the begin.
_TOPICS_SECONDS = 5.0


def stand_by(
    line: Line,
    directory: Held,
    wishes: Wishes,
    runtime: Runtime,
    leading: Leading,
    told: Callable[[], Committed | None],
) -> None:
    """Returns when this matcher leads, or is stopped. told: the committed place, at once, maybe an old one.

    Raises StateError for an index that is of other topics or another decider, TopicError where a topic was recreated,
    PositionLost where retention has overtaken the index, and what folding raises.
    """
    health, stop = runtime.health.role("match"), runtime.stop
    same_generation(directory.store, runtime.settings.generation, str(directory.path))
    matcher: Matcher | None = None
    topics = _Topics(line, runtime.steady_s)
    said = ""
    while not stop.is_set() and not leading.look(WAIT_SECONDS):  # (3)
        health.turned()
        known = told()  # (1)
        why = topics.look() or _unfit(line, directory, wishes, runtime, known, matcher)
        if why:
            health.not_ready(why)
        else:
            health.ready(f"stands by: folded to offset {folded_to(directory.store)}")
        if why and why != said:
            _log.warning("could not take over", reason=why)
        said = why
        if known is None or known.hop != line.verdicts.hop or known.offset < max(1, folded_to(directory.store)):
            continue
        try:
            if matcher is None:
                matcher = _matcher(line, directory, wishes, runtime, known)
                _log.info("stands by", store=matcher.next_offset, committed=known.offset)
            _fold(line, matcher, known.offset, lambda: stop.is_set() or leading.look())  # (2)
        except PositionLost as error:
            raise PositionLost(
                f"topic {runtime.settings.topics.sketches} no longer holds offset {folded_to(directory.store)}, which "
                f"the index in {directory.path} needs: retention has overtaken this standby; start it again: it takes "
                "a newer checkpoint of the active matcher"
            ) from error
    if not stop.is_set():
        _log.info("takes over", store=folded_to(directory.store))


class _Topics:
    """Looks from time to time whether the topics are still those that the line began with."""

    def __init__(self, line: Line, steady_s: Callable[[], float]) -> None:
        self._line, self._steady_s = line, steady_s
        self._looked, self._silence = steady_s(), ""

    def look(self) -> str:
        """What Kafka did not answer when it was asked last. Raises TopicError for a topic that was recreated."""
        if self._steady_s() - self._looked >= _TOPICS_SECONDS:
            self._looked, self._silence = self._steady_s(), ""
            try:
                self._line.log.check()
                self._line.verdicts.check()
            except BrokerError as error:
                self._silence = str(error)  # it may be back in time
        return self._silence


def _unfit(
    line: Line, directory: Held, wishes: Wishes, runtime: Runtime, known: Committed | None, matcher: Matcher | None
) -> str:
    """Why this matcher could not begin now, as far as that is known before the active one is fenced; or ""."""
    hop, topics, store = line.verdicts.hop, runtime.settings.topics, folded_to(directory.store)
    if known is not None and known.hop is not None and known.offset and known.hop != hop:
        was, now = (known.hop.sink, hop.sink) if known.hop.source == hop.source else (known.hop.source, hop.source)
        topic = topics.verdicts if known.hop.source == hop.source else topics.sketches
        return (
            f"verdicts are committed for topic {topic} of id {was.hex()}, and it has {now.hex()}: it was recreated; "
            "the matcher that leads says what to do"
        )
    if known is not None and known.hop == hop and store > known.offset:
        return (
            f"the index in {directory.path} was folded up to offset {store} of topic {topics.sketches}, and verdicts "
            f"are committed up to {known.offset} only: offsets were reset; the matcher that leads says what to do"
        )
    return "" if matcher is None else refusal(wishes, matcher.decider, runtime.settings)


def _matcher(line: Line, directory: Held, wishes: Wishes, runtime: Runtime, known: Committed) -> Matcher:
    log, store = line.log, directory.store
    held = bound_to(store)
    # Where only the topic of verdicts is another one, the active matcher has settled that: its offset says so.
    if folded_to(store) and (held is None or held.source != line.verdicts.hop.source):
        raise StateError(f"the index in {directory.path} is of another log: name another directory")
    words = () if runtime.settings.judges_anew else decider_changes_in(line.ahead(max(folded_to(store), log.begin())))
    first = directory.first_decider(words[0][1].before if words else wishes.decider)
    if known.first != first.digest:
        raise StateError(
            f"topic {runtime.settings.topics.sketches} is decided by {known.first} from its begin on, and this matcher "
            f"was to stand by with {first.digest}: give it the rule and numbers of the one at work"
        )
    bind(line, store, runtime.settings.generation)
    matcher = Matcher(
        store,
        first,
        decided=OperatorDecisions(line.ahead),
        threads=runtime.settings.threads,
        follows_changes=not runtime.settings.judges_anew,
        log=line.verdicts.hop.source.hex(),
        generation=runtime.settings.generation,
    )
    matcher.heartbeat = runtime.health.role("match").turned
    log.follow(matcher.next_offset)
    return matcher


def _fold(line: Line, matcher: Matcher, upto: int, over: Callable[[], bool]) -> None:
    """Folds the log's messages before an offset, or until it is over."""
    while line.log.position() < upto and not over():
        matcher.heartbeat()
        found = line.log.poll(_MESSAGES, bytes_max=_BYTES_MAX, wait_s=WAIT_SECONDS)
        mine = [(offset, data) for offset, data in found if offset < upto]
        left = mine
        while left:
            some = through_first_control(left)
            matcher.apply(matcher.prepare(some, emit=False))
            left = left[len(some) :]
        if len(mine) < len(found):
            line.log.follow(matcher.next_offset)  # the rest is not told yet
            return
