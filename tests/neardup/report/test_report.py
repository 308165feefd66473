"""The report: right numbers, bounded whatever the crawl, harmless whatever the pages say."""

import itertools
import re
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from markupsafe import Markup

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.labels import Judgement, parse_label
from neardup.page import Page
from neardup.report.evidence_sentences import GLOSSARY, KINDS, key_name, percent, sentences
from neardup.report.page_templates import visible
from neardup.report.plots import bars, sizes
from neardup.report.run_report import HotKey, ReportInfo, SourceInfo, build_report
from neardup.report.samples import Card, CardSide
from neardup.report.verdict_counts import LARGEST_KEPT, ClusterSizes, Leaders, ReportTally, SmallestSample, _by_id
from neardup.rules import RULES, why_refused
from neardup.rules.base import margin, score_and_demand
from neardup.verdict import Kind
from tests.neardup.verdict_stream import MadeUpCrawl

DECIDER = Decider(scheme="5" * 32)
INFO = ReportInfo(
    DECIDER,
    sources=[SourceInfo("crawl.warc.gz", "ab" * 16, 10)],
    problems=["crawl.warc.gz: ends within a record"],
    hot_keys=[HotKey("wide", "0a1b2c3d4e5f")],
    made_at=1_790_000_000_000,
)
HOSTILE = '<script>window.hurt=1</script><img src=x onerror="window.hurt=2">\u202egnp.exe\u0000{{7*7}}\'"&'


class Outline(HTMLParser):
    """Checks that elements nest, and collects what the tests ask for."""

    VOID = frozenset(("meta", "img", "br", "link", "input", "hr"))

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.text: list[str] = []
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.text))


def report_of(crawl: MadeUpCrawl) -> Outline:
    return Outline(build_report(crawl.verdicts(), crawl.read_page, INFO))


def test_says_how_much_repeats() -> None:
    crawl = MadeUpCrawl(1000)
    counts = Counter(v["verdict"] for v in crawl.verdicts())
    outline = report_of(crawl)
    duplicates = counts["exact_duplicate"] + counts["near_duplicate"]
    assert f"{duplicates / 1000:.0%} of 1,000 pages repeat an earlier page" in outline.words
    assert f"{counts['exact_duplicate']} word for word, {counts['near_duplicate']} nearly so" in outline.words
    for kind in counts:
        assert KINDS[kind][0] in outline.words
    for expected in ("crawl.warc.gz", "ends within a record", "0a1b2c3d4e5f", "truncated gzip", DECIDER.digest):
        assert expected in outline.words
    assert outline.tags["svg"] > 4
    assert outline.tags["del"] > 20
    assert outline.tags["ins"] > 20


@pytest.mark.parametrize("count", [0, 1, 2, 17])
def test_small_crawls(count: int) -> None:
    outline = report_of(MadeUpCrawl(count))
    assert ("No pages yet" in outline.words) == (count == 0)


def test_a_pair_is_shown_once_however_it_was_chosen() -> None:
    shown = re.findall(r"this page · page (\d+)", report_of(MadeUpCrawl(60)).words)
    assert len(set(shown)) == len(shown) > 15


def test_every_kind_of_verdict_has_a_text() -> None:
    assert set(KINDS) == {kind.value for kind in Kind}
    assert all(f"{kind.value!r}" not in KINDS[kind][0] for kind in Kind)


def test_nothing_of_a_page_becomes_markup() -> None:
    crawl = MadeUpCrawl(400, hostile=HOSTILE)
    verdicts = list(crawl.verdicts())
    for verdict in verdicts:
        verdict["url"] += HOSTILE
        verdict["site"] = verdict["site"] + HOSTILE
        if "representative" in verdict:
            verdict["representative"]["url"] += HOSTILE
    verdicts.append({"verdict": HOSTILE, "page_id": 1 << 30})
    info = ReportInfo(DECIDER, problems=[HOSTILE], sources=[SourceInfo(HOSTILE)], hot_keys=[HotKey(HOSTILE, HOSTILE)])
    markup = build_report(verdicts, crawl.read_page, info)
    outline = Outline(markup)
    assert outline.tags["script"] == outline.tags["img"] == outline.tags["link"] == 0
    assert not {name for name in outline.attributes if name.startswith("on") or name in ("style", "src", "srcset")}
    assert "window.hurt=1" in outline.words  # it is shown, as text
    assert "{{7*7}}" in outline.words
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\ud800-\udfff]", markup)
    markup.encode()


