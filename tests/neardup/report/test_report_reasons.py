"""Drafted reasons: each kind in a sentence that has it, and sentences that have none."""

import pytest

from neardup.report.differ import compare_texts, text_words
from neardup.report.reasons import Draft, Reason, draft_of

FRONT = "The harbour master keeps the log of every ship that comes in and writes it up at night. "
BACK = " All rights reserved by the people of the island and their friends on the mainland."


def difference(left: str, right: str, *urls: str) -> Draft | None:
    return draft_of(compare_texts(text_words(left), text_words(right)), *urls)


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("Last updated: 12 May 2024", "Last updated: 13 June 2024", Reason.TIME_STAMP),
        ("Today is Monday, 4 March 2024", "Today is Friday, 8 March 2024", Reason.TIME_STAMP),
        ("Printed 2024-05-01 10:22:31", "Printed 2024-05-01 10:23:02", Reason.TIME_STAMP),
        ("It is 10:15 am here", "It is 11:48 pm here", Reason.TIME_STAMP),
        ("Page generated in 0.123 seconds", "Page generated in 0.457 seconds", Reason.EXECUTION_TIME),
        ("You are visitor 10422 of this page", "You are visitor 10423 of this page", Reason.VISITOR_COUNT),
        ("1,204 views so far", "1,377 views so far", Reason.VISITOR_COUNT),
        ("Message-ID 88213 was filed", "Message-ID 88290 was filed", Reason.MESSAGE_ID),
        ("PHPSESSID 9f8e7d6c5b4a39281706", "PHPSESSID 00aa11bb22cc33dd44ee", Reason.SESSION_ID),
        ("key d41d8cd98f00b204e9800998ecf8427e", "key 9e107d9d372bb6826bd81d3542a419d6", Reason.SESSION_ID),
        ("served by web07", "served by web12", Reason.SERVER_NAME),
        ("home of anna example", "home of berta example", Reason.OWN_URL),
        ("a red boat for 12 crowns", "a blue boat for 12 crowns", Reason.REST),
        ("price 12 crowns", "price 15 crowns", Reason.REST),
        ("chapter four", "chapter five", Reason.REST),
        ("You are visitor 7 on 4 May 2024", "You are visitor 8 on 5 May 2024", Reason.COMBINATION),
        ("You are visitor 7 of the red boat", "You are visitor 8 of the blue boat", Reason.REST),
    ],
)
def test_the_kind_of_a_difference(left: str, right: str, kind: Reason) -> None:
    urls = "https://anna.example/", "https://berta.example/"
    found = difference(FRONT + left + BACK, FRONT + right + BACK, *urls)
    assert found is not None
    assert found.kind is kind
    assert found.changes >= 1
    assert found.to_json()["kind"] == str(kind)
    turned = difference(FRONT + right + BACK, FRONT + left + BACK, *urls[::-1])
    assert turned is not None
    assert turned.kind is kind


def test_kinds_are_reported_in_words() -> None:
    def output(left: str, right: str) -> str:
        found = difference(FRONT + left + BACK, FRONT + right + BACK)
        assert found is not None
        return found.sentence()

    assert output("You are visitor 7", "You are visitor 8") == "The difference looks like a visitor count."
    both = output("You are visitor 7 on 4 May 2024", "You are visitor 8 on 5 May 2024")
    assert both == "The difference looks like a visitor count and a time stamp."
    assert output("a red boat", "a blue boat") == ""


def test_equal_texts_have_no_difference() -> None:
    assert difference(FRONT, FRONT) is None


def test_very_many_small_changes_are_the_rest() -> None:
    left = " ".join(f"entry{i} visitor {i}" for i in range(300))
    right = " ".join(f"entry{i} visitor {i + 1000}" for i in range(300))
    found = difference(left, right)
    assert found is not None
    assert found.kind is Reason.REST
