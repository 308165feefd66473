"""The order of candidates, which decides those that are left out where a page has too many."""

from dataclasses import replace

from neardup import Page
from neardup.decider import Decider
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from tests.neardup.story import Story

SCHEME = Scheme(seed=7)
DECIDER = replace(Decider(SCHEME.digest), candidates_max=2)


def page(release: int, name: str, *edits: int) -> Page:
    """A page of a template, with words replaced at these places."""
    words = " ".join(f"new{i}" if i in edits else f"word{i}" for i in range(150))
    return Page(f"http://a.org/{release}/{name}.html", f"<title>{name}</title><p>{words}".encode(), "text/html")


def test_an_earlier_release_comes_before_pages_that_share_more_keys() -> None:
    others = [page(16, name, 149) for name in ("silk", "flax", "hemp")]
    pages = [page(15, "wool", 30, 60, 90, 120), *others, page(16, "wool")]
    story = Story(*sketch_pages(pages, SCHEME), decider=DECIDER)
    last = story.traces[-1]
    assert last.candidates_cut
    first, second = last.candidates
    assert sum(first.families.values()) < sum(second.families.values()), "else age alone would order them"
    assert (first.page_id, story.kinds[-1]) == (1, "near_duplicate")
