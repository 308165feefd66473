"""Classifies the difference of two similar texts: only a stamp (clock, date, counter), only noise, or more.

Tapes show where texts differ: `Pair.gaps`, `gap_digits`, `gap_words`, `loose_words`, `end_differs`.
"""

from neardup.decider import Decider
from neardup.pairs.pair import Pair


def is_noise(pair: Pair, decider: Decider) -> bool:
    """Whether the texts differ in few places and few tokens: stamps, counters, a user name."""
    few = pair.loose_words <= decider.noise_gaps_max * decider.stamp_words_max
    return pair.gaps <= decider.noise_gaps_max and few


def is_stamp(pair: Pair, decider: Decider, words_max: int | None = None) -> bool:
    """Whether a difference is visible and is a clock, a date or a counter: digits with few words among them.

    Two records differ in a name as well as in figures, and so in more words than the weekday and month of a date. One
    figure alone, or fewer than three at each of several places, are no stamp if the URLs end differently and the main
    contents differ: "1 dword" and "2 dwords" are two entries of a manual.
    words_max: replaces the decider's stamp_words_max.
    """
    few = pair.gap_digits < (2 if pair.gaps == 1 else 3 * pair.gaps)
    if few and not pair.same_tail and not _equal_contents(pair, decider):
        return False
    words = min(decider.stamp_words_max if words_max is None else words_max, pair.gap_digits)
    seen = decider.stamp_words_max > 0 and pair.gaps > 0
    return seen and pair.loose_words == 0 and pair.gap_words <= words and is_noise(pair, decider)


def _equal_contents(pair: Pair, decider: Decider) -> bool:
    return pair.content_score == 1 and min(pair.content_tokens_a, pair.content_tokens_b) >= decider.thin_tokens


def same_but_own_urls(pair: Pair, decider: Decider) -> bool:
    """Whether pages that print their own URLs differ at most in a stamp at the end.

    Tapes leave out a page's own URL. A difference before the end may belong to a record, such as a user's name.
    """
    at_the_end = pair.gaps <= pair.end_differs and pair.loose_words == 0
    return pair.own_urls and pair.tape_level == 0 and at_the_end and is_noise(pair, decider)
