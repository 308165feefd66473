"""Takedowns: control records with a hash of the target. Every fold of the log repeats them, in any batches."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from neardup.decider import Decider
from neardup.errors import BadInput, CorruptRecord
from neardup.index.column_families import Family
from neardup.sketch.takedown_hashes import Takedown, of_prefix, of_site, of_url
from streams.formats.message import Forget, decode_entry, encode_control
from streams.pipeline.folded_takedowns import takedowns_of, without
from streams.scan.scan import scan
from streams.state import index_rows as look
from streams.state.checkpoint_manifest import describe
from streams.state.checkpoint_store import CheckpointStore
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.explain import explain_command
from streams.verdicts.export import DUPLICATES, TABLES, rows
from streams.verdicts.replay import Stretch, replay_scan
from tests.streams import contradictions
from tests.streams.archives import crawl, opened, small_messages, write_warc
from tests.streams.shell import Shell

BASE = "http://a.example/"
PAGE, COPY = f"{BASE}page2.html", f"{BASE}copy2.html"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScanDirectory]:
    small_messages(monkeypatch)
    with opened(tmp_path / "state") as made:
        scan([write_warc(tmp_path / "a.warc", crawl())], made)
        yield made


def everything(state: ScanDirectory) -> bytes:
    return b"\n".join(key + b" " + row for family in Family for key, row in state.store.scan(family))


def contents(store: Any) -> list[list[tuple[bytes, bytes]]]:
    return [list(store.scan(family)) for family in Family]


def urls(state: ScanDirectory) -> set[str]:
    return {verdict["url"] for verdict in state.verdicts()}


def test_a_representative_is_taken_down(state: ScanDirectory, tmp_path: Path) -> None:
    assert {PAGE, COPY} <= urls(state)
    assert PAGE.encode() in everything(state)
    done = state.forget(of_url(PAGE))
    assert (done.pages, done.promoted, done.offset) == (1, 1, state.log.end() - 1)
    assert PAGE.encode() not in everything(state)
    emitted = [verdict for verdict in state.verdicts() if verdict["page_id"] >> 12 == done.offset]
    assert [(one["verdict"], one["url"], one["n"]) for one in emitted] == [("promoted", COPY, 1), ("gone", PAGE, 2)]
    assert [verdict["n"] for verdict in state.verdicts() if PAGE in json.dumps(verdict)] == [2]
    # The word and the record do not tell what it was about.
    (_, word) = list(state.log.read())[-1]
    assert b"page2" not in word
    assert [one.to_json() for one in takedowns_of(state.store)] == [done.to_json()]
    assert "page2" not in json.dumps(done.to_json())
    with pytest.raises(BadInput, match="taken down; no other verdict of it is kept"):
        explain_command(state, PAGE)
    assert explain_command(state, COPY).verdict["representative"]["url"] == "taken down"
    # A later fetch is judged like that of any other page.
    scan([write_warc(tmp_path / "b.warc", [page for page in crawl() if page.path == "page2.html"])], state)
    last = list(state.verdicts())[-1]
    assert (last["url"], last["verdict"], last["representative"]["url"]) == (PAGE, "exact_duplicate", COPY)


@pytest.mark.parametrize(
    ("takedown", "pages"), [(of_site("a.example"), 19), (of_prefix(f"{BASE}copy"), 4), (of_url(f"{BASE}none"), 0)]
)
def test_takedown_counts_removed_pages(state: ScanDirectory, takedown: Takedown, pages: int) -> None:
    done = state.forget(takedown)
    assert done.pages == pages
    assert (b"a.example" in everything(state)) == (pages < 19)
    if pages == 19:
        assert {verdict["verdict"] for verdict in state.verdicts()} == {"gone"}


def test_other_pages_keep_their_verdicts(state: ScanDirectory) -> None:
    """Also those that were judged against a page that was taken down, and those that it represented."""

    def exported() -> dict[str, dict[str, Any]]:
        found = [dict(zip(TABLES["urls"], row, strict=True)) for row in rows("urls", state.verdicts())]
        return {row["url"]: row for row in found}

    referred = {
        other["url"]
        for verdict in state.verdicts()
        for other in (verdict.get("representative"), verdict["evidence"].get("nearest"))
        if other and other["url"] != verdict["url"]
    }
    assert len(referred) > 4
    before = exported()
    for url in sorted(referred):
        state.forget(of_url(url))
        before[url]["verdict"] = "gone"
        after = exported()
        assert after.keys() == before.keys()
        for name, row in after.items():
            kind = before[name]["verdict"]
            assert row["verdict"] == kind or (kind, row["last"]) in (
                ("near_duplicate", "promoted"),
                ("exact_duplicate", "promoted"),
            )
            assert row["verdict"] not in DUPLICATES or after[row["representative"]]["shown"]
            before[name]["verdict"] = row["verdict"]
        texts = [json.dumps(verdict) for verdict in state.verdicts() if verdict["verdict"] != "gone"]
        assert not [text for text in texts if f'"{url}"' in text]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [("index",), ("verdicts",), ("index", "verdicts")])
def test_refolding_repeats_a_takedown(state: ScanDirectory, tmp_path: Path, lost: tuple[str, ...]) -> None:
    state.forget(of_url(PAGE))
    scan([write_warc(tmp_path / "b.warc", crawl(2))], state, again=True)
    state.forget(of_prefix(f"{BASE}copy"))
    before, frames = contents(state.store), list(state.verdict_log.log.read())
    state.close()
    for name in lost:
        shutil.rmtree(state.path / name)
    with opened(state.path) as again:
        assert contents(again.store) == before
        assert list(again.verdict_log.log.read()) == frames


@pytest.mark.parametrize("step", ["append", "sync", "prepare", "emit", "apply", "flush"])
def test_killed_at_any_step_the_command_took_effect_or_not_at_all(
    state: ScanDirectory, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What a kill leaves: the log as far as it was appended, and an index that knows nothing yet."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    places = {"append": state.log, "sync": state.log, "emit": state.verdict_log, "flush": state.store}
    where = places.get(step, state.matcher)
    before = state.log.end()
    with monkeypatch.context() as patched:
        patched.setattr(where, step, killed)
        with pytest.raises(KeyboardInterrupt):
            state.forget(of_url(PAGE))
    text = step != "append"
    assert state.log.end() == before + text
    state.close()
    with opened(state.path) as again:
        assert len(list(takedowns_of(again.store))) == text
        assert ({"gone"} == {one["verdict"] for one in again.verdicts() if one["url"] == PAGE}) is text
        assert (PAGE.encode() in everything(again)) is not text


def test_a_replay_emits_the_same_verdicts(state: ScanDirectory, tmp_path: Path) -> None:
    state.forget(of_url(PAGE))
    with (tmp_path / "out").open("wb") as out:
        done = replay_scan(state, Stretch(), out)
    assert (done.verdicts, done.kept, done.differing) == (21, 21, 0)


def test_takedown_record_is_read_as_written() -> None:
    for takedown in (of_url(PAGE), of_site("a.example"), of_prefix(BASE)):
        word = Forget(bytes.fromhex(Decider("5" * 32).scheme), takedown)
        assert decode_entry(encode_control(word), 3) == word
    for expected in ({"hash": "00"}, {"length": 4}, {"what": "all"}):
        good = {"control": "forget", "what": "url", "hash": "0" * 32, "length": 0}
        data = encode_control(Forget(bytes(16), of_url(PAGE)))
        made = _with_record(data, orjson.dumps(good | expected))
        with pytest.raises(CorruptRecord, match="no control record that this program knows"):
            decode_entry(made, 3)


def _with_record(data: bytes, record: bytes) -> bytes:
    from streams.formats import message

    return message._encode(message.Message(bytes(16), (), (record,)), 1)


@pytest.mark.slow
def test_forget_command_and_the_remaining_files(tmp_path: Path, shell: Shell) -> None:
    where = tmp_path / "state"
    write_warc(tmp_path / "a.warc", crawl())
    assert shell("scan", str(tmp_path / "a.warc"), "--state", str(where)).code == 0
    output = shell("forget", PAGE, "--state", str(where)).out
    assert "pages taken down: 1; other pages promoted: 1" in output
    assert output.count("not reached") == 1, "one line, and with --verbose a paragraph for each copy"
    assert "the scanned files" in output
    assert "--verbose" in output
    assert "copies of the pages under other URLs" in output, "a copy that is shown now is always named"
    long = shell("forget", PAGE, "--state", str(where), "--verbose").out
    assert "not reached: the files that were scanned" in long
    assert "not reached: what was written elsewhere" in long
    assert "--verbose" not in long
    asked = json.loads(shell("forget", "--site", "a.example", "--state", str(where), "--json").out)
    assert (asked["pages"], asked["what"], len(asked["unreached"])) == (18, "site", 2)
    with ExitStack() as held:
        opened_index = look.open_index(where, held)
        assert not contradictions.inspect(opened_index.store).wrong_total
        _, values = look.overview(opened_index, lambda rows: None)
        assert [one["pages"] for one in values["takedowns"]] == [1, 0, 18]
        with pytest.raises(BadInput, match="the index has no row of this URL"):
            look.of_url(opened_index, PAGE)
    assert "taken down at offset" in shell("explain", "--rows", "--state", str(where)).out
    for form in ((), ("--json",)):
        again = shell("forget", PAGE, "--state", str(where), *form)
        assert (again.code, "no page is taken down" in again.err) == (0, True), again.err
    for code, wrong in ((2, ()), (2, (PAGE, "--site", "a.example")), (2, ("--prefix", "http://a.example"))):
        ended = shell("forget", *wrong, "--state", str(where))
        assert (ended.code, ended.err[:9]) == (code, "neardup: ")


@pytest.mark.slow
def test_checkpoints_of_before_are_stale_and_go(tmp_path: Path, shell: Shell) -> None:
    where, kept = str(tmp_path / "state"), str(tmp_path / "kept")
    write_warc(tmp_path / "a.warc", crawl())
    shell("scan", str(tmp_path / "a.warc"), "--state", where)
    at = ("--state", where, "--checkpoints", kept)
    for _ in range(2):
        assert shell("checkpoint", "make", *at).code == 0
        shell("scan", str(tmp_path / "a.warc"), "--state", where, "--again")
    store = CheckpointStore(kept)
    before = list(store.usable())
    assert [row["stale"] for row in describe(before)] == [False, False]
    shell("forget", PAGE, "--state", where)
    shell("forget", COPY, "--state", where)
    assert shell("checkpoint", "make", *at).code == 0
    (left,) = store.usable()
    assert left.manifest.takedowns_to == left.manifest.offset
    assert describe([left, *before])[1]["stale"]
    assert not describe([left, *before])[0]["stale"]
    others = (replace(left.manifest, offset=0, log="another"), replace(left.manifest, offset=0, scheme="another"))
    assert not any(other.is_stale(left.manifest) for other in others)


def test_a_verdict_that_names_a_page_by_rel_canonical_names_it_no_more() -> None:
    url = "https://a.example/private.html"
    own = {"url": "https://a.example/", "verdict": "unique"}
    assert without([of_url(url)], {**own, "rel_canonical": url}) == own
    other = {**own, "rel_canonical": "https://a.example/b"}
    assert without([of_url(url)], other) == other
    assert without([of_url(url)], {**own, "url": url}) is None
    gone = {"url": url, "verdict": "gone", "fetched_at": 1}
    assert (
        without([of_url(url)], {**gone, "title": "Private", "lang": "en", "rel_canonical": "https://b.example/"})
        == gone
    )


@pytest.mark.parametrize(
    ("prefix", "named", "others"),
    [
        ("https://a.example/#/or", ["https://a.example/#/orders"], ["https://a.example/", "https://a.example/#/help"]),
        ("https://a.example/#/", ["https://a.example/#/orders"], ["https://a.example/", "https://a.example/x"]),
        ("https://a.example/#!", ["https://a.example/#!red"], ["https://a.example/", "https://a.example/#/red"]),
        ("https://a.example/", ["https://a.example/", "https://a.example/#/orders"], ["https://b.example/"]),
    ],
)
def test_a_prefix_of_routes_names_no_other_page(prefix: str, named: list[str], others: list[str]) -> None:
    takedown = of_prefix(prefix)
    assert all(takedown.names(url, "a.example") for url in named)
    assert not any(takedown.names(url, "a.example") for url in others)


def test_a_prefix_that_would_lose_its_fragment_is_refused() -> None:
    with pytest.raises(BadInput, match="no URL has this fragment"):
        of_prefix("https://a.example/x#section")
