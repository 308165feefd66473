"""Extracts long passages of visible text around the terms of a query (Huffman 2007; their length is ours)."""

import re
from bisect import bisect_left

PASSAGES, PASSAGE_CHARACTERS = 3, 400
#: Characters of a passage before its first term.
_BEFORE = 100
_TERMS_MAX, _PLACES_MAX = 32, 2000


def snippet(text: str, query: str) -> str:
    """Returns the passages with the most distinct query terms, in the order of the text, one line each.

    A term is a word of the query. A term that is not ASCII is also found within words, for scripts without spaces.
    Passages do not overlap. Without a query or any of its terms, the snippet is the start of the text.
    """
    terms = list(dict.fromkeys(term.lower() for term in re.findall(r"\w+", query)))[:_TERMS_MAX]
    found = _places(text, terms) if terms else []
    if not found:
        return text[: PASSAGES * PASSAGE_CHARACTERS]
    starts = [place for place, _ in found]
    passages = []
    for place in starts:
        start = max(0, place - _BEFORE)
        first, last = (bisect_left(starts, edge) for edge in (start, start + PASSAGE_CHARACTERS))
        within = [term for _, term in found[first:last]]
        passages.append((-len(set(within)), -len(within), start))
    chosen: list[int] = []
    for *_, begin in sorted(passages):
        if all(abs(begin - start) >= PASSAGE_CHARACTERS for start in chosen):
            chosen.append(begin)
        if len(chosen) == PASSAGES:
            break
    return "\n".join(text[start : start + PASSAGE_CHARACTERS] for start in sorted(chosen))


def _places(text: str, terms: list[str]) -> list[tuple[int, str]]:
    """Finds the first occurrences of terms: (position, term), in the order of the text."""
    parts = [rf"\b{re.escape(term)}\b" if term.isascii() else re.escape(term) for term in terms]
    found = []
    for match in re.finditer("|".join(parts), text, re.IGNORECASE):
        found.append((match.start(), match[0].lower()))
        if len(found) == _PLACES_MAX:
            break
    return found
