"""The page of a cluster says which member an index should show and why, by the policy that holds; also of a scan."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from streams.views import templates, url_pages
from streams.views.source import ScanSource
from tests.streams.shell import Shell, words
from tests.streams.views.random_verdicts import Held, random_verdicts

OLD, NEW = "http://old.example/a/b", "https://new.example/"


def verdict_of(url: str, page_id: int, kind: str, **more: Any) -> dict[str, Any]:
    first = {"cluster": 5, "cluster_size": page_id - 4, "revision": page_id - 4, "canonical": OLD}
    return {**random_verdicts(1)[0], **first, "page_id": page_id, "url": url, "verdict": kind, **more}


def shown(held: Held, *policy: str) -> tuple[str, str, str]:
    held.chosen_by = policy
    facts = url_pages.cluster(held, 5)
    assert facts is not None
    page = templates.html("cluster", facts)
    assert facts["canonical"] in page
    assert facts["why"]["words"].replace("'", "&#39;") in page
    for criterion in policy:
        assert criterion in page
    return facts["canonical"], facts["why"]["by"], facts["why"]["words"]


def test_why_a_page_is_shown() -> None:
    two = [verdict_of(OLD, 5, "unique"), verdict_of(NEW, 6, "near_duplicate")]
    held = Held(two)
    assert shown(held) == (OLD, "verdict", "it is the representative, which names no other member by rel=canonical")
    assert shown(held, "https") == (NEW, "https", "it is served over HTTPS")
    assert shown(held, "first-seen") == (OLD, "first-seen", "it was seen first")
    named = Held([two[0], {**two[1], "canonical": NEW}])
    assert shown(named) == (NEW, "verdict", "the representative names it by rel=canonical")


def test_canonical_is_of_the_newest_readable_fetch() -> None:
    """The first-seen page is the one with the first fetch, though others came in between."""
    life = [
        verdict_of(OLD, 5, "unique", rel_canonical=NEW),
        verdict_of(NEW, 6, "near_duplicate"),
        verdict_of(OLD, 7, "rejected", cluster=None, reason="x", standing={"verdict": "unique", "cluster": 5}),
        {**verdict_of(OLD, 8, "promoted"), "n": 1},
        {**verdict_of(OLD, 8, "near_duplicate"), "n": 2},
    ]
    held = Held(life)
    assert shown(held, "rel-canonical")[0] == NEW, "neither a fetch that failed nor another page's unsays it"
    assert shown(held, "first-seen")[0] == OLD
    held = Held([*life, verdict_of(OLD, 9, "unchanged", standing={"verdict": "unique", "cluster": 5})])
    assert shown(held, "rel-canonical", "first-seen")[:2] == (OLD, "first-seen"), "it names no page any more"


def test_former_member_is_not_chosen_as_canonical() -> None:
    held = Held(
        [verdict_of(OLD, 5, "unique"), verdict_of(NEW, 6, "near_duplicate"), verdict_of(NEW, 7, "gone", cluster=None)]
    )
    assert shown(held, "https")[:2] == (OLD, "")


def test_a_policy_that_is_not_to_be_had_hides_nothing() -> None:
    class Away(Held):
        def policy(self) -> tuple[str, ...]:
            raise CorruptRecord("the topic cannot be read")

    facts = url_pages.cluster(Away([verdict_of(OLD, 5, "unique")]), 5)
    assert facts is not None
    assert facts["canonical"] == OLD
    assert "unknown: the topic cannot be read" in facts["why"]["words"]


def test_a_scan_has_a_policy_too(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.html").write_text(f"<title>Wool</title><link rel=canonical href=b.html><p>{words('a')}")
    (tmp_path / "site" / "b.html").write_text(f"<title>Wool</title><p>{words('a')} 9:41")
    (tmp_path / "site" / "z.html").write_text(f"<title>Wool</title><p>{words('a')}")
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0

    def emitted_so_far() -> list[bytes]:
        return [file.read_bytes() for file in sorted((tmp_path / "neardup-state" / "verdicts").iterdir())]

    kept = emitted_so_far()
    assert any(kept)
    source = ScanSource(tmp_path / "neardup-state")

    def canonical() -> tuple[str, list[str]]:
        facts = url_pages.cluster(source, 0)
        assert facts is not None
        return facts["canonical"].rpartition("/")[2], facts["policy"]

    assert canonical() == ("b.html", [])
    assert url_pages.url(source, "https://a.example/a.html", Decider(scheme=""))["verdict"]["rel_canonical"]
    result = shell("canonical", "--state", "neardup-state", "https,first-seen")
    assert (result.code, result.out) == (0, "https, then first-seen\n")
    assert canonical() == ("a.html", ["https", "first-seen"])
    wrong = shell("canonical", "--state", "neardup-state", "oldest")
    assert (wrong.code, "there is rel-canonical, https" in wrong.err) == (2, True)
    assert shell("canonical", "--state", "neardup-state", "--json").out.split() == [
        *("{", '"policy":', "[", '"https",', '"first-seen"', "]", "}")
    ]
    assert (
        shell("canonical", "--state", "neardup-state", "--none").out
        == "no policy: the canonical page of the verdicts holds\n"
    )
    assert canonical() == ("b.html", [])
    (tmp_path / "neardup-state" / "canonical.json").write_text("{")
    assert "is no policy" in shell("canonical", "--state", "neardup-state").err
    assert shell("canonical", "--state", "nowhere").code == 2
    assert emitted_so_far() == kept
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0, "the file is one of a scan's directory"
