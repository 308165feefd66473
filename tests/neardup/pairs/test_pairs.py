"""The numbers of pairs of records, against the oracle; each veto by an example."""

import random

import numpy as np
import pytest

from neardup.page import Page
from neardup.pairs.scoring import compare, compare_records
from neardup.sketch.layout import HEADER, SKETCH_VERSION, RecordFlag, field_at
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from tests.neardup.sketch.sketch_inputs import SCHEME, edited, fields_of, layout_of, words_of
from tests.neardup.sketch.words import sketch_words
from tests.oracle import sketches as oracle

pytestmark = pytest.mark.filterwarnings("ignore:overflow")

HERE, THERE = "http://www.one.example/a", "http://two.example/b"


def check(a, b):
    """Both records' numbers, by kernel and by oracle; Pair."""
    x, y = Sketch(a), Sketch(b)
    found = compare(x, y)
    same_site, same_hen = x.site == y.site, x.hen_site_fingerprint == y.hen_site_fingerprint
    expected = oracle.pair(fields_of(a), fields_of(b), same_site=same_site, same_hen_site=same_hen)
    assert found[:10] == expected[:10]
    assert found == tuple(pytest.approx(e, abs=1e-15) if isinstance(e, float) else e for e in expected)
    return found


@pytest.mark.parametrize("seed", range(24))
def test_pairs_of_edited_pages_are_the_oracles(seed):
    words = words_of((30, 300, 1200, 2500)[seed % 4], seed)
    other = edited(words, (0, 0.02, 0.2)[seed % 3], seed)
    blocks, links = layout_of(len(words), seed)
    blocks2, links2 = layout_of(len(other), seed)
    a = sketch_words(words, SCHEME, url=HERE, title_words=4, links=links, blocks=blocks)
    b = sketch_words(other, SCHEME, url=(HERE, THERE)[seed // 4 % 2], title_words=4, links=links2, blocks=blocks2)
    check(a, b)
    check(b, a)


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(30))
def test_small_pages_veto_as_the_oracle_says(seed):
    # few words, so that titles and heads share some, repeat some, and lack some
    words, other = words_of(60, seed, vocabulary=12), words_of(60, seed // 2, vocabulary=14)
    title = seed % 5
    for url in (HERE, THERE):
        a = sketch_words(words, SCHEME, url=HERE, title_words=title)
        b = sketch_words(other, SCHEME, url=url, title_words=title)
        check(a, b)


def page(title, body, url=HERE):
    words = title.split() + body.split()
    return sketch_words(words, SCHEME, url=url, title_words=len(title.split()))


TEXT = " ".join(f"text{i} and so" for i in range(20))


def title_veto(title_a, title_b, *, other_url=HERE, body_a=TEXT, body_b=TEXT):
    return check(page(title_a, body_a), page(title_b, body_b, other_url)).title_veto


@pytest.mark.kernel
def test_titles_of_one_site():
    assert title_veto("red chair", "red chair") == 0
    assert title_veto("red chair", "chair red") == 0
    assert title_veto("red chair", "blue chair") == 1  # each has a word of its own
    assert title_veto("red chair", "chair") == 0  # one has
    assert title_veto("red chair", "chair", body_a="red " + TEXT) == 1  # one has, and its page says it again
    assert title_veto("chair", "red chair", body_b="red " + TEXT) == 1
    assert title_veto("page 7", "page 8") == 0  # all digits
    assert title_veto("page 7", "page 8", body_a="7 " + TEXT) == 0
    assert title_veto("model 7x", "model 8x") == 1
    assert title_veto("", "blue chair", body_b="blue " + TEXT) == 0  # titles veto only where both are
    assert title_veto("red chair", "blue chair", body_a="blue blue " + TEXT, body_b="red red " + TEXT) == 1


@pytest.mark.kernel
def test_titles_that_words_or_numbers_tell_apart():
    def apart(title_a, title_b, body=TEXT, other_url=HERE):
        return check(page(title_a, body), page(title_b, TEXT, other_url)).titles_apart

    assert apart("red chair", "blue chair") == 1
    assert apart("red chair", "chair", "red " + TEXT) == 1
    assert apart("red chair", "chair") == 0
    assert apart("page 7", "page 8") == apart("node v18", "node v20") == 2
    assert apart("node v18", "node", "v18 " + TEXT) == 2
    assert apart("node v18", "node") == apart("page 7", "page", "7 " + TEXT) == 0
    assert apart("release 8", "no release") == 2  # a number of one, a word of the other
    assert apart("red chair", "blue chair", other_url=THERE) == 0


@pytest.mark.kernel
def test_titles_of_different_sites():
    def veto(title_a, title_b, body_a=TEXT, body_b=TEXT):
        return title_veto(title_a, title_b, other_url=THERE, body_a=body_a, body_b=body_b)

    assert veto("red chair", "blue chair") == 0  # occurs once only: site names differ
    assert veto("red chair", "blue chair", "red " + TEXT) == 0
    assert veto("red chair", "blue chair", "red " + TEXT, "blue " + TEXT) == 1
    assert veto("page 7", "page 8", "7 " + TEXT, "8 " + TEXT) == 1  # digits allowed
    assert veto("red chair", "blue chair", "red blue " + TEXT, "blue " + TEXT) == 0  # not absent from the other page


@pytest.mark.kernel
def test_heads():
    def veto(a, b, url=HERE):
        return check(page("", f"{a} {TEXT} {a} {a}"), page("", f"{b} {TEXT} {b} {b}", url)).head_veto

    assert veto("red", "red") == 0
    assert veto("red", "blue") == 1
    assert veto("red", "blue", THERE) == 1
    assert veto("7x", "8x") == 0  # digits never
    twice = check(page("", f"red {TEXT} red"), page("", f"blue {TEXT} blue blue"))
    assert twice.head_veto == 0
    late = " ".join(f"w{i}" for i in range(16))
    assert check(page("", f"{late} red red red"), page("", f"{late} blue blue blue")).head_veto == 0


@pytest.mark.kernel
def test_labels_of_the_own_host_never_veto():
    body = "this domain is parked " * 5
    parked = [
        sketch_words(f"{name} {name} {name} {body}".split(), SCHEME, url=f"http://www.{name}.example/", title_words=1)
        for name in ("redchair", "bluechair")
    ]
    pair = check(*parked)
    assert not pair.same_site
    assert (pair.title_veto, pair.head_veto) == (0, 0)
    here = [
        sketch_words(f"{name} {name} {name} {body}".split(), SCHEME, url=f"http://{name}.shop.example/", title_words=1)
        for name in ("redchair", "bluechair")
    ]
    assert check(*here).same_site
    assert (check(*here).title_veto, check(*here).head_veto) == (0, 0)


def test_a_saturated_filter_proves_nothing():
    long = " ".join(f"long{i}" for i in range(2500))
    red, blue = page("", f"red red red {long}"), page("", f"blue blue blue {long}")
    assert check(red, blue).head_veto == 2
    assert check(red, red).head_veto == 0  # what the other's head names is there
    short = page("", f"blue blue blue {TEXT}")
    assert check(red, short).head_veto == 2  # red is absent from the short page, blue perhaps not from the long one
    assert check(short, page("", f"red red red {TEXT}")).head_veto == 1
    digits = page("", f"7 7 7 {long}")
    assert check(red, digits).head_veto == 0
    away = page("blue", f"blue {long}", THERE)
    assert check(page("red", f"red {long}"), away).title_veto == 2
    assert check(page("red", f"red {long}"), page("red", f"red {long}", THERE)).title_veto == 0


@pytest.mark.kernel
def test_pages_without_tokens_are_like_nothing():
    empty, text = page("", ""), page("", TEXT)
    for other in (empty, text):
        pair = check(empty, other)
        assert not pair.same_digest
        assert (pair.b_similarity, pair.c_similarity, pair.simhash64_agree, pair.tape_score) == (0, 0, 0, 0.0)


@pytest.mark.kernel
def test_a_page_is_itself():
    pair = check(page("red chair", TEXT), page("red chair", TEXT, THERE))
    assert pair.same_digest
    assert (pair.b_similarity, pair.c_similarity, pair.simhash64_agree) == (6, 384, 64)
    assert (pair.tape_score, pair.content_score) == (1.0, 1.0)


def test_many_are_scored_as_each_alone():
    records = [sketch_words(words_of(count, 5), SCHEME, title_words=3) for count in (0, 1, 20, 400, 900, 3000, 9000)]
    for a in records:
        alone = [compare(Sketch(a), Sketch(b)) for b in records]
        assert compare_records(a, records) == alone
    assert compare_records(records[0], []) == []


def canonical_of(url, canonical):
    link = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    html = f"<title>about wool</title>{link}<h1>wool</h1><p>{TEXT}"
    return sketch_pages([Page(url, html.encode(), "text/html; charset=utf-8")], SCHEME)[0]


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (("http://s.example/a", ""), ("http://s.example/b", ""), False),
        (("http://s.example/a", ""), ("http://s.example/a?x=1", ""), False),
        (("http://s.example/a", ""), ("http://s.example/a?x=1", "/a"), True),
        (("http://s.example/a", "/c"), ("http://s.example/b", "/c"), True),
        (("http://s.example/a", "/c"), ("http://s.example/b", "/d"), False),
        (("http://s.example/a", "/c"), ("http://s.example/b", ""), False),
        (("http://s.example/a", "/b"), ("http://s.example/b", ""), True),
        (("http://s.example/a", ""), ("http://t.example/a", "http://s.example/a"), True),
        (("http://s.example/a", "/"), ("http://s.example/b", "/"), False),
        (("http://s.example/", ""), ("http://s.example/index.html", "/"), False),
        (("http://s.example/a", "/c"), ("http://s.example/a", "/c"), False),
    ],
)
def test_pages_that_want_to_go_by_one_url(a, b, same):
    pages = [canonical_of(*each) for each in (a, b)]
    assert check(*pages).same_canonical is same
    assert check(*reversed(pages)).same_canonical is same


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("a/(b)", "a/%28b%29", True),
        ("a?x=1&y=2", "a?y=2&x=1", True),
        ("a?x=1;y=2", "a?y=2&x=1&", True),
        ("a?q=red+chair&p=2", "a?p=2&q=red%20chair", True),
        ("a?q=(b)#/c", "a?q=%28b%29#/c", True),
        ("a?x=1&y=2#/c", "a?y=2&x=1#/d", False),
        ("a?x=1&x=1&y=2", "a?y=2&y=2&x=1", False),
        ("a?x=12&y=", "a?x=1&y=2", False),
        ("a/b", "a%2Fb", False),
        ("a?x=1%26y=2", "a?x=1&y=2", False),
        ("a?q=1%2B1", "a?q=1+1", False),
        ("a+b", "a%20b", False),
        ("(a)", "(b)", False),
        ("a%28", "a%2", False),
    ],
)
def test_urls_that_write_one_address_in_two_ways(a, b, same):
    pages = [canonical_of(f"http://s.example/{each}", "") for each in (a, b)]
    assert check(*pages).same_address is same
    assert check(*reversed(pages)).same_address is same
    claimed = [canonical_of(f"http://s.example/{name}", f"/{each}") for name, each in zip("xy", (a, b), strict=True)]
    assert check(*claimed).same_canonical is same


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("a", "b", "owner", "compared"),
    [
        ("s.example/a", "s.example/b", True, False),
        ("s.example/a", "www.s.example/b", True, False),
        ("s.example/~ann/a", "s.example/~bob/a", False, False),
        ("s.example/~ann/a", "www.s.example/~bob/a", False, False),
        ("ann.s.example/a", "bob.s.example/a", False, True),
        ("s.example/a", "t.example/a", False, True),
    ],
)
def test_articles_of_two_hosts_are_compared(a, b, owner, compared):
    one, other = (canonical_of(f"http://{url}", "") for url in (a, b))
    found = check(one, other)
    assert (found.same_owner, found.common_names > 0) == (owner, compared)


