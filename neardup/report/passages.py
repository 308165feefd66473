"""Differences as running text: passages around the changes, cut to what a person reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from neardup.report.differ import Change, Difference, Text, marks

#: Equal words shown on each side of a change.
CONTEXT_WORDS = 14
#: Fewer equal words than this between two passages are shown, not counted.
LEFT_OUT_MIN = 10
PASSAGES_MAX = 6
#: Words of one change shown at each end of it; what lies between is counted, not shown.
CHANGE_WORDS = 60
#: Characters of one segment: a single token can be megabytes long.
SEGMENT_CHARS = 1200


class Segment(NamedTuple):
    """Running text. changed: the other side does not have it here. gap: words left out (then text is empty)."""

    changed: bool
    text: str
    gap: int = 0


@dataclass(slots=True)
class Passage:
    """The same passage of both texts. same_before: equal words left out before it."""

    same_before: int
    left: list[Segment] = field(default_factory=list)
    right: list[Segment] = field(default_factory=list)


@dataclass(slots=True)
class Passages:
    """more: changes that are not shown. same_after: equal words after the last passage."""

    shown: list[Passage]
    more: int
    same_after: int


def passages(difference: Difference, *, context: int = CONTEXT_WORDS, count_max: int = PASSAGES_MAX) -> Passages:
    """Groups changes that are close together, with `context` equal words around each group."""
    left, right = difference.left, difference.right
    groups: list[list[Change]] = []
    for change in difference.changes:
        if groups and change.a0 - groups[-1][-1].a1 <= 2 * context + LEFT_OUT_MIN:
            groups[-1].append(change)
        else:
            groups.append([change])
    # A group that runs on and on would be one passage of any length: cut it where it has had its share.
    cut = [group[i : i + 12] for group in groups for i in range(0, len(group), 12)]
    out, end_a, end_b = [], 0, 0
    for group in cut[:count_max]:
        a0 = max(end_a, group[0].a0 - context)
        b0 = max(end_b, group[0].b0 - context)
        passage = Passage(same_before=min(a0 - end_a, b0 - end_b))
        for change in group:
            marks_a, marks_b = marks(difference, change)
            _write(passage.left, left, a0, change.a0, None)
            _write(passage.right, right, b0, change.b0, None)
            _write(passage.left, left, change.a0, change.a1, marks_a.__getitem__)
            _write(passage.right, right, change.b0, change.b1, marks_b.__getitem__)
            a0, b0 = change.a1, change.b1
        following = next((c.a0 for c in difference.changes if c.a0 > a0), len(left.words))
        tail = min(context, following - a0)
        _write(passage.left, left, a0, a0 + tail, None)
        _write(passage.right, right, b0, b0 + tail, None)
        end_a, end_b = a0 + tail, b0 + tail
        out.append(passage)
    more = sum(len(group) for group in cut[count_max:])
    if not out:  # equal texts: their beginning, so that a reader sees what is equal
        shown = min(4 * context, len(left.words), len(right.words))
        passage = Passage(0)
        _write(passage.left, left, 0, shown, None)
        _write(passage.right, right, 0, shown, None)
        return Passages([passage], 0, len(left.words) - shown)
    return Passages(out, more, 0 if more else len(left.words) - end_a)


def _write(out: list[Segment], text: Text, start: int, stop: int, marked: Callable[[int], bool] | None) -> None:
    """Appends words [start, stop) as segments, a long range with its middle left out."""
    if stop - start > 2 * CHANGE_WORDS:
        _write_range(out, text, start, start, start + CHANGE_WORDS, marked)
        out.append(Segment(False, "", stop - start - 2 * CHANGE_WORDS))
        _write_range(out, text, start, stop - CHANGE_WORDS, stop, marked)
    else:
        _write_range(out, text, start, start, stop, marked)


def _write_range(
    out: list[Segment], text: Text, origin: int, start: int, stop: int, marked: Callable[[int], bool] | None
) -> None:
    """What stands between words, punctuation and spaces, goes with the word after it."""
    i = start
    while i < stop:
        changed = bool(marked and marked(i - origin))
        j = i + 1
        while j < stop and bool(marked and marked(j - origin)) == changed:
            j += 1
        first, last = text.spans[i][0], text.spans[j - 1][1]
        before = _between(text, i)
        if before:
            out.append(Segment(False, before))
        out.append(Segment(changed, clipped(text.text[first:last])))
        i = j


def _between(text: Text, i: int) -> str:
    """The text between word i and the word before it, at most some dozens of characters."""
    start = text.spans[i - 1][1] if i else 0
    between = text.text[start : text.spans[i][0]]
    return between if len(between) <= 60 else between[:30] + " … " + between[-29:]


def clipped(text: str, chars_max: int = SEGMENT_CHARS) -> str:
    """The text, or its two ends with the number of characters left out."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[-half:]}"


def plain_lines(segments: Sequence[Segment], sign: str) -> str:
    """Segments as text that works without colour: changes in brackets with their sign."""
    parts = []
    for segment in segments:
        if segment.gap:
            parts.append(f" […{segment.gap:,} words…] ")
        elif segment.changed:
            parts.append(f"[{sign}{segment.text}{sign}]")
        else:
            parts.append(segment.text)
    return "".join(parts)
