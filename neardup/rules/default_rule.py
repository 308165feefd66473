"""The default rule: compares the names of two pages (title, heading, words and end of the URL), then applies `tape`.

Pages from one template have mostly the same text. For two pages of one site, the rule therefore tests where they
differ: in their names (title, heading, words and numbers of the URL's path), in their content, or only in text that
changes by itself (stamps, noise). The steps are the list `STEPS`; the first step that returns True has decided.
"""

from typing import Any

from neardup.decider import Decider
from neardup.pairs.pair import Pair
from neardup.rules import syndicated, tape
from neardup.rules.base import (
    Evidence,
    Refusal,
    Rule,
    Ruling,
    Step,
    accept,
    evidence_of,
    refusals_of,
    refuse,
    rule_kernel,
    score_and_demand,
)
from neardup.rules.differences import common_words, contained_share, is_noise, is_stamp, same_but_own_urls
from neardup.rules.key_families import KeyFamily
from neardup.rules.records import BY, SAME_CONTENT, DeciderRow, PairRow, RulingRow, SiblingsRow

_TITLE_VETO, _RETITLED, _HEADING_VETO = BY.index("title veto"), BY.index("retitled"), BY.index("heading veto")
_RECORD, _PATH, _SIBLINGS, _ELSEWHERE = (BY.index(name) for name in ("record", "path", "siblings", "elsewhere"))
_LENGTH, _ADDED, _ADDS = (BY.index(name) for name in ("length", "added", "adds"))
_RENAMED, _CANONICAL, _OWN_QUERY = (BY.index(name) for name in ("renamed", "canonical", "own query"))
#: What makes duplicates of two texts: neither whole texts nor main contents, whole texts, or main contents.
_NEITHER, _WHOLE, _CONTENT = 0, 1, 2
#: Version of the rules since which they look at how much of the shorter page is in the other, and a page has the
#: content of an older one that adds to it.
_CONTAINED_SINCE = 2
#: Share of it that main contents of one site need. No number of the decider: one that asks for a closer match raises
#: what whole texts need, and main contents are there for pages that fail it.
_CONTAINED_MIN = 0.85


# ---- names ---------------------------------------------------------------------------------------------------------


@rule_kernel
def _one_address(pair: PairRow) -> bool:
    """Whether the pages' URLs, or the canonical URLs that they name, are those of one page."""
    return bool(pair.same_address != 0 or pair.same_canonical != 0)


