"""The words that are shown for a veto are those that the kernel found in the records."""

from random import Random

from neardup.pairs.scoring import compare
from neardup.rules.veto_words import PageWords, head_veto, title_veto
from neardup.scheme import Scheme
from neardup.sketch.sketch_record import Sketch
from tests.neardup.sketch.words import sketch_words

SCHEME = Scheme(seed=20250117, head_tokens=6)
WORDS = [*(f"name{letter}" for letter in "abcdefgh"), "17", "18", "a2", "alpha", "beta", "example"]
HOSTS = ("alpha.example", "beta.example", "www.alpha.example")


def some_page(random: Random) -> tuple[PageWords, Sketch]:
    """A page of a few words, its title among them, now and then its host's."""
    words = random.sample(WORDS, 5)
    title = random.choices(words, k=random.choice((0, 1, 2, 3)))
    text = [*title, *random.choices(words, k=random.randint(0, 14))]
    host = random.choice(HOSTS)
    record = sketch_words(text, SCHEME, url=f"http://{host}/", title_words=len(title))
    return PageWords(text, title, frozenset(host.split("."))), Sketch(record)


def test_words_veto_where_the_kernel_does() -> None:
    random, seen = Random(9), set()
    for _ in range(400):
        (a, left), (b, right) = some_page(random), some_page(random)
        pair = compare(left, right)
        assert pair.title_veto == title_veto(a, b, pair.same_site), (a, b)
        assert pair.head_veto == head_veto(a, b, SCHEME.head_tokens), (a, b)
        seen.add((pair.same_site, bool(pair.title_veto), bool(pair.head_veto)))
    assert len(seen) == 8, "vetoes of both kinds, on one site and on two"
