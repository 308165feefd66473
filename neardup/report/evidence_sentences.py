"""Formats evidence as sentences.

The numbers are those of a verdict's `evidence`, the thresholds those of the decider.
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from neardup.decider import Decider
from neardup.rules import REFUSALS, rule_of, why_refused
from neardup.rules.key_families import PLACES, WORDS, Words
from neardup.urls import is_document
from neardup.verdict import FOUND_BY
from neardup.wording import counted

KINDS: dict[str, tuple[str, str]] = {
    "unique": ("unique", "No earlier page is a duplicate of this one. It founds a cluster."),
    "exact_duplicate": ("exact duplicate", "The same words in the same order as an earlier page."),
    "near_duplicate": ("near duplicate", "Nearly the same words in the same order as an earlier page."),
    "same_content": ("same content", "The main content of an earlier page in other surroundings. It founds a cluster."),
    "unchanged": ("unchanged", "A later fetch of this URL with the same words."),
    "edited": ("edited", "A later fetch of this URL, changed, but still similar to its cluster."),
    "stale": ("stale", "A fetch of this URL from before the latest one. It changes nothing."),
    "gone": ("gone", "The URL no longer exists."),
    "promoted": (
        "promoted",
        "This page became its cluster's representative: the former one left, or this one returned.",
    ),
    "rejected": ("rejected", "The page could not be read."),
}

#: Terms of the report, in the order of their first use.
GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "representative",
        "The page that each member of a cluster was compared with: the first page of the cluster.",
    ),
    ("cluster", "A representative and its duplicates. Members resemble it, but not necessarily each other."),
    ("nearest candidate", "The most similar of the earlier pages that share an index key with a page."),
    ("tape", "A sample of up to 500 words of a page, chosen by their hashes, in the order of the text."),
    ("tape score", "The words that two tapes share in the same order (LCS), as a share of the words of both."),
    ("content score", "The tape score of the main content alone, without menus and footers."),
    ("veto", "A reason to keep similar texts apart: different names in titles, headings or paths."),
    ("kept apart", "Pages with similar enough texts, whose names or paths are about different things."),
    ("supershingle, B-similarity", "A hash of runs of 8 words; how many of 6 are equal (Broder's algorithm)."),
    ("simhash, C-similarity", "384 bits of the words' frequencies; how many agree (Charikar's algorithm)."),
    ("hot key", "An index key shared by too many pages to find duplicates with: a template, or spam."),
    ("thin", "A page of so few words that only exact copies count as duplicates."),
    ("site", "The registrable domain by the public suffix list; an IP address is a site of its own."),
)

FLAGS: dict[str, str] = {
    "thin": "so few words that only exact copies count",
    "opaque": "neither HTML nor text; compared byte by byte",
    "shell": "its words come from a script or another page; it has exact duplicates alone",
    "truncated": "only the first part was read",
    "candidates_cut": "only some of its candidates were scored",
}


def reason_kind(reason: str | None) -> str:
    """Returns the general part of a rejection reason, before the details of one page; reasons are counted by it."""
    return (reason or "no reason given").partition(": ")[0]


#: Characters of a URL in a list, and of its end if it is longer.
URL_CHARS_SHOWN, _URL_CHARS_END = 240, 50


def short(url: str) -> str:
    """Cuts the middle of a long URL, with a sign, for display."""
    if len(url) <= URL_CHARS_SHOWN:
        return url
    return f"{url[: URL_CHARS_SHOWN - _URL_CHARS_END - 10]} \N{HORIZONTAL ELLIPSIS} {url[-_URL_CHARS_END:]}"


def percent(share: float) -> str:
    """Formats a share. 0% and 100% are exact; small shares and those near 100% have one significant digit."""
    if share in (0, 1):
        return f"{share:.0%}"
    least = min(share, 1 - share) * 100
    if least < 0.001:
        return "<0.001%" if share < 0.5 else ">99.999%"
    digits = max(0, -math.floor(math.log10(least)))
    return f"{share:.{digits}%}"


def sentences(evidence: Mapping[str, Any], decider: Decider, url: str = "") -> list[str]:
    """Formats the numbers of a pair, most important first. url: URL of the judged page; a document has no site."""
    by = str(evidence.get("by", ""))
    out: list[str] = []
    if by == "digest":
        out.append("The same words in the same order, from first to last.")
    elif by in REFUSALS and not REFUSALS[by].plain:
        out.append(f"Ruled out: {REFUSALS[by].words}.")
    out += rule_of(decider).sentences(evidence, decider)
    keys = evidence.get("keys")
    if keys:
        out.append(f"Found through {found_through(keys, decider)}.")
    if evidence.get("same_site") is not None and not is_document(url):
        out.append("Both pages are on one site." if evidence["same_site"] else "The pages are on different sites.")
    return out


#: What found a page, for users.
FOUND_BY_WORDS = {
    "neither": "equal first words, of the page or of its main content, or the same name at the same place of the site",
    "supershingles": "supershingles (Broder), and no simhash block",
    "blocks": "simhash blocks (Charikar, Manku), and no supershingle",
    "both": "supershingles and simhash blocks",
}
assert set(FOUND_BY_WORDS) == set(FOUND_BY)
_KEYS = {family.name.lower(): words for family, words in WORDS.items()}


def key_name(family: str) -> str:
    """Names a family of index keys."""
    known = _KEYS.get(family.lower())
    return known.one if known else family


def kept_apart(evidence: Mapping[str, Any]) -> str:
    """States why a page founds a cluster although a similar one exists; empty if there is none."""
    by = evidence.get("kept_apart")
    return f"Similar, but kept apart from page {evidence['nearest']['page_id']}: {why_refused(by)}." if by else ""


def found_through(keys: Any, decider: Decider) -> str:
    """Formats shared index keys.

    Args:
        keys: a mapping of family to count, a list of families, or the number of keys.
        decider: the rule that posted the keys; it says how many a page has of each family.
    """
    if isinstance(keys, int):
        return counted(keys, "shared key")
    counts = dict(keys) if isinstance(keys, Mapping) else Counter(keys)
    posted = {family.name.lower(): min(many, len(PLACES[family])) for family, many in rule_of(decider).posts(decider)}
    parts = []
    for family, count in counts.items():
        name = str(family)
        words, total = _KEYS.get(name.lower(), Words(name, name)), posted.get(name.lower(), 0)
        if words.several:
            parts.append(f"{count}{f' of {total}' if total else ''} {words.several}")
        else:
            parts.append(words.one)
    return ", ".join(parts)
