"""Golden sketches: `python -m tests.golden.sketches` writes sketches.json anew, on purpose and never by a test.

A change of that file means that sketches of old and new code no longer meet: it needs a new version of the scheme.
"""

import json
from pathlib import Path

from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.sketch_record import Sketch
from tests.neardup.sketch.words import sketch_words

PATH = Path(__file__).with_suffix(".json")
SEED = 20250117

_STORY = (
    "a crawler came to a town of many houses and in each house it read what hung on the wall in the first it "
    "found a list of trains in the second the same list with a newer date in the third a photograph of the list "
    "and the crawler who had a good memory but a short night said to the index that the town had one list and "
    "two copies the index asked which copy the photograph was and the crawler said that it could not read "
    "photographs so they left the photograph alone and told everybody about the list with the newest date because "
    "trains leave when the newest list says so and not when the crawler has finished reading"
)
_HEAD = "crawler town 17 a2 "
_INPUTS = [
    {"words": ""},
    {"words": "one"},
    {"words": "seven words make just one short shingle"},
    {"words": "eight words make one shingle of their own"},
    {"words": "vater und mütter щука 漢字 かな ελληνικά 123 4a"},
    {"words": _HEAD + _STORY, "title_words": 4, "url": "http://town.example/"},
    {"words": _HEAD + _STORY.replace("list", "table"), "title_words": 4, "url": "http://town.example/2"},
    {"words": _HEAD + _STORY.replace("crawler", "robot"), "title_words": 4, "url": "http://city.example/"},
    {
        "words": "home about contact " + _STORY + " imprint privacy",
        "links": [0, 1, 2, 110, 111],
        "cuts": [3, 50, 80, 110],
    },
    {"words": " ".join(f"w{i * i % 701}" for i in range(900)), "title_words": 20, "url": "http://town.example/3"},
    {"words": " ".join(f"w{i * i % 701}" for i in range(20, 900)), "title_words": 20, "url": "http://town.example/4"},
    {"words": "again and " * 300},
]
_PAIRS = [(5, 6), (5, 7), (5, 8), (8, 5), (9, 10), (10, 9), (9, 11), (0, 1), (5, 5)]
_LEFT_OUT = ("coordinates", "source", "partition", "offset", "position", "fetched_at", "log_time")


def record_of(page: dict, scheme: Scheme = Scheme(seed=SEED)) -> bytes:  # noqa: B008  (frozen)
    words = page["words"].split()
    cuts = page.get("cuts", [])
    return sketch_words(
        words,
        scheme,
        url=page.get("url", "http://example.org/"),
        title_words=page.get("title_words", 0),
        links=page.get("links", ()),
        blocks=[sum(i >= cut for cut in cuts) for i in range(len(words))],
    )


def sketch_of(record: bytes) -> dict:
    """Every field as JSON has it."""
    fields = Sketch(record).to_dict()
    return json.loads(json.dumps({name: value for name, value in fields.items() if name not in _LEFT_OUT}))


def pair_of(a: bytes, b: bytes) -> dict:
    return compare(Sketch(a), Sketch(b))._asdict()


def main() -> None:
    records = [record_of(page) for page in _INPUTS]
    golden = {
        "seed": SEED,
        "pages": [{**page, "sketch": sketch_of(record)} for page, record in zip(_INPUTS, records, strict=True)],
        "pairs": [{"a": a, "b": b, "pair": pair_of(records[a], records[b])} for a, b in _PAIRS],
    }
    PATH.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
