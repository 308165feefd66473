"""What labellers go by: criteria of the judgements, meanings of the reasons, and the key of each.

Henzinger 2006, sections 3.1 to 3.4.
"""

from neardup.evaluation.pairs.labels import REASONS, Judgement
from neardup.report.reasons import Reason

JUDGEMENTS: dict[Judgement, str] = {
    Judgement.CORRECT: (
        "The texts differ by nothing but the reasons listed, or visitors cannot see the difference, or both are entry "
        "pages of one site."
    ),
    Judgement.INCORRECT: "The main item differs, as two products in one shop's template do.",
    Judgement.UNDECIDED: "A prefilled form or a minor item differs, or it cannot be told.",
}
MEANINGS: dict[Reason, str] = {
    Reason.SESSION_ID: "a number of the visit, in the text or in links",
    Reason.TIME_STAMP: "a date or a time",
    Reason.EXECUTION_TIME: "how long it took to make the page",
    Reason.MESSAGE_ID: "the number of a message or an article",
    Reason.VISITOR_COUNT: "a counter of visitors, hits, people online",
    Reason.SERVER_NAME: "the name of the machine that answered",
    Reason.OWN_URL: "all or part of the page's own URL",
    Reason.COMBINATION: "several of these",
    Reason.INVISIBLE: "nothing that a visitor sees",
    Reason.ENTRY_PAGES: "both are entry pages of one site",
    Reason.MAIN_ITEM: "another product, article, person, place",
    Reason.PREFILLED_FORM: "a form's prefilled, erasable text",
    Reason.MINOR_ITEM: "something in a side or bottom box",
    Reason.CANNOT_EVALUATE: "an empty or refreshing page, an unreadable language",
    Reason.REST: "something else",
}
#: Letters that the page of a pair uses for other things.
TAKEN = frozenset("ciusazv?")


def _keys(reasons: tuple[Reason, ...]) -> dict[Reason, str]:
    """Digits in their order on a keyboard, and r for the rest, the same for each judgement."""
    named = [reason for reason in reasons if reason is not Reason.REST]
    return dict(zip(named, "1234567890", strict=False)) | {Reason.REST: "r"}


KEYS: dict[Judgement, dict[Reason, str]] = {judgement: _keys(reasons) for judgement, reasons in REASONS.items()}
