"""The default rule: compares the names of two pages (title, heading, words and end of the URL), then applies `tape`.

Pages from one template have mostly the same text. For two pages of one site, the rule therefore tests where they
differ: in their names (title, heading, words and numbers of the URL's path), in their content, or only in text that
changes by itself (stamps, noise). The steps are the list `STEPS`; the first step that returns a ruling decides.
"""

from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import syndicated, tape
from neardup.rules.base import (
    Columns,
    Evidence,
    Refusal,
    Rule,
    Ruling,
    Step,
    decide_by,
    evidence_of,
    refusals_of,
    refused,
    score_and_demand,
)
from neardup.rules.differences import is_noise, is_stamp, same_but_own_urls
from neardup.rules.key_families import KeyFamily
from neardup.rules.siblings import Siblings
from neardup.sketch.header import Header

#: Signs that only separate the words of a URL.
_DIVIDING = frozenset(" -_.,;~")


# ---- names ---------------------------------------------------------------------------------------------------------


def one_address(pair: Pair) -> bool:
    """Whether the pages' URLs, or the canonical URLs that they name, are those of one page."""
    return pair.same_address or pair.same_canonical


def _is_other_view(pair: Pair, decider: Decider) -> bool:
    """Whether the pages are two views or releases of one page with different titles, such as a printer version."""
    alike = max(pair.tape_score, pair.content_score) >= decider.strict_tape_min
    # Forms of an application may have one heading and one tail, too: words or ids of their paths differ.
    released = pair.same_tail and not (pair.path_veto or pair.records)
    return alike and pair.same_site and (one_address(pair) or released) and pair.same_heading


def _is_renamed(pair: Pair, decider: Decider) -> bool:
    """Whether pages of two sites have different titles, and nearly the same text.

    On one site such pages come from a template. On two sites one is likely a copy in which a word was replaced.
    """
    return pair.title_veto == 1 and not pair.same_site and 0 < decider.renamed_tape_min <= pair.tape_score


def _title_holds(pair: Pair, decider: Decider) -> bool:
    if pair.same_site:
        return pair.titles_apart == 1 and not _is_other_view(pair, decider)
    return pair.title_veto == 1 and not _is_renamed(pair, decider)


def _is_unproved(pair: Pair) -> bool:
    """Whether the title veto of two sites is in doubt, because a saturated filter cannot prove a word absent."""
    return pair.title_veto == 2


def _is_retitled(pair: Pair) -> bool:
    """Whether titles differ only in numbers, case or signs. Titles of releases do, too, but their URLs end alike."""
    return pair.titles_apart == 2 or (pair.same_words and not (pair.same_title and pair.same_letters))


def _veto(by: str, pair: Pair, decider: Decider) -> Ruling:
    return refused(by, pair.tape_score, tape.demanded(pair, decider, _is_unproved(pair))[0])


