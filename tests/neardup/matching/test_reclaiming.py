"""A page that returns after an outage reclaims its cluster: waiting for an outage gains a copier nothing."""

import random
from dataclasses import replace

import pytest

from neardup.index import rows
from neardup.urls import url_hash
from tests import whole
from tests.neardup.handmade import record, tombstone
from tests.neardup.story import FAR, NEAR, NEARER, SMALL, A, B, C, D, Story, in_any_slices, text

DAY = 24 * 60 * 60 * 1000
MAINTENANCE = " ".join(f"maintenance{i}" for i in range(60))
#: A page, and a copy of it on another site.
BEFORE = [record(A, text(), at=1), record(B, text(), at=2)]
#: How a page may be out: answered with 404, or with a page that has status 200.
OUTAGES = {"404": [tombstone(A, at=3)], "200": [record(A, MAINTENANCE, at=3)]}
OUTAGES["200, another, 404"] = [*OUTAGES["200"], record(A, FAR, at=4), tombstone(A, at=5)]
OUTAGES["404 twice"] = [tombstone(A, at=3), tombstone(A, at=DAY)]


def held(story, url):
    """The row of a URL of the story."""
    return story.state.urls[url_hash(url)]


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
@pytest.mark.parametrize("back", [text(), NEARER], ids=["word for word", "nearly"])
def test_a_copy_gains_nothing_by_its_originals_outage(outage, back):
    story = Story(*BEFORE, *outage, record(A, back, at=2 * DAY), record(C, back, at=2 * DAY + 1))
    at = len(BEFORE) + len(outage) + 1
    verdict = story.json(at)
    assert (verdict["verdict"], verdict["cluster"], verdict["cluster_size"]) == ("unique", 1, 2)
    assert verdict["evidence"]["reclaimed"]["url"] == B
    assert held(story, A).member == 0
    assert held(story, B).standing in ("exact_duplicate", "near_duplicate")
    after = story.json(at + 1)
    assert (after["representative"]["url"], after["cluster"], after["cluster_size"]) == (A, 1, 3)


def test_verdicts_report_promotion_and_reclaim():
    story = Story(*BEFORE, *OUTAGES["404"], record(A, text(), at=DAY))
    assert story.kinds == [
        *("unique", "exact_duplicate", "gone", "promoted"),
        *("unique", "promoted", "exact_duplicate"),
    ]
    own, promoted, aside = story.all[-3:]
    assert [(verdict.page_id, verdict.n, verdict.url) for verdict in (own, promoted, aside)] == [
        *((4, 0, A), (4, 1, A), (4, 2, B)),
    ]
    assert (aside.representative.url, aside.coordinates, aside.cluster) == (A, story.verdicts[1].coordinates, 1)
    assert aside.evidence["by"] == own.evidence["reclaimed"]["by"] == "digest"
    assert [check.of for check in story.traces[-1].checks] == ["founding"]


def test_a_substitute_is_judged_at_its_own_next_fetch_too():
    story = Story(*BEFORE, *OUTAGES["404"], record(A, NEAR, at=DAY), record(B, text(), at=DAY + 1))
    assert story.kinds[-3:] == ["promoted", "near_duplicate", "unchanged"]
    verdict = story.json(5)
    assert verdict["standing"]["verdict"] == "near_duplicate"
    assert verdict["standing"]["representative"]["url"] == A
    assert verdict["evidence"]["by"] == "tape", "verified again: what it stands behind is another sketch"


def test_a_new_content_reclaims_nothing():
    story = Story(*BEFORE, *OUTAGES["404"], record(A, FAR, at=DAY), record(C, text(), at=DAY))
    assert story.kinds[-2:] == ["unique", "exact_duplicate"]
    assert (story.json(4)["cluster"], story.json(4)["cluster_size"]) == (4, 1)
    assert story.json(5)["representative"]["url"] == B


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_grace_ends(outage):
    begin = 3 + SMALL.reclaim_days * DAY
    late = [record(A, text(), at=begin + past) for past in (0, 2 * DAY)]
    kinds = [Story(*BEFORE, *outage, back).verdicts[-1].verdict for back in late]
    assert kinds == ["unique", "exact_duplicate"]


def test_the_grace_is_of_log_time():
    """A fetch time may be anything; and a page dated before the outage is stale as ever."""
    soon = record(A, text(), at=400 * DAY, log_time=DAY)
    late = record(A, text(), at=DAY, log_time=400 * DAY)
    assert Story(*BEFORE, *OUTAGES["404"], soon).verdicts[-1].verdict == "unique"
    assert Story(*BEFORE, *OUTAGES["404"], late).verdicts[-1].verdict == "exact_duplicate"
    assert Story(*BEFORE, *OUTAGES["404"], record(A, text(), at=2)).kinds[-1] == "stale"


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_without_the_number_nothing_is_remembered(outage):
    never = replace(SMALL, reclaim_days=0)
    story = Story(*BEFORE, *outage, record(A, text(), at=DAY), decider=never)
    assert story.kinds[-1] == "exact_duplicate"
    assert all(row.encode()[0] == 1 for row in story.state.urls.values()), "rows are those of former programs"


