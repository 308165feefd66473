"""Builds the report of a scan: one self-contained HTML file from verdicts, in one pass and bounded memory.

The file loads and runs nothing: styles are inline, pictures are SVG, and its Content-Security-Policy forbids the rest.
Content of pages is escaped. Characters that hide text or change the reading order are replaced.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from neardup.decider import Decider
from neardup.errors import NeardupError
from neardup.report import evidence_sentences, plots
from neardup.report.page_templates import environment, styled
from neardup.report.samples import Card, ReadPage, card, instant
from neardup.report.verdict_counts import SAMPLES, TAPE_BINS, LargeCluster, ReportTally, Verdict
from neardup.rules import REFUSALS, rule_of, why_refused
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.urls import host_of, site_named, site_of
from neardup.verdict import FOUND_BY

#: Samples per verdict shown at once; the rest are folded.
UNFOLDED = 2
SITES_SHOWN, REASONS_SHOWN, HOT_KEYS_SHOWN, PROBLEMS_SHOWN, SOURCES_SHOWN = 20, 20, 30, 30, 50


#: Sites in the filter, those with most samples first.
SITES_MAX = 60


class Filter:
    """Filters the report by site and verdict with CSS alone, since the file runs no scripts.

    Each option of two lists has a rule that hides the other elements. Class names use numbers for sites, so that no
    content of a page enters a style. sites: (class, site). kinds: (class, kind). Both in list order.
    """

    def __init__(self, cards: Iterable[Card], kinds: Sequence[str], clusters: Iterable[str] = ()) -> None:
        """Collects the options.

        cards: all cards shown. kinds: verdicts in their order. clusters: sites of the clusters shown.
        """
        cards = list(cards)
        counts = Counter(card.site for card in cards if card.site) + Counter(site for site in clusters if site)
        named = sorted(counts, key=lambda site: (-counts[site], site))[:SITES_MAX]
        self._numbers = {site: f"site-{number}" for number, site in enumerate(named)}
        self.sites = [(self._numbers[site], site) for site in sorted(named)]
        there = {card.kind for card in cards}
        self.kinds = [(f"kind-{kind}", kind) for kind in kinds if kind in there]

    def classes(self, site: str, kind: str = "") -> str:
        """Returns the classes of an element about a page of this site, and about this verdict if one is given."""
        judged = [f"judged kind-{kind}"] if any(kind == one for _, one in self.kinds) else []
        return " ".join(["placed", self._numbers.get(site, "elsewhere"), *judged])

    @property
    def style(self) -> str:
        """Returns the CSS. A group without visible elements is hidden with its title."""
        rules = []
        for select, of, choices in (("by-site", "placed", self.sites), ("by-verdict", "judged", self.kinds)):
            for name, _ in choices:
                chosen = f'main:has(#{select} option[value="{name}"]:checked)'
                rules.append(f"{chosen} .{of}:not(.{name}), {chosen} .group:not(:has(.{name})) {{ display: none; }}")
        return "\n".join(rules) + "\n"


class SourceInfo(NamedTuple):
    """A file or folder of the input. pages: number of records, None if unknown."""

    name: str
    digest: str = ""
    pages: int | None = None


class HotKey(NamedTuple):
    """An index key that too many representatives share. family: the kind of key."""

    family: str
    key: str


@dataclass(frozen=True)
class ReportInfo:
    """Facts that verdicts do not contain. made_at: ms since the epoch. problems: lines for the operator."""

    decider: Decider
    scheme_digest: str = ""
    sources: Sequence[SourceInfo] = ()
    problems: Sequence[str] = ()
    hot_keys: Sequence[HotKey] = ()
    hot_keys_total: int = 0
    made_at: int | None = None


def build_report(
    verdicts: Iterable[Verdict],
    read_page: ReadPage,
    info: ReportInfo,
    expect: Callable[[Sequence[Mapping[str, Any]]], None] | None = None,
) -> str:
    """Builds the report as HTML. Reads `verdicts` (the JSON of `neardup.verdict`) once, then at most 120 pages.

    Args:
        verdicts: all verdicts.
        read_page: returns the page at the coordinates of a verdict, or None. The report quotes NeardupError or OSError
            from it.
        info: facts that verdicts do not contain.
        expect: receives the coordinates of all pages that `read_page` is called for afterwards, some of them twice.
    """
    tally = ReportTally(info.decider)
    for verdict in verdicts:
        tally.add(verdict)
    if expect is not None:
        places: list[Mapping[str, Any]] = []
        _shown(tally, places.append, info.decider)
        expect(places)
    return _render(tally, read_page, info)


#: Titles do not depend on the seed.
_TITLING = Scheme(seed=0)
_environment = environment(__package__)
_environment.filters["percent"] = evidence_sentences.percent
_environment.filters["key_name"] = evidence_sentences.key_name


class _Shown(NamedTuple):
    """What the report shows of single pages: cards, sites, and large clusters with title and site."""

    close: list[tuple[str, str, list[tuple[str, list[Card]]]]]
    samples: list[tuple[str, str, str, list[Card]]]
    sites: list[tuple[str, int, int]]
    largest: list[tuple[LargeCluster, str, str]]
    of_sites: list[Card]
    cards: list[Card]


def _shown(tally: ReportTally, read_page: ReadPage, decider: Decider) -> _Shown:
    """Which pages are shown does not depend on what `read_page` returns."""

    def card_of(verdict: Verdict, *, against_nearest: bool = False) -> Card:
        return card(verdict, read_page, decider, against_nearest=against_nearest)

    close, samples = _close_calls(tally, card_of), _samples(tally, card_of)
    sites = tally.sites.top(SITES_SHOWN)
    largest = [
        (cluster, _title(cluster, read_page), _site(cluster.representative)) for cluster in tally.clusters.largest()
    ]
    shown = [card for *_, groups in close for _, cards in groups for card in cards]
    shown += [card for *_, cards in samples for card in cards]
    # one pair for each of these sites that has a pair and none shown yet
    there = {one.page.page_id for one in shown}
    chosen = [v for site, *_ in sites if site in tally.of_sites for v in tally.of_sites[site].chosen()]
    of_sites = [card_of(v) for v in chosen if v.get("page_id") not in there]
    return _Shown(close, samples, sites, largest, of_sites, [*shown, *of_sites])


def _render(tally: ReportTally, read_page: ReadPage, info: ReportInfo) -> str:
    decider = info.decider
    shown = _shown(tally, read_page, decider)
    chooser = Filter(shown.cards, list(evidence_sentences.KINDS), [site for *_, site in shown.largest])
    return _environment.get_template("report.html.j2").render(
        info=info,
        decider=decider,
        tally=tally,
        **styled(chooser.style),
        made_at=instant(info.made_at),
        thresholds=[(name, value) for name, value in asdict(decider).items() if name not in ("scheme", "sites")],
        kinds=[(kind, *evidence_sentences.KINDS[kind], tally.verdicts[kind]) for kind in evidence_sentences.KINDS],
        unknown_kinds={k: n for k, n in tally.verdicts.items() if k not in evidence_sentences.KINDS},
        flags=[
            (flag.replace("_", " "), meaning, tally.flags[flag])
            for flag, meaning in evidence_sentences.FLAGS.items()
            if tally.flags[flag]
        ],
        kept_apart=[(by, why_refused(by), n) for by, n in tally.kept_apart.most_common(20)],
        ruled_out=[(by, why_refused(by), n) for by, n in tally.ruled_out.most_common(20)],
        found_by=[(by, evidence_sentences.FOUND_BY_WORDS[by], tally.found_by[by]) for by in FOUND_BY if tally.found_by],
        pictures=_pictures(tally),
        share=plots.share,
        close=shown.close,
        samples=shown.samples,
        of_sites=shown.of_sites,
        chooser=chooser,
        names={kind: name for kind, (name, _) in evidence_sentences.KINDS.items()},
        sites=shown.sites,
        reasons=tally.reasons.top(REASONS_SHOWN),
        largest=shown.largest,
        limits={"hot": HOT_KEYS_SHOWN, "problems": PROBLEMS_SHOWN, "sources": SOURCES_SHOWN, "unfolded": UNFOLDED},
        glossary=evidence_sentences.GLOSSARY,
    )


def _title(cluster: LargeCluster, read_page: ReadPage) -> str:
    """Returns the representative's title; empty if its page cannot be read."""
    if cluster.place is None:
        return ""
    try:
        page = read_page(cluster.place)
        if page is None:
            return ""
        sketch = Sketch(sketch_pages([page], _TITLING)[0])
        return sketch.title if sketch.url == cluster.representative else ""  # else the source has changed
    except (NeardupError, OSError):
        return ""


