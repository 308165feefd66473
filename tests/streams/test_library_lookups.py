"""Lookups and removals of the library: `len`, `in`, `get` and `remove`, in memory, on disk, and after a rebuild."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from neardup import Decider, Page, Scheme, StateError, open_index
from neardup.urls import url_of_id
from streams.pipeline import batch_fold
from streams.state.scan_directory import ScanDirectory, VerdictLog
from tests.streams.test_library import interrupted, kinds, page

SCHEME = Scheme(seed=7)
FIRST, COPY, EDITED, OTHER = page(1), replace(page(1), url="https://b.example/"), page(1, edited=5), page(2)


@pytest.mark.parametrize("on_disk", [False, True])
def test_get_returns_verdict_and_cluster_of_a_url(tmp_path: Path, on_disk: bool) -> None:
    with open_index(tmp_path / "a" if on_disk else None, scheme=SCHEME) as index:
        index.add([FIRST, COPY, EDITED, OTHER])
        found = {each.url: index.get(each.url) for each in (FIRST, COPY, EDITED, OTHER)}
        cluster = index.cluster(FIRST.url)
        assert cluster is not None
        assert cluster.members == (COPY.url, EDITED.url)
        assert [
            (each.verdict.value, each.shown, each.cluster == cluster) for each in found.values() if each is not None
        ] == [
            ("unique", True, True),
            ("exact_duplicate", False, True),
            ("near_duplicate", False, True),
            ("unique", True, False),
        ]
        assert index.get("https://B.example:443") == found[COPY.url], "URLs are normalised"
        assert index.get("https://c.example/") is None


def test_an_index_counts_and_contains_its_live_urls() -> None:
    with open_index(scheme=SCHEME) as index:
        assert (len(index), bool(index)) == (0, True)
        index.add([FIRST, COPY, OTHER, Page("https://c.example/", b"x", status=500)])
        assert len(index) == 3
        assert FIRST.url in index
        assert "https://c.example/" not in index
        index.add([Page(FIRST.url, None), OTHER])
        assert len(index) == 2
        assert FIRST.url not in index
        with pytest.raises(TypeError, match="a URL or an id"):
            assert FIRST in index
    for call in (lambda: len(index), lambda: FIRST.url in index, lambda: index.get("x"), lambda: index.remove("x")):
        with pytest.raises(StateError, match="closed"):
            call()


@pytest.mark.parametrize("on_disk", [False, True])
def test_remove_is_a_record_of_the_log(tmp_path: Path, on_disk: bool) -> None:
    state = tmp_path / "a"
    with open_index(state if on_disk else None, scheme=SCHEME) as index:
        index.add([FIRST, COPY, OTHER])
        removed = index.remove(FIRST.url)
        assert [(one.verdict.value, one.url) for one in removed] == [("gone", FIRST.url), ("promoted", COPY.url)]
        assert kinds(index.remove(OTHER.url)) == ["gone"]
        for url in (FIRST.url, OTHER.url, "https://c.example/"):
            with pytest.raises(KeyError, match=url):
                index.remove(url)
        held = len(index), index.get(COPY.url), index.get(FIRST.url)
        assert held[0] == 1
        assert held[2] is None
        assert index.query(replace(OTHER, url="https://d.example/")).verdict == "unique"
    if on_disk:
        shutil.rmtree(state / "index")
        with open_index(state) as index:
            assert (len(index), index.get(COPY.url), index.get(FIRST.url)) == held
        with ScanDirectory.open(state) as opened:
            assert [one["verdict"] for one in opened.verdicts()][3:] == ["gone", "promoted", "gone"]


def test_documents_are_looked_up_by_their_ids() -> None:
    with open_index(scheme=SCHEME, rule="tape") as index:
        index.add([Page(url_of_id("doc 17"), FIRST.body), Page(url_of_id("doc 18"), FIRST.body)])
        assert "doc 17" in index
        assert "doc 19" not in index
        found = index.get("doc 18")
        assert found is not None
        assert (found.verdict, found.cluster.representative) == ("exact_duplicate", url_of_id("doc 17"))
        assert kinds(index.remove("doc 18")) == ["gone"]
        assert len(index) == 1


@pytest.mark.seeds(3, 20)
def test_length_equals_that_of_a_set_of_urls(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages arrive, change, go, return and expire; some calls are interrupted, or fail."""
    monkeypatch.setattr(batch_fold, "PAGES_BETWEEN", 8)
    random_, lengths = random.Random(seed), set()
    urls = [page(number).url for number in range(12)]
    with open_index(scheme=SCHEME, decider=Decider(SCHEME.digest, expiry_days=1)) as index:
        for step in range(60):
            pages = [_drawn(random_, step) for _ in range(random_.randint(1, 4))]
            if random_.random() < 0.2 and (held := [url for url in urls if url in index]):
                index.remove(random_.choice(held))
            index.add(pages)
            if random_.random() < 0.7:
                assert len(index) == len([url for url in urls if url in index])
                lengths.add(len(index))
    assert len(lengths) > 3


def _drawn(random_: random.Random, step: int) -> Page:
    drawn = replace(page(random_.randrange(12)), fetched_at=1_700_000_000_000 + step * 20_000_000)
    how: Sequence[dict[str, object]] = ({}, {}, {"body": None}, {"status": 500}, {"body": page(99).body})
    return replace(drawn, **random_.choice(how))  # type: ignore[arg-type]


@pytest.mark.parametrize("counted", [False, True])
def test_length_is_right_after_an_interrupted_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    with open_index(tmp_path / "a", scheme=SCHEME) as index:
        index.add([FIRST])
        assert len(index) == 1
        with monkeypatch.context() as patch:
            patch.setattr(VerdictLog, "emit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                index.add([OTHER])
        if counted:
            assert len(index) == 2
        index.add([EDITED])
        assert len(index) == 3


@pytest.mark.parametrize("lookup", ["get", "cluster", "remove"])
@pytest.mark.parametrize("name", [None, 5, b"https://a.example/"])
def test_lookup_of_a_name_that_is_no_str_raises_type_error(lookup, name):
    with open_index() as index, pytest.raises(TypeError, match="a URL or an id, not "):
        getattr(index, lookup)(name)
