"""What a verdict says of its URL from then on, by kind and by `standing`."""

import pytest

from neardup.standing import Standing, duplicate_of, standing_of

OTHER = {"page_id": 1, "url": "https://a.example/"}


@pytest.mark.parametrize(
    ("verdict", "kind", "cluster", "shown", "instead"),
    [
        ({"verdict": "unique", "cluster": 7}, "unique", 7, True, None),
        ({"verdict": "same_content", "cluster": 7, "content_of": OTHER}, "same_content", 7, True, None),
        ({"verdict": "promoted", "cluster": 7, "representative": OTHER}, "unique", 7, True, None),
        (
            {"verdict": "near_duplicate", "cluster": 7, "representative": OTHER},
            "near_duplicate",
            7,
            False,
            OTHER["url"],
        ),
        ({"verdict": "gone"}, "gone", None, False, None),
        ({"verdict": "rejected"}, "rejected", None, False, None),
        ({"verdict": "stale", "standing": {"verdict": "gone"}}, "gone", None, False, None),
        ({"verdict": "rejected", "standing": {"verdict": "unique", "cluster": 7}}, "unique", 7, True, None),
        (
            {"verdict": "edited", "cluster": 8, "standing": {"verdict": "exact_duplicate", "representative": OTHER}},
            *("exact_duplicate", 8, False, OTHER["url"]),
        ),
    ],
)
def test_standing_after_a_verdict(
    verdict: dict[str, object], kind: str, cluster: int | None, shown: bool, instead: str | None
) -> None:
    standing = standing_of(verdict)
    assert (standing.kind, standing.cluster, standing.shown) == (kind, cluster, shown)
    assert duplicate_of(verdict) == instead
    assert standing.live == (kind not in ("gone", "rejected"))


def test_standing_of_no_verdict_is_not_guessed() -> None:
    with pytest.raises(KeyError):
        standing_of({})
    assert Standing("gone", None, None, None).live is False
