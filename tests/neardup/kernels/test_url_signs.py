"""Signs at the ends of URLs tell pages of equal words apart, as their slow twin has them."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from neardup.decider import Decider
from neardup.kernels.url_signs import same_signs
from neardup.page import Page
from neardup.pairs.scoring import RECORD_AT
from neardup.rules.records import alnum_bits
from neardup.rules.rulings import one_page, tables_of
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import HEADER
from neardup.sketch.make_sketches import sketch_pages
from tests.oracle import rulings
from tests.whole import count

pytestmark = pytest.mark.kernel

PARTS = (
    *("a", "operator", "*", "+", "=", "!", "(", "~", ".", "-", "/", "?", "#", "#!/", "%", "%4", "%zz"),
    *("%2A", "%2B", "%2F", "%20", "%C3%A4", "%E4%BD%A0", "%D9%A3", "%CC%88", "%E2%88%91", "%F0%9F%98%80"),
    *("%C3", "%E0%80%80", "%ED%A0%80", "%F4%90%80%80", "%F0%9F", "%FF", "%80"),
)
STARTS = ("http://a.example/", "https://b.example/x/", "file:///", "ftp://h:8/y?")


def same(one: str, other: str) -> bool:
    text, end = np.frombuffer((one + other).encode(), np.uint8), len(one)
    return bool(same_signs(text, 0, end, end, len(text), alnum_bits()))


def test_signs_of_random_urls() -> None:
    random, equal = Random(4), 0
    tries = count(2_000, 40_000)
    for _ in range(tries):
        end = "".join(random.choices(PARTS, k=random.randrange(6)))
        one, other = (random.choice(STARTS) + end for _ in range(2))
        way = random.random()
        if way < 0.5:
            other = random.choice(STARTS) + "".join(random.choices(PARTS, k=random.randrange(6)))
        elif way < 0.8:
            other = one.replace("*", "%2A").replace("+", "%2B")
        assert same(one, other) == (rulings.signs(one) == rulings.signs(other)), (one, other)
        equal += same(one, other)
    assert tries // 5 < equal < tries * 4 // 5


def test_letters_and_digits_are_those_of_python() -> None:
    points = np.unpackbits(alnum_bits())
    for point in (*range(0, 0x40000, count(17, 1)), *range(0x40000, 0x110000, 4099)):
        assert (point < len(points) and bool(points[point])) == chr(point).isalnum(), point


@pytest.mark.parametrize("rule", ["verified", "tape"])
def test_one_page_of_records(rule: str) -> None:
    scheme = Scheme(seed=3)
    urls = ("a.example/operator*", "a.example/operator+", "a.example/x/operator%2A", "b.example/operator+")
    heads = ("", "<title>Operator</title>", "<title>operator!</title>")
    pages = [Page(f"http://{url}", f"{head}<p>some words".encode()) for url in urls for head in heads]
    pages += [Page(f"http://{url}", b"\x00\x01", "image/png") for url in urls[:2]]
    headers = list(map(Header, sketch_pages(pages, scheme)))
    decider = replace(Decider(scheme.digest), rule=rule)
    tables, found = tables_of(decider), set()
    for header in headers:
        for other in headers:
            records = np.frombuffer(header.record + other.record, np.uint8)
            one = bool(one_page(tables, records, 0, len(header.record), RECORD_AT, HEADER.itemsize))
            assert one == rulings.one_page(header, other, decider), (header.url, other.url)
            found.add(one)
    assert found == ({True, False} if rule == "verified" else {True})
