"""Small corpora whose sets are known, as JSON lines."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jungle", "kernel", "lagoon"),
    *("meadow", "nectar", "orchid", "pebble", "quarry", "ridge", "saddle", "tundra", "umbra", "valley", "willow"),
)


def sentences(seed: int, count: int = 40) -> list[str]:
    """Sentences that differ from those of any other seed."""
    rng = random.Random(seed)
    return [f"{' '.join(rng.choices(WORDS, k=rng.randint(5, 11)))} {seed} {number}." for number in range(count)]


def edited(lines: Sequence[str], seed: int, count: int = 2) -> list[str]:
    """The same with `count` sentences written anew."""
    rng = random.Random(seed)
    out = list(lines)
    for place in rng.sample(range(len(out)), count):
        out[place] = f"a sentence of edition {seed} stands here now, {' '.join(rng.choices(WORDS, k=6))}."
    return out


def page(lines: Sequence[str], title: str = "Item") -> bytes:
    body = "".join(f"<p>{' '.join(lines[i : i + 5])}</p>" for i in range(0, len(lines), 5))
    return f"<title>{title}</title><body>{body}</body>".encode()


def entry(url: str, body: bytes | None, **more: Any) -> dict[str, Any]:
    return {"url": url, "body": None if body is None else body.decode(), "content_type": "text/html", **more}


def items(count: int = 12, editions: int = 3) -> list[dict[str, Any]]:
    """Pages of `count` items in so many editions each, on two sites; the last edition of every third is a copy."""
    out = []
    for item in range(count):
        lines = sentences(item)
        for edition in range(editions):
            copy = edition == editions - 1 and item % 3 == 0
            text = lines if edition == 0 else edited(lines, 1000 * item + (edition - 1 if copy else edition))
            out.append(entry(f"https://s{edition % 2}.example/{item}/{edition}", page(text, f"Item {item}")))
    return out


def write(path: Path, entries: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))
    return path


def read(path: Path) -> list[set[str]]:
    """The sets of a file, as URLs."""
    out = []
    for line in path.read_text().splitlines():
        one = json.loads(line)
        found = {one["representative"]["url"], *(member["url"] for member in one["members"])}
        assert len(found) == one["size"] == 1 + len(one["members"])
        out.append(found)
    return out
