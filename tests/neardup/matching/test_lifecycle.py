"""The life of a URL, row by row of its table, and of the clusters that its pages found, join and leave."""

import json
from dataclasses import replace

import jsonschema

from neardup.pairs.scoring import compare_records
from neardup.rules import Ruling, rule_of
from neardup.sketch.header import Header
from neardup.sketch.sketch_record import Sketch
from neardup.verdict import schema
from tests.neardup.handmade import record, rejected, tombstone
from tests.neardup.story import FAR, FARTHER, NEAR, NEARER, SMALL, A, B, C, D, Story, text

# ---- unknown URLs --------------------------------------------------------------------------------------------------


def test_a_page_alone_is_unique_and_founds_a_cluster():
    verdict = Story(record(A, text(), at=10, title="The title", truncated=True)).json(1)
    assert (verdict["verdict"], verdict["page_id"], verdict["cluster"]) == ("unique", 1, 1)
    assert (verdict["cluster_size"], verdict["revision"], verdict["canonical"]) == (1, 1, A)
    assert verdict["evidence"] == {"candidates": 0}
    assert (verdict["title"], verdict["site"], verdict["lang"], verdict["truncated"]) == (
        "The title",
        "a.org",
        "en",
        True,
    )
    assert not {"representative", "standing", "content_of", "replaces", "thin", "candidates_cut"} & set(verdict)


def test_a_copy_joins_its_cluster_with_the_holder_as_evidence():
    story = Story(record(A, text(), at=10), record(B, text(), at=20, offset=5))
    verdict = story.json(2)
    assert (verdict["verdict"], verdict["cluster"], verdict["cluster_size"], verdict["revision"]) == (
        "exact_duplicate",
        1,
        2,
        2,
    )
    assert verdict["representative"]["url"] == A
    assert verdict["representative"]["fetched_at"] == 10
    evidence = verdict["evidence"]
    assert (evidence["by"], evidence["same_site"], evidence["langs"]) == ("digest", False, ["en", "en"])
    assert (evidence["holder"]["page_id"], evidence["holder"]["url"]) == (1, A)
    assert verdict["coordinates"]["offset"] == 5


def test_near_duplicate_has_its_measurements():
    verdict = Story(record(A, text()), record(B, NEAR)).json(2)
    assert (verdict["verdict"], verdict["cluster"], verdict["cluster_size"]) == ("near_duplicate", 1, 2)
    evidence = verdict["evidence"]
    assert evidence["by"] == "tape"
    assert evidence["tape_score"] == round(58 / 62, 4)
    assert evidence["same_site"] is False
    assert evidence["candidates"] == 1
    assert evidence["keys"]["head"] == 1
    assert 1 <= evidence["keys"]["wide"] <= 7


def test_evidence_can_be_counted_again_from_the_sketches():
    pages = [record(A, text()), record(B, text((10, 2)) + " and some more words")]
    evidence = Story(*pages).json(2)["evidence"]
    a, b = map(Sketch, pages)
    assert evidence["tokens"] == [b.tokens, a.tokens] == [64, 60]
    assert evidence["b_similarity"] == sum(x == y for x, y in zip(a.supershingles, b.supershingles, strict=True))
    differing = sum((x ^ y).bit_count() for x, y in zip(a.simhash, b.simhash, strict=True))
    assert evidence["c_similarity"] == 384 - differing
    assert evidence["tape_score"] == round(58 / 66, 4)


def test_unique_page_names_nearest_candidate_and_rejecting_step():
    half = text((20, 36))
    verdict = Story(record(A, text()), record(B, half)).json(2)
    assert verdict["verdict"] == "unique"
    assert verdict["evidence"]["candidates"] == 1
    nearest = verdict["evidence"]["nearest"]
    assert (nearest["page_id"], nearest["url"]) == (1, A)
    assert 0 < nearest["score"] < 0.74
    assert "kept_apart" not in verdict["evidence"]


def test_similar_page_kept_apart_names_the_veto():
    """Sweaters and socks of one text: what an index shows of them is its owner's choice."""
    pages = [record(A, f"{text()} sweaters", title="sweaters"), record(A + "b", f"{NEAR} socks", title="socks")]
    story = Story(*pages)
    evidence = story.json(2)["evidence"]
    assert story.json(2)["verdict"] == "unique"
    assert evidence["kept_apart"] == evidence["nearest"]["by"] == "title veto"
    assert evidence["nearest"]["tape_score"] >= 0.74
    jsonschema.validate(story.json(2), json.loads(schema()))


