"""Renders the pages for labelling: texts of a pair, beside frames with the pages themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from neardup.errors import NeardupError
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.labelling_criteria import JUDGEMENTS, KEYS, MEANINGS, NAMES, QUERY_JUDGEMENTS
from neardup.evaluation.labelling_rounds import Labelling
from neardup.evaluation.labels import REASONS
from neardup.report.differ import TEXT_CHARS_MAX, Difference, Text, compare_texts, marks, text_words
from neardup.report.page_templates import environment
from neardup.report.passages import PASSAGES_MAX, Passages, clipped, passages
from neardup.report.reasons import Reason, draft_of
from neardup.sketch.header import Header

#: Characters of an unfolded full text, and changes in the token diff.
WHOLE_CHARS_MAX = 60_000
CHANGES_SHOWN = 200
_WORDS_SHOWN = 40

#: Headers of every answer. `same-origin`, since under `no-referrer` browsers hide the origin of a form.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; frame-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_templates = environment("neardup.evaluation")
_CRITERIA = {"reasons": REASONS, "meanings": MEANINGS, "names": NAMES, "keys": KEYS}
#: Characters of a query that are shown.
_QUERY_CHARS_MAX = 300


@dataclass
class PairSide:
    """One page of the pair. whole: text of the page, cut at the limit."""

    url: str
    site: str
    title: str
    words: int
    whole: str = ""


@dataclass
class PairView:
    """The data shown for a pair; never the decision of a rule. queries: queries that both pages are results of."""

    place: int
    left: PairSide
    right: PairSide
    queries: tuple[str, ...] = ()
    passages: Passages | None = None
    removed: int = 0
    added: int = 0
    coarse: bool = False
    cut: bool = False
    changes: list[tuple[str, str]] = field(default_factory=list)
    changes_more: int = 0
    draft: Reason | None = None
    notes: list[str] = field(default_factory=list)


def pair_view(labelling: Labelling, texts: Texts, place: int) -> PairView:
    """Reads both pages again. Reasons why a page cannot be read go to `notes`."""
    pair = labelling.pairs[place]
    sides = _side(texts, pair.a), _side(texts, pair.b)
    view = PairView(place, sides[0], sides[1], tuple(clipped(query, _QUERY_CHARS_MAX) for query in pair.queries))
    whole: list[str] = []
    for number, side in zip((pair.a, pair.b), sides, strict=True):
        try:
            whole.append(texts.text(number))
            side.whole = clipped(whole[-1], WHOLE_CHARS_MAX)
        except NeardupError as error:
            view.notes.append(str(error))
    if len(whole) < 2:
        return view
    difference = compare_texts(text_words(whole[0]), text_words(whole[1]))
    view.passages = passages(difference, count_max=5 * PASSAGES_MAX)
    view.removed, view.added, view.coarse = difference.removed, difference.added, difference.coarse
    view.cut = difference.left.cut or difference.right.cut
    if view.cut:
        view.notes.append(
            f"Only the first {TEXT_CHARS_MAX:,} characters are shown side by side. The diff of the tokens below covers "
            "the whole pages."
        )
    one, other = texts.tokens(pair.a), texts.tokens(pair.b)
    if one is not None and other is not None:
        tokens = compare_texts(Text("", one.words, []), Text("", other.words, []))
        view.changes, view.changes_more = _token_changes(tokens)
        made = draft_of(tokens, sides[0].url, sides[1].url)
        view.draft = made.kind if made and made.kind is not Reason.REST else None
    return view


def _side(texts: Texts, number: int) -> PairSide:
    header = Header(texts.corpus.records[number])
    return PairSide(header.url, texts.corpus.sites[number], header.title, header.tokens)


def _token_changes(difference: Difference) -> tuple[list[tuple[str, str]], int]:
    a, b = difference.left.words, difference.right.words
    out = []
    for change in difference.changes[:CHANGES_SHOWN]:
        left, right = marks(difference, change)
        out.append((_listed(a[change.a0 : change.a1], left), _listed(b[change.b0 : change.b1], right)))
    return out, max(0, len(difference.changes) - CHANGES_SHOWN)


def _listed(words: list[str], marked: list[bool]) -> str:
    only = [word[:200] for word, one in zip(words, marked, strict=True) if one]
    more = f" … {len(only) - _WORDS_SHOWN} more" if len(only) > _WORDS_SHOWN else ""
    return " ".join(only[:_WORDS_SHOWN]) + more


def pair_html(labelling: Labelling, view: PairView, labeller: str, prefix: str, token: str, problem: str = "") -> str:
    """Renders the page of one pair, with its form."""
    return _templates.get_template("label.html.j2").render(
        view=view,
        labeller=labeller,
        progress=labelling.progress(labeller),
        given=labelling.label_by(labeller, view.place),
        prefix=prefix,
        token=token,
        problem=problem,
        judgements=QUERY_JUDGEMENTS if view.queries else JUDGEMENTS,
        **_CRITERIA,
    )


def home_html(labelling: Labelling, prefix: str, problem: str = "", done: str = "") -> str:
    """Renders the start page: labellers, their progress and agreement. done: a labeller that has finished."""
    return _templates.get_template("labellers.html.j2").render(
        labelling=labelling,
        progress=[labelling.progress(name) for name in labelling.labellers],
        agreement=labelling.agreement(),
        full=labelling.full_agreement(),
        disagreed=len(labelling.disagreed()),
        prefix=prefix,
        problem=problem,
        done=done,
        judgements=QUERY_JUDGEMENTS if any(pair.queries for pair in labelling.pairs) else JUDGEMENTS,
        **_CRITERIA,
    )


def asset(name: str) -> tuple[str, str]:
    """Returns (content type, text) of `label.css` or `label.js`."""
    here = resources.files("neardup.evaluation")
    if name == "label.js":
        return "text/javascript", here.joinpath(name).read_text(encoding="utf-8")
    style = resources.files("neardup.report").joinpath("report.css").read_text(encoding="utf-8")
    return "text/css", style + here.joinpath("label.css").read_text(encoding="utf-8")
