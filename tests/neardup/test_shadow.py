"""A shadow rule and the pairs drawn for audit: what is counted, what is drawn, and that nothing else changes."""

from dataclasses import asdict, replace

import orjson
import pytest

from neardup.decider import SiteOverride
from neardup.errors import BadInput
from neardup.fold import fold
from neardup.index.memory import MemoryStore
from neardup.matching.outcome import CandidateChoice, ComparedPage, Scored
from neardup.pairs.scoring import numbers_of_pairs
from neardup.rules import Pair, rule_of
from neardup.rules.base import ruling_of
from neardup.rules.siblings import NO_SIBLINGS
from neardup.shadow import MARGIN, MESSAGE_PAIRS_MAX, PAGE_PAIRS_MAX, Auditor, disagreement, shadow_of
from neardup.sketch.header import Header
from neardup.verdict import Disagreement, Kind
from tests.neardup.handmade import record
from tests.neardup.invariants import contents_of
from tests.neardup.story import BASE, FAR, SMALL, endless, slices_of, text

STRICT = replace(SMALL, tape_min=0.9, two_sites_tape_min=0.9, short_tape_min=0.9)
LOOSE = replace(SMALL, tape_min=0.3, two_sites_tape_min=0.3, short_tape_min=0.3, added_max=1.0)
#: Each of another site: no names, so tape scores alone decide. 60 words each, some replaced.
STREAM = [
    record("http://a.org/", text()),
    record("http://b.org/", text((10, "other"))),  # 59/61: both merge
    record("http://c.org/", text((20, 4))),  # 56/64 = .875: the live rule merges, a strict shadow does not
    record("http://d.org/", text((30, 12))),  # 48/72 = .667: only a loose shadow merges
    record("http://e.org/", FAR),
    record("http://f.org/", text()),  # settled by its digest
]


def drawn_from(auditor, records=STREAM, size=1, decider=SMALL):
    """Pairs drawn from a stream; its verdicts and the store it leaves, which must be as without an auditor."""
    lines, verdicts, store = [], [], MemoryStore()
    for batch in slices_of(records, endless(size)):
        outcome = fold(batch, store, decider, keep_compared=auditor is not None)
        store.write(outcome.writes)
        verdicts += [verdict.to_json() for verdict in outcome.verdicts]
        if auditor is not None:
            lines += [orjson.loads(line) for line in auditor.look(outcome.compared)]
    return lines, verdicts, contents_of(store)


@pytest.mark.parametrize("size", [1, 2, 6])
@pytest.mark.parametrize(
    ("shadow", "expected"),
    [
        (STRICT, {"live_merges": 1}),
        (LOOSE, {"shadow_merges": 1}),
        (replace(SMALL, rule="shingling", b_min=0), {"shadow_merges": 1}),
        (None, {}),
    ],
)
def test_disagreements_are_counted_by_kind(shadow, expected, size):
    auditor = Auditor(SMALL, shadow)
    lines, *_ = drawn_from(auditor, size=size)
    assert lines == []
    found = {name: value for name, value in asdict(auditor.counts).items() if value}
    assert found == {"pages": 3, "pairs": 3} | expected


@pytest.mark.parametrize("size", [1, 2, 6])
def test_looking_on_changes_no_verdict_and_no_stored_byte(size):
    assert drawn_from(None)[1:] == drawn_from(Auditor(SMALL, LOOSE, 1.0), size=size)[1:]


def test_every_pair_near_the_threshold_is_drawn_at_rate_1_and_none_at_rate_0():
    live = replace(SMALL, two_sites_tape_min=0.7)
    shadow = replace(live, two_sites_tape_min=0.9, short_tape_min=0.9)
    lines, *_ = drawn_from(Auditor(live, shadow, 1.0), decider=live)
    assert [(line["sample"], line["a"]["page_id"], line["b"]["page_id"]) for line in lines] == [
        ("live_merges", 1, 3),
        ("rejected", 1, 4),
    ]
    merged, refused = lines
    assert merged["disagreement"] == "live_merges"
    assert merged["b"]["url"] == "http://c.org/"
    assert merged["b"]["coordinates"].keys() == {"source", "partition", "offset", "position"}
    assert merged["pair"]["tape_score"] == 0.875
    assert (merged["live"]["kind"], merged["live"]["by"], merged["live"]["chosen"]) == ("near_duplicate", "tape", True)
    assert (merged["shadow"]["kind"], merged["shadow"]["by"]) == ("same_content", "content")
    assert refused["pair"]["tape_score"] == pytest.approx(48 / 72, abs=1e-4)
    assert "disagreement" not in refused
    assert drawn_from(Auditor(live, None, 0.0), decider=live)[0] == []


