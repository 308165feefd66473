"""Which of the two indexes found candidates and repeats."""

from random import Random

from neardup import Page
from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.report.verdict_counts import ReportTally
from neardup.rules.key_families import KeyFamily, found_by
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import FOUND_BY

SCHEME = Scheme(seed=7)
WORDS = [f"word{i}" for i in range(300)]


def page(number: int, words: list[str]) -> Page:
    return Page(f"http://s{number}.example/{number}", " ".join(words).encode(), "text/plain")


def changed(*places: int) -> list[str]:
    return [f"new{i}" if i in places else word for i, word in enumerate(WORDS)]


def shuffled() -> list[str]:
    return Random(1).sample(WORDS, len(WORDS))


def test_candidates_and_repeats_are_counted_by_the_indexes_that_found_them() -> None:
    """A shuffled text shares the simhash alone, and is no repeat; one changed word leaves keys of both indexes."""
    decider, store = Decider(SCHEME.digest), MemoryStore()
    counts = []
    tally = ReportTally(decider)
    for number, words in enumerate((WORDS, shuffled(), changed(150))):
        outcome = fold([(number, sketch_pages([page(number, words)], SCHEME)[0])], store, decider)
        store.write(outcome.writes)
        counts.append((dict(zip(FOUND_BY, outcome.candidates_by, strict=True)), outcome.repeats_by))
        for verdict in outcome.verdicts:
            tally.add(verdict.to_dict())
    none = dict.fromkeys(FOUND_BY, 0)
    assert counts[0] == (none, [0, 0, 0, 0])
    assert counts[1] == (none | {"blocks": 1}, [0, 0, 0, 0])
    assert counts[2] == (none | {"blocks": 1, "both": 1}, [0, 0, 0, 1])
    assert tally.found_by == {"both": 1}


def test_an_index_that_posts_nothing_finds_nothing() -> None:
    for number, index in ((0, "supershingles"), (2, "both")):
        decider = Decider(SCHEME.digest, blocks_posted=number)
        records = sketch_pages([page(i, words) for i, words in enumerate((WORDS, changed(150)))], SCHEME)
        outcome = fold(list(enumerate(records)), MemoryStore(), decider)
        assert dict(zip(FOUND_BY, outcome.repeats_by, strict=True))[index] == 1


def test_every_family_of_keys_is_in_one_index_or_none() -> None:
    found = {family: found_by([family.name.lower()]) for family in KeyFamily}
    assert {family for family, name in found.items() if name == "supershingles"} == {
        KeyFamily.SUPERSHINGLE,
        KeyFamily.WIDE,
    }
    assert {family for family, name in found.items() if name == "blocks"} == {
        KeyFamily.LOGTF,
        KeyFamily.BLOCK,
        KeyFamily.MANKU,
    }
    assert found_by(["head", "wide", "logtf"]) == "both"
    assert found_by(["head", "content_start", "place"]) == "neither"
    assert found_by(["a family of a later version"]) == "neither"