HIDDEN = [0xAD, 0x34F, 0x61C, 0x115F, 0x17B4, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x2060, 0x2800, 0x3164, 0xFE0F]


@pytest.mark.parametrize("hidden", [chr(point) for point in [*HIDDEN, 0xFEFF, 0xFFA0, 0xE0041]])
def test_invisible_characters_are_shown(hidden: str) -> None:
    assert visible(f"bank{hidden}.example") == "bank\ufffd.example"
    assert visible(hidden) == visible(f"\u0431{hidden}\u0431")[1] == "\ufffd"
    assert visible(Markup(f"a{hidden}")) == f"a{hidden}"


PERSIAN, HINDI = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937"


@pytest.mark.parametrize("text", [PERSIAN, HINDI, "\U0001f3f3\ufe0f\u200d\U0001f308", "\u2764\ufe0f"])
def test_joiners_stay_where_scripts_need_them(text: str) -> None:
    assert visible(text) == text


def test_malformed_addresses_and_instants() -> None:
    verdict = {
        "verdict": "unique",
        "page_id": 0,
        "url": "\ud800",
        "fetched_at": 10**18,
        "title": "\udfff",
        "site": None,
    }
    assert "1000000000000000000 ms" in build_report([verdict], lambda _: None, INFO)


def test_links_lead_only_into_the_report() -> None:
    crawl = MadeUpCrawl(300)
    markup = build_report(crawl.verdicts(), crawl.read_page, INFO)
    targets = set(re.findall(r'href="([^"]*)"', markup))
    assert targets
    assert all(target.startswith("#") and f'id="{target[1:]}"' in markup for target in targets)


def test_says_where_texts_are_gone() -> None:
    crawl = MadeUpCrawl(300)
    verdicts = list(crawl.verdicts())

    def gone(coordinates: Mapping[str, Any]) -> Page | None:
        if coordinates["offset"] % 2:
            return None
        raise BadInput("crawl.warc.gz: no such file")

    words = Outline(build_report(verdicts, gone, INFO)).words
    assert "The text of this page cannot be shown: its source is gone." in words
    assert "cannot be shown: crawl.warc.gz: no such file." in words


def test_never_shows_another_page_in_place_of_a_changed_one() -> None:
    crawl = MadeUpCrawl(300)
    verdicts = list(crawl.verdicts())
    other = Page("https://elsewhere.example/new", b"something else", "text/html")
    words = Outline(build_report(verdicts, lambda _: other, INFO)).words
    assert "has changed and now holds https://elsewhere.example/new there" in words
    assert "something else" not in words


def test_report_is_a_function_of_its_input() -> None:
    crawl = MadeUpCrawl(500)
    assert build_report(crawl.verdicts(), crawl.read_page, INFO) == build_report(
        crawl.verdicts(), crawl.read_page, INFO
    )


def test_samples_do_not_depend_on_the_order_of_verdicts() -> None:
    verdicts = list(MadeUpCrawl(500).verdicts(keep_pages=False))
    first, second = SmallestSample(7, _by_id), SmallestSample(7, _by_id)
    for verdict in verdicts:
        first.add(verdict)
    for verdict in reversed(verdicts):
        second.add(verdict)
    assert first.chosen() == second.chosen() == sorted(verdicts, key=_by_id)[:7]


def test_closest_calls_are_the_closest() -> None:
    tally = ReportTally(DECIDER)
    verdicts = list(MadeUpCrawl(2000).verdicts(keep_pages=False))
    for verdict in verdicts:
        tally.add(verdict)
    scores = sorted(v["evidence"]["tape_score"] for v in verdicts if v["verdict"] == "near_duplicate")
    assert [v["evidence"]["tape_score"] for v in tally.close_accepted.chosen()] == scores[:5]
    near = [v["evidence"]["nearest"] for v in verdicts if "nearest" in v.get("evidence", {})]
    below = [margin(n) for n in near if "veto" not in n["by"]]
    chosen = [v["evidence"]["nearest"] for v in tally.close_rejected.chosen()]
    assert [margin(n) for n in chosen] == sorted(below, reverse=True)[:5]
    assert all(n["by"] == "title veto" for n in (v["evidence"]["nearest"] for v in tally.close_vetoed.chosen()))


