"""What an index is advised to do with `same_content`: no copy that was crawled first hides a page."""

import json
from pathlib import Path
from random import Random

import pytest

import streams.client
from neardup import open_index
from neardup.verdict import Kind
from streams.client import duplicate_of
from tests.neardup.rules.test_syndicated import LANGUAGE, SCHEME, page


@pytest.mark.parametrize("seed", range(6))
def test_an_article_is_shown_beside_its_copy_that_was_crawled_first(seed: int) -> None:
    """The copy has half as much spam as the article has words."""
    article, spam = LANGUAGE.paragraphs(Random(seed), 300), LANGUAGE.paragraphs(Random(seed + 99), 150)
    copy = page(f"copy{seed}.example", article, comments=0, more=spam)
    original = page(f"paper{seed}.example", article, comments=0)
    with open_index(scheme=SCHEME) as index:
        index.add([copy])
        (verdicts,) = index.add([original])
        (again,) = index.add([original])
    assert verdicts.verdict is Kind.SAME_CONTENT
    assert duplicate_of(json.loads(verdicts.to_json())) is None
    assert (again.verdict, duplicate_of(json.loads(again.to_json()))) == (Kind.UNCHANGED, None), "as its standing"


def test_schema_and_guide_say_so() -> None:
    root = Path(streams.client.__file__).parent
    guide = (root / "scan" / "scan-a-crawl.md").read_text()
    assert "Do not hide a `same_content` page behind a page of another owner" in guide
    schema = json.loads((root.parent / "neardup" / "verdict.schema.json").read_text())
    assert "only if both have the same owner" in schema["properties"]["content_of"]["description"]
