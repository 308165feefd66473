"""What decides at each place of the sketch log: one decider, until an operator's word in the log names another one."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from neardup.decider import Decider
from neardup.rules.posted import keeps_the_same
from streams.formats.message import NewDecider
from streams.pipeline.operator_words import words_among

#: Words about the decider with their offsets, in the log's order.
Words = Sequence[tuple[int, NewDecider]]


def words_in(messages: Iterable[tuple[int, bytes]]) -> Words:
    """All such words among some messages."""
    return [(offset, word) for offset, word in words_among(messages) if isinstance(word, NewDecider)]


def after_word(decider: Decider, word: NewDecider) -> Decider:
    """What decides behind a word, where `decider` did until there: the same if the word is void."""
    follows = word.before.digest == decider.digest and keeps_the_same(word.before, word.after)
    return word.after if follows else decider


def after_words(decider: Decider, words: Words, end: int) -> Decider:
    """What decides at the offset `end`, where `decider` did before the words."""
    for offset, word in words:
        if offset < end:
            decider = after_word(decider, word)
    return decider


def change(before: Decider, after: Decider) -> str:
    """What two deciders say differently, for people."""
    old, new = asdict(before), asdict(after)
    return ", ".join(f"{name} {old[name]} -> {new[name]}" for name in new if old[name] != new[name])


def why_not(before: Decider, after: Decider) -> str:
    """Why `after` cannot go on with an index that `before` has made; empty if it can."""
    if keeps_the_same(before, after):
        return ""
    return f"rule {after.rule} with its numbers keeps other keys in the index than {before.rule} does"