def test_the_nearest_candidate_is_the_one_with_the_highest_score():
    story = Story(record(A, text((0, 18))), record(B, text((22, 16))), record(C, text()))
    first, second = story.traces[2].candidates
    assert first.pair.tape_score < second.pair.tape_score, "the first in order is not the nearest"
    nearest = story.json(3)["evidence"]["nearest"]
    assert (nearest["page_id"], nearest["score"]) == (2, round(second.pair.tape_score, 4))


def test_a_veto_says_whether_it_was_proved():
    header = Header(record(A, text()))
    (pair,) = compare_records(header.record, [header.record])
    pair = pair._replace(same_site=False, title_veto=2, heading_veto=1, head_veto=1)
    values = rule_of(SMALL).evidence(pair, Ruling(None, "heading veto"))
    assert values["vetoes"] == {"title": "unproved", "heading": "holds"}
    values = rule_of(replace(SMALL, rule="tape")).evidence(pair, Ruling(None, "head veto"))
    assert values["vetoes"] == {"title": "unproved", "head": "holds"}


def test_same_content_founds_a_cluster_of_its_own_and_is_found_itself():
    # Handmade content tapes are those of the whole page; a lower demand lets the content step hold.
    loose = replace(SMALL, content_tape_min=0.4)
    half = text((30, 20))
    story = Story(record(A, text()), record(B, half), record(C, half), record(B, half), decider=loose)
    assert story.kinds == ["unique", "same_content", "exact_duplicate", "unchanged"]
    verdict = story.json(2)
    assert (verdict["cluster"], verdict["cluster_size"], verdict["content_of"]["page_id"]) == (2, 1, 1)
    assert "representative" not in verdict
    assert story.json(3)["cluster"] == 2
    standing = story.json(4)["standing"]
    assert (standing["verdict"], standing["content_of"], standing["cluster"]) == ("same_content", 1, 2)


def test_the_same_main_content_is_not_enough_to_stay_in_a_cluster():
    loose = replace(SMALL, content_tape_min=0.4)
    half = text((30, 20))
    alone = Story(record(A, text()), record(A, half), decider=loose)
    assert alone.kinds == ["unique", "unique"]
    assert alone.json(2)["replaces"] == 1
    member = Story(record(A, text()), record(B, text()), record(B, half), decider=loose)
    assert member.kinds == ["unique", "exact_duplicate", "same_content"]


def test_pages_without_a_token_duplicate_nothing():
    story = Story(record(A, ""), record(B, ""), record(C, "", body=b""), record(D, "", body=b""), record(A, ""))
    assert story.kinds == ["unique"] * 4 + ["unchanged"]
    assert story.verdicts[0].thin
    assert story.verdicts[2].opaque
    assert not story.verdicts[2].thin


def test_opaque_and_thin_pages_count_as_exact_copies_alone():
    story = Story(record(A, body=b"%PDF"), record(B, body=b"%PDF"), record(C, "one two"), record(D, "one two"))
    assert story.kinds == ["unique", "exact_duplicate"] * 2
    assert [verdict.opaque for verdict in story.verdicts] == [True, True, False, False]
    assert [verdict.thin for verdict in story.verdicts] == [False, False, True, True]


# ---- rejected ------------------------------------------------------------------------------------------------------


def test_an_unreadable_fetch_changes_nothing_and_tells_where_the_url_stands():
    before = Story(record(A, text()), record(B, NEAR))
    story = Story(record(A, text()), record(B, NEAR), rejected(B, reason="status 500"), rejected(C), rejected(""))
    assert story.kinds[2:] == ["rejected"] * 3
    verdict = story.json(3)
    assert verdict["reason"] == "status 500"
    assert verdict["standing"]["verdict"] == "near_duplicate"
    assert verdict["standing"]["representative"]["url"] == A
    assert (verdict["cluster"], verdict["cluster_size"]) == (1, 2)
    assert "standing" not in story.json(4)
    assert "standing" not in story.json(5)
    assert story.state.urls == before.state.urls


# ---- gone ----------------------------------------------------------------------------------------------------------


