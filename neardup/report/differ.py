"""Finds the differences of two texts, word by word, in bounded time and space for any input.

A word is a run of letters, marks and digits, or one character in scripts without spaces; words are compared in lower
case. Anchors (runs of three words that occur once in each text, in the same order) cut the pair into gaps. Each gap is
aligned by `neardup.kernels.alignment`. A gap of more than GAP_EDITS_MAX edits is not aligned: there a word counts as
changed if the other side's gap lacks it, and the result is `coarse`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels import alignment

#: Edits within one gap. Aligning a pair takes at most this times its words: a tenth of a second.
GAP_EDITS_MAX = 500
#: Characters of a text that are compared. A page of this length prints on sixty sheets.
TEXT_CHARS_MAX = 200_000

# Han, kana, Thai, Lao, Khmer and Myanmar: one character per word. Elsewhere runs of letters and digits with combining
# marks, which Python's \w does not match.
_ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd"
)
_WORD = re.compile(rf"[{_ALONE}]|(?:(?![{_ALONE}])[^\W_][{_MARKS}]*)+")
_SPACE = re.compile(r"\s+")
_Numbers = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Text:
    """A text and the spans of its words. cut: the text was longer, and the rest is not compared."""

    text: str
    words: list[str]
    spans: list[tuple[int, int]]
    cut: bool = False


def text_words(text: str, chars_max: int = TEXT_CHARS_MAX) -> Text:
    """Splits a text into lower-cased words. White space becomes one space, or a pilcrow if it breaks a line.

    Pages have hundreds of blocks of one or two words, which would be too long if each were shown as a line.
    """
    cut = len(text) > chars_max
    text = _SPACE.sub(lambda space: " ¶ " if "\n" in space.group() else " ", text[:chars_max].strip())
    found = list(_WORD.finditer(text))
    if cut and found and found[-1].end() == len(text):
        found.pop()  # the cut may have split the last word
    return Text(text, [m.group().lower() for m in found], [m.span() for m in found], cut)


class TextChange(NamedTuple):
    """One change: words [a0, a1) of one text correspond to words [b0, b1) of the other; one range may be empty.

    coarse: whether the words inside the ranges are not aligned; then words in both ranges are no changes.
    """

    a0: int
    a1: int
    b0: int
    b1: int
    coarse: bool = False


@dataclass(slots=True)
class Difference:
    """The differences of two texts.

    changes: changes in order. removed, added: numbers of words only in the first, and only in the second text.
    """

    left: Text
    right: Text
    changes: list[TextChange]
    removed: int = 0
    added: int = 0
    coarse: bool = False


def compare_texts(left: Text, right: Text) -> Difference:
    """Compares two texts."""
    changes: list[TextChange] = []
    numbers: dict[str, int] = {}
    a, b = (
        np.array([numbers.setdefault(word, len(numbers)) for word in side.words], np.uint32) for side in (left, right)
    )
    for gap in _gaps(left.words, right.words):
        changes.extend(_align(a, b, gap))
    if changes and (left.cut or right.cut) and _only_one_goes_on(changes[-1], left, right):
        changes.pop()  # cut texts end at different words
    out = Difference(left, right, changes, coarse=any(c.coarse for c in changes))
    for change in changes:
        marks_left, marks_right = marks(out, change)
        out.removed += sum(marks_left)
        out.added += sum(marks_right)
    return out


def _only_one_goes_on(change: TextChange, left: Text, right: Text) -> bool:
    at_end = change.a1 == len(left.words) and change.b1 == len(right.words)
    return at_end and (change.a0 == change.a1 or change.b0 == change.b1)


def marks(difference: Difference, change: TextChange) -> tuple[list[bool], list[bool]]:
    """Marks the differing words on both sides of a change: all, or if coarse, those that the other side lacks."""
    a = difference.left.words[change.a0 : change.a1]
    b = difference.right.words[change.b0 : change.b1]
    if not change.coarse:
        return [True] * len(a), [True] * len(b)
    in_a, in_b = set(a), set(b)
    return [w not in in_b for w in a], [w not in in_a for w in b]


def _gaps(a: Sequence[str], b: Sequence[str]) -> Iterator[TextChange]:
    """Returns the gaps between anchors, in order, without equal words at either end."""
    i = j = 0
    for x, y in [*_anchors(a, b), (len(a), len(b))]:
        if x < i or y < j:
            continue  # this anchor lies in the equal run of an earlier one
        end_a, end_b = x, y
        while i < end_a and j < end_b and a[i] == b[j]:
            i, j = i + 1, j + 1
        while i < end_a and j < end_b and a[end_a - 1] == b[end_b - 1]:
            end_a, end_b = end_a - 1, end_b - 1
        if i < end_a or j < end_b:
            yield TextChange(i, end_a, j, end_b)
        i, j = x, y
        while i < len(a) and j < len(b) and a[i] == b[j]:
            i, j = i + 1, j + 1


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Finds runs of three words that occur once in each text: the longest chain in the same order in both.

    Longest increasing subsequence by patience sorting, n log n.
    """
    once_a, once_b = _once(a), _once(b)
    places = [(i, once_b[run]) for run, i in once_a.items() if run in once_b]  # dictionaries keep the order of a
    tails: list[int] = []  # tails[n]: index into places of the smallest end of a chain of n + 1
    previous: list[int] = []
    for index, (_, y) in enumerate(places):
        length = bisect_left(tails, y, key=lambda end: places[end][1])
        previous.append(tails[length - 1] if length else -1)
        tails[length : length + 1] = [index]
    chain: list[tuple[int, int]] = []
    at = tails[-1] if tails else -1
    while at >= 0:
        chain.append(places[at])
        at = previous[at]
    return chain[::-1]


def _once(words: Sequence[str]) -> dict[tuple[str, str, str], int]:
    first: dict[tuple[str, str, str], int] = {}
    again: set[tuple[str, str, str]] = set()
    for i, run in enumerate(zip(words, words[1:], words[2:], strict=False)):
        if first.setdefault(run, i) != i:
            again.add(run)
    return {run: i for run, i in first.items() if run not in again}


def _align(a: _Numbers, b: _Numbers, gap: TextChange) -> list[TextChange]:
    """Aligns one gap: its changes in order, or one coarse change."""
    a0, a1, b0, b1 = gap[:4]
    if a0 == a1 or b0 == b1:
        return [gap]
    partner = np.empty(b1 - b0, np.int32)
    if alignment.align(a[a0:a1], b[b0:b1], GAP_EDITS_MAX, partner) < 0:
        return [gap._replace(coarse=True)]
    matched = np.flatnonzero(partner >= 0)
    changes: list[TextChange] = []
    for x, y in [*zip((a0 + partner[matched]).tolist(), (b0 + matched).tolist(), strict=True), (a1, b1)]:
        if x > a0 or y > b0:
            changes.append(TextChange(a0, x, b0, y))
        a0, b0 = x + 1, y + 1
    return changes
