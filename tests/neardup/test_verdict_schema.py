"""Verdicts of a stream that goes through every row of a URL's life hold to the published schema."""

import json

import jsonschema
import pytest

from neardup import Page, Scheme, open_index
from neardup.verdict import Kind, Verdict, schema


def page(url: str, words: str, minute: int, *, title: str = "Wool", status: int = 200) -> Page:
    body = f"<html lang=en><title>{title}</title><p>" + " ".join(f"{words}{i}" for i in range(200))
    return Page(f"https://{url}.example/", body.encode(), "text/html", minute * 60_000, status)


def frame(content: str) -> bytes:
    """The same main content in surroundings of its own."""
    links = "".join(f"<li><a href=/{i}>{content}menu{i}</a>" for i in range(40))
    main = "".join("<p>" + " ".join(f"p{p}w{i}" for i in range(60)) + "." for p in range(6))
    return f"<ul>{links}</ul><div>{main}</div><ul>{links}</ul>".encode()


def every_kind() -> list[Page]:
    """Pages of which some have each kind of verdict."""
    return [
        page("a", "x", 1),
        page("b", "x", 2),  # exact
        Page("https://c.example/", page("c", "x", 3).body + b" 9:41", "text/html", 3 * 60_000),  # near
        page("a", "x", 4),  # unchanged
        Page("https://c.example/", page("c", "x", 5).body + b" 9:52", "text/html", 5 * 60_000),  # edited
        page("c", "x", 1),  # stale
        page("a", "y", 6, title="Tin"),  # retires a representative: promoted
        page("b", "x", 7, status=404),  # gone
        page("d", "x", 8, status=503),  # rejected
        Page("no url", b"x"),
        Page("https://e.example/", frame("one"), "text/html", 9 * 60_000),
        Page("https://f.example/", frame("two"), "text/html", 9 * 60_000),  # same content
        Page("https://f.example/", frame("two"), "text/html", 10 * 60_000),  # unchanged, same content still
        Page("https://g.example/", b"\x89PNG\r\n\x1a\n", "image/png", 9 * 60_000),
        *(page(url, "z", 11, title="Zinc") for url in "hi"),
        page("h", "", 12, status=404),
        page("h", "z", 13, title="Zinc"),  # reclaims what it stood for
    ]


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    with open_index(scheme=Scheme(seed=3)) as index:
        return index.add(every_kind())


def test_the_stream_has_every_kind(verdicts: list[Verdict]) -> None:
    assert {verdict.verdict for verdict in verdicts} == set(Kind)
    assert [verdict.verdict for verdict in verdicts[-3:]] == ["unique", "promoted", "exact_duplicate"]


def test_every_verdict_holds_to_the_schema(verdicts: list[Verdict]) -> None:
    checker = jsonschema.Draft202012Validator(json.loads(schema()))
    for verdict in verdicts:
        checker.validate(json.loads(verdict.to_json()))


def test_empty_fields_are_left_out(verdicts: list[Verdict]) -> None:
    held = [json.loads(verdict.to_json()) for verdict in verdicts]
    assert all(value not in (None, {}, "") for one in held for value in one.values() if value is not False)
    assert not any(value is False for one in held for value in one.values())


def test_schema_forbids_unknown_fields(verdicts: list[Verdict]) -> None:
    checker = jsonschema.Draft202012Validator(json.loads(schema()))
    good = json.loads(verdicts[0].to_json())
    for change in ({"verdict": "maybe"}, {"page_id": -1}, {"colour": "red"}, {"version": 2}):
        assert not checker.is_valid(good | change)
