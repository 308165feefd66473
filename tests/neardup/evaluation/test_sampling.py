"""Samples: the same for the same seed, nested, and from the strata that were asked for."""

import json
from collections import Counter
from itertools import combinations

import pytest

from neardup.errors import BadInput
from neardup.evaluation import sampling
from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.sampling import RULES, Drawn, draw, draw_of_queries, draw_of_sets
from neardup.evaluation.truth import thinned
from tests.neardup.evaluation.crawl import crawl_of, manual


@pytest.fixture(scope="module")
def drawn_from():
    corpus = crawl_of(manual(items=15)).corpus
    b, c = b_graph(corpus), c_graph(corpus)
    return lambda **more: draw(corpus, b, c, **more), corpus, b, c


def test_a_sample_is_the_seeds_and_larger_ones_begin_with_it(drawn_from) -> None:
    sample, _, b, _ = drawn_from
    small, large = sample(count=10, seed=1), sample(count=30, seed=1)
    assert small == sample(count=10, seed=1) == large[:10]
    assert small != sample(count=10, seed=2)
    assert len({(one.a, one.b) for one in large}) == len(large) == 30
    assert len(sample(count=10**6)) == b.edges


def test_each_rule_draws_its_own_pairs(drawn_from) -> None:
    sample, corpus, b, c = drawn_from
    similar = {
        name: {
            (int(x), int(y)): (int(p), int(q))
            for x, y, p, q in zip(g.a, g.b, g.b_similarity, g.c_similarity, strict=True)
        }
        for name, g in (("B", b), ("C", c))
    }
    for rule in ("B", "C", "combined", "site-split"):
        pairs = [(one.a, one.b) for one in sample(rule=rule, count=10**6)]
        assert pairs, rule
        for pair in pairs:
            same = corpus.site[pair[0]] == corpus.site[pair[1]]
            combined = pair in similar["B"] and similar["B"][pair][1] >= 355
            fits = {"B": pair in similar["B"], "C": pair in similar["C"], "combined": combined}
            fits["site-split"] = combined if same else pair in similar["C"]
            assert fits[rule], (rule, pair)


def test_pairs_of_sets_are_of_one_set_and_drawn_by_document(drawn_from, tmp_path) -> None:
    _, corpus, _, _ = drawn_from
    small, large = corpus.urls[:2], corpus.urls[2:12]
    file = tmp_path / "sets.jsonl"
    lines = [[*small, "https://unknown.example/"], large, [corpus.urls[12], "https://unknown.example/"]]
    rows = [{"representative": {"url": one[0]}, "members": [{"url": url} for url in one[1:]]} for one in lines]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    drawn = draw_of_sets(file, corpus, 6, seed=1)
    assert drawn == draw_of_sets(file, corpus, 6, seed=1) != draw_of_sets(file, corpus, 6, seed=2)
    assert len({(one.a, one.b) for one in drawn}) == 6
    for one in draw_of_sets(file, corpus, 100, seed=3):
        pair = {corpus.urls[one.a], corpus.urls[one.b]}
        assert one.sample == "sets"
        assert pair <= set(small) or pair <= set(large)
    good = json.dumps(rows[0]) + "\n"
    wrong = {
        "": "no set of",
        "{}\n": r"sets\.jsonl:1: .*representative is missing",
        good + "no json\n": r"sets\.jsonl:2: .*not JSON",
        good + '{"representative": {"url": "x"}, "members": ["y"]}': r":2: .*members\[0\] is text, and an object",
    }
    for text, message in wrong.items():
        file.write_text(text)
        with pytest.raises(BadInput, match=message):
            draw_of_sets(file, corpus, 6, seed=1)


