"""The default rule: `tape`, after looking at what pages call themselves: title, heading, end of the URL.

In a template a page meets many siblings whose text is mostly the same. Of two pages of a site the rule asks where they
differ: in what names them (title, heading, words and numbers of the URL's path), in what they say, or in what changes
by itself. Words of paths name where a page says its own; numbers in paths where nothing else in the URL does: then only
a stamp may differ, a clock, a counter, digits in few places and hardly a word among them. So it is where many pages of
a site go by one name (a constant title); or noise, which may have words, if their URLs say that they may be one:
between two records of a database a word may be the whole difference. Where tapes of two sites are neither alike nor
unlike, lengths and simhashes are asked, too.
"""

from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import syndicated, tape
from neardup.rules.base import Columns, Evidence, Posts, Refusal, Rule, Ruling, evidence_of, refused, score_and_demand
from neardup.rules.families import KeyFamily
from neardup.rules.siblings import NO_SIBLINGS, Siblings
from neardup.sketch.header import Header
from neardup.verdict import Kind

#: Signs that divide the words of a URL, and say nothing else.
_DIVIDING = frozenset(" -_.,;~")


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    """siblings: how many pages of the new page's site go by its name."""
    ruling = syndicated.ruled(pair, decider, _on_names(pair, decider, crowd, siblings))
    if ruling.kind is not None and ruling.by != syndicated.BY and _padded(pair, decider, ruling.kind):
        return refused("length", pair.tape_score, tape.demanded_of(pair, decider, crowd))
    if ruling.kind is Kind.NEAR_DUPLICATE and _adds_too_much(pair, decider):
        return refused("added", pair.tape_score, tape.demanded_of(pair, decider, crowd))
    return ruling


def _padded(pair: Pair, decider: Decider, kind: Kind) -> bool:
    """Whether one text is so much longer that the tapes, which keep 8 of each token, leave most of it out."""
    a, b = pair.tokens_a, pair.tokens_b
    if kind is Kind.SAME_CONTENT:
        a, b = pair.content_tokens_a, pair.content_tokens_b
    return min(a, b) < decider.length_share_min * max(a, b)


def _adds_too_much(pair: Pair, decider: Decider) -> bool:
    """Whether the older page is another owner's, and so much more than the new one that it may be made of it."""
    return not pair.same_owner and decider.added_max < 1 and added(pair) > decider.added_max


def added(pair: Pair) -> float:
    """How much the older page adds to what both have in common, as a share of the new page: |B| / |A| - |LCS| / |A|.

    |A| and |B| are the lengths of the tapes, or the numbers of tokens if the share is greater with these: a tape holds
    8 occurrences of a token, so a keyword that is repeated 100 times hardly shows there.
    """
    common = pair.tape_score * (pair.tape_a + pair.tape_b) / (1.0 + pair.tape_score)
    longer = max(pair.tape_b / max(1, pair.tape_a), pair.tokens_b / max(1, pair.tokens_a))
    return longer - min(1.0, common / max(1, pair.tape_a))


def _on_names(pair: Pair, decider: Decider, crowd: int, siblings: Siblings) -> Ruling:
    renamed = _is_renamed(pair, decider)
    if renamed:
        pair = pair._replace(title_veto=pair.title_veto & 2, head_veto=pair.head_veto & 2)
    if _is_other_view(pair, decider):
        pair = pair._replace(title_veto=0)
    vetoed = pair.title_veto == 1 or pair.head_veto == 1
    if vetoed or min(pair.tokens_a, pair.tokens_b) < decider.thin_tokens:
        return tape.decide(pair, decider, crowd)
    if not pair.same_site:
        apart = _apart_elsewhere(pair, decider, siblings)
    else:
        apart = _named_apart(pair, decider) or _placed_apart(pair, decider) or _one_of_many(pair, decider, siblings)
        if not apart and _elsewhere(pair, decider):
            return refused("elsewhere", pair.tape_score, decider.strict_tape_min)
    if apart:
        return refused(apart, pair.tape_score, tape.demanded_of(pair, decider, crowd))
    ruling = _weighed(pair, decider, tape.decide(pair, decider, crowd))
    if renamed and ruling.by == "tape":
        return ruling._replace(by="renamed", demand=max(ruling.demand, decider.renamed_tape_min))
    return ruling


