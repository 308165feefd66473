"""Hot keys on the pages: as many as verdicts tell of, on their sites, and in words."""

from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from collections import Counter

from streams.views import counts, templates
from streams.views.lists import HOT_KEPT, family_name
from streams.views.source import ScanSource
from tests.streams.shell import Shell
from tests.streams.views.random_verdicts import Held, random_verdicts


def test_hot_keys_are_counted_by_family_and_site() -> None:
    verdicts = random_verdicts(3_000)
    emitted = [(v["site"], key) for v in verdicts for key in v.get("evidence", {}).get("turned_hot", ())]
    assert len(emitted) > HOT_KEPT
    held = Held(verdicts)
    hot = counts.overview(held, None)["hot"]
    assert hot["total"] == len(emitted)
    assert hot["families"] == Counter(key.partition(":")[0] for _, key in emitted)
    assert [item["key"] for item in hot["newest"]][:1] in ([key] for _, key in emitted[-2:])
    for site in {site for site, _ in emitted}:
        facts = counts.site(held, site)
        assert facts is not None
        assert facts["hot"]["total"] == sum(name == site for name, _ in emitted)
        assert {item["site"] for item in facts["hot"]["newest"]} == {site}
    page = templates.html("overview", counts.overview(held, None))
    assert "small supershingle" in page
    assert "the first 8 words" in page
    assert family_name("content_start:70") == "the first 8 words of the main content"
    assert family_name("of-another-program:00") == "of-another-program"


def test_a_hot_key_of_a_template_is_shown(shell: Shell, tmp_path: Path) -> None:
    """Sixty-five pages of other words that begin alike; of a scan, as of the stream."""
    (tmp_path / "site").mkdir()
    for number in range(66):
        words = " ".join(f"p{number}w{i}" for i in range(60))
        html = f"<div>one two three four five six seven eight</div><p>{words}</p><p>the end"
        (tmp_path / "site" / f"{number:03}.html").write_text(html)
    assert shell("scan", "site", "--base-url", "https://a.example/", "--set", "postings_max=64").code == 0
    source = ScanSource(tmp_path / "neardup-state")
    facts = counts.site(source, "a.example")
    assert facts is not None
    (item,) = facts["hot"]["newest"]
    assert (item["url"], facts["hot"]["families"]) == ("https://a.example/064.html", {"head": 1})
    page = templates.html("site", facts)
    assert "1 index key is shared by so many pages" in page
    assert item["key"] in page
    assert "Hot keys" not in templates.html("overview", counts.overview(Held(random_verdicts(3)), None))