@pytest.mark.slow
def test_many_verdicts_in_bounded_memory_and_a_small_file() -> None:
    crawl = MadeUpCrawl(512)
    block = list(crawl.verdicts())

    def many() -> Iterator[dict[str, Any]]:
        for verdict, again in itertools.product(block, range(60)):
            yield verdict | {"page_id": verdict["page_id"] + again * 4096, "cluster": verdict["page_id"] + again,
                             "site": f"{again}-{verdict['site']}"}  # fmt: skip

    build_report(iter(block), crawl.read_page, INFO)  # what it imports is not what is measured
    tracemalloc.start()
    try:
        markup = build_report(many(), crawl.read_page, INFO)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "30,720" in markup
    assert peak < 40e6
    assert len(markup.encode()) < 1_000_000


@pytest.mark.whole
@pytest.mark.slow
def test_long_texts_make_no_long_report() -> None:
    crawl = MadeUpCrawl(80)
    verdicts = list(crawl.verdicts())
    for offset, page in list(crawl.pages.items()):
        words = b" ".join(b"w%d" % (i * (offset + 3)) for i in range(10_000))
        crawl.pages[offset] = Page(page.url, words + b" x" + b"y" * 500_000, "text/plain")
    assert len(build_report(verdicts, crawl.read_page, INFO).encode()) < 1_500_000


def test_clusters_follow_sizes_and_keep_the_largest() -> None:
    clusters = ClusterSizes(clusters_max=100)
    for cluster in range(90):
        clusters.add({"verdict": "unique", "cluster": cluster, "cluster_size": 1})
    for cluster in range(90):
        for size in range(2, cluster + 2):
            clusters.add({"verdict": "exact_duplicate", "cluster": cluster, "cluster_size": size,
                          "url": f"u{cluster}/{size}", "representative": {"url": f"r{cluster}"}})  # fmt: skip
    assert clusters.distribution() == dict.fromkeys(range(1, 91), 1)
    largest = clusters.largest()
    assert [(c.size, c.representative) for c in largest[:2]] == [(90, "r89"), (89, "r88")]
    assert largest[0].members == [f"u89/{size}" for size in range(86, 91)]
    assert not clusters.unfollowed
    assert len(clusters._large) == LARGEST_KEPT


def test_a_cluster_lists_its_members_alone() -> None:
    clusters = ClusterSizes()

    def output(kind: str, url: str, cluster: int | None, size: int | None) -> None:
        verdict = {"verdict": kind, "url": url, "cluster": cluster, "cluster_size": size}
        clusters.add({**verdict, "representative": {"url": "r"}, "title": "T"})

    def members() -> tuple[str, list[str]]:
        return clusters.largest()[0].representative, clusters.largest()[0].members

    output("unique", "r", 1, 1)
    for size, url in enumerate("abc", 2):
        output("near_duplicate", url, 1, size)
    output("unchanged", "r", 1, 4)
    assert members() == ("r", ["a", "b", "c"])
    output("unique", "a", 2, 1)
    output("gone", "b", None, None)
    output("stale", "c", None, None)
    assert members() == ("r", ["c"])
    output("near_duplicate", "d", 1, 3)
    output("promoted", "c", 1, 2)
    assert members() == ("c", ["d"])
    output("gone", "d", None, None)
    output("unchanged", "c", 1, 1)
    assert clusters.largest() == []


def test_every_key_family_has_a_text() -> None:
    families = {family.name for rule in RULES.values() for family, _ in rule.posts(DECIDER)}
    assert [name for name in families if key_name(name) == name] == []


def test_reasons_are_counted_without_values_of_single_pages() -> None:
    tally = ReportTally(DECIDER)
    for i in range(30):
        tally.add({"verdict": "rejected", "url": "", "reason": f"not JSON: bad, at character {i}"})
    tally.add({"verdict": "rejected", "url": "", "reason": "HTTP status 500"})
    assert [(name, count) for name, count, _ in tally.reasons.top(9)] == [("not JSON", 30), ("HTTP status 500", 1)]


def test_more_clusters_than_are_followed() -> None:
    clusters = ClusterSizes(clusters_max=3)
    for cluster in range(5):
        clusters.add({"verdict": "exact_duplicate", "cluster": cluster, "cluster_size": 2, "url": "u"})
    assert clusters.unfollowed
    assert clusters.distribution() == {2: 3}