def test_shadow_sample_does_not_depend_on_the_batch():
    live = replace(SMALL, two_sites_tape_min=0.9)
    records = [record("http://a.org/", text())]
    records += [record(f"http://b{i}.org/", text((i % 50, 4), words=[*BASE, f"mine{i}"])) for i in range(60)]
    drawn = {}
    for size in (1, 7, 61):
        auditor = Auditor(live, None, 0.3)
        lines, *_ = drawn_from(auditor, records, size, live)
        drawn[size] = [(line["a"]["page_id"], line["b"]["page_id"]) for line in lines]
    assert drawn[1] == drawn[7] == drawn[61]
    pages = {page for _, page in drawn[1]}
    assert 5 <= len(pages) <= 35, "about .3 of 60"


def pair_of(score, **more):
    """Numbers of two pages of 100 tokens; tapes of 100 bytes."""
    numbers = dict.fromkeys(Pair._fields, 0) | {"same_digest": False, "same_site": False, "same_hen_site": False}
    numbers |= {"tokens_a": 100, "tokens_b": 100, "tape_a": 100, "tape_b": 100, "tape_score": score}
    return Pair(**(numbers | more))


NEAR, SAME = Kind.NEAR_DUPLICATE, Kind.SAME_CONTENT


def ruling_on(decider, pair):
    return ruling_of(rule_of(decider).rulings(numbers_of_pairs([pair]), decider, NO_SIBLINGS)[0])


def weighed(page_id, *candidates, live=SMALL):
    """A page with candidates (page id, numbers), as the live rule ruled."""
    header = Header(record(f"http://p{page_id}.org/", "one two"))
    headers = [Header(record(f"http://p{other}.org/", "one two")) for other, _ in candidates]
    scored, best = [], None
    for other, pair in candidates:
        one = Scored(other, pair, ruling_on(live, pair))
        scored.append(one)
        if one.ruling.kind and (best is None or (one.ruling.rank, -other) > (best.ruling.rank, -best.page_id)):
            best = one
    return ComparedPage(page_id, header, CandidateChoice(scored, best, False, NO_SIBLINGS), headers)


def test_another_representative_is_a_disagreement_and_both_pairs_are_drawn():
    # By tape the first is better, by shared supershingles only the second is accepted.
    page = weighed(9, (1, pair_of(0.99)), (2, pair_of(0.95, b_similarity=5)))
    auditor = Auditor(SMALL, replace(SMALL, rule="shingling"), 1.0)
    lines = [orjson.loads(line) for line in auditor.look([page])]
    assert auditor.counts.other_representative == 1
    assert [(line["a"]["page_id"], line["sample"]) for line in lines] == [
        (1, "other_representative"),
        (2, "other_representative"),
    ]
    assert [("chosen" in line["live"], "chosen" in line["shadow"]) for line in lines] == [(True, False), (False, True)]


def test_the_shadow_chooses_among_its_candidates_as_the_live_rule_does():
    pages = [
        weighed(8, (1, pair_of(0.93)), (2, pair_of(0.99)), (3, pair_of(0.95))),
        weighed(9, (4, pair_of(0.95)), (3, pair_of(0.95)), (5, pair_of(0.95))),
    ]
    assert [page.choice.best.page_id for page in pages] == [2, 3]
    auditor = Auditor(SMALL, STRICT)
    auditor.look(pages)
    assert auditor.counts.other_representative == 0


@pytest.mark.parametrize(
    ("live", "shadow", "kind"),
    [
        (None, None, None),
        ((NEAR, 1), (NEAR, 1), None),
        ((NEAR, 1), None, Disagreement.LIVE_MERGES),
        ((NEAR, 1), (SAME, 1), Disagreement.LIVE_MERGES),
        (None, (NEAR, 1), Disagreement.SHADOW_MERGES),
        ((SAME, 2), (NEAR, 1), Disagreement.SHADOW_MERGES),
        ((NEAR, 2), (NEAR, 1), Disagreement.OTHER_REPRESENTATIVE),
        ((SAME, 2), None, Disagreement.OTHER_CONTENT),
        ((SAME, 2), (SAME, 1), Disagreement.OTHER_CONTENT),
    ],
)
def test_kinds_of_disagreement(live, shadow, kind):
    assert disagreement(live, shadow) is kind