def test_tombstone_removes_a_page_and_its_url_is_unknown():
    late = 4 + SMALL.reclaim_days * 24 * 60 * 60 * 1000
    story = Story(record(A, text(), at=1), tombstone(A, at=2), record(B, text(), at=3), record(A, text(), at=late))
    assert story.kinds == ["unique", "gone", "unique", "exact_duplicate"]
    assert story.json(4)["cluster"] == 3
    assert "replaces" not in story.json(4)


def test_a_gone_url_is_held_for_its_time():
    story = Story(
        tombstone(A, at=20), record(A, text(), at=19), rejected(A), record(A, text(), at=20), tombstone(A, at=1)
    )
    assert story.kinds == ["gone", "stale", "rejected", "unique", "gone"]
    assert story.json(2)["standing"] == {"verdict": "gone"}
    assert story.json(3)["standing"] == {"verdict": "gone"}
    (row,) = story.state.urls.values()
    assert (row.page_id, row.newest) == (5, 20), "a tombstone is not tried for its time, and turns no clock back"
    assert not story.state.clusters


def test_a_tombstone_of_a_member_only_shrinks_its_cluster():
    story = Story(record(A, text()), record(B, text()), tombstone(B), record(C, text()))
    assert story.kinds == ["unique", "exact_duplicate", "gone", "exact_duplicate"]
    assert story.json(4)["cluster_size"] == 2
    assert story.json(4)["revision"] == 4


# ---- stale ---------------------------------------------------------------------------------------------------------


def test_an_earlier_fetch_is_stale_and_a_tie_is_not():
    story = Story(record(A, text(), at=10), record(A, FAR, at=9), record(A, NEAR, at=10), record(A, text(), at=9))
    assert story.kinds == ["unique", "stale", "edited", "stale"]
    assert story.json(2)["standing"]["verdict"] == "unique"


def test_a_time_after_log_time_counts_as_log_time():
    future = 4_000_000_000_000
    story = Story(record(A, text(), at=future, log_time=10), record(A, NEAR, at=11, log_time=11))
    assert story.kinds == ["unique", "edited"]
    assert story.json(1)["fetched_at"] == future


def test_unchanged_moves_the_greatest_time_too():
    story = Story(record(A, text(), at=10), record(A, text(), at=30), record(A, FAR, at=20))
    assert story.kinds == ["unique", "unchanged", "stale"]
    (row,) = story.state.urls.values()
    assert (row.page_id, row.newest, row.seen) == (1, 30, 30)


# ---- unchanged -----------------------------------------------------------------------------------------------------


def test_an_unchanged_page_carries_its_standing():
    story = Story(record(A, text()), record(B, NEAR), record(B, NEAR, at=5), record(A, text(), at=6))
    assert story.kinds[2:] == ["unchanged", "unchanged"]
    verdict = story.json(3)
    assert verdict["standing"]["verdict"] == "near_duplicate"
    assert verdict["standing"]["representative"]["page_id"] == 1
    assert (verdict["standing"]["cluster"], verdict["revision"]) == (1, 2)
    assert story.json(4)["standing"]["verdict"] == "unique"
    assert story.json(4)["standing"]["representative"]["url"] == A


def test_after_a_promotion_an_unchanged_member_is_verified_again():
    story = Story(record(A, text()), record(B, NEAR), record(C, NEARER), tombstone(A), record(C, NEARER, at=5))
    assert story.kinds == ["unique", "near_duplicate", "near_duplicate", "gone", "promoted", "unchanged"]
    verdict = story.json(5)
    assert verdict["standing"]["representative"]["url"] == B
    assert verdict["evidence"]["by"] == "tape"
    (member,) = story.state.members.values()
    assert member.verified == 2


def test_an_unchanged_member_that_fails_the_new_founding_sketch_leaves():
    one, two = text((0, 7)), text((40, 7))  # each near the base, too far from one another
    story = Story(record(A, text()), record(B, one), record(C, two), tombstone(A), record(C, two, at=5))
    assert story.kinds == ["unique", "near_duplicate", "near_duplicate", "gone", "promoted", "unique"]
    verdict = story.json(5)
    assert (verdict["replaces"], verdict["cluster"]) == (3, 5)
    assert [check.held for check in story.traces[-1].checks] == [False]


def test_a_copy_of_the_promoted_page_becomes_exact_again():
    story = Story(record(A, text()), record(B, NEAR), record(C, NEAR), tombstone(A), record(C, NEAR, at=5))
    assert story.kinds[-1] == "unchanged"
    assert story.json(5)["standing"]["verdict"] == "exact_duplicate"
    assert story.json(5)["evidence"]["by"] == "digest"


