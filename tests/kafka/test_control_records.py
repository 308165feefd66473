"""The values of the control topic: what is read, and what cannot be. Needs no broker."""

import json

import pytest

from neardup.errors import CorruptRecord
from neardup.sketch.takedown_hashes import Named, Takedown
from streams.kafka.control_topic import Generation, Stage, _content_of

DESCRIBED = {
    "format": 1,
    "name": "g",
    "scheme": "s",
    "decider": "d",
    "sketches_of": None,
    "archives": ["a.warc"],
    "stage": "caught up",
    "created_ms": 1,
    "staged_ms": 2,
    "version": "0.1.0",
    "takedowns_at": 7,
}
GOOD = {
    "live": {"format": 1, "generation": "g", "before": "", "since_ms": 5},
    "canonical": {"format": 1, "policy": "most-linked", "since_ms": 6},
    "takedown/url/00/0": {"format": 1, "what": "url", "hash": "00", "length": 0, "since_ms": 6},
    "generation/g": DESCRIBED,
}


def values(**changed: object) -> dict[bytes, bytes]:
    return {key.encode(): json.dumps(value).encode() for key, value in (GOOD | changed).items()}


def test_content_of_the_control_topic_is_read() -> None:
    found = _content_of(values(), "control")
    assert (found.live, found.before, found.since_ms, found.canonical) == ("g", "", 5, "most-linked")
    assert found.takedowns == (Takedown(Named.URL, b"\0", 0),)
    made = Generation("g", "s", "d", None, ("a.warc",), Stage.CAUGHT_UP, 1, 2, "0.1.0", 7)
    assert found.known == {"g": made}
    assert _content_of({}, "control").live == ""


@pytest.mark.parametrize(
    ("key", "changed", "problem"),
    [
        ("live", {"since_ms": "soon"}, "since_ms is text, and an integer is required"),
        ("live", {"generation": 7}, "generation is an integer, and text is required"),
        ("live", {"format": 2}, "this program does not know its form"),
        ("canonical", {"policy": None}, "policy is null, and text is required"),
        ("takedown/url/00/0", {"what": "page"}, "what is 'page', which is no known value"),
        ("takedown/url/00/0", {"hash": "xy"}, "non-hexadecimal"),
        ("takedown/url/00/0", {"length": "0"}, "length is text, and an integer is required"),
        ("generation/g", {"archives": "a.warc"}, "archives is text, and an array is required"),
        ("generation/g", {"takedowns_at": "7"}, "takedowns_at is text, and an integer is required"),
        ("generation/g", {"stage": "late"}, "stage is 'late', which is no known value"),
        ("generation/g", {"color": "red"}, "color: no known field"),
    ],
)
def test_content_of_the_control_topic_names_the_wrong_field(key: str, changed: dict, problem: str) -> None:
    with pytest.raises(CorruptRecord) as caught:
        _content_of(values(**{key: GOOD[key] | changed}), "control")
    assert str(caught.value).startswith(f"topic control: the record '{key}' cannot be read: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"[]", b"7", b"{", b"{}"])
def test_content_of_the_control_topic_names_a_record_that_is_none(text: bytes) -> None:
    with pytest.raises(CorruptRecord, match="the record 'live' cannot be read"):
        _content_of({b"live": text}, "control")