def _names(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    if _title_holds(pair, decider):
        return _veto("title veto", pair, decider)
    if pair.same_site and not pair.same_tail and _is_retitled(pair) and not _is_other_view(pair, decider):
        return _veto("retitled", pair, decider)
    return _veto("heading veto", pair, decider) if _headings_apart(pair, decider) else None


def _headings_apart(pair: Pair, decider: Decider) -> bool:
    """Whether headings name different things. If only their numbers differ, the URLs must also end differently.

    A site may add its own name to title or heading, so on two sites something else must differ, too.
    """
    if pair.same_site:
        return pair.heading_veto == 1 or (pair.heading_veto == 2 and not pair.same_tail)
    return pair.heading_veto == 1 and (pair.same_words or (not pair.same_tail and _contents_differ(pair, decider)))


def _contents_differ(pair: Pair, decider: Decider) -> bool:
    """Whether the main contents differ, so that the pages share only the text around them."""
    fewest = min(pair.content_tokens_a, pair.content_tokens_b)
    return fewest >= decider.thin_tokens and pair.content_score < decider.content_tape_min


# ---- places --------------------------------------------------------------------------------------------------------


def _may_be_placed(pair: Pair) -> bool:
    """Whether paths may distinguish the pages. Error pages print their URLs, and so match any path."""
    return pair.same_site and not (pair.own_urls or one_address(pair) or pair.same_but_sessions)


def _path(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    if not _may_be_placed(pair):
        return None
    if pair.records == 1 and pair.named and pair.same_naming and pair.same_title:
        stamp = is_stamp(pair, decider, decider.stamp_words_max // 2)
        return None if stamp else _veto("record", pair, decider)
    if not pair.path_veto or pair.tape_score >= decider.path_tape_max:
        return None
    if pair.path_veto == 1:
        return None if is_stamp(pair, decider) else _veto("path", pair, decider)
    # The end of the URL is the name of a page without title and heading. For other pages, words of paths that neither
    # page contains (languages, kinds of a page) count only if the titles differ, too.
    if not pair.named:
        return None if pair.same_tail else _veto("path", pair, decider)
    unlike = pair.path_veto == 2 and not (pair.same_words or pair.same_tail or is_stamp(pair, decider))
    return _veto("path", pair, decider) if unlike and pair.tape_score < decider.strict_tape_min else None


def _siblings(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    if not pair.same_naming or not _crowded(pair, decider, siblings):
        return None
    if same_but_own_urls(pair, decider) or (pair.same_site and one_address(pair)):
        return None
    if not pair.same_site:
        # A mirror keeps paths. If the paths differ, another of the pages with this name may be the mirrored one.
        return None if pair.same_tail else _veto("siblings", pair, decider)
    noise = _at_home(pair, siblings) and is_noise(pair, decider)
    return None if noise or is_stamp(pair, decider) else _veto("siblings", pair, decider)


def _crowded(pair: Pair, decider: Decider, siblings: Siblings) -> bool:
    """Whether the common name says little, because other pages have it, too."""
    if pair.same_title and siblings.titles_tell:
        return False
    # First words are a weak name: a few pages that begin alike may be one text at several addresses.
    few = siblings.others + siblings.alike < decider.alike_min
    if few and not pair.named and pair.tape_score >= decider.short_tape_min:
        return False
    return siblings.alike >= decider.alike_min or (not pair.same_tail and siblings.others > 0)


def _at_home(pair: Pair, siblings: Siblings) -> bool:
    """Whether the URLs of two pages with a common name allow that they are one page; then noise may differ."""
    return pair.same_but_sessions or pair.same_tail or (pair.same_place and siblings.paths_tell)


def _elsewhere(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    if not (pair.same_site and pair.same_naming and pair.named) or pair.same_tail or pair.same_place:
        return None
    if pair.tape_score >= decider.strict_tape_min or one_address(pair) or pair.same_but_sessions:
        return None
    if same_but_own_urls(pair, decider) or is_stamp(pair, decider):
        return None
    return refused("elsewhere", pair.tape_score, decider.strict_tape_min)


# ---- texts ---------------------------------------------------------------------------------------------------------


def _near(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    """The ruling by the whole texts; None if they are not similar."""
    ruling = tape.by_tape(pair, decider, _is_unproved(pair))
    if ruling is not None and ruling.kind is not None and _is_renamed(pair, decider):
        return ruling._replace(by="renamed", demand=max(ruling.demand, decider.renamed_tape_min))
    return ruling


def _content(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    """The ruling by the main contents. On one site these decide only for pages of one name or one address."""
    if pair.same_site and not (pair.same_naming or one_address(pair)):
        return None
    return tape.content(pair, decider, siblings)


def _accepts(ruling: Ruling | None) -> bool:
    return ruling is not None and ruling.kind is not None


def _syndicated(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    if not pair.article_run or not syndicated.holds(pair, decider):
        return None
    if _title_holds(pair, decider):
        return syndicated.ruling(pair, decider)
    whole = _near(pair, decider, siblings)
    if _accepts(whole or _content(pair, decider, siblings)) or _siblings(pair, decider, siblings) is not None:
        return None
    return syndicated.ruling(pair, decider)


def _added(pair: Pair, decider: Decider, siblings: Siblings) -> Ruling | None:
    whole = _near(pair, decider, siblings)
    if whole is None:  # the main contents may decide
        padded = _padded(pair.content_tokens_a, pair.content_tokens_b, decider)
        return _veto("length", pair, decider) if padded and _accepts(_content(pair, decider, siblings)) else None
    if not _accepts(whole):
        return None
    if _padded(pair.tokens_a, pair.tokens_b, decider):
        return _veto("length", pair, decider)
    copied = not pair.same_owner and decider.added_max < 1 and added(pair) > decider.added_max
    return _veto("added", pair, decider) if copied else None


def _padded(a: int, b: int, decider: Decider) -> bool:
    """Whether one text is so much longer that its tape, with 8 occurrences of a token, leaves most of it out."""
    return min(a, b) < decider.length_share_min * max(a, b)


def added(pair: Pair) -> float:
    """How much the older page adds to the common text, as a share of the new page: |B| / |A| - |LCS| / |A|.

    |A| and |B| are the lengths of the tapes, or the numbers of tokens if the share is greater with these. A tape holds
    at most 8 occurrences of a token, so a keyword that is repeated 100 times adds little to it.
    """
    common = pair.tape_score * (pair.tape_a + pair.tape_b) / (1.0 + pair.tape_score)
    longer = max(pair.tape_b / max(1, pair.tape_a), pair.tokens_b / max(1, pair.tokens_a))
    return longer - min(1.0, common / max(1, pair.tape_a))


STEPS = (
    tape.THIN,
    Step(
        "syndicated",
        _syndicated,
        "Two sites with one article under one headline have the same content.",
        {},
    ),
    Step(
        "names",
        _names,
        "Titles or headings that name different things tell pages apart: by a word of each, of one and its path, or by "
        "numbers, case and signs where the URLs end differently.",
        {
            "title veto": Refusal("the titles name different things", veto=True),
            "retitled": Refusal("the titles differ in numbers or signs, and the URLs end differently", veto=True),
            "heading veto": Refusal("the headings name different things", veto=True),
        },
    ),
    Step(
        "path",
        _path,
        "What paths name tells pages apart, unless only a stamp differs: a word that its own page contains, or the "
        "number of a record.",
        {
            "record": Refusal(
                "the URLs differ in numbers alone, as of records, and more than a stamp differs", veto=True
            ),
            "path": Refusal("words of the pages' paths tell them apart, and more than a stamp differs", veto=True),
        },
    ),
    Step(
        "siblings",
        _siblings,
        "Of many pages with one name, two are one page only if their URLs allow it and only noise differs.",
        {
            "siblings": Refusal(
                "other pages of the site have this name, and these two differ in more than a stamp or in their place",
                veto=True,
            )
        },
    ),
    Step(
        "elsewhere",
        _elsewhere,
        "Pages of one name at two places of a site must agree in `strict_tape_min` (95%), or differ in a stamp only.",
        {"elsewhere": Refusal("one name at two places, so a closer match was demanded")},
    ),
    Step(
        "added",
        _added,
        "A page that adds as much again to the other's text does not repeat it. An older page of another owner does "
        "not hide a page to which it adds more than `added_max` (16%).",
        {
            "length": Refusal(
                "one page is twice as long: it repeats words many times, which the samples leave out", veto=True
            ),
            "added": Refusal(
                "an older page of another owner adds too much to this one, and may be made of it", veto=True
            ),
        },
    ),
    Step(
        "tape",
        _near,
        "Tapes that agree in `tape_min` (74%), of two sites in `two_sites_tape_min` (70%), make a near-duplicate.",
        tape.TAPE_REFUSALS,
    ),
    Step(
        "content",
        _content,
        "Main contents that agree in `content_tape_min` (74%) are the same content; on one site only under one name.",
        tape.CONTENT_REFUSALS,
    ),
    tape.UNLIKE,
)


def one_page(header: Header, other: Header, decider: Decider) -> bool:
    """Whether two pages with equal words are one page. `operator*` and `operator+` of one site are not."""
    if header.site != other.site or header.opaque:
        return True
    if header.titling == other.titling and header.title == other.title:
        return _signs(header.url) == _signs(other.url)
    return False


@lru_cache(maxsize=4096)
def _signs(url: str) -> tuple[str, ...]:
    """The signs in the last segment of a URL's route or path that may be part of a name: all but those that separate
    words.
    """
    parts = urlsplit(url)
    segment = unquote(parts.fragment.partition("?")[0] or parts.path).rpartition("/")[2]
    return tuple(sign for sign in segment if not sign.isalnum() and sign not in _DIVIDING)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    view = (pairs.same_address != 0) | (pairs.same_canonical != 0) | (pairs.same_tail != 0) & (pairs.same_heading != 0)
    least = tape.least_demanded(pairs, decider)
    named_alike = np.where(pairs.same_site != 0, pairs.titles_apart != 1, pairs.title_veto != 1) | view
    if decider.renamed_tape_min:
        named_alike |= (pairs.same_site == 0) & (pairs.tape_score >= decider.renamed_tape_min)
    out: np.ndarray = tape.possible_from(least, named_alike, pairs, decider) | syndicated.possible(pairs, decider)
    return out


# ---- in words ------------------------------------------------------------------------------------------------------

_REFUSALS = refusals_of(STEPS)


def _evidence(pair: Pair, ruling: Ruling) -> dict[str, Any]:
    more: dict[str, Any] = {"added": round(added(pair), 4)} if ruling.by == "added" else {}
    if not pair.same_site:
        numbers = more | syndicated.evidence(pair, ruling)
        return evidence_of(pair, ruling, numbers, {"heading": int(ruling.by == "heading veto")})
    gaps = [pair.gaps, pair.gap_digits, pair.loose_words]
    held = {
        name: int(apart == 1 or (apart == 2 and not pair.same_tail))
        for name, apart in (("title", pair.titles_apart), ("heading", pair.heading_veto))
    }
    return evidence_of(pair, ruling, more | {"gaps": gaps}, held)


def _sentences(evidence: Evidence, decider: Decider) -> list[str]:
    if article := syndicated.sentences(evidence):
        return article
    out = tape.sentences_of(evidence, decider, _REFUSALS)
    if (share := evidence.get("added")) is not None:
        shown, most = score_and_demand(float(share), decider.added_max)
        out.insert(1, f"What the older page adds is {shown} of this one; at most {most} may be.")
    held = evidence.get("same_site") and evidence.get("vetoes", {}).get("title") == "holds"
    if held and evidence["by"] in ("tape", "content") and evidence["score"] >= evidence["demand"]:
        out.insert(0, "The titles differ, but the headings are equal, and the URLs are one page's or end alike.")
    if evidence.get("by") == "renamed":
        out.insert(0, "They go by other names, on two sites, and nearly all of the text is the same.")
    return out


def rule_of(steps: tuple[Step, ...]) -> Rule:
    """The rule with some of the steps only, to measure the effect of each step."""
    return Rule(
        name="verified",
        decide=decide_by(steps),
        posts=lambda decider: ((KeyFamily.PLACE, 1), *tape.posts(decider)),
        possible=possible if steps == STEPS else lambda pairs, decider: np.ones(len(pairs.tokens_a), bool),
        nearness=tape.RULE.nearness,
        refusals=_REFUSALS,
        sentences=_sentences,
        in_short=tape.in_short,
        evidence=_evidence,
        drawn=tape.RULE.drawn,
        kept_apart=tape.kept_apart,
        one_page=one_page,
        steps=steps,
        reads_tapes=True,
        counts_siblings=True,
    )


RULE = rule_of(STEPS)
