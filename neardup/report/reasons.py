"""Classifies the difference of two nearly equal pages by patterns on the differing tokens: a draft for a labeller.

Each change, with the words around it, gets the first kind that fits all of its words. If all changes have one kind, it
is the pair's kind; several kinds make a combination; one change without a kind makes the pair "rest". Patterns cover
English, and month and day names of some other languages. They see tokens, not what a browser shows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from neardup.report.differ import Difference, Text, TextChange, compare_texts


class Reason(StrEnum):
    """The reason of a label. Values are persisted and never change."""

    # correct: what differs
    SESSION_ID = "session_id"
    TIME_STAMP = "time_stamp"
    EXECUTION_TIME = "execution_time"
    MESSAGE_ID = "message_id"
    VISITOR_COUNT = "visitor_count"
    SERVER_NAME = "server_name"
    OWN_URL = "own_url"
    COMBINATION = "combination"
    INVISIBLE = "invisible"
    ENTRY_PAGES = "entry_pages"
    REST = "rest"
    # incorrect
    MAIN_ITEM = "main_item"
    # undecided
    PREFILLED_FORM = "prefilled_form"
    MINOR_ITEM = "minor_item"
    CANNOT_EVALUATE = "cannot_evaluate"
    # incorrect: the kinds of Huang 2008
    SERIES = "series"
    BOILERPLATE = "boilerplate"
    SMALL_REPLIES = "small_replies"
    TRANSITIVITY = "transitivity"


#: Words of context on each side of a change.
_AROUND = 4
#: A pair with more changes than this has no simple kind of difference.
CHANGES_MAX = 200


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMBER = re.compile(r"\d+\Z")
_DATED = re.compile(r"(?:19|20)\d\d\Z")
_CLOCK = re.compile(
    r"(?:\d{1,2}(?:st|nd|rd|th|h|am|pm)?|\d{1,2}t\d{1,2}|\d{2}z|t\d{2}|(?:19|20)\d{6}(?:t?\d{4,6}z?)?|1\d{9}(?:\d{3})?)\Z"
)
_MONTHS = _words(
    "jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august september "
    "october november december januar februar märz mai juni juli oktober dezember janvier février mars avril juin "
    "juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre "
    "octubre "
    "noviembre diciembre mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday montag "
    "dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche"
)
_ZONES = _words("am pm gmt utc est edt cst cdt mst mdt pst pdt cet cest z h uhr today yesterday ago")
_TIME_CUES = _words(
    "date time updated modified changed generated built created published posted on last stand datum as at"
)
_UNITS = _words("seconds second secs sec s ms milliseconds sekunden secondes segundos µs us")
_RUN_CUES = _words(
    "generated rendered executed execution took load loaded loading parse render queries query runtime elapsed "
    "processing process cpu in wall"
)
_COUNT_CUES = _words(
    "visitor visitors visits visit views viewed view hits hit counter visited downloads downloaded online guests users "
    "members readers times impressions besucher aufrufe visites visitas"
)
_MESSAGE_CUES = _words(
    "message msg messageid post thread ticket reference ref request requestid ray incident trace error nr no number id"
)
_SESSION_CUES = _words("session sessionid sid phpsessid jsessionid aspsessionid cfid cftoken token csrf nonce")
_SERVER_CUES = _words("server served host hostname node backend machine worker instance")
_SERVER = re.compile(
    r"(?:www|web|srv|server|node|app|host|cache|proxy|mirror|worker|backend|fe|be|prod)[a-z]{0,4}\d{1,4}[a-z]?\Z"
)
_RANDOM = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{8,}\Z|[0-9a-f]{12,}\Z|\d{14,}\Z")


@dataclass(frozen=True)
class Draft:
    """A draft of a reason.

    kind: kind of the pair. kinds: distinct kinds of the pair's changes, in order. changes: number of changes.
    """

    kind: Reason
    kinds: tuple[Reason, ...]
    changes: int

    def to_json(self) -> dict[str, object]:
        """Returns the field `difference` of the output of `compare` and `explain`."""
        return {"kind": str(self.kind), "kinds": [str(kind) for kind in self.kinds], "changes": self.changes}

    def sentence(self) -> str:
        """Formats the draft for people; empty if no pattern fits."""
        if self.kind is Reason.REST:
            return ""
        kinds = [_NAMES[kind] for kind in self.kinds]
        named = " and ".join([", ".join(kinds[:-1]), kinds[-1]]) if len(kinds) > 1 else kinds[0]
        return f"The difference looks like {named}."


_NAMES: dict[Reason, str] = {
    Reason.SESSION_ID: "a session id",
    Reason.TIME_STAMP: "a time stamp",
    Reason.EXECUTION_TIME: "an execution time",
    Reason.MESSAGE_ID: "a message id",
    Reason.VISITOR_COUNT: "a visitor count",
    Reason.SERVER_NAME: "a server name",
    Reason.OWN_URL: "parts of the page's own URL",
}


def draft(a: Sequence[str], b: Sequence[str], a_url: str = "", b_url: str = "") -> Draft | None:
    """Drafts from two token sequences; None if they are equal. Bounded like `neardup.report.differ`."""
    return draft_of(compare_texts(Text("", list(a), []), Text("", list(b), [])), a_url, b_url)


def draft_of(found: Difference, a_url: str = "", b_url: str = "") -> Draft | None:
    """Drafts from texts that are compared already; None if no word differs."""
    a, b, changes = found.left.words, found.right.words, found.changes
    if not changes:
        return None
    own = _parts(a_url), _parts(b_url)
    kinds: dict[Reason, None] = {}
    for change in changes[: CHANGES_MAX + 1]:
        kinds[_kind(change, a, b, own)] = None
    if Reason.REST in kinds or len(changes) > CHANGES_MAX or any(change.coarse for change in changes):
        kind = Reason.REST
    else:
        kind = next(iter(kinds)) if len(kinds) == 1 else Reason.COMBINATION
    return Draft(kind, tuple(kinds), len(changes))


def _parts(url: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", url.lower()))


def _kind(change: TextChange, a: Sequence[str], b: Sequence[str], own: tuple[frozenset[str], frozenset[str]]) -> Reason:
    left, right = a[change.a0 : change.a1], b[change.b0 : change.b1]
    words = [*left, *right]
    before = list(a[max(0, change.a0 - _AROUND) : change.a0])
    after = list(a[change.a1 : change.a1 + _AROUND])
    around = {*before, *after}
    numbers = all(_NUMBER.match(word) for word in words)
    in_urls = own[0] != own[1] and all(w in own[0] for w in left) and all(w in own[1] for w in right)
    if in_urls and not numbers:  # a bare number may occur in a URL by chance
        return Reason.OWN_URL
    beside = {*before[-1:], *after[:1]}
    if _is_time(words, [*before, *after]) and {*words, *beside} & _MONTHS:
        return Reason.TIME_STAMP  # also if a counter is near
    if numbers and around & _UNITS and around & _RUN_CUES:
        return Reason.EXECUTION_TIME
    if numbers and around & _COUNT_CUES:
        return Reason.VISITOR_COUNT
    if _is_time(words, [*before, *after]):
        return Reason.TIME_STAMP
    if all(_RANDOM.match(word) for word in words) and (around & _SESSION_CUES or not around & _MESSAGE_CUES):
        return Reason.SESSION_ID
    if around & _SESSION_CUES and all(any(map(str.isdigit, word)) for word in words):
        return Reason.SESSION_ID
    if all(_SERVER.match(word) for word in words):
        return Reason.SERVER_NAME
    if around & _SERVER_CUES and len(left) <= 4 and len(right) <= 4 and any(any(map(str.isdigit, w)) for w in words):
        return Reason.SERVER_NAME
    if around & _MESSAGE_CUES and all(any(map(str.isdigit, word)) for word in words):
        return Reason.MESSAGE_ID
    return Reason.OWN_URL if in_urls else Reason.REST


def _is_time(words: Sequence[str], around: Sequence[str]) -> bool:
    """Tests whether all words can be parts of a date or time, and a word among or around them is a cue for one."""
    if not all(w in _MONTHS or w in _ZONES or _DATED.match(w) or _CLOCK.match(w) for w in words):
        return False
    near = {*words, *around}
    if near & _MONTHS or (near & _ZONES - {"z", "h", "today", "ago"} and any(map(str.isdigit, near))):
        return True
    clocks = [word for word in around if _CLOCK.match(word)]
    years = any(_DATED.match(word) for word in near)
    return (years and len(clocks) >= 1) or (bool(near & _TIME_CUES) and (years or len(clocks) >= 2)) or len(clocks) >= 4