def test_a_copy_that_goes_and_comes_is_no_original():
    goes, comes = tombstone(B, at=DAY + 1), record(B, text(), at=DAY + 3)
    out = [*BEFORE, record(C, text(), at=2), *OUTAGES["404"]]
    story = Story(*out, record(A, text(), at=DAY), goes, comes)
    assert story.json(7)["representative"]["url"] == A
    story = Story(*out, goes, record(A, text(), at=DAY + 2), comes)
    assert (story.kinds[-1], story.json(7)["representative"]["url"]) == ("exact_duplicate", A)
    story = Story(*out, goes, comes, record(A, text(), at=DAY + 4))
    assert [verdict.url for verdict in story.promoted if verdict.verdict == "promoted"] == [B, C, B, A]


def test_the_earlier_of_two_former_representatives_reclaims_a_cluster():
    goes = [tombstone(A, at=3), tombstone(B, at=4)]
    comes = [record(B, text(), at=5), record(A, text(), at=6)]
    pages = [*BEFORE, record(C, text(), at=2), record(D, text(), at=2), *goes]
    for back in (comes, [comes[1], record(B, text(), at=7)]):
        story = Story(*pages, *back)
        assert held(story, A).member == 0
        assert {held(story, url).standing for url in (B, C, D)} == {"exact_duplicate"}


def test_a_copy_that_comes_during_the_outage_gains_nothing():
    story = Story(BEFORE[0], *OUTAGES["404"], record(B, text(), at=4), record(A, text(), at=5))
    assert story.kinds == ["unique", "gone", "unique", "unique", "promoted", "exact_duplicate"]
    assert (story.json(4)["cluster"], story.json(4)["cluster_size"]) == (3, 2)
    nearly = Story(BEFORE[0], *OUTAGES["404"], record(B, NEAR, at=4), record(A, text(), at=5))
    assert nearly.kinds[-3:] == ["unique", "promoted", "near_duplicate"]
    # Nor one that had taken the cluster over, and drops it.
    drops = [record(B, text((10, 7)), at=3), record(B, text((40, 7)), at=5)]
    story = Story(BEFORE[0], drops[0], tombstone(A, at=4), drops[1], record(A, text(), at=6))
    assert story.kinds[2:] == ["gone", "promoted", "unique", "unique", "promoted", "near_duplicate"]
    assert held(story, A).member == 0


#: What a page may be when it comes back, and what a copier may have made of the former one.
ONE_WORD = {f"word {place}": text((place, "changed")) for place in (9, 30, 59)}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
@pytest.mark.parametrize("copy", [text(), text((45, "copied"))], ids=["copied", "copied nearly"])
@pytest.mark.parametrize("back", whole.first([pytest.param(back, id=name) for name, back in ONE_WORD.items()], 1))
def test_a_page_that_comes_back_with_a_word_changed_is_no_copy_of_its_copy(outage, copy, back):
    """The copy was made in the outage, or made anew at another URL after the first one went."""
    home = [record(C, FAR.replace("far", f"home{i}"), at=i) for i in range(2)]
    made = [record(A, text(), at=1), *outage, record(B, copy, at=DAY)]
    again = [*BEFORE, *outage, tombstone(B, at=6), record(D, copy, at=DAY)]
    for before in (made, again, [*home, *again]):
        story = Story(*before, record(A, back, at=2 * DAY))
        assert story.verdicts[-1].verdict == "unique"
        assert "reclaimed" in story.verdicts[-1].evidence
        assert held(story, A).member == 0


def test_a_page_of_another_name_or_text_gives_no_right_to_a_cluster():
    """B had a page before A came: A's words in another order, under another title; or another text under A's title."""
    shuffled = random.Random(1).sample(text().split(), 60)
    for title, words in (("silk", " ".join(shuffled)), ("wool", text((20, 20)))):
        before = [record(B, words, at=1, title=title), record(A, text(), at=2, title="wool")]
        assert Story(*before).kinds[-1] == "unique"
        story = Story(*before, record(B, text(), at=3, title="wool"))
        assert held(story, A).member == 0
        assert held(story, B).standing == "exact_duplicate"


@pytest.mark.parametrize("copied", ["before", "in the outage", "after its texts"])
@pytest.mark.parametrize("texts", [7, 20])
def test_no_outage_is_so_varied_that_a_page_is_forgotten(copied, texts):
    story = [record(A, text(), at=1), record(D, FAR, at=2)]
    story += [record(B, text(), at=2)] if copied == "before" else []
    for i in range(texts):
        story.append(record(A, MAINTENANCE.replace("maintenance", f"sorry{i}x"), at=3 + i))
        story += [record(B, text(), at=3 + i)] if i == 2 and copied == "in the outage" else []
    story += [record(B, text(), at=30)] if copied == "after its texts" else []
    for back in (text(), *ONE_WORD.values()):
        values = Story(*story, record(A, back, at=31))
        assert values.verdicts[-1].verdict == "unique"
        assert held(values, A).member == 0
        assert held(values, B).member > 0
        assert len(held(values, A).notes) <= rows.NOTES_MAX