@pytest.mark.parametrize(
    ("pair", "sample"),
    [
        (pair_of(SMALL.tape_min + MARGIN - 0.001), "accepted"),
        (pair_of(SMALL.tape_min + MARGIN + 0.001), None),
        (pair_of(SMALL.tape_min - MARGIN + 0.001), "rejected"),
        (pair_of(SMALL.tape_min - MARGIN - 0.001), None),
        (pair_of(0.99, title_veto=1, titles_apart=1, same_site=True), "refused"),
        (pair_of(0.99, heading_veto=1, same_site=True), "refused"),
        (pair_of(SMALL.tape_min - 0.01, title_veto=1), "rejected"),
    ],
)
def test_why_a_pair_is_drawn(pair, sample):
    lines = Auditor(SMALL, None, 1.0).look([weighed(5, (1, pair))])
    assert [orjson.loads(line)["sample"] for line in lines] == ([] if sample is None else [sample])


def test_pairs_of_a_page_and_of_a_batch_are_bounded():
    pages = [
        weighed(i, *[(j, pair_of(0.99, title_veto=1, titles_apart=1, same_site=True)) for j in range(10)])
        for i in range(100, 200)
    ]
    auditor = Auditor(SMALL, None, 1.0)
    lines = auditor.look(pages)
    assert len(lines) == auditor.counts.drawn == MESSAGE_PAIRS_MAX
    assert auditor.counts.left_out == 1000 - MESSAGE_PAIRS_MAX
    ids = [orjson.loads(line)["b"]["page_id"] for line in lines]
    assert ids == sorted(ids)
    assert len(set(ids)) == MESSAGE_PAIRS_MAX // PAGE_PAIRS_MAX
    assert max(ids) > 150, "not the first pages of the batch alone"


def test_bounds_leave_out_vetoes_first():
    vetoed = [(j, pair_of(0.99, title_veto=1, titles_apart=1, same_site=True)) for j in range(10)]
    pages = [weighed(i, *vetoed, (50, pair_of(SMALL.tape_min - 0.01))) for i in range(100, 300)]
    pages.append(weighed(400, (0, pair_of(0.5)), (1, pair_of(0.85))))
    lines = [orjson.loads(line) for line in Auditor(SMALL, STRICT, 1.0).look(pages)]
    samples = [line["sample"] for line in lines]
    assert samples.count("live_merges") == 1
    assert samples.count("rejected") == MESSAGE_PAIRS_MAX - 1
    assert samples.count("refused") == 0


def test_sites_want_the_same_of_the_shadow():
    live = replace(SMALL, sites={"c.org": SiteOverride(never_merge=True)})
    auditor = Auditor(live, replace(live, tape_min=0.3, two_sites_tape_min=0.3, short_tape_min=0.3))
    drawn_from(auditor, STREAM[:3], decider=live)
    assert auditor.counts.shadow_merges == 0


@pytest.mark.parametrize(
    ("rule", "numbers", "message"),
    [
        ("nosuch", {}, "there is shingling"),
        (None, {"postings_max": 8}, "postings_max cannot be another"),
        (None, {"hot_postings_kept": 0}, "hot_postings_kept cannot be another"),
        (None, {"expiry_days": 3}, "expiry_days cannot be another"),
        ("verified", {"tape_min": SMALL.tape_min}, "is the live rule"),
    ],
)
def test_a_shadow_that_cannot_be_is_refused(rule, numbers, message):
    with pytest.raises(BadInput, match=message) as error:
        shadow_of(SMALL, rule, numbers)
    assert "\n" not in str(error.value)


def test_a_shadow_cannot_ask_for_names_that_the_live_rule_does_not_count():
    live = replace(SMALL, rule="tape")
    with pytest.raises(BadInput, match="counts no pages by name"):
        shadow_of(live, "verified", {})


def test_the_shadow_has_the_live_rules_siblings():
    one = pair_of(0.95, same_site=True, same_naming=1, gaps=1, loose_words=99)
    page = weighed(9, (1, one))
    shadow = replace(SMALL, alike_min=1)
    auditor = Auditor(SMALL, shadow)
    auditor.look([page, page._replace(choice=page.choice._replace(siblings=NO_SIBLINGS._replace(alike=1)))])
    assert (auditor.counts.pages, auditor.counts.live_merges) == (2, 1)


def test_no_wish_is_no_shadow():
    assert shadow_of(SMALL, None, {}) is None
    assert shadow_of(SMALL, "shingling", {"b_min": 3}) == replace(SMALL, rule="shingling", b_min=3)