def test_leaders_never_lose_the_frequent() -> None:
    leaders = Leaders(names_max=100)
    for i in range(10_000):
        leaders.add("often") if i % 3 == 0 else leaders.add(f"rare{i}")
    assert leaders.top(1) == [("often", 3334, 0)]
    assert len(leaders.counts) <= 100
    assert leaders.dropped >= 1


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({"by": "digest", "tape_score": 1.0}, "The same words in the same order, from first to last."),
        ({"by": "tape", "score": 0.87, "demand": 0.74}, "87% of the sampled text in the same order; threshold 74%, "),
        ({"by": "tape", "score": 0.7399, "demand": 0.74}, "73.99% of the sampled text in the same order; threshold 74"),
        ({"by": "short tape", "score": 0.8, "demand": 0.85}, "80% of the sampled text in the same order; thresh"),
        ({"by": "title veto", "tape_score": 0.9}, "Ruled out: the titles name different things."),
        ({"by": "title veto", "score": 0.9, "demand": 0.74}, "in the same order; threshold 74%, but a veto stands."),
        ({"by": "content", "score": 0.8, "demand": 0.74}, "80% of the sampled main content"),
        ({"by": "tape", "keys": {"head": 1, "wide": 3}}, "through the first 8 words, 3 of 7 small supershingles."),
        ({"by": "tape", "keys": {"content_start": 1, "logtf": 1}},
         "Found through the first 8 words of the main content, 1 of 2 simhash blocks."),
        ({"by": "tape", "tape_score": 0.8, "same_site": False}, "The pages are on different sites."),
    ],
)  # fmt: skip
def test_evidence_in_words(evidence: dict[str, Any], expected: str) -> None:
    assert expected in " ".join(sentences(evidence, DECIDER))


def test_shares_never_round_to_all_or_nothing() -> None:
    shares = (0, 0.000001, 0.00008, 0.004, 0.0096, 0.5, 0.987, 0.99992, 0.9999999, 1)
    words = ["0%", "<0.001%", "0.008%", "0.4%", "1.0%", "50%", "99%", "99.992%", ">99.999%", "100%"]
    assert [percent(x) for x in shares] == words
    assert score_and_demand(0.7399999, 0.74)[1].startswith("74")


def test_charts_of_extremes() -> None:
    assert bars("t", "a", {}, 0, 6) is None
    many = sizes(dict.fromkeys(range(1, 100_001), 1))
    for markup in (bars("t", "a", {384: 10**9, 0: 1}, 0, 384), sizes({1: 10**9, 10**8: 1}), many):
        assert markup is not None
        Outline(str(markup))
        assert "nan" not in markup
        assert "inf" not in markup
    assert str(many).count("<circle") < 800
    assert "1 cluster of 100,000 pages" in str(many), "the largest stays"


@pytest.mark.parametrize(
    ("evidence", "above"),
    [
        ({"by": "tape", "score": 0.74, "demand": 0.74}, 0.0),
        ({"by": "title veto", "score": 0.925, "demand": 0.74}, 0.25),
        ({"by": "combined: C", "score": 348, "demand": 360}, -1 / 30),
        ({"by": "thin", "score": 5, "demand": 20}, -0.75),
        ({"by": "digest"}, None),
    ],
)
def test_the_margin_is_a_share_of_the_demand(evidence: dict[str, Any], above: float | None) -> None:
    assert margin(evidence) == (None if above is None else pytest.approx(above))


def test_other_rules_have_closest_calls_too() -> None:
    crawl = MadeUpCrawl(300)
    verdicts = list(crawl.verdicts())
    for verdict in verdicts:
        evidence = verdict.get("evidence", {})
        for pair in (evidence, evidence.get("nearest", {})):
            if "by" in pair and pair["by"] != "digest":
                pair |= {"by": "simhash", "score": pair["c_similarity"], "demand": 372}
    info = ReportInfo(Decider(scheme="5" * 32, rule="simhash"))
    words = Outline(build_report(verdicts, crawl.read_page, info)).words
    assert "threshold 372" in words
    assert "simhash bits agree; at least 372 bits are needed" in words
    assert "Tape scores" not in words


def test_thresholds_are_those_that_pairs_needed() -> None:
    """Documents have no sites, so each pair needs what two sites need."""
    crawl = MadeUpCrawl(300)
    verdicts = list(crawl.verdicts())
    for verdict in verdicts:
        evidence = verdict.get("evidence", {})
        for pair in (evidence, evidence.get("nearest", {})):
            if "by" in pair and pair["by"] != "digest":
                pair |= {"by": "tape", "score": pair["tape_score"], "demand": 0.7}
                evidence["kept_apart"] = "title veto"
    words = {
        rule: Outline(build_report(verdicts, crawl.read_page, ReportInfo(Decider("5" * 32, rule=rule)))).words
        for rule in ("tape", "verified")
    }
    assert [set(re.findall(r"threshold (0\.\d+)", text)) for text in words.values()] == [{"0.7"}, {"0.7"}]
    assert ["--rule tape" in text for text in words.values()] == [False, True]


