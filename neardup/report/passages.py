"""Formats differences as running text: passages around the changes, shortened for reading."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from neardup.report.differ import Difference, Text, TextChange, marks

#: Equal words shown on each side of a change.
CONTEXT_WORDS = 14
#: Fewer words than this are not left out.
LEFT_OUT_MIN = 10
PASSAGES_MAX = 6
#: Words shown at each end of one change; those between are counted, not shown.
CHANGE_WORDS = 60
#: Characters of one segment: a single token can be megabytes long.
SEGMENT_CHARS = 1200


class Segment(NamedTuple):
    """Running text. sign: "-" only in the left text, "+" only in the right one, "" in both.

    gap: number of words left out; text is empty then.
    """

    sign: str
    text: str
    gap: int = 0


@dataclass(slots=True)
class Passage:
    """One passage of both texts, and of both in one. same_before: equal words left out before it."""

    same_before: int
    left: list[Segment] = field(default_factory=list)
    right: list[Segment] = field(default_factory=list)
    inline: list[Segment] = field(default_factory=list)


@dataclass(slots=True)
class Passages:
    """The passages shown. more: number of changes not shown. same_after: equal words after the last passage."""

    shown: list[Passage]
    more: int
    same_after: int


def passages(difference: Difference, *, context: int = CONTEXT_WORDS, count_max: int = PASSAGES_MAX) -> Passages:
    """Groups changes that are close together, with `context` equal words around each group."""
    left, right = difference.left, difference.right
    groups: list[list[TextChange]] = []
    for change in difference.changes:
        if groups and change.a0 - groups[-1][-1].a1 <= 2 * context + LEFT_OUT_MIN:
            groups[-1].append(change)
        else:
            groups.append([change])
    # A long group would be one passage of any length, so it is cut.
    cut = [group[i : i + 12] for group in groups for i in range(0, len(group), 12)]
    out, end_a, end_b = [], 0, 0  # the words up to which both texts are shown
    for group in cut[:count_max]:
        equal = group[0].a0 - end_a
        shown = equal if equal <= context + LEFT_OUT_MIN else context
        a0, b0 = group[0].a0 - shown, group[0].b0 - shown
        passage = Passage(same_before=equal - shown)
        for change in group:
            _equal(passage, difference, a0, b0, change.a0 - a0)
            marks_a, marks_b = marks(difference, change)
            only_left = _segments(left, change.a0, change.a1, marks_a, "-")
            only_right = _segments(right, change.b0, change.b1, marks_b, "+")
            passage.left += only_left
            passage.right += only_right
            # In a coarse change, words of both texts would appear twice.
            passage.inline += only_left + [one for one in only_right if one.sign or not change.coarse]
            a0, b0 = change.a1, change.b1
        after = next((c for c in difference.changes if c.a0 > a0), None)
        # If texts were cut, one of them ends earlier.
        equal = after.a0 - a0 if after else min(len(left.words) - a0, len(right.words) - b0)
        tail = equal if equal <= context + LEFT_OUT_MIN else context
        _equal(passage, difference, a0, b0, tail)
        for segments in (passage.left, passage.right, passage.inline):
            _drop_leading_punctuation(segments)
        end_a, end_b = a0 + tail, b0 + tail
        out.append(passage)
    more = sum(len(group) for group in cut[count_max:])
    if not out:  # equal texts: show their beginning
        shown = min(4 * context, len(left.words), len(right.words))
        passage = Passage(0)
        _equal(passage, difference, 0, 0, shown)
        return Passages([passage], 0, min(len(left.words), len(right.words)) - shown)
    return Passages(out, more, 0 if more else min(len(left.words) - end_a, len(right.words) - end_b))


def _equal(passage: Passage, difference: Difference, a: int, b: int, count: int) -> None:
    """Appends `count` equal words, starting at word a of the left text and word b of the right one."""
    same = _segments(difference.left, a, a + count, (), "")
    passage.left += same
    passage.inline += same
    passage.right += _segments(difference.right, b, b + count, (), "")


def _drop_leading_punctuation(segments: list[Segment]) -> None:
    """Drops text before a passage's first word, which belongs to the word before it."""
    if segments and not segments[0].sign and not any(map(str.isalnum, segments[0].text)):
        del segments[0]


def _segments(text: Text, start: int, stop: int, marked: Sequence[bool], sign: str) -> list[Segment]:
    """Formats words [start, stop) as segments; leaves the middle of a long range out. marked: words with the sign."""
    if stop - start <= 2 * CHANGE_WORDS + LEFT_OUT_MIN:
        return _run(text, start, stop, marked, sign)
    shown = _run(text, start, start + CHANGE_WORDS, marked[:CHANGE_WORDS], sign)
    shown.append(Segment("", "", stop - start - 2 * CHANGE_WORDS))
    return shown + _run(text, stop - CHANGE_WORDS, stop, marked[-CHANGE_WORDS:], sign)


def _run(text: Text, start: int, stop: int, marked: Sequence[bool], sign: str) -> list[Segment]:
    """Formats words with the punctuation and spaces before each."""
    out: list[Segment] = []
    for changed, group in groupby(range(start, stop), lambda word: bool(marked) and marked[word - start]):
        words = list(group)
        if before := _between(text, words[0]):
            out.append(Segment("", before))
        first, last = text.spans[words[0]][0], text.spans[words[-1]][1]
        out.append(Segment(sign if changed else "", clipped(text.text[first:last])))
    return out


def _between(text: Text, i: int) -> str:
    """Returns the text between word i and the word before it, at most some dozens of characters."""
    start = text.spans[i - 1][1] if i else 0
    between = text.text[start : text.spans[i][0]]
    return between if len(between) <= 60 else between[:30] + " … " + between[-29:]


def clipped(text: str, chars_max: int = SEGMENT_CHARS) -> str:
    """Returns the text, or its two ends with the number of characters left out."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[-half:]}"


def plain(segments: Sequence[Segment]) -> str:
    """Formats segments without colour: changes in brackets with their sign."""
    parts = []
    for segment in segments:
        if segment.gap:
            parts.append(f" […{segment.gap:,} words…] ")
        elif segment.sign:
            parts.append(f"[{segment.sign}{segment.text}{segment.sign}]")
        else:
            parts.append(segment.text)
    return "".join(parts)
