"""The LCS of filtered sketches against difflib and rapidfuzz, on pairs of texts of 10 kB."""

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from random import Random

import numpy as np
from rapidfuzz.distance import LCSseq

from neardup.partition import Parameters
from neardup.partition.texts import points
from neardup.partition.trustable import filtered, script
from tests.measure.bench.table import Row, in_turn, seconds
from tests.measure.gate.language import Language

_PAIRS, _SENTENCES = 4, 86
#: difflib takes seconds a pair.
_REPEATS = {"difflib": 1, "rapidfuzz": 9}
#: Sentences that are written anew in the second text: near-duplicates, edited ones, siblings with half in common.
_KINDS = {"near-duplicates": 3, "edited": 15, "siblings": 43}


def rows() -> Iterator[Row]:
    """Both sides get the same two sketches, and say which characters are matched."""
    random, language = Random(1), Language(1)
    for kind, changed in _KINDS.items():
        pairs = [_sketches(language, random, changed) for _ in range(_PAIRS)]
        texts = [tuple(_text(side) for side in pair) for pair in pairs]
        peers: dict[str, tuple[str, Callable[[str, str], int]]] = {
            "difflib": ("20 x", _difflib),
            "rapidfuzz": ("0.5 x", _rapidfuzz),
        }
        for peer, (reach, theirs) in peers.items():
            ours, other = in_turn(
                [
                    lambda pairs=pairs: seconds(lambda: [script(*pair) for pair in pairs]),
                    lambda texts=texts, theirs=theirs: seconds(lambda: [theirs(*pair) for pair in texts]),
                ],
                _REPEATS[peer],
            )
            found = sum(int((np.asarray(script(*pair)) >= 0).sum()) for pair in pairs)
            matched = sum(theirs(*pair) for pair in texts)
            row = Row(
                f"LCS of filtered sketches, {kind}, against {peer}", "ms a pair", 1000 * ours / _PAIRS, reach=reach
            )
            row.peer, row.peer_name, row.ratio = 1000 * other / _PAIRS, peer, other / ours
            row.check = f"{found:,} characters matched, {matched:,} by the peer"
            if found < matched:
                row.void = "a shorter LCS than the peer's"
            yield row


def _sketches(language: Language, random: Random, changed: int) -> tuple[np.ndarray, np.ndarray]:
    one = [_sentence(language, random) for _ in range(_SENTENCES)]
    other = list(one)
    for at in random.sample(range(_SENTENCES), changed):
        other[at] = _sentence(language, random)
    sides = points("\n".join(one)), points("\n".join(other))
    kept = filtered(*sides, Parameters().window_bytes)
    return sides[0][kept[0]], sides[1][kept[1]]


def _sentence(language: Language, random: Random) -> str:
    return " ".join(language.draw(random, random.randint(9, 19))).capitalize() + "."


def _text(side: np.ndarray) -> str:
    return side.tobytes().decode("utf-32-le")


def _difflib(a: str, b: str) -> int:
    """difflib's matches are no LCS, and as a rule fewer."""
    return sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())


def _rapidfuzz(a: str, b: str) -> int:
    return sum(block.size for block in LCSseq.editops(a, b).as_matching_blocks())
