"""Another decider from here on: a word in the log, which every fold of it repeats."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neardup.decider import Decider, SiteOverride
from neardup.errors import CorruptRecord, InvariantBroken, OtherVersion, StateError
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.scheme import Scheme
from streams.formats.message import Control, Decision, NewDecider, decode_entry, encode_control
from streams.pipeline.control_records import decider_at, decider_changes_in, describe_change, incompatibility
from streams.pipeline.matcher import Matcher
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.explain import explain_command
from tests.streams.archives import Sample, html, text, write_warc

SCHEME = Scheme(seed=7)
#: Accepts pages of one title at two URLs of a site, such as the pages below, as near-duplicates.
FIRST = Decider(SCHEME.digest, strict_tape_min=0.74)
#: Its threshold lies above what the pages below have in common.
STRICT = replace(FIRST, tape_min=0.99, noise_gaps_max=0)
Make = Callable[[Scheme], Decider]


def pages(name: str) -> list[Sample]:
    """A page, and one that differs in a few words."""
    words = text(hash_of(name))
    return [
        Sample(f"{name}0.html", html(f"Item {name}", words)),
        Sample(f"{name}1.html", html(f"Item {name}", words + " and then some more words at its end")),
    ]


def hash_of(name: str) -> int:
    return sum(name.encode())


def folded(state: ScanDirectory) -> tuple[Any, ...]:
    return [list(state.store.scan(family)) for family in Family], list(state.verdict_log.log.read())


def changed(tmp_path: Path) -> Path:
    """A state that was decided by FIRST, and by STRICT from its second archive on."""
    path = tmp_path / "state"
    with ScanDirectory.open(path, scheme=SCHEME, decider=lambda scheme: FIRST) as state:
        scan([write_warc(tmp_path / "a.warc", pages("amber"))], state)
    with ScanDirectory.open(path, decider=lambda scheme: STRICT, new_decider=True) as state:
        assert state.messages == ["from here on it is decided otherwise: tape_min 0.74 -> 0.99, noise_gaps_max 2 -> 0"]
        scan([write_warc(tmp_path / "b.warc", pages("basin"))], state)
    return path


@pytest.mark.slow
def test_new_decider_decides_from_its_record_on(tmp_path: Path) -> None:
    with ScanDirectory.open(changed(tmp_path)) as state:
        assert state.decider == STRICT
        assert [(verdict["verdict"], verdict["decider"]) for verdict in state.verdicts()] == [
            ("unique", FIRST.digest),
            ("near_duplicate", FIRST.digest),
            ("unique", STRICT.digest),
            ("same_content", STRICT.digest),
        ]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [("index",), ("verdicts",), ("index", "verdicts", "decider.json")])
def test_refolding_finds_the_decider_record(tmp_path: Path, lost: tuple[str, ...]) -> None:
    path = changed(tmp_path)
    with ScanDirectory.open(path) as state:
        before = folded(state)
    for name in lost:
        shutil.rmtree(path / name) if (path / name).is_dir() else (path / name).unlink()

    with ScanDirectory.open(path) as state:
        assert folded(state) == before
        assert (state.first_decider, state.decider) == (FIRST, STRICT)


@pytest.mark.slow
def test_pages_of_before_and_after_are_explained(tmp_path: Path) -> None:
    with ScanDirectory.open(changed(tmp_path)) as state:
        before, after = (explain_command(state, f"http://a.example/{name}1.html") for name in ("amber", "basin"))

    assert (before.decider, after.decider) == (FIRST, STRICT)
    assert [one.ruling.kind for one in before.trace.candidates] == ["near_duplicate"]
    assert [one.ruling.kind for one in after.trace.candidates] == ["same_content"]


@pytest.mark.slow
def test_another_decider_needs_the_option_new_decider(tmp_path: Path) -> None:
    path = changed(tmp_path)
    loose = replace(STRICT, tape_min=0.5)
    with pytest.raises(StateError, match=r"\(tape_min 0.99 -> 0.5\); use .* or add --new-decider"):
        ScanDirectory.open(path, decider=lambda scheme: loose)
    other = replace(STRICT, rule="simhash")
    with pytest.raises(StateError, match="rule simhash with its numbers keeps other keys in the index than verified"):
        ScanDirectory.open(path, decider=lambda scheme: other, new_decider=True)
    with ScanDirectory.open(path) as state:
        before = state.log.end()
    # Asked for again, it is there already.
    with ScanDirectory.open(path, decider=lambda scheme: STRICT, new_decider=True) as state:
        assert state.log.end() == before


@pytest.mark.parametrize(
    ("numbers", "goes_on"),
    [
        ({"tape_min": 0.9}, True),
        ({"candidates_max": 8, "postings_max": 32}, True),
        ({"sites": {"a.example": SiteOverride(never_merge=True)}}, True),
        ({"rule": "tape"}, False),
        ({"thin_tokens": 10}, False),
        ({"hot_postings_kept": 0}, False),
    ],
)
def test_decider_fields_stored_in_the_index_must_be_equal(numbers: dict[str, Any], goes_on: bool) -> None:
    assert (incompatibility(FIRST, replace(FIRST, **numbers)) == "") == goes_on


def test_rules_on_the_same_keys_follow_each_other() -> None:
    assert not incompatibility(replace(FIRST, rule="shingling"), replace(FIRST, rule="combined", c_min=10))


def test_decider_record_is_void_unless_it_follows_the_decider_in_force() -> None:
    other = replace(FIRST, tape_min=0.8)
    words = [
        (3, NewDecider(FIRST, STRICT)),
        (5, NewDecider(FIRST, other)),  # of a second operator, at the same time
        (7, NewDecider(STRICT, replace(STRICT, rule="tape"))),
        (9, NewDecider(STRICT, other)),
    ]
    messages = [(offset, encode_control(word)) for offset, word in words]
    between = [(4, b"garbage"), (6, encode_control(Control(bytes(16), Decision.ACCEPT_GAP, 2))), (8, b"\1\1garbage")]

    assert decider_changes_in(sorted(messages + between)) == words
    found = [decider_at(FIRST, words, end) for end in range(11)]
    assert found == [FIRST] * 4 + [STRICT] * 6 + [other]


def test_matcher_takes_decider_records_one_at_a_time() -> None:
    store = MemoryStore()
    words = [encode_control(NewDecider(FIRST, STRICT)), encode_control(NewDecider(FIRST, FIRST))]
    matcher = Matcher(store, FIRST)
    with pytest.raises(InvariantBroken, match="messages follow the one at offset 0"):
        matcher.prepare(list(enumerate(words)))
    for offset, data in enumerate(words):
        matcher.apply(matcher.prepare([(offset, data)]))
        assert matcher.decider == STRICT
    assert Matcher(store, FIRST).decider == STRICT


def test_decider_record_is_read_as_written() -> None:
    sites = {"a.example": SiteOverride(tape_min=0.9)}
    word = NewDecider(FIRST, replace(FIRST, tape_min=1, sites=sites))
    data = encode_control(word)

    assert decode_entry(data, 1) == word
    assert decode_entry(data, 1).after.digest == word.after.digest  # type: ignore[union-attr]
    foreign = NewDecider(FIRST, replace(FIRST, scheme="00" * 16))
    unknown = data.replace(b'"rule_version"', b'"rule_wersion"')
    for spoilt in (data[:-1], encode_control(foreign), unknown, data.replace(b'"before"', b'"bevore"')):
        with pytest.raises(CorruptRecord, match="offset 1"):
            decode_entry(spoilt, 1)


def test_changed_decider_fields_are_reported() -> None:
    assert describe_change(FIRST, STRICT) == "tape_min 0.74 -> 0.99, noise_gaps_max 2 -> 0"
    assert json.loads(FIRST.to_json()).keys() == json.loads(STRICT.to_json()).keys()


def test_a_decider_of_shards_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept decider of an index, and one in a message of the log."""
    text = json.dumps(json.loads(FIRST.to_json()) | {"shards": 4, "epoch": 16})
    words = r"the index: made with shards.*neardup backfill --generation NAME --sketches-of"
    with pytest.raises(OtherVersion, match=words):
        Decider.from_json(text, "the index")
    monkeypatch.setattr(Decider, "to_json", lambda decider: text)
    data = encode_control(NewDecider(FIRST, STRICT))
    with pytest.raises(OtherVersion, match=r"offset 1.*made with shards"):
        decode_entry(data, 1)


def test_a_decider_without_shards_has_the_digest_of_earlier_versions() -> None:
    first = Decider(
        "00" * 16, rule_version=1, alike_min=16, blocks_posted=0, supershingles_posted=8, content_starts_posted=0
    )
    assert first.digest == "8b0e69091dd759a8c0a642f72ca5f811"
