"""What happens around clusters: copies and their holders, hot keys and candidates, canonical URLs, sites."""

from dataclasses import replace

import pytest

from neardup.decider import SiteOverride
from neardup.index import posting_rows
from neardup.index.column_families import Family
from neardup.index.memory import MemoryStore
from neardup.index.rows import DIGEST_PAGES_MAX, member_key
from neardup.sketch.layout import HEADER, field_at
from tests.neardup.handmade import record, tombstone
from tests.neardup.story import BASE, FAR, NEAR, NEARER, SMALL, A, B, C, D, Story, endless, folded, text

# ---- successors ------------------------------------------------------------------------------------------------------


def test_pages_of_a_cluster_take_over_in_the_order_in_which_they_joined():
    """Members go before their turn, come back as the last, and join while others go; none reclaims what it had."""
    decider = replace(SMALL, reclaim_days=0)
    urls = [f"http://m{i}.org/" for i in range(40)]
    first = [record(url, text(((7 * i) % 60, f"own{i}"))) for i, url in enumerate(urls)]
    leaving = [tombstone(url, at=1) for url in (*urls[3:5], *urls[:3])]
    more = [record(urls[0], text((9, "late")), at=2), record("http://late.org/", NEAR)]
    story = Story(*first, *leaving, *more, *(tombstone(url, at=3) for url in urls), decider=decider)
    heirs = [verdict.url for verdict in story.promoted]
    assert heirs == [*urls[1:3], *urls[5:], "http://late.org/"]
    assert [cluster.promoted for cluster in story.state.clusters.values()] == [47]
    for size in (3, 7):
        records = [*first, *leaving, *more, *(tombstone(url, at=3) for url in urls)]
        again, _ = folded(records, endless(size), decider=decider)
        assert [verdict.to_json() for verdict in again] == [verdict.to_json() for verdict in story.all]


class CountingStore(MemoryStore):
    """A store that records the arguments and results of `first`."""

    def __init__(self):
        super().__init__()
        self.read_from = []

    def first(self, family, prefix, limit, after=b""):
        found = super().first(family, prefix, limit, after)
        self.read_from.append((family, after, [key for key, _ in found]))
        return found


@pytest.mark.slow
def test_the_next_in_line_is_sought_after_the_last_one_that_took_over():
    """A store walks over what was deleted: from the beginning of the cluster each promotion would cost more."""
    urls = [f"http://m{i}.org/" for i in range(90)]
    store = CountingStore()
    folded(
        [*(record(url, NEAR) for url in urls), *(tombstone(url, at=1) for url in urls[:-1])], endless(1), store=store
    )
    members = [(after, found) for family, after, found in store.read_from if family is Family.MEMBERS]
    assert len(members) == 89
    assert all(found[0] > after for after, found in members)
    heirs = [found[0] for _, found in members]
    assert [after for after, _ in members] == [member_key(1, 0), *heirs[:-1]]
    lists = [(after, found) for family, after, found in store.read_from if family is Family.KEYS]
    assert [int.from_bytes(after[-8:], "big") for after, _ in lists] == [DIGEST_PAGES_MAX]


# ---- copies --------------------------------------------------------------------------------------------------------


def test_a_copy_of_a_member_joins_the_members_cluster_verified_as_it_was():
    story = Story(record(A, text()), record(B, NEAR), record(C, NEAR))
    assert story.kinds == ["unique", "near_duplicate", "exact_duplicate"]
    verdict = story.json(3)
    assert verdict["evidence"]["holder"]["page_id"] == 2
    assert verdict["representative"]["page_id"] == 1
    assert [member.verified for member in story.state.members.values()] == [1, 1]


def test_a_copy_of_a_member_that_was_verified_before_a_promotion_is_as_unproved_as_it():
    one, two = text((0, 7)), text((40, 7))
    story = Story(
        record(A, text()),
        record(B, one),
        record(C, two),
        tombstone(A),
        record(D, two),
        record(D, two, at=1),
    )
    assert story.kinds == ["unique", "near_duplicate", "near_duplicate", "gone", "promoted"] + ["exact_duplicate"] * 2
    # D's copy of C joined unproved. Verified again it failed, left, and met C, which is not verified again yet.
    assert story.json(6)["replaces"] == 5


