"""Evidence in plain words. The numbers are those of a verdict's `evidence`, the thresholds those of the decider."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from neardup.decider import Decider
from neardup.index.keys import TAPE_RULES

KINDS: dict[str, tuple[str, str]] = {
    "unique": ("unique", "Nothing earlier says the same. Founds a cluster of its own."),
    "exact_duplicate": ("exact duplicate", "The same words in the same order as an earlier page."),
    "near_duplicate": ("near duplicate", "Nearly the same words in the same order as an earlier page."),
    "same_content": ("same content", "Another page around the same main content. Founds a cluster of its own."),
    "unchanged": ("unchanged", "This URL again, with the words it had."),
    "edited": ("edited", "This URL again, changed, but still its cluster's content."),
    "stale": ("stale", "This URL again, fetched earlier than the fetch already held. Changes nothing."),
    "gone": ("gone", "The URL no longer exists."),
    "promoted": ("promoted", "A cluster's representative went away, and this member took its place."),
    "rejected": ("rejected", "Could not be read."),
}

FLAGS: dict[str, str] = {
    "thin": "so few words that only exact copies count",
    "opaque": "neither HTML nor text; compared byte by byte",
    "truncated": "only the first part was read",
    "candidates_cut": "more candidates than are scored",
}

#: Why a candidate was not taken, for every `by` of a ruling without a verdict.
RULED_OUT: dict[str, str] = {
    "thin": "too few words for anything but an exact duplicate",
    "title veto": "the titles name different things",
    "head veto": "the beginnings name different things",
    "retitled": "the titles differ in numbers or signs, and the URLs end differently",
    "heading veto": "the headings name different things",
    "figures": "numbers differ all over the page, and it lies at another place of its site",
    "contents": "one name at two places of a site, and their main contents have little in common",
    "siblings": "other pages of this site go by this name, and more than a stamp differs, or the place",
    "length": "one page is much longer: words repeated many times, which the samples leave out",
    "unproved veto": "names may differ (a long page's filter cannot prove it), so a closer match was demanded",
    "crowd": "many siblings of this template, so a closer match was demanded",
    "tape": "too little of the text is the same in the same order",
    "short tape": "a short page, for which a closer match is demanded",
    "content: too short": "the text differs, and the main content is too short to judge by",
    "content: too small a part": "the text differs, and the main content is too small a part of the page",
    "combined: B": "too few equal supershingles",
    "combined: C": "too few agreeing simhash bits",
    "combined: C of a short page": "too few agreeing simhash bits for a short page",
    "site": "its site demands a closer match",
    "never_merge": "its site wants nothing but exact copies merged",
    "shingling": "too few equal supershingles",
    "simhash": "too few agreeing simhash bits",
    "simhash64": "too few agreeing bits of 64",
}


#: Those that no score outweighs.
VETOES = ("title veto", "head veto", "retitled", "heading veto", "figures", "contents", "siblings")


def reason_kind(reason: str | None) -> str:
    """What reasons for rejections are counted by: the words before what is particular to one page."""
    return (reason or "no reason given").partition(": ")[0]


def percent(share: float) -> str:
    """A share for people: never 100% or 0% unless it is."""
    if share in (0, 1):
        return f"{share:.0%}"
    return f"{min(max(share, 0.001), 0.999):.1%}" if share < 0.01 or share > 0.99 else f"{share:.0%}"


def score_and_threshold(score: float, threshold: float) -> tuple[str, str]:
    """Both as percentages, with as many decimals as it takes to tell which is greater."""
    for decimals in (0, 1, 2, 3):
        texts = f"{score:.{decimals}%}", f"{threshold:.{decimals}%}"
        if score == threshold or texts[0] != texts[1]:
            break
    return texts


def demanded(evidence: Mapping[str, Any], decider: Decider) -> float:
    """The tape score that was demanded of this pair (the default rule, step 3 and what raises it)."""
    by = evidence.get("by", "")
    if by == "noise":
        return decider.noise_tape_min
    if by in ("unproved veto", "crowd") or "unproved" in (evidence.get("vetoes") or {}).values():
        return decider.strict_tape_min
    if decider.crowd_min and (evidence.get("crowd") or 0) >= decider.crowd_min:
        return decider.strict_tape_min
    if by == "short tape" or min(evidence.get("tokens") or [decider.short_tokens]) < decider.short_tokens:
        return decider.short_tape_min
    return decider.tape_min


def compared_by_tape(evidence: Mapping[str, Any]) -> bool:
    """Whether the tape score of this evidence is a measurement (both tapes were long enough, the rule reads tapes)."""
    by = str(evidence.get("by", ""))
    return evidence.get("tape_score") is not None and not by.startswith("combined") and by not in _NO_TAPE


_NO_TAPE = ("digest", "thin", "shingling", "simhash", "simhash64", "")


def margin(evidence: Mapping[str, Any], decider: Decider) -> float | None:
    """How far a pair is above what was demanded of it, below 0 if it fell short; None where nothing was measured.

    In tape score, bits or supershingles, as the rule has it: comparable within one rule. Algorithm B comes first where
    both are asked: each supershingle that lacks counts as more than all bits.
    """
    by = str(evidence.get("by", ""))
    if decider.rule in TAPE_RULES:
        return float(evidence["tape_score"]) - demanded(evidence, decider) if compared_by_tape(evidence) else None
    numbers = [evidence.get(name) for name in ("b_similarity", "c_similarity", "simhash64_agree")]
    b, c, first = (None if number is None else float(number) for number in numbers)
    if by == "simhash64":
        return None if first is None else first - decider.simhash64_min
    if b is None or c is None or by == "digest":
        return None
    if by == "shingling":
        return b - decider.b_min
    if by == "simhash":
        return c - decider.c_min
    return (b - decider.b_min) * 384 if b < decider.b_min else c - decider.combined_c_min


def sentences(evidence: Mapping[str, Any], decider: Decider) -> list[str]:
    """What the numbers of a pair say, most important first."""
    by = str(evidence.get("by", ""))
    b, c = evidence.get("b_similarity"), evidence.get("c_similarity")
    tape, content = evidence.get("tape_score"), evidence.get("content_score")
    out: list[str] = []
    if by == "digest":
        out.append("The same words in the same order, from first to last.")
    elif by in RULED_OUT and by not in ("shingling", "simhash", "simhash64", "tape"):
        out.append(f"Ruled out: {RULED_OUT[by]}.")
    if by == "noise":
        out.append("Only a stamp differs: few words about numbers, in one or two places.")
    if by.startswith("combined") and decider.rule in TAPE_RULES:
        out.append("Too little text for a sample of it; the combined rule decides.")
    if tape is not None and compared_by_tape(evidence):
        threshold = demanded(evidence, decider)
        shown, needed = score_and_threshold(tape, threshold)
        holds = "which is enough" if tape >= threshold else "which is not enough"
        veto = by in VETOES
        ending = "" if veto and tape < threshold else (", but a veto stands" if veto else f", {holds}")
        out.append(f"{shown} of the sampled text in the same order; threshold {needed}{ending}.")
    if content is not None and by.startswith("content"):
        shown, needed = score_and_threshold(content, decider.content_tape_min)
        out.append(f"{shown} of the sampled main content in the same order; threshold {needed}.")
    if b is not None and c is not None and by != "digest":
        out.append(_papers(by, int(b), int(c), decider))
    if evidence.get("crowd"):
        out.append(f"{evidence['crowd']} siblings of this page were seen on its site.")
    keys = evidence.get("keys")
    if keys:
        out.append(f"Found through {found_through(keys)}.")
    if evidence.get("same_site") is not None:
        out.append("Both pages are on one site." if evidence["same_site"] else "The pages are on different sites.")
    return out


def _papers(by: str, b: int, c: int, decider: Decider) -> str:
    numbers = f"{b} of 6 supershingles are equal and {c} of 384 simhash bits agree"
    if by.startswith("combined"):
        return f"{numbers}; at least {decider.b_min} and {decider.combined_c_min} are needed."
    if by == "shingling":
        return f"{numbers}; at least {decider.b_min} supershingles are needed."
    if by == "simhash":
        return f"{numbers}; at least {decider.c_min} bits are needed."
    return f"{numbers}."


_KEYS: dict[str, tuple[int, str, str]] = {  # family: (how many a page has, one, several)
    "digest": (1, "the content digest", ""),
    "opaque": (1, "the digest of the body", ""),
    "head": (1, "the first 8 words", ""),
    "supershingle": (6, "supershingle", "supershingles"),
    "place": (1, "the same name at the same place of the site", ""),
    "wide": (8, "small supershingle", "small supershingles"),
    "logtf": (6, "simhash block", "simhash blocks"),
    "block": (12, "simhash block", "simhash blocks"),
    "manku": (56, "simhash table", "simhash tables"),
}


def key_name(family: str) -> str:
    """What a family of index keys is made of, in words."""
    return _KEYS.get(family.lower(), (0, family, ""))[1]


def found_through(keys: Any) -> str:
    """Shared index keys in words, from a mapping of family to count or a list of families."""
    if isinstance(keys, int):
        return f"{keys} shared {'key' if keys == 1 else 'keys'}"
    counts = dict(keys) if isinstance(keys, Mapping) else Counter(keys)
    parts = []
    for family, count in counts.items():
        total, one, several = _KEYS.get(str(family).lower(), (0, str(family), str(family)))
        if total == 1:
            parts.append(one)
        else:
            parts.append(f"{count}{f' of {total}' if total else ''} {several if total != 1 and several else one}")
    return ", ".join(parts)
