"""Lines made from columns come to what the fold in Python makes one by one, to the byte."""

import random
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.index.memory import MemoryStore
from neardup.index.rows import NO_PAGE
from neardup.matching.batch import Walk
from neardup.matching.batch_records import Pages
from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.matching.verdict_columns import NONE, VERDICT, Form, blank
from neardup.scheme import Scheme
from neardup.sketch.layout import field_at
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates, Kind
from tests import whole
from tests.neardup.handmade import record
from tests.neardup.matching.test_mixed_batches import joining, mixed
from tests.neardup.story import NEAR, SMALL, endless, slices_of, text
from tests.neardup.test_fold import DECIDERS, crawl
from tests.neardup.test_verdict_schema import every_kind
from tests.oracle.fold.judging import fold as fold_in_python


def judged(records, decider, size):
    """(the verdicts of the fold in Python, columns of the compiled walk) of each batch."""
    store = MemoryStore()
    for batch in slices_of(records, endless(size)):
        walk = Walk(Pages(batch), store, decider, emit=True)
        walk.judge()
        outcome = fold_in_python(batch, store, decider)
        yield outcome.verdicts, walk.columns(np.array([page_id for page_id, _ in batch]))
        store.write(outcome.writes)


def check(records, decider, size):
    """Counts of the kinds, forms and columns that were seen."""
    seen = Counter()
    for expected, columns in judged(records, decider, size):
        made = BatchVerdicts(columns, decider)
        assert made.lines() == [verdict.to_json() for verdict in expected]
        assert list(made) == expected
        assert made.text() == expected.text()
        assert list(made.summaries()) == expected.summaries()
        assert (made.page_ids(), made.urls()) == (expected.page_ids(), expected.urls())
        assert (made.sources(), made.kinds()) == (expected.sources(), expected.kinds())
        keys = [verdict.evidence["keys"] for verdict in made if "keys" in verdict.evidence]
        assert len(set(map(id, keys))) == len(keys), "a change of one verdict's evidence changes no other"
        seen.update(verdict.verdict for verdict in made)
        seen.update(map(Form, columns.rows["form"].tolist()))
        seen.update(name for name in VERDICT.names if columns.rows[name].any())
    return seen


def varied(records, seed):
    """The records with languages and scores of their own."""
    rng, score_at = random.Random(seed), field_at("score")
    for page in records:
        page = page[:score_at] + bytes([rng.choice([0, 1, 200])]) + page[score_at + 1 :]
        yield page[:-2] + rng.choice([b"en", b"de", b"fr"]) if page.endswith(b"en") else page


@pytest.mark.parametrize("name", whole.first([*DECIDERS], 3))
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 1 << 32), size=st.sampled_from([1, 7, 60]))
def test_verdicts_of_columns_equal_the_folds(name, seed, size):
    check([*varied(mixed(seed), seed), *joining(seed, 6)], DECIDERS[name], size)
    check([*varied(crawl(seed, 120), seed)], DECIDERS[name], size)


def named():
    """Pages with one text: some with one name at several places of a site, others with names of their own."""
    one_name = [record(f"http://a.org/{i}", text((10, 1 + i)), title="Wool") for i in range(4)]
    at = field_at("tail")
    tails = [page[:at] + bytes([i]) + page[at + 1 :] for i, page in enumerate(one_name)]
    titled = [record(f"http://a.org/{name}", NEAR, title=name) for name in ("Tin", "Zinc")]
    copied = [f"tale{i}" for i in range(60)]
    added = [record("http://long.org/", " ".join(copied)), record("http://short.org/", " ".join(copied[:48]))]
    thin = [record(f"http://thin.org/{words}", " ".join("abcdefg"[:words])) for words in (4, 5, 6)]
    return [*thin, *tails, *titled, *added]


def test_verdicts_of_columns_have_every_kind_and_form():
    seen = Counter()
    for name in ("plain", "hot", "content", "combined"):
        seen += check([*varied([*mixed(2), *crawl(5)], 2), *named()], DECIDERS[name], 50)
    assert [kind for kind in Kind if not seen[kind]] == []
    assert [form for form in Form if not seen[form]] == []
    assert [name for name in VERDICT.names if not seen[name]] == ["down"], "that takedowns set"


