"""Defines the criteria of judgements, the meanings of reasons, and their keys.

Henzinger 2006, sections 3.1 to 3.4; for the results of a query Huffman 2007.
"""

from neardup.evaluation.labels import REASONS, Judgement
from neardup.report.reasons import Reason

JUDGEMENTS: dict[Judgement, str] = {
    Judgement.CORRECT: (
        "The texts differ only by the reasons listed, or visitors cannot see the difference, or both are entry "
        "pages of one site."
    ),
    Judgement.INCORRECT: "The main item differs, as two products in one shop's template do.",
    Judgement.UNDECIDED: "A prefilled form or a minor item differs, or the pair cannot be evaluated.",
}
#: The same for pairs of a query's results, by the guide of Huffman 2007's judges.
QUERY_JUDGEMENTS: dict[Judgement, str] = {
    Judgement.CORRECT: (
        "Both pages have the same content for the query: also a printer version, a mirror, an archive, other "
        "advertisements or legal text, an automatic redirect."
    ),
    Judgement.INCORRECT: (
        "For the query the contents differ, or the same content stands in another layout and surroundings, behind a "
        "login, or in another order."
    ),
    Judgement.UNDECIDED: "The pair cannot be evaluated.",
}
#: Names of the judgements on the pages; the first letter is the key.
NAMES: dict[Judgement, str] = {
    Judgement.CORRECT: "duplicates",
    Judgement.INCORRECT: "not duplicates",
    Judgement.UNDECIDED: "undecided",
}
MEANINGS: dict[Reason, str] = {
    Reason.SESSION_ID: "an id of the visit, in the text or in links",
    Reason.TIME_STAMP: "a date or a time",
    Reason.EXECUTION_TIME: "the time to generate the page",
    Reason.MESSAGE_ID: "the number of a message or an article",
    Reason.VISITOR_COUNT: "a counter of visitors, hits, people online",
    Reason.SERVER_NAME: "the name of the machine that answered",
    Reason.OWN_URL: "all or part of the page's own URL",
    Reason.COMBINATION: "several of these",
    Reason.INVISIBLE: "a difference that visitors cannot see",
    Reason.ENTRY_PAGES: "both are entry pages of one site",
    Reason.MAIN_ITEM: "another product, article, person, place",
    Reason.SERIES: "similar objects of one series",
    Reason.BOILERPLATE: "a template larger than the content",
    Reason.SMALL_REPLIES: "a forum page, whose replies are small",
    Reason.TRANSITIVITY: "a chain of similar pages joins unlike ends",
    Reason.PREFILLED_FORM: "a form's prefilled, erasable text",
    Reason.MINOR_ITEM: "something in a side or bottom box",
    Reason.CANNOT_EVALUATE: "an empty or refreshing page, an unreadable language",
    Reason.REST: "something else",
}
#: Digits in keyboard order, and r for the rest, the same for each judgement.
KEYS: dict[Judgement, dict[Reason, str]] = {
    judgement: dict(zip((reason for reason in reasons if reason is not Reason.REST), "1234567890", strict=False))
    | {Reason.REST: "r"}
    for judgement, reasons in REASONS.items()
}
