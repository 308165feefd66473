"""The verdicts of a batch, read as a list and by what they have in common."""

from collections import Counter

from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.verdict import Coordinates, Kind, Verdict


def verdict(kind, page_id, n=0, source="a"):
    where = Coordinates(source * 32)
    url = f"http://é.example/{page_id}"
    return Verdict(
        verdict=kind, page_id=page_id, n=n, url=url, fetched_at=5, coordinates=where, scheme="5" * 32, decider="d" * 32
    )


def of_batch():
    made = [verdict(Kind.UNIQUE, 7), verdict(Kind.PROMOTED, 7, 1, "b"), verdict(Kind.UNIQUE, 9, source="c")]
    verdicts = BatchVerdicts(made[:1])
    verdicts += BatchVerdicts(made[1:])
    return made, verdicts


def test_batch_verdicts_join_in_order():
    made, verdicts = of_batch()
    assert verdicts == made
    assert verdicts[-2:] == made[1:]


def test_batch_verdicts_name_the_origin_of_each():
    made, verdicts = of_batch()
    verdicts.name_origin("log", "generation")
    assert {(one.log, one.generation) for one in made} == {("log", "generation")}
    assert verdicts.lines() == [one.to_json() for one in made]


def test_batch_verdicts_by_column():
    made, verdicts = of_batch()
    assert verdicts.kinds() == Counter({"unique": 2, "promoted": 1})
    assert verdicts.urls() == [one.url.encode() for one in made]
    assert verdicts.page_ids() == [7, 9], "of the pages themselves"
    assert verdicts.sources() == {"a" * 32, "c" * 32}, "of the pages themselves"
