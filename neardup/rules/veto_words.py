"""Finds the words that cause the vetoes of titles and first words, from the texts of two pages, for users.

`neardup.kernels.pairs` computes the vetoes themselves (`Pair.title_veto`, `Pair.head_veto`) from records. A record has
fingerprints of words, and a filter instead of the text; a full filter cannot prove that a word is absent.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

#: Times that a word of the title, or of the beginning, must occur in the text to count as a topic of the page.
TITLE_TWICE, HEAD_THRICE = 2, 3


class PageWords(NamedTuple):
    """Words of a page. text: all, those of the title included; title; host: words of its host, which never veto."""

    text: Sequence[str]
    title: Sequence[str]
    host: frozenset[str]


def only_in_title(one: PageWords, other: PageWords, same_site: bool) -> list[str]:
    """Words of the title of `one` that `other` (on one site: its title) lacks, for `title_veto`."""
    if not one.title or not other.title:
        return []
    mine, theirs = Counter(one.text), Counter(other.text)
    if same_site:
        found = [word for word in one.title if word not in other.title and not word.isdigit()]
    else:
        found = [word for word in one.title if mine[word] >= TITLE_TWICE and not theirs[word]]
    return [word for word in found if word not in one.host]


def only_at_beginning(one: PageWords, other: PageWords, head_tokens: int) -> list[str]:
    """Frequent words at the beginning of `one` that `other` lacks, for `head_veto`."""
    mine, theirs = Counter(one.text), Counter(other.text)
    return [
        word
        for word in one.text[:head_tokens]
        if mine[word] >= HEAD_THRICE and not theirs[word] and not any(map(str.isdigit, word)) and word not in one.host
    ]


def title_veto(a: PageWords, b: PageWords, same_site: bool) -> bool:
    """Whether `Pair.title_veto` is 1. On one site a single word suffices, if the text of its page repeats it."""
    mine, theirs = only_in_title(a, b, same_site), only_in_title(b, a, same_site)
    if not same_site:
        return bool(mine and theirs)
    text_a, text_b = Counter(a.text), Counter(b.text)
    repeated = any(text_a[w] >= TITLE_TWICE for w in mine) or any(text_b[w] >= TITLE_TWICE for w in theirs)
    return bool(mine and theirs) or repeated


def head_veto(a: PageWords, b: PageWords, head_tokens: int) -> bool:
    """Whether `Pair.head_veto` is 1."""
    return bool(only_at_beginning(a, b, head_tokens) and only_at_beginning(b, a, head_tokens))