def test_all_pairs_of_a_query_are_drawn_whole_queries_together(drawn_from) -> None:
    """Two queries share two pages: their pair is drawn once, with both queries. Fewer than two pages give no pair."""
    _, corpus, _, _ = drawn_from
    urls = corpus.urls
    results = {"wool": urls[:4], "felt": urls[2:5], "alone": urls[7:8], "lost": ["https://lost.example/", urls[9]]}
    given = [(query, url) for query, found in results.items() for url in found] + [("wool", urls[0])]
    drawn = draw_of_queries(given, corpus, 100, seed=1)
    assert {(one.a, one.b): set(one.queries) for one in drawn} == {
        (a, b): {name for name, places in (("wool", range(4)), ("felt", range(2, 5))) if a in places and b in places}
        for a, b in combinations(range(5), 2)
        if (a, b) not in {(0, 4), (1, 4)}
    }
    assert {one.sample for one in drawn} == {"queries"}
    few = [draw_of_queries(given, corpus, 1, seed) for seed in range(8)]
    assert {len(one) for one in few} == {3, 6}, "a query is drawn whole, however few pairs are wanted"
    assert few[3] == draw_of_queries(given, corpus, 1, 3)
    many = draw_of_queries(given, corpus, 100, 3)
    assert [(one.a, one.b) for one in few[3]] == [(one.a, one.b) for one in many[: len(few[3])]]
    with pytest.raises(BadInput, match="no query has two different pages"):
        draw_of_queries([("alone", urls[0]), ("", urls[1]), ("", urls[2])], corpus, 10, seed=1)


def test_results_of_a_query_are_bounded(drawn_from, monkeypatch: pytest.MonkeyPatch) -> None:
    _, corpus, _, _ = drawn_from
    monkeypatch.setattr(sampling, "RESULTS_MAX", 3)
    with pytest.raises(BadInput, match="4 results of 'wool'; at most 3"):
        draw_of_queries([("wool", url) for url in corpus.urls[:4]], corpus, 10, seed=1)


def test_disagreements_are_pairs_of_one_algorithm(drawn_from) -> None:
    sample, _, b, c = drawn_from
    b_pairs, c_pairs = (set(zip(g.a.tolist(), g.b.tolist(), strict=True)) for g in (b, c))
    for rule, pairs in (("B-only", b_pairs - c_pairs), ("C-only", c_pairs - b_pairs)):
        if pairs:
            assert {(one.a, one.b) for one in sample(rule=rule, count=10**6)} == pairs
        else:
            with pytest.raises(BadInput, match="no pair to draw"):
                sample(rule=rule)


def test_strata_give_as_many_of_each(drawn_from) -> None:
    sample, corpus, b, _ = drawn_from
    levels = Counter(one.sample for one in sample(by="level", count=4))
    present = {f"B: B-similarity {level}" for level in set(b.b_similarity.tolist())}
    assert set(levels) == present
    assert max(levels.values()) == 4
    sites = sample(by="site", count=5)
    assert Counter(one.sample for one in sites) == {"B: same site": 5, "B: different sites": 5}
    for one in sites:
        assert (corpus.site[one.a] == corpus.site[one.b]) == one.sample.endswith("same site")
    assert {one.sample for one in sample(rule="C", by="level", count=2)} <= {
        *("C: C-similarity >= 382", "C: C-similarity 379-381", "C: C-similarity 376-378", "C: C-similarity < 376")
    }


def test_labelling_may_stop_early_in_strata(drawn_from) -> None:
    sample, _, b, _ = drawn_from
    assert {one.sample for one in sample(by="site", count=30)[:2]} == {"B: same site", "B: different sites"}
    levels = len(set(b.b_similarity.tolist()))
    large = sample(by="level", count=30)
    assert large[: 2 * levels] == sample(by="level", count=2)
    assert set(Counter(one.sample for one in large[: 2 * levels]).values()) == {2}


@pytest.mark.parametrize("bad", [{"rule": "D"}, {"by": "x"}, {"count": 0}])
def test_impossible_sample_is_refused(drawn_from, bad: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        drawn_from[0](**bad)


def test_nothing_is_drawn_from_an_empty_graph() -> None:
    corpus = crawl_of([]).corpus
    with pytest.raises(BadInput, match="no pair to draw"):
        draw(corpus, b_graph(corpus), c_graph(corpus))


def test_thinning_does_not_depend_on_order() -> None:
    pairs = [(i, j) for i in range(20) for j in range(i + 1, 20)]
    kept = thinned(pairs, 30, 5)
    assert kept == thinned(pairs[::-1] + pairs, 30, 5)
    assert len(kept) == 30
    assert set(kept) <= set(pairs)
    assert kept != thinned(pairs, 30, 6)
    assert thinned([], 3, 0) == []
    assert Drawn(1, 2, "B").sample == "B"
    assert set(RULES) == {"B", "C", "combined", "site-split", "B-only", "C-only"}