@pytest.mark.kernel
def test_decoded_addresses_count_since_version_3_of_the_scheme():
    """Verdicts on sketches of earlier schemes stay as they are."""
    pages = [bytearray(canonical_of(f"http://s.example/{each}", "")) for each in ("(a)", "%28a%29")]
    assert check(*map(bytes, pages)).same_address
    for page in pages:
        page[field_at("flags")] &= ~RecordFlag.FORMS
    found = compare(*(Sketch(bytes(page)) for page in pages))
    assert (found.same_address, found.same_canonical) == (False, False)


@pytest.mark.kernel
def test_cached_page_of_the_previous_pair_changes_no_number():
    rng = random.Random(5)
    records, base = [], rng.randbytes(40)
    for level in (0, 0, 0, 1, 1, 2, 3):  # equal levels, one apart on either side, and too far apart
        for letters in (b"ab", b"abcdefgh", bytes(range(256))):
            other = bytes(rng.choice(letters) for _ in range(rng.choice([0, 2, 3, 40])))
            tape, content = base[rng.randrange(30) :] + other, other + base[: rng.randrange(40)]
            header = np.zeros(1, HEADER)
            header["version"], header["kind"], header["tokens"], header["content_tokens"] = SKETCH_VERSION, 0, 90, 60
            header["tape_level"], header["content_level"] = level, rng.randrange(3)
            header["tape_bytes"], header["content_bytes"] = len(tape), len(content)
            header["size"] = HEADER.itemsize + len(tape) + len(content)
            records.append(header.tobytes() + tape + content)
    pairs = [(a, [rng.randrange(len(records)) for _ in range(9)]) for a in (*range(len(records)), 0, 3, 0)]
    singly = [compare_records(records[a], [records[b]])[0] for a, others in pairs for b in others]
    together = [one for a, others in pairs for one in compare_records(records[a], [records[b] for b in others])]
    assert together == singly
    assert sum(pair.tape_score > 0 for pair in together) > 20
    assert sum(pair.tape_score == 0 and pair.gaps > 0 for pair in together) > 20
