"""Evidence in plain words. The numbers are those of a verdict's `evidence`, the thresholds those of the decider."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from neardup.decider import Decider
from neardup.rules import REFUSALS, rule_of, why_refused
from neardup.rules.families import PLACES, WORDS, Words

KINDS: dict[str, tuple[str, str]] = {
    "unique": ("unique", "No earlier page counts as the same. Founds a cluster of its own."),
    "exact_duplicate": ("exact duplicate", "The same words in the same order as an earlier page."),
    "near_duplicate": ("near duplicate", "Nearly the same words in the same order as an earlier page."),
    "same_content": ("same content", "Another page around the same main content. Founds a cluster of its own."),
    "unchanged": ("unchanged", "This URL again, with the words it had."),
    "edited": ("edited", "This URL again, changed, but still its cluster's content."),
    "stale": ("stale", "This URL again, fetched earlier than the fetch already held. Changes nothing."),
    "gone": ("gone", "The URL no longer exists."),
    "promoted": ("promoted", "A cluster's representative went away, and this member took its place; or it is back."),
    "rejected": ("rejected", "Could not be read."),
}

#: What the report's words mean, in the order in which a reader meets them.
GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "representative",
        "The page that the members of a cluster were each compared with: the first of them that was seen.",
    ),
    ("cluster", "A representative and the pages that repeat it. Members are like it, not necessarily like each other."),
    ("nearest candidate", "Of the earlier pages that share an index key with a page, the one that is most like it."),
    ("tape", "A sample of up to 500 words of a page, chosen by their hashes, in the order of the text."),
    ("tape score", "What two tapes have in common in the same order (LCS), as a share of what both hold together."),
    ("content score", "The same of the main content alone, without menus and footers."),
    ("veto", "What tells two pages apart however alike their texts are: names in titles, headings, paths."),
    ("kept apart", "Texts alike enough, while names or places say that the pages are about different things."),
    ("supershingle, B-similarity", "A hash of runs of 8 words; how many of 6 are equal (Broder's algorithm)."),
    ("simhash, C-similarity", "384 bits of the words' frequencies; how many agree (Charikar's algorithm)."),
    ("hot key", "An index key that so many pages share that it tells nothing: a template, or spam."),
    ("thin", "A page of so few words that only exact copies count."),
    ("site", "The domain that somebody registered, by the public suffix list; an IP address is its own."),
)

FLAGS: dict[str, str] = {
    "thin": "so few words that only exact copies count",
    "opaque": "neither HTML nor text; compared byte by byte",
    "truncated": "only the first part was read",
    "candidates_cut": "more candidates than are scored",
}


def reason_kind(reason: str | None) -> str:
    """What reasons for rejections are counted by: the words before what is particular to one page."""
    return (reason or "no reason given").partition(": ")[0]


def percent(share: float) -> str:
    """A share for people: never 100% or 0% unless it is."""
    if share in (0, 1):
        return f"{share:.0%}"
    return f"{min(max(share, 0.001), 0.999):.1%}" if share < 0.01 or share > 0.99 else f"{share:.0%}"


def sentences(evidence: Mapping[str, Any], decider: Decider) -> list[str]:
    """What the numbers of a pair say, most important first."""
    by = str(evidence.get("by", ""))
    out: list[str] = []
    if by == "digest":
        out.append("The same words in the same order, from first to last.")
    elif by in REFUSALS and not REFUSALS[by].plain:
        out.append(f"Ruled out: {REFUSALS[by].words}.")
    out += rule_of(decider).told(evidence, decider)
    if evidence.get("crowd"):
        out.append(f"{evidence['crowd']} siblings of this page were seen on its site.")
    keys = evidence.get("keys")
    if keys:
        out.append(f"Found through {found_through(keys)}.")
    if evidence.get("same_site") is not None:
        out.append("Both pages are on one site." if evidence["same_site"] else "The pages are on different sites.")
    return out


_KEYS = {family.name.lower(): (words, len(PLACES.get(family, ()))) for family, words in WORDS.items()}


def key_name(family: str) -> str:
    """What a family of index keys is made of, in words."""
    known = _KEYS.get(family.lower())
    return known[0].one if known else family


def kept_apart(evidence: Mapping[str, Any]) -> str:
    """Why a page stands for itself though an earlier one is alike, as a sentence; empty where none is."""
    by = evidence.get("kept_apart")
    return f"Alike, but kept apart from page {evidence['nearest']['page_id']}: {why_refused(by)}." if by else ""


def found_through(keys: Any) -> str:
    """Shared index keys in words, from a mapping of family to count or a list of families."""
    if isinstance(keys, int):
        return f"{keys} shared {'key' if keys == 1 else 'keys'}"
    counts = dict(keys) if isinstance(keys, Mapping) else Counter(keys)
    parts = []
    for family, count in counts.items():
        name = str(family)
        words, total = _KEYS.get(name.lower(), (Words(name, name), 0))
        if words.several:
            parts.append(f"{count}{f' of {total}' if total else ''} {words.several}")
        else:
            parts.append(words.one)
    return ", ".join(parts)