def _site(url: str) -> str:
    try:
        return site_named(url, site_of(host_of(url)))
    except NeardupError:
        return ""


def _pictures(tally: ReportTally) -> dict[str, Markup | None]:
    """Draws charts; None for an empty one."""
    thresholds = rule_of(tally.decider).drawn(tally.decider)
    scores = tally.tape_accepted, tally.tape_rejected, tally.tape_vetoed
    b_min, c_min = thresholds.get("b_similarity"), thresholds.get("c_similarity")
    low = min(320, min(tally.c_similarity, default=320) // 16 * 16)
    return {
        "tape": plots.tape_scores(*scores, tally.thresholds(), TAPE_BINS) if any(map(any, scores)) else None,
        "b": plots.bars("B-similarity of accepted pairs", "equal supershingles", tally.b_similarity, 0, 6, b_min),
        "c": plots.bars("C-similarity of accepted pairs", "agreeing bits", tally.c_similarity, low, 384, c_min),
        "sizes": plots.sizes(tally.clusters.distribution()),
    }


def _close_calls(
    tally: ReportTally, card_of: Callable[..., Card]
) -> list[tuple[str, str, list[tuple[str, list[Card]]]]]:
    """Returns (title, text, cards by cause) for each group of close calls."""
    groups = (
        (
            "Barely accepted",
            "Near duplicates with the lowest accepted scores. If these pages should not have been merged, the "
            "threshold is too low for this crawl.",
            tally.close_accepted,
            False,
        ),
        (
            "Barely rejected",
            "The nearest candidate's score was just too low. If these are duplicates to you, the threshold is "
            "too high for this crawl.",
            tally.close_rejected,
            True,
        ),
        (
            "Most similar of those kept apart",
            "The texts are similar enough, but titles, headings, paths or other pages of the site tell the two apart.",
            tally.close_vetoed,
            True,
        ),
    )
    return [
        (title, text, _by_cause([card_of(v, against_nearest=rejected) for v in sample.chosen()], rejected))
        for title, text, sample, rejected in groups
    ]


def _by_cause(cards: Iterable[Card], rejected: bool) -> list[tuple[str, list[Card]]]:
    """Groups cards by the step that decided, ordered by the closest call of each step.

    rejected: whether the step rejected the pair; only then its refusal is named.
    """
    out: dict[str, list[Card]] = {}
    for one in cards:
        cause = f"Step {one.by}" + (f": {REFUSALS[one.by].words}" if rejected and one.by in REFUSALS else "")
        out.setdefault(cause, []).append(one)
    return list(out.items())


def _samples(tally: ReportTally, card_of: Callable[..., Card]) -> list[tuple[str, str, str, list[Card]]]:
    """Returns samples by verdict, without the pairs among the closest calls."""
    close = (tally.close_accepted, tally.close_rejected, tally.close_vetoed)
    shown = {v.get("page_id") for sample in close for v in sample.chosen()}
    out = []
    for kind in SAMPLES:
        fresh = [v for v in tally.samples[kind].chosen() if v.get("page_id") not in shown]
        if fresh:
            out.append((kind, *evidence_sentences.KINDS[kind], [card_of(v) for v in fresh]))
    return out


__all__ = ["HotKey", "ReadPage", "ReportInfo", "SourceInfo", "build_report"]
