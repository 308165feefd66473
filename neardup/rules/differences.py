"""Classifies the difference of two similar texts: only a stamp (clock, date, counter), only noise, or more.

Tapes show where texts differ: `Pair.gaps`, `gap_digits`, `gap_words`, `loose_words`, `end_differs`.
"""

from neardup.rules.base import rule_kernel
from neardup.rules.records import DeciderRow, PairRow

#: Version of the rules since which figures of a stamp stand in forms.
_FORMS_SINCE = 2


@rule_kernel
def common_words(pair: PairRow) -> float:
    """|LCS| of the tapes of the whole texts: LJ = |LCS| / (|A| + |B| - |LCS|), solved for it."""
    return float(pair.tape_score * (pair.tape_a + pair.tape_b) / (1.0 + pair.tape_score))


@rule_kernel
def contained_share(pair: PairRow) -> float:
    """How much of the shorter text is in the longer one, in its order: |LCS| / min(|A|, |B|) of the tapes, 0 to 1."""
    return float(min(1.0, common_words(pair) / max(1.0, min(pair.tape_a, pair.tape_b))))


@rule_kernel
def is_noise(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether the texts differ in few places and few tokens: stamps, counters, a user name."""
    most = decider.noise_gaps_max
    return bool(pair.gaps <= most and pair.loose_words <= most * decider.stamp_words_max)


@rule_kernel
def is_stamp(pair: PairRow, decider: DeciderRow, words_max: float) -> bool:
    """Whether a difference is visible and is a clock, a date, a counter, an id or a relative time.

    Figures that stand in no form are values, and must be equal. There are at most two figures in a form for each word
    that a stamp may have; they may be in any number of places if nothing else differs. Tapes leave relative times out.
    words_max: most words of a stamp; usually the decider's stamp_words_max.
    """
    if decider.rule_version < _FORMS_SINCE or pair.same_values < 0:
        return _is_short(pair, decider, words_max)
    if decider.stamp_words_max == 0 or pair.same_values == 0 or pair.gap_digits > 2 * decider.stamp_words_max:
        return False
    return bool(pair.same_rest != 0 or _is_short(pair, decider, words_max))


@rule_kernel
def _is_short(pair: PairRow, decider: DeciderRow, words_max: float) -> bool:
    """Whether a difference is visible and consists of figures with few words among them, in few places.

    Two records differ in a name as well as in figures, and so in more words than the weekday and month of a date. One
    figure alone, or fewer than three at each of several places, are no stamp if the URLs end differently and the main
    contents differ: "1 dword" and "2 dwords" are two entries of a manual.
    words_max: most words of a stamp; usually the decider's stamp_words_max.
    """
    if decider.stamp_words_max == 0 or pair.gaps == 0 or pair.loose_words != 0 or not is_noise(pair, decider):
        return False
    if pair.gap_words > min(words_max, pair.gap_digits):
        return False
    enough = pair.gap_digits >= (2.0 if pair.gaps == 1 else 3.0 * pair.gaps)
    return bool(enough or pair.same_tail != 0 or _equal_contents(pair, decider))


@rule_kernel
def _equal_contents(pair: PairRow, decider: DeciderRow) -> bool:
    fewest = min(pair.content_tokens_a, pair.content_tokens_b)
    return bool(pair.content_score == 1 and fewest >= decider.thin_tokens)


@rule_kernel
def same_but_own_urls(pair: PairRow, decider: DeciderRow) -> bool:
    """Whether pages that print their own URLs differ at most in a stamp at the end.

    Tapes leave out a page's own URL. A difference before the end may belong to a record, such as a user's name.
    """
    at_the_end = pair.gaps <= pair.end_differs and pair.loose_words == 0
    return bool(pair.own_urls != 0 and pair.tape_level == 0 and at_the_end and is_noise(pair, decider))
