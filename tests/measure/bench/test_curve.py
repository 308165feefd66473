"""The curve of posted keys counts what an index does."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.rules.posted_keys import similarity_keys
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from tests.measure.bench.collisions import CANDIDATES_MAX, POSTINGS_MAX, Column, evaluate, follow
from tests.measure.bench.curve import DEFAULT, FORMER, WIDER, Choice, choices, merged, posting, read, row_of, write
from tests.measure.bench.curve_figure import figure
from tests.measure.bench.mixture import BLOCKS, TOKENS_MAX, constants, generated, joined, keys_of, origin, words_of
from tests.measure.bench.real_pages import Records

pytestmark = pytest.mark.whole

SCHEME = Scheme(seed=1)


@pytest.fixture(scope="module")
def mixture():
    return generated(1, 4000, 24)


@pytest.mark.slow
def test_a_page_depends_on_its_number_alone(mixture):
    fewer = generated(1, 2500, 24, threads=1)
    for name in ("minvalues", "blocks", "head", "content", "tokens", "posted"):
        assert np.array_equal(getattr(mixture, name)[:2500], getattr(fewer, name)), name
    assert not np.array_equal(generated(2, 50, 24).head, mixture.head[:50])


def test_repeats_repeat_new_pages_before_them(mixture):
    first, again = mixture.pairs.T
    assert len(first) > 500
    assert (first < again).all()
    assert mixture.posted[first].all()
    assert not mixture.posted[again].any()
    shares = [(mixture.minvalues[first] == mixture.minvalues[again])[mixture.kinds == kind].mean() for kind in range(5)]
    assert shares == sorted(shares, reverse=True)
    number = int(again[0])
    assert origin(np.uint64(1), number)[0] == first[0]
    assert sum(map(len, words_of(1, number))) == mixture.tokens[number]


def test_equal_minvalues_are_as_many_as_shingles_in_common():
    functions, n = 2000, 1000
    given, fp = constants(functions), np.random.default_rng(4).integers(0, 1 << 63, 2 * n, dtype=np.uint64)
    rows = []
    for tokens in (fp[:n], fp[n // 2 : n // 2 + n]):
        low, blocks = np.empty(functions, np.uint32), np.empty(BLOCKS, np.uint32)
        scratch = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(64, np.int32)
        keys_of(np.ascontiguousarray(tokens), n, *given, *scratch, low, blocks)
        rows.append((low, np.unpackbits(blocks.view(np.uint8))))
    both = n // 2 - 7
    jaccard = both / (2 * (n - 7) - both)
    assert abs(np.mean(rows[0][0] == rows[1][0]) - jaccard) < 5 * np.sqrt(jaccard * (1 - jaccard) / functions)
    # Half of the tokens in common: an angle of 60 degrees, a third of the bits differ.
    assert abs(np.mean(rows[0][1] == rows[1][1]) - 2 / 3) < 5 * np.sqrt(2 / 9 / 384)


def test_followed_lists_are_those_of_an_index():
    """Pages that never merge, in a real index without the filter by lengths: the same candidates for every page."""
    made = generated(7, 600, 24)
    made = replace(made, posted=np.ones(600, np.bool_), pairs=made.pairs[:0], kinds=made.kinds[:0])
    choice = Choice(2, 4, 2)
    limits = {"length_gap_max": 255, "tape_min": 1.0, "two_sites_tape_min": 1.0, "content_tape_min": 1.0}
    decider = Decider(scheme=SCHEME.digest, **limits, **choice.posted())
    traces = []
    with posting(choice):
        batch = list(enumerate(Records(made, [], 7, SCHEME, 2).part(0, 600)))
        fold(batch, MemoryStore(), decider, trace=traces.append)
    meetings = follow(made, choice.columns(), 600, {"late": range(450, 600)})
    met = np.unique(np.concatenate(list(meetings.met.values())))
    followed = {int(page): set() for page in meetings.watched}
    for word in met.tolist():
        followed[int(meetings.watched[word >> 32])].add(word & 0xFFFFFFFF)
    assert list(followed) == list(range(450, 600))
    assert sum(map(len, followed.values())) > 100
    for trace in traces[450:]:
        assert {one.page_id for one in trace.candidates} == followed[trace.page_id], trace.page_id


def test_a_key_turns_hot_when_its_list_would_grow_too_long(mixture):
    many = POSTINGS_MAX + 10
    alike = replace(generated(3, many, 24), head=np.full(many, 5, np.uint64), posted=np.ones(many, np.bool_))
    meetings = follow(alike, [Column("head")], many, {"all": range(many)})
    counts = np.bincount((meetings.met[Column("head")] >> np.uint64(32)).astype(np.int64), minlength=many)
    met = dict(zip(meetings.watched.tolist(), counts.tolist(), strict=True))
    assert met[POSTINGS_MAX] == POSTINGS_MAX
    assert met[POSTINGS_MAX + 1] == 0
    assert meetings.hot[Column("head")] == many - POSTINGS_MAX - 1
    point = evaluate(meetings, [Column("head")], alike.names)
    assert point.keys == 2
    assert point.candidates == pytest.approx(sum(counts) / len(counts))
    assert max(counts) <= CANDIDATES_MAX


def test_more_keys_find_more_and_cost_more_candidates(mixture):
    wanted = [Choice(3, many, 2) for many in (2, 4, 8)]
    meetings = follow(mixture, wanted[-1].columns(), 500, {"some": range(3000, 4000)})
    points = [evaluate(meetings, choice.columns(), mixture.names) for choice in wanted]
    assert [point.keys for point in points] == [8, 10, 14]
    recalls, candidates = [p.recall for p in points], [p.candidates for p in points]
    assert recalls == sorted(recalls)
    assert candidates == sorted(candidates)
    assert 0.3 < recalls[0] < recalls[-1] <= points[-1].uncut < 1
    assert points[-1].by_kind["1% of the words"] > points[-1].by_kind["14% of the words"]


def test_two_mixtures_make_one(mixture):
    both = joined(mixture, mixture)
    assert len(both) == 8000
    assert np.array_equal(both.pairs[len(mixture.pairs) :], mixture.pairs + 4000)
    assert both.names[both.kinds[-1]] == mixture.names[mixture.kinds[-1]]


def test_choice_equals_posted_keys():
    (record,) = Records(generated(1, 10, 24), [], 1, SCHEME, 3).part(3, 4)
    head, decider = Header(record), Decider(scheme=SCHEME.digest)
    before = similarity_keys(head, decider)
    assert len(before) == DEFAULT.supershingles + DEFAULT.blocks + 3
    choice = Choice(3, 4, 2, head=False)
    with posting(choice):
        assert len(similarity_keys(head, replace(decider, **choice.posted()))) == 8
    assert similarity_keys(head, decider) == before
    assert {DEFAULT, WIDER, FORMER} <= set(choices(24))


def test_table_and_picture(mixture, tmp_path):
    meetings = follow(
        mixture, sorted({column for choice in choices(24) for column in choice.columns()}), 200, {"real": range(9)}
    )
    rows = [
        row_of(mixture, 0, choice, evaluate(meetings, choice.columns(), mixture.names), None) for choice in choices(24)
    ]
    write(merged([{**rows[0], "pages": "4000"}, {**rows[0], "pages": "10"}], rows), tmp_path / "t.csv")
    values = read(tmp_path / "t.csv")
    assert [row["pages"] for row in values[:2]] == ["10", "4000"]
    assert values[1:] == rows
    picture = ElementTree.fromstring(figure(values))
    texts = ["".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "4k pages, generated: recall over keys" in texts
    assert "n supershingles of 3, 6 blocks" in texts
    assert texts.count("default") == 2
    assert mixture.tokens.max() < TOKENS_MAX