def test_page_founded_earlier_is_no_copy():
    """A and B are two pages; A shows for a while what B had shown before it."""
    story = Story(record(B, text(), at=1), record(A, FAR, at=2), record(A, text(), at=3), record(A, FAR, at=4))
    assert story.kinds == ["unique", "unique", "exact_duplicate", "unique"]
    story = Story(
        record(B, text(), at=1), tombstone(B, at=2), record(A, text(), at=3), tombstone(A, at=4),
        record(B, text(), at=5), record(A, text(), at=6),
    )  # fmt: skip
    assert story.kinds[-2:] == ["unique", "exact_duplicate"]


def test_rightful_representative_is_kept():
    """A was first, C second; both come back to what a copy has founded meanwhile."""
    out = [record(A, text(), at=1), tombstone(A, at=2), record(C, text(), at=3), tombstone(C, at=4)]
    pages = [*out, record(B, text(), at=5)]
    for urls in ((A, C), (C, A)):
        story = Story(*pages, *(record(url, text(), at=6 + i) for i, url in enumerate(urls)))
        assert held(story, A).member == 0
        assert {held(story, url).standing for url in (B, C)} == {"exact_duplicate"}


def test_junk_of_a_copy_gives_it_no_right():
    """B had founded other clusters, earlier than A its own; they say nothing of A's content."""
    junk = [record(B, FAR, at=0), record(B, MAINTENANCE, at=0)]
    story = Story(*junk, record(A, text(), at=1), *[record(B, text(), at=2), tombstone(A, at=3)], BEFORE[0])
    assert story.kinds[-2:] == ["promoted", "stale"]
    story = Story(*junk, record(A, text(), at=1), record(B, text(), at=2), tombstone(A, at=3), record(A, text(), at=4))
    assert held(story, A).member == 0


def test_a_row_remembers_no_more_than_it_has_room_for():
    many = [record(A, " ".join(f"c{n}w{i}" for i in range(60)), at=n) for n in range(3 * rows.NOTES_MAX)]
    story = Story(*many)
    assert len(held(story, A).notes) == rows.NOTES_MAX
    spaced = [record(A, " ".join(f"c{n}w{i}" for i in range(60)), at=20 * n * DAY) for n in range(4)]
    assert len(held(Story(*spaced), A).notes) == 2, "what is past its grace is forgotten"


def test_edits_and_visits_do_not_forget():
    stays = [record(A, MAINTENANCE, at=4), record(A, MAINTENANCE + " 12 01", at=5)]
    story = Story(*BEFORE, *OUTAGES["200"], *stays, record(A, text(), at=6))
    assert story.kinds[4:] == ["unchanged", "edited", "unique", "promoted", "exact_duplicate"]
    assert story.json(6)["replaces"] == 5


def test_a_cluster_that_is_left_for_the_former_one_goes_on_without():
    others = [record(D, MAINTENANCE, at=4), record(A, text(), at=5)]
    story = Story(*BEFORE, *OUTAGES["200"], *others)
    assert story.kinds[-4:] == ["unique", "promoted", "exact_duplicate", "promoted"]
    assert [(verdict.n, verdict.url) for verdict in story.all[-4:]] == [(0, A), (1, A), (2, B), (3, D)]


def outages(seed, length=200):
    """Few texts on few URLs, which go, show something else, and come back; log time goes on by hours or weeks."""
    rng = random.Random(seed)
    texts = [[f"f{n}w{i}" for i in range(30)] for n in range(3)]
    urls = [f"http://{rng.choice('ab')}.s{i}.org/" for i in range(5)]
    now, out = 0, []
    for _ in range(length):
        now += rng.choice([1, 1, 1, DAY, 20 * DAY])
        words = list(rng.choice(texts[:1] * 3 + texts))
        for _ in range(rng.choice([0, 0, 0, 1, 3])):
            words[rng.randrange(30)] = rng.choice(["x", "y", "z"])
        url = rng.choice(urls)
        canonical = rng.choice(["", "", *urls])
        page = record(url, " ".join(words), at=now - rng.choice([0, 0, 0, 5]), log_time=now, canonical=canonical)
        out.append(tombstone(url, at=now) if rng.random() < 0.3 else page)
    return out


@pytest.mark.seeds(2, 20)
def test_slicing_changes_no_reclaiming(seed):
    verdicts, _ = in_any_slices(outages(seed), seed)
    assert sum("reclaimed" in verdict.evidence for verdict in verdicts) >= 5
