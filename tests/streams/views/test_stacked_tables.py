"""Tables in narrow windows: every column stays, with its name."""

import re
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from streams.views import counts, templates
from streams.views.templates import stacked
from tests.streams.views.random_verdicts import Held, random_verdicts
from tests.streams.views.test_views_lists import apart
from tests.streams.views.test_views_web import Server, hostile


def test_cells_get_the_names_of_their_columns() -> None:
    table = (
        '<table>\n<thead><tr><th scope="col">a</th><th scope="col" class="number">b &amp; <i>c</i></th>'
        '<th class="wide">d "e"</th><th><span class="skip">f</span></th></tr></thead>\n<tbody>\n'
        '<tr><th scope="row">1</th><td class="number">2</td><td class="wide">3</td><td>4</td></tr>\n'
        '<tr><th>1</th><td colspan="2">2</td><td>4</td></tr></tbody></table>'
    )
    html = stacked(table)
    assert '<table class="stack">' in html
    assert '<td class="number" data-label="b &amp; c">2</td><td class="wide" data-label="d &#34;e&#34;">3</td>' in html
    assert '<td>4</td></tr>\n<tr><th>1</th><td colspan="2" data-label="b &amp; c">2</td><td>4</td>' in html
    plain = "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"
    assert stacked(plain) == plain


def test_texts_of_pages_are_no_cells() -> None:
    held = Held(hostile())
    for name, facts in (("overview", counts.overview(held, None)), ("kind", counts.kind(held, "near_duplicate"))):
        html = templates.html(name, facts)
        labels = set(re.findall(r'data-label="([^"]*)"', html))
        assert labels <= {
            "count", "share", "meaning", "duplicates", "verdicts", "other page", "fetched", "site", "key",
            "page that exceeded the limit", "similar page, reason",
        }  # fmt: skip


@pytest.mark.whole
def test_a_narrow_window_keeps_every_column(browser: Any) -> None:
    server = Server(Held([*random_verdicts(300), apart(10_000, "https://a.example/1")]))
    try:
        page = browser.new_page(viewport={"width": 360, "height": 800})
        for path in ("", "kind?name=near_duplicate", "sites", "clusters", "site?name=site1.example", "hot", "health"):
            page.goto(server.url + path)
            hidden = page.evaluate(
                "[...document.querySelectorAll('tbody td, tbody th')].filter(e => e.textContent.trim() && "
                "!e.closest('details:not([open])') && !e.getClientRects().length).map(e => e.outerHTML)"
            )
            assert hidden == []
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            heads = "[...document.querySelectorAll('.stack thead')].map(e => e.getBoundingClientRect().width)"
            assert all(width <= 1 for width in page.evaluate(heads)), "for screen readers alone"
            widths = "[...document.querySelectorAll('caption')].filter(e => e.getClientRects().length)"
            assert all(width > 200 for width in page.evaluate(f"{widths}.map(e => e.clientWidth)"))
        assert page.evaluate("getComputedStyle(document.querySelector('main')).display") == "block"
        page.close()
    finally:
        server.close()