@rule_kernel
def _claim_one_page(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether two pages of one owner name one canonical URL, and most of the shorter one is in the other.

    They are views of one page, such as a mobile version and one with comments. A wrong canonical URL, such as that of
    a section on each of its pages, joins pages that have only the frame in common.
    """
    if decider.rule_version < _CONTAINED_SINCE or not (pair.same_site and pair.same_owner and pair.same_canonical):
        return False
    if min(pair.tokens_a, pair.tokens_b) < decider.short_tokens:
        return False
    return bool(contained_share(pair) >= decider.content_tape_min)


@rule_kernel
def _is_own_query(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether the pages differ in the words of their own queries alone, which titles repeat and which name nothing."""
    return bool(decider.rule_version >= _CONTAINED_SINCE and pair.own_query)


@rule_kernel
def _is_other_view(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether the pages are two views or releases of one page with different titles, such as a printer version."""
    if _claim_one_page(pair, decider) or _is_own_query(pair, decider):
        return True
    if not (pair.same_site and pair.same_heading):
        return False
    if max(pair.tape_score, pair.content_score) < decider.strict_tape_min:
        return False
    # Forms of an application may have one heading and one tail, too: words or ids of their paths differ.
    released = pair.same_tail != 0 and pair.path_veto == 0 and pair.records == 0
    return released or _one_address(pair)


@rule_kernel
def _is_renamed(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether pages of two sites have different titles, and nearly the same text.

    On one site such pages come from a template. On two sites one is likely a copy in which a word was replaced.
    """
    least = decider.renamed_tape_min
    return bool(pair.title_veto == 1 and pair.same_site == 0 and least > 0 and pair.tape_score >= least)


@rule_kernel
def _titles_differ(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether titles name different things, on one site or on two."""
    if pair.same_site:
        return pair.titles_apart == 1 and not _is_other_view(pair, decider)
    return pair.title_veto == 1 and not _is_renamed(pair, decider)


@rule_kernel
def _is_doubtful(pair: PairRow) -> bool:
    """Whether the title veto of two sites is in doubt, because a saturated filter cannot prove a word absent."""
    return bool(pair.title_veto == 2)


@rule_kernel
def _is_retitled(pair: PairRow) -> bool:
    """Whether titles differ only in numbers, case or signs. Titles of releases do, too, but their URLs end alike."""
    same = pair.same_title != 0 and pair.same_letters != 0
    return bool(pair.titles_apart == 2 or (pair.same_words != 0 and not same))


@rule_kernel
def _veto(by: int, pair: PairRow, decider: DeciderRow, out: RulingRow) -> bool:
    return refuse(by, pair.tape_score, tape.demanded(pair, decider, _is_doubtful(pair))[0], out)


@rule_kernel
def _names(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    if syndicated.holds(pair, decider):
        return False
    if _titles_differ(pair, decider):
        return _veto(_TITLE_VETO, pair, decider, out)
    if pair.same_site and not pair.same_tail and _is_retitled(pair) and not _is_other_view(pair, decider):
        return _veto(_RETITLED, pair, decider, out)
    return _headings_apart(pair, decider) and _veto(_HEADING_VETO, pair, decider, out)


@rule_kernel
def _headings_apart(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether headings name different things. If only their numbers differ, the URLs must also end differently.

    A site may add its own name to title or heading, so on two sites something else must differ, too.
    """
    if pair.heading_veto == 0 or _claim_one_page(pair, decider) or _is_own_query(pair, decider):
        return False
    if pair.same_site:
        return bool(pair.heading_veto == 1 or pair.same_tail == 0)
    if pair.heading_veto != 1:
        return False
    return bool(pair.same_words != 0 or (pair.same_tail == 0 and _contents_differ(pair, decider)))


@rule_kernel
def _contents_differ(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether the main contents differ, so that the pages share only the text around them."""
    fewest = min(pair.content_tokens_a, pair.content_tokens_b)
    return bool(fewest >= decider.thin_tokens and pair.content_score < decider.content_tape_min)


# ---- places --------------------------------------------------------------------------------------------------------


@rule_kernel
def _may_be_placed(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether paths may distinguish the pages.

    Error pages print their URLs, and so match any path. Each host has folders of its own.
    """
    if pair.same_site == 0 or syndicated.holds(pair, decider):
        return False
    return not (pair.own_urls or pair.same_but_sessions or _one_address(pair))


@rule_kernel
def _path(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    if not _may_be_placed(pair, decider):
        return False
    if pair.records == 1 and pair.named and pair.same_naming and pair.same_title:
        return not is_stamp(pair, decider, decider.stamp_words_max // 2) and _veto(_RECORD, pair, decider, out)
    if pair.path_veto == 0 or pair.tape_score >= decider.path_tape_max:
        return False
    return _paths_apart(pair, decider) and _veto(_PATH, pair, decider, out)


@rule_kernel
def _paths_apart(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether words of paths name different things.

    The end of the URL is the name of a page without title and heading. For other pages, words of paths that neither
    page contains (languages, kinds of a page) count only if the titles differ, too.
    """
    if pair.path_veto == 1:
        return not is_stamp(pair, decider, decider.stamp_words_max)
    if not pair.named:
        return bool(pair.same_tail == 0)
    if pair.path_veto != 2 or pair.same_words or pair.same_tail or pair.tape_score >= decider.strict_tape_min:
        return False
    return not is_stamp(pair, decider, decider.stamp_words_max)


@rule_kernel
def _siblings(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    # pages whose titles differ have no name in common
    if not pair.same_naming or not _is_crowded(pair, siblings, decider) or _titles_differ(pair, decider):
        return False
    if same_but_own_urls(pair, decider) or (pair.same_site and _one_address(pair)):
        return False
    if not pair.same_site:
        # A mirror keeps paths. If the paths differ, another of the pages with this name may be the mirrored one.
        return not pair.same_tail and _veto(_SIBLINGS, pair, decider, out)
    if _at_home(pair, siblings) and is_noise(pair, decider):
        return False
    return not is_stamp(pair, decider, decider.stamp_words_max) and _veto(_SIBLINGS, pair, decider, out)


@rule_kernel
def _is_crowded(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow) -> bool:
    """Whether the common name says little, because other pages have it, too."""
    pages = siblings.others + siblings.alike
    if pair.same_title and 2 * siblings.retitled > pages:  # most titles differ in digits or signs
        return False
    # First words are a weak name: a few pages that begin alike may be one text at several addresses.
    if pages < decider.alike_min and not pair.named and pair.tape_score >= decider.short_tape_min:
        return False
    return bool(siblings.alike >= decider.alike_min or (pair.same_tail == 0 and siblings.others > 0))


@rule_kernel
def _at_home(pair: PairRow, siblings: SiblingsRow) -> bool:
    """Whether the URLs of two pages with a common name allow that they are one page; then noise may differ."""
    if pair.same_but_sessions or pair.same_tail:
        return True
    # paths tell pages apart, and not only queries, if most paths differ
    return bool(pair.same_place != 0 and 2 * siblings.moved > siblings.others + siblings.alike)


@rule_kernel
def _contents_apart(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether one title stands over two main contents: they are long enough to count, and differ."""
    fewest = min(pair.content_tokens_a, pair.content_tokens_b)
    differ = fewest >= decider.short_tokens and pair.content_score < decider.content_tape_min
    return bool(decider.rule_version >= _CONTAINED_SINCE and pair.same_title and differ)


@rule_kernel
def _elsewhere(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    if not (pair.same_site and pair.same_naming and pair.named):
        return False
    # Pages whose URLs end alike are releases, terms or languages of one page: then their main contents agree, too.
    if (pair.same_tail or pair.same_place) and not _contents_apart(pair, decider):
        return False
    if pair.tape_score >= decider.strict_tape_min or pair.same_but_sessions or _one_address(pair):
        return False
    if same_but_own_urls(pair, decider) or is_stamp(pair, decider, decider.stamp_words_max):
        return False
    if syndicated.holds(pair, decider):
        return False
    return refuse(_ELSEWHERE, pair.tape_score, decider.strict_tape_min, out)


# ---- texts ---------------------------------------------------------------------------------------------------------


@rule_kernel
def _alike(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow) -> int:
    """What makes duplicates of the texts, whatever else keeps the pages apart: _WHOLE, _CONTENT or _NEITHER."""
    texts = tape.compare_texts(pair, decider, _is_doubtful(pair))
    if texts == tape.ALIKE:
        return _WHOLE
    if texts == tape.DEMANDING:
        return _NEITHER
    comparable = _has_comparable_contents(pair, siblings, decider)
    return _CONTENT if comparable and tape.contents_agree(pair, decider) else _NEITHER


@rule_kernel
def _has_comparable_contents(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow) -> bool:
    """Whether main contents may decide. On one site they do only for pages of one name or one address.

    There most of the shorter page must be in the other, too: a small main content, or one of links, is often that of
    two pages of a template. A template that was made anew leaves less of the page, but equal ends of the URLs.
    """
    if pair.same_site == 0:
        return True
    if not (pair.same_naming != 0 or _one_address(pair)):
        return False
    if decider.rule_version < _CONTAINED_SINCE or contained_share(pair) >= _CONTAINED_MIN:
        return True
    few = siblings.others + siblings.alike <= 1
    return bool(pair.same_tail != 0 and pair.records != 1 and few)


@rule_kernel
def _added(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    texts = _alike(pair, siblings, decider)
    # an article under another title is no repeat, however long the page; a view of a page may have much more
    if texts == _NEITHER or _titles_differ(pair, decider) or _claim_one_page(pair, decider):
        return False
    if texts == _CONTENT:
        padded = _is_padded(pair.content_tokens_a, pair.content_tokens_b, decider)
        return padded and _veto(_LENGTH, pair, decider, out)
    if _is_padded(pair.tokens_a, pair.tokens_b, decider):
        return _veto(_LENGTH, pair, decider, out)
    share = _share_added(pair)
    if pair.same_owner or decider.added_max >= 1 or share <= decider.added_max:
        return False
    _veto(_ADDED, pair, decider, out)
    if decider.rule_version >= _CONTAINED_SINCE:  # texts do not tell which page is the original, so each is shown
        accept(SAME_CONTENT, _ADDS, tape.BY_CONTENT, out.score, out.demand, out)
    out.added = share
    return True


@rule_kernel
def _is_padded(a: float, b: float, decider: DeciderRow) -> bool:
    """Whether one text is so much longer that its tape, with 8 occurrences of a token, leaves most of it out."""
    return bool(min(a, b) < decider.length_share_min * max(a, b))


@rule_kernel
def _share_added(pair: PairRow) -> float:
    """How much the older page adds to the common text, as a share of the new page: |B| / |A| - |LCS| / |A|.

    |A| and |B| are the lengths of the tapes, or the numbers of tokens if the share is greater with these. A tape holds
    at most 8 occurrences of a token, so a keyword that is repeated 100 times adds little to it.
    """
    longer = max(pair.tape_b / max(1.0, pair.tape_a), pair.tokens_b / max(1.0, pair.tokens_a))
    return float(longer - min(1.0, common_words(pair) / max(1.0, pair.tape_a)))


@rule_kernel
def _syndicated(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    if not syndicated.holds(pair, decider):
        return False
    # Under one title, texts that are alike make more of the pair.
    if not _titles_differ(pair, decider) and _alike(pair, siblings, decider) != _NEITHER:
        return False
    return syndicated.accept_article(pair, decider, out)


@rule_kernel
def _tape(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    decided = tape.by_tape(pair, decider, _is_doubtful(pair), out)
    if decided and out.kind and _is_renamed(pair, decider):
        out.by, out.demand = _RENAMED, max(out.demand, decider.renamed_tape_min)
    elif decided and out.kind and _is_own_query(pair, decider):
        out.by = _OWN_QUERY
    return decided


@rule_kernel
def _content(pair: PairRow, siblings: SiblingsRow, decider: DeciderRow, out: RulingRow) -> bool:
    if _claim_one_page(pair, decider):
        return accept(SAME_CONTENT, _CANONICAL, tape.BY_CONTENT, contained_share(pair), decider.content_tape_min, out)
    return _has_comparable_contents(pair, siblings, decider) and tape.by_content(pair, decider, out)


STEPS = (
    tape.THIN,
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
        "Pages of one name at two places of a site, or of one title over two main contents, must agree in "
        "`strict_tape_min` (95%), or differ in a stamp only.",
        {"elsewhere": Refusal("one name at two places or over two main contents, so a closer match was demanded")},
    ),
    Step(
        "added",
        _added,
        "A page that adds as much again to the other's text does not repeat it. A page has the same content as an "
        "older one of another owner that adds more than `added_max` (16%) to it.",
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
        "syndicated",
        _syndicated,
        "Two sites, or hosts of a site, with one article under one headline have the same content.",
        {},
    ),
    Step(
        "tape",
        _tape,
        "Tapes that agree in `tape_min` (74%), of two sites in `two_sites_tape_min` (70%), make a near-duplicate.",
        tape.TAPE_REFUSALS,
    ),
    Step(
        "content",
        _content,
        "Main contents that agree in `content_tape_min` (74%) are the same content; on one site only under one name, "
        "and if 85% of the shorter page is in the other one. So are pages that name one canonical URL, if 74% of the "
        "shorter one is in the other.",
        tape.CONTENT_REFUSALS,
    ),
    tape.UNLIKE,
)


# ---- in words ------------------------------------------------------------------------------------------------------

_REFUSALS = refusals_of(STEPS)


def _evidence(pair: Pair, ruling: Ruling) -> dict[str, Any]:
    more: dict[str, Any] = {"adds": round(ruling.added, 4)} if ruling.by in ("adds", "added") else {}
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
    if (share := evidence.get("adds")) is not None:
        shown, most = score_and_demand(float(share), decider.added_max)
        out.insert(1, f"What the older page adds is {shown} of this one; a page that is hidden has at most {most}.")
    if evidence.get("by") == "own query":
        out.insert(0, "They differ in the words of their own queries alone.")
    if evidence.get("by") == "canonical":
        shown, needed = score_and_demand(evidence["score"], evidence["demand"])
        out[0] = f"{shown} of the shorter page's sampled text is in the other one, in its order; threshold {needed}."
        out.insert(0, "They name one canonical URL.")
    held = evidence.get("same_site") and evidence.get("vetoes", {}).get("title") == "holds"
    if held and evidence["by"] in ("tape", "content") and evidence["score"] >= evidence["demand"]:
        out.insert(0, "The titles differ, but the headings are equal, and the URLs are one page's or end alike.")
    if evidence.get("by") == "renamed":
        out.insert(0, "They go by other names, on two sites, and nearly all of the text is the same.")
    return out


RULE = Rule(
    name="verified",
    decides=tape.by_steps(STEPS),
    posts=lambda decider: ((KeyFamily.PLACE, 1), *tape.posts(decider)),
    refusals=_REFUSALS,
    sentences=_sentences,
    in_short=tape.in_short,
    evidence=_evidence,
    drawn=tape.RULE.drawn,
    steps=STEPS,
    reads_tapes=True,
    counts_siblings=True,
    tells_equal_pages=True,
)
