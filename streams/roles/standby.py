"""A matcher that stands by: it folds what another one has told, in silence, until that one is gone.

(1) Ask up to where verdicts are committed; (2) fold the log up to there, no further: what is not told yet is not
decided yet; (3) look whether this one leads now. Then it begins like any matcher: it fences the other, and folds the
little that it lacks. A crash anywhere leaves an index behind that the log folds forward. That two never tell is the
transactional id's work, as ever: who was only slow is fenced at his next commit, and ends.
"""

from collections.abc import Callable

from neardup.errors import StateError
from streams.line.deciders import words_in
from streams.line.matcher import Matcher, folded_to
from streams.line.operator_words import Decisions, up_to_word
from streams.ports import Committed
from streams.process import logs
from streams.roles.begin import Held, Line, Wishes, bind, bound_to
from streams.roles.match import Leading
from streams.roles.runtime import WAIT_SECONDS, Runtime

_log = logs.get("match")

_MESSAGES = 16
_BYTES_MAX = 16 << 20


def stand_by(
    line: Line,
    directory: Held,
    wishes: Wishes,
    runtime: Runtime,
    leading: Leading,
    told: Callable[[], Committed | None],
) -> None:
    """Returns when this matcher leads, or is stopped. told: the committed place, at once, maybe an old one.

    Raises StateError for an index that is of other topics or another decider, and what folding raises.
    """
    health, stop = runtime.health.role("match"), runtime.stop
    matcher: Matcher | None = None
    while not stop.is_set() and not leading.look(WAIT_SECONDS):  # (3)
        health.turned()
        health.ready(f"stands by: folded to offset {folded_to(directory.store)}")
        known = told()  # (1)
        if known is None or known.hop != line.verdicts.hop or not known.offset:
            continue
        if matcher is None:
            matcher = _matcher(line, directory, wishes, runtime, known)
            _log.info("stands by", store=matcher.next_offset, committed=known.offset)
        _fold(line, matcher, known.offset, lambda: stop.is_set() or leading.look())  # (2)
    if not stop.is_set():
        _log.info("takes over", store=folded_to(directory.store))


def _matcher(line: Line, directory: Held, wishes: Wishes, runtime: Runtime, known: Committed) -> Matcher:
    log, store = line.log, directory.store
    if folded_to(store) and bound_to(store) != line.verdicts.hop:
        raise StateError(
            f"the index in {directory.path} is of other topics: name another directory", path=directory.path
        )
    words = () if runtime.settings.judges_anew else words_in(line.ahead(max(folded_to(store), log.begin())))
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
        settled=Decisions(line.ahead),
        threads=runtime.settings.threads,
        heeds=not runtime.settings.judges_anew,
        log=line.verdicts.hop.source.hex(),
        generation=runtime.settings.generation,
    )
    matcher.beat = runtime.health.role("match").turned
    log.follow(matcher.next_offset)
    return matcher


def _fold(line: Line, matcher: Matcher, upto: int, over: Callable[[], bool]) -> None:
    """Folds the log's messages before an offset, or until it is over."""
    while line.log.position() < upto and not over():
        matcher.beat()
        found = line.log.poll(_MESSAGES, bytes_max=_BYTES_MAX, wait_s=WAIT_SECONDS)
        mine = [(offset, data) for offset, data in found if offset < upto]
        left = mine
        while left:
            some = up_to_word(left)
            matcher.apply(matcher.prepare(some, tell=False))
            left = left[len(some) :]
        if len(mine) < len(found):
            line.log.follow(matcher.next_offset)  # the rest is not told yet
            return
