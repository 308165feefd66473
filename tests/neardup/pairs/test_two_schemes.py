"""Sketches of two schemes: their numbers would mean nothing."""

import pytest

from neardup import BadInput, Page, Scheme, Sketch, compare, sketch_pages

PAGES = [Page(f"https://{host}.example/", b"<p>" + b" ".join(b"word%d" % i for i in range(200))) for host in "ab"]
ONE, OTHER = Scheme(seed=1), Scheme(seed=2)


def sketches(scheme: Scheme, *, known: bool) -> list[Sketch]:
    return [Sketch(record, scheme if known else None) for record in sketch_pages(PAGES, scheme)]


def test_sketches_of_one_scheme_are_compared() -> None:
    for known in (True, False):
        assert compare(*sketches(ONE, known=known)).tape_score == 1


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, True)])
def test_sketches_of_two_seeds_are_refused(known: tuple[bool, bool]) -> None:
    a, b = sketches(ONE, known=known[0])[0], sketches(OTHER, known=known[1])[1]
    with pytest.raises(BadInput, match="two schemes"):
        compare(a, b)


def test_without_a_scheme_two_fingerprints_of_one_site_tell() -> None:
    a, b = sketches(ONE, known=False)[0], sketches(OTHER, known=False)[0]
    with pytest.raises(BadInput, match="two schemes"):
        compare(a, b)


def test_a_record_is_not_opened_as_one_of_another_seed() -> None:
    with pytest.raises(BadInput, match="another seed"):
        Sketch(sketch_pages(PAGES, ONE)[0], OTHER)


def test_schemes_of_one_seed_and_other_numbers_are_two() -> None:
    other = Scheme(seed=1, tape_bytes_max=400)
    with pytest.raises(BadInput, match="two schemes"):
        compare(sketches(ONE, known=True)[0], sketches(other, known=True)[1])