@pytest.mark.parametrize("size", [1, 99])
def test_verdicts_of_columns_of_sketched_pages(size):
    scheme, pages = Scheme(seed=3), every_kind()
    places = [Coordinates("ab" * 16, 3, at, 5 * at) for at in range(len(pages))]
    times = [60_000 * (20 + at) for at in range(len(pages))]
    records = sketch_pages(pages, scheme, coordinates=places, log_times=times)
    seen = check(records, Decider(scheme.digest), size)
    assert [kind for kind in Kind if not seen[kind]] == []


def test_standing_names_a_cluster_that_is_the_content_of_no_page():
    ((expected, columns), *_) = judged([record("http://a.org/", "a b c")], SMALL, 1)
    columns.rows["standing"], columns.rows["standing_content_of"] = columns.rows["kind"], NONE
    (made,) = BatchVerdicts(columns, SMALL)
    assert made.standing["content_of"] == NO_PAGE
    assert made.standing["representative"].url == expected[0].url


def test_canonical_of_columns_is_utf8():
    records = [
        record("http://a.org/", NEAR, canonical="http://a.org/\u00e9"),
        record("http://a.org/\u00e9", NEAR),
        record("http://b.org/", NEAR),
    ]
    assert check(records, SMALL, 1)["canonical_bytes"]
    ((_, columns),) = list(judged(records, SMALL, 1))[2:]
    verdicts = BatchVerdicts(columns, SMALL)
    assert verdicts[0].canonical == "http://a.org/\u00e9"
    columns.rows["canonical_bytes"] -= 1
    with pytest.raises(CorruptRecord, match="canonical URL of cluster 1 is not UTF-8"):
        BatchVerdicts(columns, SMALL).lines()


def hostile(rng):
    """A text with all that JSON escapes, and with bytes that are not UTF-8."""
    parts = [b"a", b'"', b"\\", bytes([rng.randrange(32)]), b"\x7f", bytes([rng.randrange(128, 256)])]
    parts += ["\u00e9\u2028\U0001f600".encode(), b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98"]
    parts += [b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"]
    return b"".join(rng.choice(parts) for _ in range(rng.randrange(1, 40)))


@pytest.mark.seeds(60, 2000)
def test_texts_of_lines_are_those_of_python(seed):
    rng = random.Random(seed)
    title = hostile(rng)
    canonical, size = title[::-1], len(title)
    page = record("http://a.org/", "a b c", title="T" * size, canonical="C" * size)
    page = page.replace(b"T" * size + b"C" * size, title + canonical)
    ((_, columns), *_) = judged([page], SMALL, 1)
    (made,) = BatchVerdicts(columns, SMALL)
    assert made.title == title.decode("utf-8", "replace")
    assert made.rel_canonical == canonical.decode("utf-8", "replace")
    assert made.to_json() == BatchVerdicts(columns, SMALL).lines()[0]


def test_characters_of_lines_are_those_of_python():
    """Every edge of the ranges of UTF-8 (RFC 3629, section 4) behind every edge of those of first bytes."""
    first = bytes.fromhex("c1c2dfe0e1ecedeeeff0f1f3f4f5")
    title = b"".join(bytes(four) + b"/" for four in product(first, *[bytes.fromhex("417f808f909fa0bfc0")] * 3))
    page = record("http://a.org/", "a b c", title="T" * len(title)).replace(b"T" * len(title), title)
    ((_, columns),) = judged([page], SMALL, 1)
    (made,) = BatchVerdicts(columns, SMALL)
    assert made.title == title.decode("utf-8", "replace")


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=3, max_size=3))
def test_numbers_of_lines(numbers):
    page = bytearray(record("http://a.org/", "a b c"))
    for name, number in zip(("fetched_at", "offset", "position"), numbers, strict=True):
        at = field_at(name)
        page[at : at + 8] = number.to_bytes(8, "little", signed=True)
    ((_, columns), *_) = judged([bytes(page)], SMALL, 1)
    (made,) = BatchVerdicts(columns, SMALL)
    assert [made.fetched_at, made.coordinates.offset, made.coordinates.position] == numbers


def test_lines_longer_than_the_room_for_them():
    records = [record(f"http://a.org/{i}", text((10, 1 + i)), title='"' * 60_000) for i in range(9)]
    ((expected, columns),) = judged(records, SMALL, 9)
    assert BatchVerdicts(columns, SMALL).lines() == [verdict.to_json() for verdict in expected]


def test_verdicts_of_no_columns_are_none():
    assert list(BatchVerdicts()) == []
    ((_, columns),) = judged([record("http://a.org/", "a b c")], SMALL, 1)
    assert BatchVerdicts(columns._replace(rows=blank()[:0]), SMALL).lines() == []