def test_when_the_holder_goes_the_next_oldest_holds():
    story = Story(record(A, text()), record(B, text()), record(C, text()), tombstone(A), record(D, text()))
    assert story.kinds == ["unique", "exact_duplicate", "exact_duplicate", "gone", "promoted", "exact_duplicate"]
    assert story.json(5)["evidence"]["holder"]["page_id"] == 2
    assert story.json(5)["cluster_size"] == 3


def test_a_shared_sketch_outlives_the_page_that_brought_it():
    story = Story(record(A, text()), record(B, text()), tombstone(A), record(C, NEAR), tombstone(B), tombstone(C))
    assert story.kinds == [
        "unique",
        "exact_duplicate",
        "gone",
        "promoted",
        "near_duplicate",
        "gone",
        "promoted",
        "gone",
    ]
    assert not story.state.sketches
    assert not story.state.digests
    assert all(posting_rows.is_hot(row) for row in story.state.postings.values())


def test_a_digest_keeps_count_of_more_pages_than_it_lists():
    many = DIGEST_PAGES_MAX + 6
    urls = [f"http://s{i}.org/" for i in range(many)]
    records = [record(url, text()) for url in urls]
    going = [tombstone(url) for url in urls[: DIGEST_PAGES_MAX + 2]]
    gone_from_the_middle = [tombstone(urls[-2])]
    story = Story(*records, *gone_from_the_middle, *going, record(A, text()), record(B, text()))
    assert story.kinds.count("exact_duplicate") == many - 1 + 2
    holder = story.json(len(records) + 1 + len(going) + 1)["evidence"]["holder"]
    assert holder["page_id"] == DIGEST_PAGES_MAX + 3, "the oldest that is left"
    (row,) = story.state.digests.values()
    assert row.live == many - 1 - len(going) + 2


def test_a_copy_that_comes_after_unlisted_ones_does_not_overtake_them():
    urls = [f"http://s{i}.org/" for i in range(DIGEST_PAGES_MAX + 3)]
    copies = [record(url, text()) for url in urls]
    going = [tombstone(url) for url in urls[6:DIGEST_PAGES_MAX]]
    story = Story(*copies, tombstone(urls[5]), record(A, text()), *(tombstone(url) for url in urls[:5]), *going)
    (row,) = story.state.digests.values()
    assert [story.state.headers[page].url for page in row.pages] == [*urls[DIGEST_PAGES_MAX:], A]


def test_records_of_one_digest_that_differ_where_they_must_not_are_kept_whole():
    odd = bytearray(record(B, text()))
    odd[HEADER.itemsize] ^= 1  # the tape
    story = Story(record(A, text()), bytes(odd), record(C, text()), tombstone(B), tombstone(A), record(D, text()))
    assert story.kinds.count("exact_duplicate") == 3
    assert story.state.headers[6].record == record(D, text())
    story = Story(record(A, text()), bytes(odd), tombstone(A))
    assert story.state.headers[2].record == bytes(odd)


# ---- hot keys ------------------------------------------------------------------------------------------------------


def test_a_key_of_too_many_pages_gives_no_candidates_and_stays_so():
    few = replace(SMALL, postings_max=3)
    head = "one two three four five six seven eight "
    pages = [record(f"http://s{i}.org/", head + " ".join(f"p{i}w{j}" for j in range(40))) for i in range(5)]
    gone = [tombstone(f"http://s{i}.org/") for i in range(5)]
    story = Story(*pages, *gone, pages[0], decider=few)
    counts = [story.json(i + 1)["evidence"]["candidates"] for i in range(5)]
    assert counts == [0, 1, 2, 3, 0]
    (hot,) = [row for row in story.state.postings.values() if posting_rows.is_hot(row)]
    assert [word >> 16 for word in posting_rows.postings(hot)] == [11], "the others are gone"
    assert story.kinds[-1] == "unique"


