"""Pages that a site serves under several URLs, with the line that says where one came from, are one page."""

import pytest

from neardup import Page, open_index

NAMES = ["Salt", "Table_salt", "Sea_salt", "Rock_salt", "NaCl", "Common_salt"]


def pages(canonical):
    text = " ".join(f"sentence {i} tells how salt{i % 90} was won from water{i % 70}" for i in range(60))
    for name in NAMES:
        line = f"<p>(Redirected from {name.replace('_', ' ')})" if name != "Salt" else ""
        html = f"<title>Salt, an encyclopedia</title>{canonical}<h1>Salt</h1>{line}<p>{text}"
        yield Page(f"https://wiki.example/wiki/{name}", html.encode(), "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("canonical", "found"),
    [
        ('<link rel="canonical" href="/wiki/Salt">', 5),
        ("", 1),  # then they may be records of one name
        ('<link rel="canonical" href="/">', 1),  # a site's mistake
    ],
)
def test_redirects_to_one_article(canonical, found):
    with open_index() as index:
        kinds = [verdict.verdict for verdict in index.add(list(pages(canonical)))]
    assert kinds.count("near_duplicate") == found, kinds
    assert kinds.count("unique") == len(NAMES) - found
