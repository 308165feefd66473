"""What is found out of many pairs at once: which the rule may accept, and which came nearest to it."""

import random
from dataclasses import replace

import numpy as np
import pytest

from neardup.decider import SiteOverride
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import pair_of
from neardup.parallel import spread
from neardup.rules import RULES, rule_of, rule_on
from neardup.rules.siblings import Siblings
from neardup.search.scores import Numbers, Scores
from neardup.signals.model import Branch, Leaf, Model
from neardup.signals.of_sketches import online_text
from neardup.sketch.header import Header
from tests.neardup.handmade import record
from tests.neardup.pairs.some_pairs import some_pair
from tests.neardup.story import SMALL

PAGE = Header(record("http://a.s1.org/", "some words of a page"))
OTHER = Header(record("http://b.s2.org/", "some words of a page"))

#: A model that takes the tapes' word.
LEARNED = online_text(Model(("tape",), Branch("tape", 0.4, Leaf(True, 9, 8), Leaf(False, 9, 1))), "learned")


def numbers_of(rng, decider):
    """Numbers of a pair near everything that a rule looks at; most vetoes are off, so that many are accepted."""
    score = rng.choice([0.0, 1.0, rng.random(), decider.tape_min, decider.path_tape_max])
    vetoes = {name: rng.choice((1, 2)) if rng.random() < 0.15 else 0 for name in Pair._fields if name.endswith("_veto")}
    numbers = {name: rng.choice([1, 4, 7, 8, 60, 300]) for name in ("tokens_a", "tokens_b")}
    numbers |= {name: rng.choice([0, 7, 8, 100]) for name in ("tape_a", "tape_b")}
    numbers |= {name: rng.choice([0, 9, 10, 60, 300]) for name in ("content_tokens_a", "content_tokens_b")}
    content = rng.choice([0.0, decider.content_tape_min, rng.random()])
    pair = some_pair(rng, tape_score=score, content_score=content, **vetoes, **numbers)
    return np.array(pair, dtype=np.float64)


@pytest.mark.parametrize("rule", RULES)
def test_siblings_accept_no_pair_that_the_rule_refuses(rule):
    rng = random.Random(rule)
    accepted = refused = 0
    for _ in range(40):
        decider = replace(
            SMALL,
            rule=rule,
            tape_min=rng.choice([0.5, 0.74]),
            path_tape_max=rng.choice([0.0, 0.6, 0.978]),
            short_tape_min=rng.choice([0.4, 0.85]),
            strict_tape_min=rng.choice([0.45, 0.95]),
            content_tape_min=rng.choice([0.2, 0.74]),
            two_sites_tape_min=rng.choice([0.45, 0.7]),
            added_max=rng.choice([0.16, 1.0]),
            model=LEARNED if rule == "signals" else "",
            sites=rng.choice([{}, {"s1.org": SiteOverride(tape_min=0.9)}]),
        )
        numbers = np.array([numbers_of(rng, decider) for _ in range(100)])
        known = Numbers(decider)
        known.add(numbers)
        for row, may in zip(numbers, known.possible, strict=True):
            siblings = Siblings(rng.choice([0, 0, 5]), rng.choice([0, 1, 20]))
            ruling = rule_on(decider, PAGE, OTHER, pair_of(row), siblings)
            assert may or ruling.kind is None, (ruling, pair_of(row), decider)
            accepted += ruling.kind is not None
            refused += not may
    assert accepted > 100, "the pairs come to acceptance"
    assert refused > 400, "and much is called impossible"


@pytest.mark.parametrize("rule", RULES)
def test_the_nearest_is_the_one_of_the_best_score_to_four_digits(rule):
    rng = random.Random(rule)
    decider = replace(SMALL, rule=rule)
    for _ in range(100):
        numbers = np.array([numbers_of(rng, decider) for _ in range(rng.randrange(1, 12))])
        tapes = Pair._fields.index("tape_score")
        numbers[:, tapes] = [rng.choice([0.70005, 0.70015, 0.700149, 0.7001, rng.random() / 2]) for _ in numbers]
        others = rng.sample(range(50), len(numbers))
        everything = Numbers(decider)
        scores = Scores(everything)
        cut = rng.randrange(len(others) + 1)
        for part in (slice(0, cut), slice(cut, None)):
            everything.add(
                np.array([numbers_of(rng, decider) for _ in range(rng.randrange(3))]).reshape(-1, len(Pair._fields))
            )
            first = len(everything)
            everything.add(numbers[part])
            scores.add(others[part], first)
        pairs = {other: pair_of(row) for other, row in zip(others, numbers, strict=True)}
        asked = rng.sample(others, rng.randrange(1, len(others) + 1))
        near = rule_of(decider).rulings(np.array([pairs[other] for other in asked], float), decider)["nearness"]
        nearness = {other: round(score, 4) for other, score in zip(asked, near.tolist(), strict=True)}
        assert scores.nearest(asked) == max(asked, key=lambda other: (nearness[other], -other))
        assert scores.pair(asked[0]) == pairs[asked[0]]
        assert scores.lacking([*asked, 77]) == [77]


def test_work_is_spread_over_threads_and_all_of_it_is_done():
    for threads in (1, 2, 3, 8, 100):
        for size in (0, 1, 7, 100):
            done = [0] * size

            def run(first, last, done=done):
                for i in range(first, last):
                    done[i] += 1

            spread(run, size, threads, 3)
            assert done == [1] * size


def test_error_of_a_thread_is_raised_after_all_ended():
    ended = []

    def run(first, last):
        ended.append(first)
        if first == 4:
            raise ValueError("of a thread")

    with pytest.raises(ValueError, match="of a thread"):
        spread(run, 8, 4, 1)
    assert sorted(ended) == [0, 2, 4, 6]
