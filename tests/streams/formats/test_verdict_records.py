"""A record of the topic of verdicts that is no verdict is reported with its position."""

import pytest

from neardup.errors import CorruptRecord
from neardup.verdict import Coordinates, Kind, Verdict
from streams.formats.verdict_records import decode_verdict

VERDICT = Verdict(
    verdict=Kind.UNIQUE,
    page_id=1,
    n=0,
    url="http://a.example/",
    fetched_at=5,
    coordinates=Coordinates(),
    scheme="5" * 32,
    decider="d" * 32,
).to_json()


def test_a_verdict_is_read() -> None:
    assert decode_verdict(VERDICT, "verdicts", 3, 7)["url"] == "http://a.example/"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "empty"),
        (b"", "empty"),
        (b"\xff\0", "no JSON: "),
        (b"{", "no JSON: "),
        (b"[]", "no object of JSON"),
        (b"7", "no object of JSON"),
        (b"{}", "verdict is missing or of another type"),
        (VERDICT.replace(b'"page_id":1', b'"page_id":"1"'), "page_id is missing or of another type"),
        (VERDICT.replace(b'"page_id":1', b'"page_id":true'), "page_id is missing or of another type"),
        (VERDICT.replace(b'"scheme":', b'"schema":'), "scheme is missing or of another type"),
    ],
)
def test_records_that_are_no_verdicts_are_refused_by_their_position(value: bytes | None, why: str) -> None:
    with pytest.raises(CorruptRecord) as refused:
        decode_verdict(value, "verdicts", 3, 7, ("coordinates", "scheme"))
    assert f"topic verdicts, partition 3, offset 7: no verdict of neardup ({why}" in str(refused.value)