# ---- edited --------------------------------------------------------------------------------------------------------


def test_an_edited_representative_keeps_its_cluster_and_founding_sketch():
    story = Story(record(A, text()), record(A, NEAR, at=1), record(B, text((50, 7))), record(C, text()))
    assert story.kinds == ["unique", "edited", "near_duplicate", "near_duplicate"]
    verdict = story.json(2)
    assert (verdict["cluster"], verdict["revision"], verdict["standing"]["verdict"]) == (1, 2, "unique")
    assert verdict["standing"]["representative"]["page_id"] == 1
    # Page 4 has the founding content, which no page has now: near, not exact.
    assert story.json(4)["evidence"]["tape_score"] == 1.0
    assert story.state.clusters[1].current == 2


def test_a_page_cannot_drift_away_step_by_step():
    steps = [text((0, n)) for n in (0, 5, 10, 15)]  # the third is near its neighbours, too far from the first
    story = Story(*(record(A, step, at=i) for i, step in enumerate(steps)))
    assert story.kinds == ["unique", "edited", "unique", "edited"]
    assert story.json(3)["replaces"] == 2
    assert story.json(3)["cluster"] == 3


def test_a_member_must_agree_with_its_previous_fetch_and_the_founding_sketch():
    one, two = text((0, 7)), text((40, 7))
    story = Story(record(A, text()), record(B, one), record(B, two, at=1))
    # Near the founding sketch, but not near what it was: it leaves, and comes back as another page.
    assert story.kinds == ["unique", "near_duplicate", "near_duplicate"]
    assert story.json(3)["replaces"] == 2
    story = Story(record(A, text()), record(B, one), record(B, text((0, 8)), at=1))
    assert story.kinds[-1] == "edited"
    assert [check.of for check in story.traces[-1].checks] == ["previous", "founding"]
    assert story.state.urls[next(iter(story.state.members.values())).url_hash].member == 2, "kept through edits"


def test_a_copy_of_the_former_content_of_its_representative_is_no_exact_one():
    story = Story(record(A, text()), record(B, NEAR), record(A, NEARER, at=1), record(B, text(), at=2))
    assert story.kinds == ["unique", "near_duplicate", "edited", "edited"]
    assert story.json(4)["standing"]["verdict"] == "near_duplicate"


def test_an_edited_copy_takes_its_digest_along():
    story = Story(record(A, text()), record(B, text()), record(B, NEAR, at=1), record(C, NEAR), record(D, text()))
    assert story.kinds == ["unique", "exact_duplicate", "edited", "exact_duplicate", "exact_duplicate"]
    assert story.json(3)["standing"]["verdict"] == "near_duplicate"
    assert story.json(4)["evidence"]["holder"]["page_id"] == 3
    assert story.json(4)["representative"]["page_id"] == 1
    assert story.json(5)["evidence"]["holder"]["page_id"] == 1


def test_edited_back_to_the_founding_content():
    story = Story(record(A, text()), record(A, NEAR, at=1), record(A, text(), at=2), record(B, text()))
    assert story.kinds == ["unique", "edited", "edited", "exact_duplicate"]
    assert story.state.sketches.keys() == {1, 3, 4}


# ---- standing: what holds now --------------------------------------------------------------------------------------


def standings(*records):
    """Standing of the last record's URL: now, and in verdicts on an unreadable and a stale fetch of it."""
    url = Header(records[-1]).url
    verdict = [Story(*records, *more).json(len(records) + len(more))["standing"] for more in ([], [rejected(url)])]
    late = Story(*records, record(url, FARTHER, at=-1)).json(len(records) + 1)
    assert late["verdict"] == "stale"
    assert verdict[0]["representative"] == verdict[1]["representative"] == late["standing"]["representative"]
    return {one["verdict"] for one in (*verdict, late["standing"])}


def test_copy_of_a_former_representative_is_a_near_duplicate():
    before = record(A, text()), record(B, text())
    assert standings(*before, record(B, text(), at=2)) == {"exact_duplicate"}
    assert standings(*before, record(A, NEAR, at=1), record(B, text(), at=2)) == {"near_duplicate"}


def test_a_member_that_becomes_a_copy_of_the_edited_representative_is_exact():
    before = record(A, text()), record(B, NEAR), record(A, NEARER, at=1)
    assert standings(*before, record(B, NEARER, at=2)) == {"exact_duplicate"}
    assert standings(*before, record(B, NEAR, at=2)) == {"near_duplicate"}


