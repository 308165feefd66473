"""Every step of every online rule, on pairs made by hand."""

from dataclasses import replace
from random import Random

import pytest

from neardup.decider import RULE_NAMES, Decider
from neardup.rules import RULES
from neardup.rules.siblings import Siblings
from neardup.verdict import Kind
from tests.neardup.pairs.some_pairs import SAME
from tests.oracle import names

DECIDER = Decider(scheme="0" * 32)


#: Of one host: articles are not compared.
HERE = SAME._replace(article_run=0)


def ruled(rule: str, decider: Decider = DECIDER, **numbers: object) -> tuple[Kind | None, str]:
    pair = HERE if numbers.get("same_site", True) else SAME
    ruling = RULES[rule].decide(pair._replace(**numbers), decider)
    return ruling.kind, ruling.by


@pytest.mark.parametrize(
    ("rule", "field", "least"),
    [
        ("shingling", "b_similarity", 2),
        ("simhash", "c_similarity", 372),
        ("combined", "b_similarity", 2),
        ("combined", "c_similarity", 355),
        ("simhash64", "simhash64_agree", 59),
        ("verified", "tape_score", 0.74),
    ],
)
def test_a_threshold_is_the_least_that_is_accepted(rule: str, field: str, least: float) -> None:
    below = {"tape_score": 0.7399, "content_score": 0.0} if rule == "verified" else {field: least - 1}
    assert ruled(rule, **{field: least})[0] is Kind.NEAR_DUPLICATE
    assert ruled(rule, **below)[0] is None


def test_site_split_asks_algorithm_c_across_sites_and_the_combined_one_within() -> None:
    weak_b = {"b_similarity": 0, "c_similarity": 375}
    weak_c = {"b_similarity": 6, "c_similarity": 360}
    assert ruled("site-split", same_hen_site=False, **weak_b)[0] is Kind.NEAR_DUPLICATE
    assert ruled("site-split", same_hen_site=True, **weak_b)[0] is None
    assert ruled("site-split", same_hen_site=False, **weak_c)[0] is None
    assert ruled("site-split", same_hen_site=True, **weak_c)[0] is Kind.NEAR_DUPLICATE


@pytest.mark.parametrize("side", ["tokens_a", "tokens_b"])
def test_a_thin_page_duplicates_nothing_under_the_default_rule_alone(side: str) -> None:
    assert ruled("verified", **{side: 19}) == (None, "thin")
    assert ruled("verified", **{"tokens_a": 40, "tokens_b": 40, side: 20})[0] is Kind.NEAR_DUPLICATE
    assert ruled("shingling", **{side: 1})[0] is Kind.NEAR_DUPLICATE


