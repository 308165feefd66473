"""A partition of files that URLs name: the same sets as of the files themselves."""

import json

import fsspec
import pytest

from streams.files.fetching import fetched, inputs_of
from streams.files.not_read import NotRead
from tests.streams.partition.corpora import items, read, write
from tests.streams.shell import Shell


@pytest.fixture
def store() -> fsspec.AbstractFileSystem:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


def test_urls_and_patterns_are_read_as_files_are(shell: Shell, store: fsspec.AbstractFileSystem) -> None:
    entries = items(6)
    write(shell.folder / "crawl.jsonl", entries)
    for half in (0, 1):
        text = "".join(json.dumps(one) + "\n" for one in entries[half * 9 : half * 9 + 9])
        store.pipe(f"/crawl/{half}/pages.jsonl", text.encode())
    assert shell("partition", "crawl.jsonl", "--out", "here", "--method", "tlcs", "--workers", "1", "--quiet").code == 0
    ended = shell(
        "partition", "memory://crawl/*/pages.jsonl", "--out", "there", "--method", "tlcs", "--workers", "1", "--quiet"
    )
    assert ended.code == 0, ended.err
    assert sorted(map(sorted, read(shell.folder / "there" / "sets.jsonl"))) == sorted(
        map(sorted, read(shell.folder / "here" / "sets.jsonl"))
    )
    assert not inputs_of(shell.folder / "there").exists()


def test_a_copy_is_made_once_and_whole(shell: Shell, store: fsspec.AbstractFileSystem) -> None:
    store.pipe("/a/pages.jsonl", b"one")
    store.pipe("/b/pages.jsonl", b"two")
    first = fetched(["memory://a/pages.jsonl", "memory://b/pages.jsonl", "local"], shell.folder / "in", NotRead())
    assert [path.read_bytes() for path in first[:2]] == [b"one", b"two"]
    assert str(first[2]) == "local"
    store.rm("/a/pages.jsonl")
    assert fetched(["memory://a/pages.jsonl"], shell.folder / "in", NotRead()) == first[:1]
    assert not list((shell.folder / "in").glob("*.new"))


@pytest.mark.parametrize(
    ("url", "why"),
    [("memory://none/x.jsonl", "cannot be read"), ("memory://none/*.jsonl", "no file has such"), ("luck://x", "luck")],
)
def test_unreadable_url_is_reported_without_passwords(shell: Shell, url: str, why: str) -> None:
    ended = shell("partition", url, "--out", "sets")
    assert ended.code == 1
    assert why in ended.err
    ended = shell("partition", "luck://me:secret@host/x.jsonl", "--out", "sets")
    assert "secret" not in ended.err