def test_the_page_that_turns_a_key_hot_says_so_once():
    """Also where a page of the store takes a cluster over, and its keys are posted because of another page."""
    few = replace(SMALL, postings_max=3)
    head = "one two three four five six seven eight "
    pages = [record(f"http://s{i}.org/", head + " ".join(f"p{i}w{j}" for j in range(40))) for i in range(6)]
    story = Story(*pages, decider=few)
    answer = [verdict.evidence.get("turned_hot") for verdict in story.all]
    (key,) = [key for key, row in story.state.postings.items() if posting_rows.is_hot(row)]
    assert answer == [None, None, None, [f"head:{key.hex()}"], None, None]

    member = text((3, "other"))
    rivals = [" ".join([*member.split()[:8], *(f"r{i}w{j}" for j in range(40))]) for i in range(2)]
    life = [(A, text()), (B, member), (C, rivals[0]), (D, rivals[1])]
    heir = Story(*(record(*page) for page in life), tombstone(A), decider=replace(few, postings_max=2))
    assert [verdict.evidence.get("turned_hot") for verdict in heir.verdicts[:4]] == [None] * 4
    (key,) = [key for key, row in heir.state.postings.items() if posting_rows.is_hot(row)]
    assert heir.verdicts[4].evidence == {"turned_hot": [f"head:{key.hex()}"]}, "the page's own, of what it caused"


def test_a_key_that_was_hot_before_is_not_reported_again_with_another():
    """The head turns hot with the fourth page; four more have it, and the last of them turns another key hot."""
    few, made = replace(SMALL, postings_max=3), []
    for i in range(8):
        words = "one two three four five six seven eight " + " ".join(f"p{i}w{j}" for j in range(40))
        page = bytearray(record(f"http://s{i}.org/", words))
        if i >= 4:
            page[field_at("place") : field_at("place") + 8] = bytes(range(1, 9))
        made.append(bytes(page))
    story = Story(*made, decider=few)
    reported = [verdict.evidence.get("turned_hot", []) for verdict in story.all]
    assert [[name.partition(":")[0] for name in names] for names in reported] == [
        *[[]] * 3, ["head"], *[[]] * 3, ["place"]
    ]  # fmt: skip


def test_more_candidates_than_are_scored_is_reported():
    few = replace(SMALL, candidates_max=2)
    head = "one two three four five six seven eight "
    pages = [record(f"http://s{i}.org/", head + " ".join(f"p{i}w{j}" for j in range(40))) for i in range(4)]
    story = Story(*pages, decider=few)
    assert [verdict.candidates_cut for verdict in story.verdicts] == [False, False, False, True]
    assert story.json(4)["evidence"]["candidates"] == 2
    assert [one.page_id for one in story.traces[-1].candidates] == [1, 2], "the oldest of equals"


def test_of_equally_near_candidates_the_oldest_wins():
    one, two = text((0, 7)), text((40, 7))
    for first, second in ((one, two), (two, one)):
        story = Story(record(A, first), record(B, second), record(C, text()))
        assert story.kinds == ["unique", "unique", "near_duplicate"]
        scores = {candidate.pair.tape_score for candidate in story.traces[2].candidates}
        assert (len(story.traces[2].candidates), len(scores)) == (2, 1)
        assert story.json(3)["representative"]["page_id"] == 1


def test_candidates_of_another_length_are_dropped_unread_unless_their_main_content_fits():
    head = "one two three four five six seven eight "
    brief, long = head + " ".join(BASE[:20]), head + " ".join(f"more{i}" for i in range(200))
    cases = [(None, None, 0), (20, 20, 1), (20, 200, 0)]  # main content of both; candidates
    for mine, other, candidates in cases:
        story = Story(record(A, brief, content=mine), record(B, long, content=other))
        assert story.json(2)["evidence"]["candidates"] == candidates