def test_a_short_page_needs_more_and_never_goes_on_to_main_content() -> None:
    assert ruled("verified", tokens_a=60, tokens_b=49, tape_score=0.85)[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", tokens_b=49, tape_score=0.84) == (None, "short tape")
    assert ruled("verified", tokens_a=60, tokens_b=50, tape_score=0.84)[0] is Kind.NEAR_DUPLICATE


def test_veto_is_final_for_any_scores() -> None:
    assert ruled("verified", titles_apart=1, same_heading=False) == (None, "title veto")
    assert ruled("verified", titles_apart=1, same_heading=False, tape_score=0.1) == (None, "title veto")
    assert ruled("verified", same_site=False, title_veto=1, tape_score=0.9, article_run=0) == (None, "title veto")
    assert ruled("tape", title_veto=1) == (None, "title veto")
    assert ruled("tape", head_veto=1) == (None, "head veto")
    assert ruled("tape", title_veto=2, head_veto=1) == (None, "head veto")
    assert ruled("verified", head_veto=1)[0] is Kind.NEAR_DUPLICATE  # first words are no name


def test_a_veto_that_a_full_filter_cannot_prove_demands_more() -> None:
    assert ruled("verified", title_veto=2, tape_score=0.95)[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", title_veto=2, tape_score=0.94) == (None, "unproved veto")
    assert ruled("tape", head_veto=2, tape_score=0.1) == (None, "unproved veto")
    assert ruled("verified", head_veto=2, tape_score=0.74)[0] is Kind.NEAR_DUPLICATE


def test_main_content_alone_is_another_verdict() -> None:
    apart = {"tape_score": 0.5}
    assert ruled("verified", **apart) == (Kind.SAME_CONTENT, "content")
    assert ruled("verified", content_score=0.73, **apart)[0] is None
    assert ruled("verified", content_tokens_b=49, **apart)[0] is None
    for address in ("same_address", "same_canonical"):
        assert ruled("verified", same_naming=False, **apart, **{address: True}) == (Kind.SAME_CONTENT, "content")
    assert ruled("verified", same_naming=False, **apart) == (None, "tape")  # a menu's text under another name
    assert ruled("verified", same_naming=False, same_site=False, **apart) == (Kind.SAME_CONTENT, "content")


def test_main_content_of_one_site_counts_where_most_of_the_shorter_page_is_in_the_other() -> None:
    """Pages of figures in one frame have equal main contents of a few sentences, and other tables."""
    page = {"tape_score": 0.5, "same_tail": False, "same_place": False, "same_address": True}
    # |LCS| = .5 * (a + b) / 1.5, of the shorter tape 2/3 or all
    assert ruled("verified", **page, tape_a=300, tape_b=300) == (None, "tape")
    assert ruled("verified", **page, tape_a=150, tape_b=300) == (Kind.SAME_CONTENT, "content")
    assert ruled("verified", **page, tape_a=300, tape_b=227) == (None, "tape")
    assert ruled("verified", **page, tape_a=300, tape_b=192)[0] is Kind.SAME_CONTENT
    assert ruled("verified", **page | {"same_site": False}, tape_a=300, tape_b=300)[0] is Kind.SAME_CONTENT
    before = replace(DECIDER, rule_version=1)
    assert ruled("verified", before, **page, tape_a=300, tape_b=300) == (Kind.SAME_CONTENT, "content")


def test_main_content_of_two_releases_counts_in_another_template() -> None:
    release = {"tape_score": 0.5, "tape_a": 300, "tape_b": 300}
    assert among(0, 1, **release) == (Kind.SAME_CONTENT, "content")
    assert among(0, 2, **release) == (None, "tape")
    assert among(0, 1, **release, records=1, same_title=False, same_words=False) == (None, "tape")
    assert among(0, 1, **release, same_tail=False, same_but_sessions=True) == (None, "tape")


def test_accepted_candidates_rank_by_tape_then_content() -> None:
    decide = RULES["verified"].decide
    tape = decide(SAME._replace(tape_score=0.75), DECIDER).rank
    better = decide(SAME._replace(tape_score=0.76), DECIDER).rank
    content = decide(SAME._replace(tape_score=0.0), DECIDER).rank
    assert content < tape < better


# what pages of one site call themselves


def apart(**numbers: object) -> dict[str, object]:
    """Numbers of a pair whose URLs end differently."""
    return {"same_tail": False, "same_place": False, **numbers}


def test_retitled_pages_at_other_places_differ() -> None:
    assert ruled("verified", **apart(same_title=False)) == (None, "retitled")
    assert ruled("verified", same_title=False)[0] is Kind.NEAR_DUPLICATE  # a release: the URLs end alike
    assert ruled("verified", **apart(same_title=False, same_words=False))[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", **apart(same_title=False, same_site=False))[0] is Kind.NEAR_DUPLICATE


def test_versions_in_titles_tell_apart_where_urls_end_otherwise() -> None:
    assert ruled("verified", **apart(titles_apart=2, same_words=False)) == (None, "retitled")
    assert ruled("verified", titles_apart=2, same_words=False, title_veto=1)[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", **apart(titles_apart=2, same_address=True))[0] is Kind.NEAR_DUPLICATE  # another view


def test_titles_that_differ_in_case_or_signs_alone_tell_apart_where_urls_end_otherwise() -> None:
    assert ruled("verified", **apart(same_letters=False)) == (None, "retitled")
    assert ruled("verified", same_letters=False)[0] is Kind.NEAR_DUPLICATE


def test_words_of_paths_tell_pages_apart_that_differ_in_more_than_a_stamp() -> None:
    fields = {"path_veto": 1, "tape_score": 0.977}
    assert ruled("verified", **fields) == (None, "path")
    assert ruled("verified", **fields | {"tape_score": 0.978})[0] is Kind.NEAR_DUPLICATE  # filed twice
    assert ruled("verified", **fields, gaps=1, gap_digits=4, gap_words=4)[0] is Kind.NEAR_DUPLICATE  # a stamp
    assert ruled("verified", **fields, gaps=1, gap_digits=4, gap_words=5) == (None, "path")
    for unlike in ("own_urls", "same_address", "same_canonical", "same_but_sessions"):
        assert ruled("verified", **fields, **{unlike: True})[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", **fields, same_site=False)[0] is Kind.NEAR_DUPLICATE
    assert ruled("tape", **fields)[0] is Kind.NEAR_DUPLICATE
    off = Decider(scheme="0" * 32, path_tape_max=0)
    assert ruled("verified", decider=off, **fields)[0] is Kind.NEAR_DUPLICATE


def test_path_words_absent_from_both_pages_need_another_title_or_no_name() -> None:
    for veto in (2, 3):
        wordless = {"path_veto": veto, "same_tail": False, "named": False}
        assert ruled("verified", path_veto=veto, tape_score=0.8)[0] is Kind.NEAR_DUPLICATE  # another language's
        assert ruled("verified", **wordless, tape_score=0.977) == (None, "path")
        assert ruled("verified", **wordless, tape_score=0.978)[0] is Kind.NEAR_DUPLICATE
        assert ruled("verified", **wordless | {"same_tail": True}, tape_score=0.8)[0] is Kind.NEAR_DUPLICATE
    longer = {"same_words": False, "same_title": False, "same_tail": False, "tape_score": 0.94}
    assert ruled("verified", path_veto=2, **longer) == (None, "path")
    assert ruled("verified", path_veto=3, **longer)[0] is Kind.NEAR_DUPLICATE  # as print/page.html
    assert ruled("verified", path_veto=2, **longer | {"tape_score": 0.95})[0] is Kind.NEAR_DUPLICATE


def test_numbers_of_paths_are_those_of_records_unless_a_stamp_differs() -> None:
    form = {"records": 1, "gaps": 2, "gap_digits": 6, "gap_words": 3}
    assert ruled("verified", **form) == (None, "record")
    assert ruled("verified", **form | {"gap_words": 2})[0] is Kind.NEAR_DUPLICATE
    for unlike in ("own_urls", "same_address", "same_canonical", "same_but_sessions"):
        assert ruled("verified", **form, **{unlike: True})[0] is Kind.NEAR_DUPLICATE
    for unlike in ("same_naming", "same_title", "named", "same_site"):
        assert ruled("verified", **form, **{unlike: False})[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", **form, same_words=False, same_title=False)[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", **form | {"records": 2})[0] is Kind.NEAR_DUPLICATE  # or a release


def test_one_name_at_two_places_wants_a_closer_match_or_a_stamp() -> None:
    away = apart(tape_score=0.94)
    assert ruled("verified", **away) == (None, "elsewhere")
    for unlike in ("same_tail", "same_place", "same_address", "same_canonical", "same_but_sessions", "own_urls"):
        assert ruled("verified", **away | {unlike: True})[0] is Kind.NEAR_DUPLICATE
    for unlike in ({"tape_score": 0.95}, {"same_naming": False}, {"same_site": False}, {"named": False}):
        assert ruled("verified", **away | unlike)[0] is Kind.NEAR_DUPLICATE
    stamp = {"gaps": 1, "gap_digits": 4, "gap_words": 4}
    assert ruled("verified", **away | stamp)[0] is Kind.NEAR_DUPLICATE
    for unlike in ({"gap_digits": 3}, {"gap_digits": 9, "gap_words": 5}, {"loose_words": 1}, {"gaps": 3}):
        assert ruled("verified", **away | stamp | unlike) == (None, "elsewhere")


def test_clock_is_no_record_at_any_place_and_label() -> None:
    clock = apart(gaps=1, gap_digits=6, gap_words=2)
    assert among(9, 9, **clock)[0] is Kind.NEAR_DUPLICATE
    for unlike in ({"gap_words": 5}, {"gap_digits": 1}, {"loose_words": 1}, {"gaps": 3}, {"gaps": 0}):
        assert among(9, 9, **clock | unlike) == (None, "siblings")
    # one figure at each place: an entry of a manual, unless nothing else but menus differs
    assert among(9, 9, **clock | {"gaps": 2, "gap_digits": 2, "content_score": 0.9}) == (None, "siblings")
    assert among(9, 9, **clock | {"gaps": 2, "gap_digits": 2})[0] is Kind.NEAR_DUPLICATE
    # at each of several places a clock or a date has three figures
    assert among(9, 9, **clock | {"gaps": 2, "gap_digits": 5, "content_score": 0.9}) == (None, "siblings")
    assert among(9, 9, **clock | {"gaps": 2, "gap_digits": 6, "content_score": 0.9})[0] is Kind.NEAR_DUPLICATE
    off = Decider(scheme="0" * 32, stamp_words_max=0)
    assert among(9, 9, off, **clock) == (None, "siblings")


def test_headings_veto_by_words_anywhere_and_by_numbers_at_other_places() -> None:
    assert ruled("verified", heading_veto=1) == (None, "heading veto")
    assert ruled("verified", heading_veto=2)[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", **apart(heading_veto=2)) == (None, "heading veto")


def among(others: int, alike: int, decider: Decider = DECIDER, **numbers: object) -> tuple[Kind | None, str]:
    tells = {name: numbers.pop(name, 0) for name in ("retitled", "moved")}
    pair = HERE if numbers.get("same_site", True) else SAME
    ruling = RULES["verified"].decide(pair._replace(**numbers), decider, Siblings(others, alike, **tells))
    return ruling.kind, ruling.by


def test_siblings_are_the_same_only_if_nothing_but_noise_differs() -> None:
    noise = {"gaps": 2, "loose_words": 8, "gap_digits": 99}
    here = {"same_but_sessions": True, "same_tail": False}
    assert among(2, 1, **here, **noise)[0] is Kind.NEAR_DUPLICATE
    for more in ({"gaps": 3}, {"loose_words": 9}):
        assert among(2, 1, **here, **noise | more) == (None, "siblings")
        assert among(1, 1, **here, **noise | more) == (None, "siblings")
        assert among(0, 1, **here, **noise | more)[0] is Kind.NEAR_DUPLICATE
        assert among(2, 1, **noise | more)[0] is Kind.NEAR_DUPLICATE  # the URLs end alike
        assert among(2, 1, **here, same_naming=False, **noise | more)[0] is Kind.NEAR_DUPLICATE
        assert among(0, 4, **noise | more) == (None, "siblings")  # so many end alike that it tells nothing
        assert among(0, 3, **noise | more)[0] is Kind.NEAR_DUPLICATE
    assert among(2, 1, **here, tape_score=0.1, gaps=9) == (None, "siblings")  # nor the same content
    for address in ("same_address", "same_canonical"):  # the pages say themselves that they are one
        assert among(2, 1, **apart(**{address: True}), gaps=9)[0] is Kind.NEAR_DUPLICATE


def test_first_words_tell_nothing_only_where_many_pages_begin_alike() -> None:
    unnamed = apart(named=False, gaps=9)
    assert among(2, 1, tape_score=0.85, **unnamed)[0] is Kind.NEAR_DUPLICATE
    assert among(3, 1, tape_score=0.85, **unnamed) == (None, "siblings")
    assert among(1, 1, tape_score=0.84, **unnamed) == (None, "siblings")


def test_siblings_elsewhere_differ_however_little() -> None:
    assert among(2, 1, **apart()) == (None, "siblings")
    assert among(2, 1, **apart(same_address=True))[0] is Kind.NEAR_DUPLICATE
    assert among(2, 1, **apart(same_canonical=True))[0] is Kind.NEAR_DUPLICATE
    query = {"same_tail": False, "same_place": True}
    assert among(1, 1, **query) == (None, "siblings")
    assert among(7, 1, same_but_sessions=True, **query)[0] is Kind.NEAR_DUPLICATE
    assert among(7, 1, **query) == (None, "siblings")
    assert among(7, 1, moved=5, **query)[0] is Kind.NEAR_DUPLICATE  # it is the path that tells pages apart
    assert among(7, 1, moved=4, **query) == (None, "siblings")


def test_pages_that_print_their_own_urls_are_one_if_nothing_but_a_stamp_at_the_end_differs() -> None:
    missing = apart(own_urls=True)
    assert among(99, 99, **missing)[0] is Kind.NEAR_DUPLICATE
    stamp = {"gaps": 1, "gap_digits": 99, "gap_words": 5, "end_differs": True}  # of too many words for a clock
    assert among(99, 99, **missing | stamp)[0] is Kind.NEAR_DUPLICATE
    for unlike in ({"gaps": 2}, {"end_differs": False}, {"loose_words": 1}, {"tape_level": 1}):
        assert among(99, 99, **missing | stamp | unlike) == (None, "siblings")
    assert among(99, 99, **missing | stamp | {"own_urls": False}) == (None, "siblings")
    assert among(99, 99, **missing | {"same_site": False})[0] is Kind.NEAR_DUPLICATE


def test_equal_titles_tell_where_siblings_differ_in_theirs() -> None:
    assert among(7, 1, retitled=5, **apart())[0] is Kind.NEAR_DUPLICATE
    assert among(7, 1, retitled=4, **apart()) == (None, "siblings")
    assert among(0, 99, retitled=60, same_title=False, gaps=3) == (None, "siblings")


def test_another_title_of_one_address_is_that_of_another_view() -> None:
    view = {"titles_apart": 1, "title_veto": 1, "same_address": True, "same_tail": False, "same_naming": False}
    assert ruled("verified", **view, content_score=0.1, tape_score=0.95)[0] is Kind.NEAR_DUPLICATE
    # a printer version lacks menus: most of it is in the other page
    assert ruled("verified", **view, content_score=0.95, tape_score=0.5, tape_a=200)[0] is Kind.SAME_CONTENT
    assert ruled("verified", **view, content_score=0.95, tape_score=0.5) == (None, "tape")
    for unlike in ({"same_address": False}, {"same_heading": False}, {"tape_score": 0.94, "content_score": 0.94}):
        assert ruled("verified", **view | unlike) == (None, "title veto")
    assert ruled("tape", **view) == (None, "title veto")


def test_pages_of_one_canonical_url_are_views_of_one_page_if_most_of_the_shorter_is_in_the_other() -> None:
    view: dict[str, object] = apart(same_canonical=True, same_naming=False, content_score=0.1)
    # |LCS| = .5 * 480 / 1.5 = 160 = .8 * 200, and 146 = .73 * 200
    mobile = view | {"tape_score": 0.5, "tape_a": 200, "tape_b": 280}
    assert ruled("verified", **mobile) == (Kind.SAME_CONTENT, "canonical")
    for other in ({"titles_apart": 1, "title_veto": 1, "same_heading": False}, {"heading_veto": 1}):
        assert ruled("verified", **mobile | other) == (Kind.SAME_CONTENT, "canonical")
        assert ruled("verified", **view | other, tape_score=0.74) == (Kind.NEAR_DUPLICATE, "tape")
    assert ruled("verified", **mobile, content_tokens_b=10) == (Kind.SAME_CONTENT, "canonical")
    assert ruled("verified", **mobile | {"content_score": 0.9}, content_tokens_b=2000)[0] is Kind.SAME_CONTENT
    frame = mobile | {"tape_b": 238}
    for unlike in (frame, {"same_canonical": False}, {"same_owner": False}, {"tokens_a": 49}):
        assert ruled("verified", **mobile | unlike)[0] is None
    assert ruled("verified", replace(DECIDER, rule_version=1), **mobile) == (None, "tape")


def test_words_of_the_own_query_name_nothing() -> None:
    search: dict[str, object] = {"own_query": True, "same_naming": False, "titles_apart": 1, "heading_veto": 1}
    search |= {"same_tail": False, "same_place": False, "same_heading": False, "tape_score": 0.8}
    assert ruled("verified", **search) == (Kind.NEAR_DUPLICATE, "own query")
    assert ruled("verified", **search | {"own_query": False}) == (None, "title veto")
    assert ruled("verified", **search | {"tape_score": 0.73, "content_score": 0.1}) == (None, "tape")
    assert ruled("verified", replace(DECIDER, rule_version=1), **search) == (None, "title veto")


def test_another_title_of_one_heading_is_that_of_another_release() -> None:
    release = {"titles_apart": 1, "title_veto": 1, "same_naming": False, "same_title": False, "same_words": False}
    assert ruled("verified", **release, tape_score=0.95)[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", **release, tape_score=0.95, same_place=False)[0] is Kind.NEAR_DUPLICATE
    # `/ann/edit` and `/bob/edit`, `/12/edit` and `/7/edit`, `/12/edit.html` and `/7/edit.html`
    forms: tuple[dict[str, object], ...] = ({"path_veto": 1}, {"path_veto": 2}, {"records": 1}, {"records": 2})
    for unlike in (*forms, {"same_heading": False}, {"same_tail": False}, {"tape_score": 0.94, "content_score": 0.94}):
        assert ruled("verified", **release | unlike) == (None, "title veto")


def test_a_text_of_twice_the_length_is_another() -> None:
    assert ruled("verified", tokens_b=2000)[0] is Kind.NEAR_DUPLICATE
    assert ruled("verified", tokens_b=2001) == (None, "length")
    assert ruled("verified", same_site=False, tokens_b=2001) == (None, "length")
    assert ruled("verified", tape_score=0.1, content_tokens_b=1601) == (None, "length")
    assert ruled("tape", tokens_b=9_000_000)[0] is Kind.NEAR_DUPLICATE


def test_an_independent_model_of_names_and_siblings_agrees() -> None:
    random = Random(5)
    decisions: set[tuple[bool, str]] = set()
    for _ in range(20_000):
        flags = {
            name: random.random() < 0.6
            for name in (
                "same_site",
                "same_tail",
                "same_place",
                "same_naming",
                "same_title",
                "same_words",
                "same_letters",
                "named",
            )
        }
        flags |= {
            name: random.random() < 0.3
            for name in (
                *("same_address", "same_canonical", "same_heading"),
                *("own_urls", "end_differs", "same_but_sessions"),
            )
        }
        pair = SAME._replace(
            **flags,
            title_veto=random.choice((0, 0, 0, 1)),
            titles_apart=random.choice((0, 0, 0, 0, 1, 2)),
            heading_veto=random.choice((0, 0, 0, 1, 2)),
            path_veto=random.choice((0, 0, 0, 1, 2, 3)),
            records=random.choice((0, 0, 0, 0, 0, 0, 0, 0, 1, 2)),
            tape_score=random.choice((0.5, 0.73, 0.74, 0.84, 0.85, 0.94, 0.95, 0.977, 0.978)),
            content_score=random.choice((0.29, 0.3, 0.73, 0.74, 0.95)),
            content_tokens_a=random.choice((19, 20, 800)),
            tokens_a=random.choice((30, 500, 1000, 1001)),
            tokens_b=500,
            gaps=random.choice((0, 1, 2, 3, 6)),
            gap_digits=random.choice((0, 3, 6, 24, 25)),
            gap_words=random.choice((0, 3, 4, 5)),
            loose_words=random.choice((0, 0, 3, 8, 9)),
            tape_level=random.choice((0, 0, 1)),
            article_run=random.choice((0, 0, 0, 49, 50, 99, 100)),
            article_level=random.choice((0, 1)),
            article_a=random.choice((100, 200, 250)),
            article_b=random.choice((100, 125)),
            article_tokens_a=random.choice((149, 150, 300)),
            common_names=random.choice((0, 2, 3, 4)),
            fewest_names=random.choice((4, 8, 9)),
        )
        counted = [random.choice((0, 1, 2, 3, 40)), random.choice((0, 1, 3, 4, 63, 64))]
        siblings = Siblings(*counted, random.randint(0, sum(counted)), random.randint(0, sum(counted)))
        ruling = RULES["verified"].decide(pair, DECIDER, siblings)
        refused = names.refused(pair._asdict(), siblings._asdict())
        if names.syndicated(pair._asdict()):
            assert ruling.kind is not None or ruling.by not in ("title veto", "tape", "short tape"), (pair, ruling)
            refused = refused if refused != "title veto" else ""
        else:
            assert ruling.by != "content: syndicated", (pair, ruling)
        assert (ruling.by == refused) == bool(refused), (pair, siblings, ruling, refused)
        decisions.add((ruling.kind is not None, ruling.by))
    assert {by for _, by in decisions} >= {"retitled", "heading veto", "siblings", "title veto", "tape"}
    assert (True, "content: syndicated") in decisions
    assert {(False, "elsewhere"), (False, "path"), (False, "record")} <= decisions


# what pages of two sites call themselves


def elsewhere(**numbers: object) -> dict[str, object]:
    return {"same_site": False, **apart(**numbers)}


def test_headings_of_two_sites_veto_where_titles_agree_or_contents_do_not() -> None:
    assert ruled("verified", same_site=False, heading_veto=1) == (None, "heading veto")
    assert ruled("verified", **elsewhere(heading_veto=2))[0] is Kind.NEAR_DUPLICATE
    other = elsewhere(heading_veto=1, same_words=False)
    assert ruled("verified", **other)[0] is Kind.NEAR_DUPLICATE  # a story under another headline
    around = {"content_score": 0.73, "content_tokens_b": 20}
    assert ruled("verified", **other | around) == (None, "heading veto")
    for unlike in ({"content_score": 0.74}, {"content_tokens_b": 19}, {"same_tail": True}):
        assert ruled("verified", **other | around | unlike)[0] is Kind.NEAR_DUPLICATE


def test_records_of_two_sites_differ_as_those_of_one_unless_the_urls_end_alike() -> None:
    assert among(2, 1, **elsewhere()) == (None, "siblings")
    assert among(0, 2, **elsewhere())[0] is Kind.NEAR_DUPLICATE
    assert among(2, 1, **elsewhere(same_tail=True, gaps=9))[0] is Kind.NEAR_DUPLICATE  # a mirror
    assert among(2, 1, **elsewhere(same_naming=False))[0] is Kind.NEAR_DUPLICATE


@pytest.mark.parametrize("unlike", [{"same_title": False}, {"heading_veto": 1}, {"path_veto": 1, "tape_score": 0.9}])
def test_the_rule_on_tapes_alone_looks_at_no_names_of_one_site(unlike: dict[str, object]) -> None:
    assert ruled("verified", **apart(**unlike))[0] is None
    assert ruled("tape", **apart(**unlike))[0] is Kind.NEAR_DUPLICATE


def test_every_rule_has_its_name_where_nothing_is_imported_for_it() -> None:
    assert tuple(RULES) == RULE_NAMES
    assert [rule.name for rule in RULES.values()] == list(RULES)


def test_pages_whose_urls_end_alike_need_a_closer_match_where_main_contents_differ() -> None:
    """Release notes of two versions are mostly frame."""
    notes = {"tape_score": 0.94, "content_score": 0.73, "content_tokens_a": 50, "content_tokens_b": 60}
    assert ruled("verified", **notes) == (None, "elsewhere")
    for alike in (
        {"tape_score": 0.95},
        {"content_score": 0.74},
        {"content_tokens_a": 49},
        {"same_title": False},
        {"same_address": True},
        {"same_but_sessions": True},
        {"named": False},
    ):
        assert ruled("verified", **notes | alike) == (Kind.NEAR_DUPLICATE, "tape"), alike
    assert ruled("verified", replace(DECIDER, rule_version=1), **notes) == (Kind.NEAR_DUPLICATE, "tape")
