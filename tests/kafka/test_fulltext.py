"""A full-text index in step with the verdicts, killed at random: at the end it is as if nothing had happened."""

import random
import signal
import sys
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer

from streams.client import duplicate_of
from streams.config.settings import Topics
from tests import forked
from tests.streams.views.random_verdicts import random_verdicts

for each in ("streams.client", "streams.commands"):
    forked.preload(each)

FOLDER = Path(__file__).parents[2] / "deploy" / "demo"
OTHER = {"page_id": 0, "url": "https://www.site0.example/0", "fetched_at": 1}

#: Dies before the n-th statement that sqlite runs.
MORTAL = """
import os, sys
sys.path.insert(0, {folder!r})
import fulltext
class Mortal(fulltext.Index):
    def __init__(self, path):
        super().__init__(path)
        left = iter(range({statements}))
        self.db.set_trace_callback(lambda statement: next(left, None) is None and os.kill(os.getpid(), 9))
fulltext.Index = Mortal
fulltext.main(sys.argv[1:])
raise SystemExit
"""


def story() -> list[dict[str, Any]]:
    verdicts = random_verdicts(400, 5)
    for verdict in verdicts:
        if (standing := verdict.get("standing")) and standing["verdict"] == "near_duplicate":
            standing["representative"] = OTHER
        verdict["log"] = "a" * 32
    return verdicts


def shown(verdicts: list[dict[str, Any]]) -> set[str]:
    """By the last verdict of each URL, plainly."""
    last = {verdict["url"]: verdict for verdict in verdicts}
    out = set()
    for url, verdict in last.items():
        kind = (verdict.get("standing") or verdict)["verdict"]
        if kind not in ("gone", "rejected") and duplicate_of(verdict) is None:
            out.add(url)
    return out


def test_killed_at_random_the_index_is_the_same_in_the_end(broker: str, made: Topics, tmp_path: Path) -> None:
    sys.path.insert(0, str(FOLDER))
    try:
        from fulltext import Index
    finally:
        sys.path.remove(str(FOLDER))
    verdicts = story()
    producer = Producer({"bootstrap.servers": broker})
    for verdict in verdicts:
        producer.produce(made.verdicts, orjson.dumps(verdict), verdict["url"].encode())
    assert producer.flush(60) == 0
    path = tmp_path / "index.db"
    index = Index(str(path))
    with index.db:
        pages = {verdict["url"]: f"wool number{verdict['url'].rpartition('/')[2]}" for verdict in verdicts}
        index.db.executemany("INSERT INTO fetched (url, text) VALUES (?, ?)", pages.items())
    index.db.close()

    chance, codes = random.Random(11), []
    for statements in [*(chance.randint(1, 300) for _ in range(4)), 10_000]:
        program = MORTAL.format(folder=str(FOLDER), statements=statements)
        process = forked.Command([broker, made.verdicts, str(path)], tmp_path / "log", before=program)
        codes.append(process.wait(120))
    assert codes[0] == -signal.SIGKILL
    assert codes[-1] == 0

    index = Index(str(path))
    expected = shown(verdicts)
    assert 0 < len(expected) < len(pages)
    assert set(index.find("wool")) == expected
    for url, text in pages.items():
        assert (url in index.find(text.split()[1])) == (url in expected)
    assert sum(index.load().values()) >= len(verdicts)
    index.db.close()