def test_the_best_candidate_is_the_nearest_then_the_oldest():
    far, near = text((0, 14), words=BASE), text((52, 6))
    page = text((52, 4))
    story = Story(record(A, far), record(B, near), record(C, page), record(D, text((50, 8))))
    assert story.json(3)["representative"]["page_id"] == 2
    assert [one.page_id for one in sorted(story.traces[2].candidates, key=lambda one: one.page_id)] == [1, 2]


# ---- canonical -----------------------------------------------------------------------------------------------------


def test_canonical_follows_the_representative_to_a_live_member():
    story = Story(
        record(A, text(), canonical=B),
        record(B, NEAR),
        tombstone(B, at=1),
        record(B, NEAR, at=2),
        record(A, text(), at=2, canonical=C),
        record(A, NEARER, at=3, canonical=C),
        record(C, NEAR, at=4),
        record(A, text(), at=5, canonical=A),
    )
    assert [verdict.canonical for verdict in story.verdicts if verdict.canonical] == [A, B, B, B, A, C, A]
    assert story.kinds[:4] == ["unique", "near_duplicate", "gone", "near_duplicate"]
    assert story.kinds[4:] == ["unchanged", "edited", "exact_duplicate", "edited"]
    assert [v.revision for v in story.verdicts if v.revision] == [1, 2, 4, 4, 5, 6, 7]


def test_the_promoted_page_names_the_canonical_from_then_on():
    story = Story(record(A, text()), record(B, NEAR, canonical=C), record(C, NEARER), tombstone(A))
    (verdict,) = story.promoted
    assert verdict.canonical == C
    story = Story(record(A, text()), record(B, NEAR, canonical=A), tombstone(A))
    assert story.promoted[0].canonical == B, "a URL that has just gone is not canonical"


def test_a_page_of_another_cluster_is_no_canonical():
    story = Story(record(B, FAR), record(A, text()), record(A, NEAR, at=1, canonical=B))
    assert story.json(3)["canonical"] == A


def test_verdict_has_the_canonical_of_its_page():
    """Each page's own word, of whatever kind the verdict is; not where it names itself."""
    pages = record(A, text(), canonical=A), record(B, NEAR, canonical=C), record(B, NEAR, at=1, canonical=D)
    story = Story(*pages, record(C, NEARER), tombstone(A, at=2))
    assert [verdict.rel_canonical for verdict in story.verdicts] == [None, C, D, None, None]
    assert [verdict.rel_canonical for verdict in story.promoted] == [None], "its sketch is not that of its last fetch"


# ---- sites ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("site", ["a.org", "b.org"])
def test_never_merge_leaves_exact_copies_alone(site):
    decider = replace(SMALL, sites={site: SiteOverride(never_merge=True)})
    story = Story(record(A, text()), record(B, NEAR), record(B, NEARER, at=1), record(C, NEARER), decider=decider)
    kept = "unique" if site == "b.org" else "edited"
    assert story.kinds == ["unique", "unique", kept, "exact_duplicate"]
    assert story.json(2)["evidence"]["nearest"]["by"] == "never_merge"


def test_a_site_may_demand_more():
    decider = replace(SMALL, sites={"b.org": SiteOverride(tape_min=0.97, never_merge=False)})
    story = Story(record(A, text()), record(B, NEAR), record(C, NEAR), decider=decider)
    assert story.kinds == ["unique", "unique", "exact_duplicate"]
    assert story.json(2)["evidence"]["nearest"]["by"] == "site"
    decider = replace(SMALL, sites={"b.org": SiteOverride(tape_min=0.9)})
    assert Story(record(A, text()), record(B, NEAR), decider=decider).kinds[1] == "near_duplicate"
    decider = replace(SMALL, sites={"a.org": SiteOverride(tape_min=0.76), "b.org": SiteOverride(tape_min=0.97)})
    for pages in ((A, B), (B, A)):
        values = Story(record(pages[0], text()), record(pages[1], NEAR), decider=decider)
        assert values.kinds == ["unique", "unique"], "of two demands the higher one holds"