def test_a_member_that_its_representative_becomes_a_copy_of_is_exact():
    before = record(A, text()), record(B, NEAR), record(A, NEAR, at=1)
    assert standings(*before, record(B, NEAR, at=2)) == {"exact_duplicate"}


def test_a_copy_of_another_member_is_exact_while_that_has_its_text():
    before = record(A, text()), record(B, NEAR), record(C, NEAR)
    assert standings(*before, record(C, NEAR, at=2)) == {"exact_duplicate"}
    assert standings(*before, record(B, NEAR, at=2)) == {"near_duplicate"}
    edited = record(B, NEARER, at=1)
    assert standings(*before, edited, record(C, NEAR, at=2)) == {"near_duplicate"}
    assert standings(*before, tombstone(B, at=1), record(C, NEAR, at=2)) == {"near_duplicate"}


# ---- otherwise -----------------------------------------------------------------------------------------------------


def test_other_content_retires_the_old_fetch():
    story = Story(record(A, text()), record(A, FAR, at=1), record(B, text()), record(C, FAR))
    assert story.kinds == ["unique", "unique", "unique", "exact_duplicate"]
    assert story.json(2)["replaces"] == 1
    assert set(story.state.clusters) == {2, 3}


def test_a_representative_that_leaves_is_reported_with_its_successor():
    story = Story(record(A, text()), record(B, NEAR, at=3), record(C, NEARER), record(A, FAR, at=1))
    assert story.kinds == ["unique", "near_duplicate", "near_duplicate", "unique", "promoted"]
    (verdict,) = story.promoted
    assert (verdict.page_id, verdict.n, verdict.url, verdict.fetched_at) == (4, 1, B, 3)
    assert (verdict.cluster, verdict.cluster_size, verdict.revision) == (1, 2, 4)
    assert verdict.representative.page_id == 2
    assert story.verdicts[3].replaces == 1


def test_a_retired_representative_may_come_back_as_a_member():
    shifted = text((0, 8), (40, 8))
    story = Story(record(A, text()), record(B, text((0, 6))), record(A, shifted, at=1))
    assert story.kinds[:2] == ["unique", "near_duplicate"]
    if story.kinds[2] == "near_duplicate":
        assert story.json(3)["cluster"] == 1
        assert story.json(3)["representative"]["page_id"] == 2
        assert story.promoted[0].revision == story.json(3)["revision"], "both tell the cluster as the record left it"


def test_the_promoted_page_founds_with_its_current_sketch():
    story = Story(
        record(A, text()),
        record(B, NEAR),
        record(B, text((10, 4)), at=1),
        tombstone(A),
        record(C, text((10, 4), (30, 6))),
    )
    assert story.kinds == ["unique", "near_duplicate", "edited", "gone", "promoted", "near_duplicate"]
    assert story.json(5)["representative"]["page_id"] == 3
    assert story.state.clusters[1].founding == 3
    assert story.state.urls[story.state.clusters[1].url_hash].standing == "unique"


def test_the_old_founding_sketch_finds_nothing_after_a_promotion():
    one, two = text((0, 7)), text((40, 7))
    story = Story(record(A, text()), record(B, one), tombstone(A), record(C, two))
    assert story.kinds == ["unique", "near_duplicate", "gone", "promoted", "unique"]


# ---- inside one batch ----------------------------------------------------------------------------------------------


def test_one_url_many_times_in_one_batch():
    fetches = [text(), NEAR, FAR, FAR, FARTHER, text()]
    story = Story(
        *(record(A, fetch, at=i) for i, fetch in enumerate(fetches)), tombstone(A, at=9), record(A, FAR, at=9)
    )
    assert story.kinds == ["unique", "edited", "unique", "unchanged", "unique", "unique", "gone", "unique"]
    assert len(story.state.clusters) == 1


def test_promotions_in_a_row():
    pages = [record(url, text((10 + i, 1))) for i, url in enumerate((A, B, C, D))]
    story = Story(*pages, *(tombstone(url) for url in (A, B, C, D)))
    assert story.kinds == ["unique"] + ["near_duplicate"] * 3 + ["gone", "promoted"] * 3 + ["gone"]
    assert [verdict.url for verdict in story.promoted] == [B, C, D]
    assert {verdict.cluster for verdict in story.promoted} == {1}
    assert not story.state.clusters