def test_repeats_are_counted_by_the_index_that_found_them() -> None:
    crawl = MadeUpCrawl(300)
    verdicts = [verdict for verdict in crawl.verdicts() if verdict["verdict"] == "near_duplicate"]
    for verdict, keys in zip(verdicts, ({"logtf": 1}, {"logtf": 2, "wide": 1}, {"head": 1}), strict=False):
        verdict["evidence"]["keys"] = keys
    html = build_report(verdicts, crawl.read_page, INFO).partition('<h3 id="found-by">')[2].partition("</table>")[0]
    found = dict(re.findall(r'<tr><th scope="row">(\w+)</th>.*?<td class="number">(\d+)</td></tr>', html))
    assert found == {"neither": "1", "supershingles": str(len(verdicts) - 3), "blocks": "1", "both": "1"}


def test_a_cluster_is_shown_with_its_representatives_title() -> None:
    text = " ".join(f"word{i}" for i in range(99))
    pages = {i: Page(f"http://a.example/{i}", f"<title>{name} &lt;b&gt;</title>{text}".encode()) for i, name in
             enumerate(("First", "Second"))}  # fmt: skip
    place = {"source": "ab" * 16, "partition": 0, "offset": 0, "position": 0}
    founder = {"page_id": 0, "url": pages[0].url, "fetched_at": 0, "coordinates": place}
    joined = {"version": 1, "verdict": "near_duplicate", "page_id": 1, "n": 0, "url": pages[1].url, "fetched_at": 0,
              "coordinates": place | {"offset": 1}, "cluster": 0, "cluster_size": 2, "representative": founder,
              "title": "Second <b>", "evidence": {}}  # fmt: skip

    def clusters(read_page: Any) -> str:
        return (
            build_report([joined], read_page, INFO).partition('<section id="clusters">')[2].partition("</section>")[0]
        )

    assert "First &lt;b&gt;" in clusters(lambda at: pages[at["offset"]])
    assert "Second" not in clusters(lambda at: pages[at["offset"]])
    for gone in (lambda at: None, lambda at: (_ for _ in ()).throw(OSError(2, "gone"))):
        assert "First" not in clusters(gone)
        assert pages[0].url in clusters(gone)


def test_most_samples_are_folded_and_words_are_reported() -> None:
    crawl = MadeUpCrawl(500)
    markup = build_report(crawl.verdicts(), crawl.read_page, INFO)
    samples = markup.partition('<section id="samples">')[2].partition("</section>")[0]
    assert re.search(r"<summary class=\"between\">\d+ more of near duplicate</summary>", samples)
    for word, _ in GLOSSARY:
        assert f"<strong>{word}</strong>" in markup


def test_closest_pairs_stand_under_the_deciding_step_with_labels() -> None:
    crawl = MadeUpCrawl(2000)
    markup = build_report(crawl.verdicts(), crawl.read_page, INFO)
    close = markup[markup.index('<section id="close">') :]
    close = close[: close.index("</section>")]
    causes = [unescape(cause) for cause in re.findall(r'<h4 class="cause">(.*?)</h4>', close)]
    assert any(cause.startswith("Step tape") for cause in causes)
    assert f"Step title veto: {why_refused('title veto')}" in causes
    groups = close.split("<h3>")[1:]
    accepted = re.findall(r'<h4 class="cause">(.*?)</h4>', groups[0])
    assert accepted, "Barely accepted"
    assert not [cause for cause in accepted if ": " in cause], "no words of refusal"
    assert groups[0].count("<bdi>") >= groups[0].count("<article"), "titles"
    for group in groups:
        here = re.findall(r'<h4 class="cause">(.*?)</h4>', group)
        assert len(set(here)) == len(here)
    lines = [unescape(line).encode() for line in re.findall(r'<p class="mono small">(\{.*?\})</p>', close)]
    assert len(lines) == 2 * close.count('<article class="card">')
    values = [parse_label(line) for line in lines]
    assert {label.label for label in values} == {Judgement.CORRECT, Judgement.INCORRECT}
    assert all(one.pair == other.pair for one, other in zip(values[::2], values[1::2], strict=True))


def test_a_pair_without_two_addresses_has_no_label() -> None:
    page = CardSide("http://a.example/\u202e", 1, "")
    assert Card("near_duplicate", page).labels() == []
    assert Card("edited", page, page).labels() == []
    assert Card("near_duplicate", page, CardSide("", 2, "")).labels() == []
    line, _ = Card("near_duplicate", page, CardSide("http://b.example/", 2, "")).labels()
    assert "\\u202e" in line
    assert line.isascii()