def _weighed(pair: Pair, decider: Decider, ruling: Ruling) -> Ruling:
    """What lengths and simhashes say of pages of two sites, whose tapes are neither much alike nor much unlike.

    A list in another order, or other figures in a table, cost a tape much: but such texts are as long, and of the same
    words. Two revisions of a text, or an item and another one of its template, differ in length, and in many places; a
    copy with more around it in one or two.
    """
    if pair.same_site or ruling.by != "tape" or pair.tape_score >= decider.middle_tape_max:
        return ruling
    one_length = min(pair.tokens_a, pair.tokens_b) >= decider.middle_length_min * max(pair.tokens_a, pair.tokens_b)
    if ruling.kind is not None:
        one_text = one_length or pair.gaps <= decider.noise_gaps_max
        return ruling if one_text else refused("lengths", pair.tape_score, decider.middle_tape_max)
    if one_length and pair.tape_score >= decider.middle_tape_min and pair.c_similarity >= decider.middle_c_min:
        rank = (tape.BY_TAPE, pair.tape_score)
        return Ruling(Kind.NEAR_DUPLICATE, "middle", rank, pair.tape_score, decider.middle_tape_min)
    return ruling


def _one_of_many(pair: Pair, decider: Decider, siblings: Siblings) -> str:
    """Why a page of a name that many have is another one, or an empty string."""
    if not (pair.same_naming and _crowded(pair, decider, siblings)):
        return ""
    home = _same_but_urls(pair, decider) or (_at_home(pair, decider, siblings) and _is_noise(pair, decider))
    return "" if home or _is_clock(pair, decider) else "siblings"


def _is_other_view(pair: Pair, decider: Decider) -> bool:
    """Whether another title is that of another view of one page, as of its printer version."""
    alike = max(pair.tape_score, pair.content_score) >= decider.strict_tape_min
    return alike and pair.same_site and _one_address(pair) and pair.same_heading


def _is_renamed(pair: Pair, decider: Decider) -> bool:
    """Whether pages of two sites go by other names, and have nearly all of their texts in common.

    On one site that is a template; elsewhere it is rather a copy in which a word was replaced wherever it stood.
    """
    vetoed = pair.title_veto == 1 or pair.head_veto == 1
    return vetoed and not pair.same_site and 0 < decider.renamed_tape_min <= pair.tape_score


def _one_address(pair: Pair) -> bool:
    """Whether the pages' URLs, or what they name as such, are those of one page."""
    return pair.same_address or pair.same_canonical


def _named_apart(pair: Pair, decider: Decider) -> str:
    """Why the pages are about different things, or an empty string."""
    # A release changes digits of its titles, but not the ends of its URLs.
    same_title = pair.same_title and (pair.same_letters or not decider.letters_veto)
    if decider.retitled_veto and pair.same_words and not same_title and not pair.same_tail:
        return "retitled"
    if decider.heading_veto and _headings_apart(pair):
        return "heading veto"
    return ""


