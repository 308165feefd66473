"""Partitions of texts in 19 languages, and of bodies that are made to hurt."""

import base64
import re
import tarfile
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from neardup.partition.parameters import Parameters
from streams.partition.partition_command import PartitionOptions, partition_command
from tests.streams.partition.corpora import edited, entry, page, read, sentences, write
from tests.whole import count

GUIDES = Path(__file__).parents[4] / "shared" / "data" / "installation_guide_9arch_19lang.tar.xz"
PAGES = 5  # of a language and an architecture


def partition(folder: Path, entries: list) -> list[set[str]]:
    write(folder / "crawl.jsonl", entries)
    partition_command([folder / "crawl.jsonl"], Parameters(), PartitionOptions(folder / "sets"))
    return read(folder / "sets" / "sets.jsonl")


@pytest.mark.slow
@pytest.mark.skipif(not GUIDES.exists(), reason=f"needs {GUIDES.name} in ../shared/data")
def test_a_page_meets_its_other_architecture_and_no_translation(tmp_path: Path) -> None:
    found: dict[tuple[str, str], list[tuple[str, bytes]]] = defaultdict(list)
    with tarfile.open(GUIDES) as archive:
        for member in archive:
            parts = member.name.split("/")
            arch, lang = parts[0].rpartition("-")[2], parts[-2]
            wanted = arch in ("amd64", "arm64") and member.size > 8000
            if wanted and len(found[arch, lang]) < PAGES:
                found[arch, lang].append((parts[-1], archive.extractfile(member).read()))  # type: ignore[union-attr]
    languages = {lang for _, lang in found}
    assert len(languages) == 19
    entries = [
        entry(f"https://{arch}.example/{lang}/{name}", None) | {"body": {"base64": _base64(body)}}
        for (arch, lang), pages in found.items()
        for name, body in pages
    ]
    kinds = {entry["url"]: _sentences(entry["body"]["base64"]) for entry in entries}
    met: dict[str, int] = defaultdict(int)
    for one in partition(tmp_path, entries):
        names = [tuple(url.split("/")[3:]) for url in one]
        for lang in {lang for lang, _ in names}:
            met[lang] += sum(names.count(name) == 2 for name in names if name[0] == lang) // 2
        for a, b in combinations(one, 2):
            if a.split("/")[3] != b.split("/")[3]:  # translators leave some pages as they are
                assert len(kinds[a] & kinds[b]) > 0.4 * min(len(kinds[a]), len(kinds[b])), (a, b)
    assert set(met) == languages, languages - set(met)
    assert sum(met.values()) > 0.7 * PAGES * len(languages), dict(met)


def _sentences(encoded: str) -> set[str]:
    """Of more than two words, as they stand between full stops, by Python's own means."""
    text = re.sub(r"<[^>]*>", " ", base64.b64decode(encoded).decode("utf-8", "replace"))
    return {" ".join(part.split()) for part in re.split(r"[.。]", text) if len(part.split()) > 2}


def _base64(body: bytes) -> str:
    return base64.b64encode(body).decode()


BODY_BYTES = count(2_000_000, 10_000_000)


def hostile() -> dict[str, str]:
    return {
        "one sentence": "wool and felt " * (BODY_BYTES // 14) + ".",
        "one word": "a" * BODY_BYTES,
        "no punctuation": "\n".join(f"line {i} of wool" for i in range(BODY_BYTES // 25)),
        "short sentences": "".join(f"It is {i}. " for i in range(BODY_BYTES // 10))[:BODY_BYTES],
        "punctuation alone": "。" * (BODY_BYTES // 3),
        "blocks": "<p>x" * (BODY_BYTES // 4),
    }


@pytest.mark.slow
def test_hostile_bodies_neither_stop_a_partition_nor_join_others(tmp_path: Path) -> None:
    """Each twice, the second time with a word in front: they may be alike, but bring nothing else together."""
    lines, bodies = sentences(1), hostile().values()
    entries = [
        *(entry(f"https://a.example/{at}", body.encode()) for at, body in enumerate(bodies)),
        *(entry(f"https://b.example/{at}", b"before " + body.encode()) for at, body in enumerate(bodies)),
        entry("https://c.example/1", page(lines)),
        entry("https://c.example/2", page(edited(lines, 3))),
    ]
    sets = partition(tmp_path, entries)
    assert {"https://c.example/1", "https://c.example/2"} in sets
    for one in sets:
        assert len({url.rpartition("/")[2] for url in one}) == 1 or all("c.example" in url for url in one)