def _placed_apart(pair: Pair, decider: Decider) -> str:
    """Why what their paths say makes two pages of them, though more than a stamp differs; or an empty string."""
    # An error page has the words of its path because it prints its URL.
    if pair.own_urls or _one_address(pair) or pair.same_but_sessions:
        return ""
    if pair.named and pair.same_naming and pair.same_title:
        if decider.record_veto and pair.records:
            return "record" if not _is_clock(pair, decider, decider.stamp_words_max // 2) else ""
        # One text may come again under another number: it is two if a word differs that stands by no figure.
        if decider.numbered_veto and pair.numbered and (pair.loose_words > 0 or not _is_noise(pair, decider)):
            return "record"
    if decider.own_word_veto and (pair.own_words == 1 or (pair.own_words == 2 and _unlike(pair, decider))):
        return "own word"
    if not pair.path_veto or pair.tape_score >= decider.path_tape_max:
        return ""
    if pair.path_veto == 1:
        return "path" if not _is_clock(pair, decider) else ""
    # Words that no page says tell nothing by themselves: languages, kinds of a page. Beside another title they do, and
    # of what has no name.
    unlike = not pair.named or (pair.path_veto == 2 and not pair.same_words and not _is_clock(pair, decider))
    return "path" if unlike and pair.tape_score < decider.strict_tape_min else ""


def _unlike(pair: Pair, decider: Decider) -> bool:
    return pair.tape_score < decider.path_tape_max and not _is_clock(pair, decider)


def _elsewhere(pair: Pair, decider: Decider) -> bool:
    """Whether URLs of pages of one name end otherwise, and more than a stamp differs."""
    if not (decider.elsewhere_veto and pair.same_naming and pair.named) or pair.same_tail or pair.same_place:
        return False
    one = _one_address(pair) or pair.same_but_sessions or _same_but_urls(pair, decider) or _is_clock(pair, decider)
    return not one and pair.tape_score < decider.strict_tape_min


def _headings_apart(pair: Pair) -> bool:
    """Numbers alone tell headings apart only where the URLs end otherwise."""
    return pair.heading_veto == 1 or (pair.heading_veto == 2 and not pair.same_tail)


def _contents_differ(pair: Pair, decider: Decider) -> bool:
    """Whether what the pages have in common is what stands around their main contents."""
    fewest = min(pair.content_tokens_a, pair.content_tokens_b)
    return fewest >= decider.thin_tokens and pair.content_score < decider.content_tape_min


def _apart_elsewhere(pair: Pair, decider: Decider, siblings: Siblings) -> str:
    """The same of pages of two sites. A site may put its own name in title or heading, so both must speak for it."""
    others = pair.same_words or (not pair.same_tail and _contents_differ(pair, decider))
    if decider.heading_veto and pair.heading_veto == 1 and others:
        return "heading veto"
    # A mirror keeps paths; of many pages of one name another one may be what it mirrors.
    crowded = pair.same_naming and not pair.same_tail and _crowded(pair, decider, siblings)
    return "siblings" if crowded and not _same_but_urls(pair, decider) else ""


def _crowded(pair: Pair, decider: Decider, siblings: Siblings) -> bool:
    """Whether names do not tell apart what this pair may be: two of many pages of one name."""
    if not decider.siblings_min or (pair.same_title and siblings.titles_tell):
        return False
    return siblings.alike >= decider.alike_min or (not pair.same_tail and siblings.others >= decider.siblings_min)


def _is_noise(pair: Pair, decider: Decider) -> bool:
    return (
        pair.gaps <= decider.noise_gaps_max
        and pair.loose_words <= decider.noise_words_max
        and pair.gap_digits <= decider.noise_digits_max
    )


def _same_but_urls(pair: Pair, decider: Decider) -> bool:
    """Whether pages that print their own URLs differ in nothing that the tapes hold but a stamp at the end.

    Tapes hold no own URL. Elsewhere a stamp may be a record: a user's name and figures stand within the page.
    """
    at_the_end = pair.gaps <= pair.end_differs and pair.loose_words == 0
    return pair.own_urls and pair.tape_level == 0 and at_the_end and _is_noise(pair, decider)


def _at_home(pair: Pair, decider: Decider, siblings: Siblings) -> bool:
    """Whether URLs say that two of many pages of one name may be the same: elsewhere a word may be all that differs."""
    if _one_address(pair) or pair.same_but_sessions or (pair.same_place and siblings.paths_tell):
        return True
    return pair.same_tail and siblings.alike < decider.alike_max


def _is_clock(pair: Pair, decider: Decider, words_max: int | None = None) -> bool:
    """Whether what differs is seen, and is a clock, a date, a counter: digits, and hardly a word among them.

    A record has its name among its figures: more words than a weekday and a month. words_max: if fewer are allowed.
    """
    words = min(decider.stamp_words_max if words_max is None else words_max, pair.gap_digits)
    seen = decider.stamp_words_max > 0 and pair.gaps > 0
    return seen and pair.loose_words == 0 and pair.gap_words <= words and _is_noise(pair, decider)


def one_page(header: Header, other: Header, decider: Decider) -> bool:
    """Whether two pages of the same words are one: `operator*` and `operator+` of one site are the same words."""
    if not decider.letters_veto or header.site != other.site or header.opaque:
        return True
    if header.titling == other.titling and header.title == other.title:
        return _signs(header.url) == _signs(other.url)
    return False


def _signs(url: str) -> tuple[str, ...]:
    """Of the last segment of a URL's path the signs that may be a name, those that divide words left out."""
    segment = unquote(urlsplit(url).path).rpartition("/")[2]
    return tuple(sign for sign in segment if not sign.isalnum() and sign not in _DIVIDING)


def possible(pairs: Columns, decider: Decider) -> np.ndarray:
    one_address = (pairs.same_address != 0) | (pairs.same_canonical != 0)
    least: float | np.ndarray = min(decider.tape_min, decider.short_tape_min, decider.strict_tape_min)
    if decider.middle_tape_max:
        least = np.where(pairs.same_site != 0, least, min(least, decider.middle_tape_min))
    named_alike = ((pairs.title_veto != 1) | one_address) & (pairs.head_veto != 1)
    if decider.renamed_tape_min:
        named_alike |= (pairs.same_site == 0) & (pairs.tape_score >= decider.renamed_tape_min)
    alike = tape.possible_from(least, named_alike, pairs, decider)
    alike |= syndicated.possible(pairs, decider)
    return alike


def _posts(decider: Decider) -> Posts:
    return (KeyFamily.PLACE, 1), *tape.posts(decider)


# ---- in words ------------------------------------------------------------------------------------------------------

_REFUSALS = {
    "retitled": Refusal("the titles differ in numbers or signs, and the URLs end differently", veto=True),
    "heading veto": Refusal("the headings name different things", veto=True),
    "path": Refusal("words of the pages' paths tell them apart, and more than a stamp differs", veto=True),
    "record": Refusal("the URLs differ in numbers alone, as of records, and more than a stamp differs", veto=True),
    "own word": Refusal("a word of its path stands in one page, and neither in the other nor in its path", veto=True),
    "elsewhere": Refusal("one name at two places, so a closer match was demanded"),
    "siblings": Refusal(
        "other pages of this site go by this name, and more than a stamp differs, or the place", veto=True
    ),
    "lengths": Refusal("the texts differ in length, and in many places, so a closer match was demanded"),
    "added": Refusal("an older page of another owner adds too much to this one, and may be made of it", veto=True),
    "length": Refusal("one page is much longer: words repeated many times, which the samples leave out"),
    **tape.REFUSALS,
}


#: Why a pair was accepted, where its score alone does not say it.
_ACCEPTED = {
    "middle": ["The texts are of one length, and their simhashes agree, so a lower score is enough."],
    "renamed": ["They go by other names, on two sites, and nearly all of the text is the same."],
}


def _evidence(pair: Pair, ruling: Ruling) -> dict[str, Any]:
    more = {"added": round(added(pair), 4)} if ruling.by == "added" else {}
    if not pair.same_site:
        numbers = more | syndicated.evidence(pair, ruling)
        return evidence_of(pair, ruling, numbers, {"heading": int(ruling.by == "heading veto")})
    gaps = [pair.gaps, pair.gap_digits, pair.loose_words]
    return evidence_of(pair, ruling, more | {"gaps": gaps}, {"heading": int(_headings_apart(pair))})


def _held(evidence: Evidence, decider: Decider) -> tuple[float, float] | None:
    found = tape.held(evidence, decider)
    if found is None:
        return None
    score, demand = found
    demands = {
        "elsewhere": decider.strict_tape_min,
        "renamed": max(decider.renamed_tape_min, demand),
        "lengths": decider.middle_tape_max,
        "middle": decider.middle_tape_min,
    }
    return score, demands.get(str(evidence.get("by")), demand)


def _told(evidence: Evidence, decider: Decider) -> list[str]:
    if article := syndicated.told(evidence, decider):
        return article
    told = tape.told_of(_held(evidence, decider), evidence, decider, _REFUSALS)
    if (share := evidence.get("added")) is not None:
        shown, most = score_and_demand(float(share), decider.added_max)
        told.insert(1, f"What the older page adds is {shown} of this one; at most {most} may be.")
    return _ACCEPTED.get(str(evidence.get("by")), []) + told


def _margin(evidence: Evidence, decider: Decider) -> float | None:
    found = _held(evidence, decider)
    return None if found is None else found[0] - found[1]


RULE = Rule(
    name="verified",
    decide=decide,
    posts=_posts,
    possible=possible,
    nearness=tape.RULE.nearness,
    refusals=_REFUSALS,
    told=_told,
    margin=_margin,
    in_short=tape.in_short,
    evidence=_evidence,
    drawn=tape.RULE.drawn,
    kept_apart=tape.kept_apart,
    one_page=one_page,
    reads_tapes=True,
    counts_siblings=lambda decider: decider.siblings_min > 0,
)
