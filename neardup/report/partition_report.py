"""Builds the report of a partition: its sets, and pairs side by side, in one self-contained HTML file."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from neardup.page import Page
from neardup.report import evidence_sentences, plots
from neardup.report.page_templates import environment, styled
from neardup.report.samples import Card, CardSide, instant, page_text
from neardup.report.verdict_counts import SmallestSample, by_hash
from neardup.urls import name_of

#: (source, offset) of a document in sets.jsonl.
Place = tuple[str, int]
#: Reads the pages at some places. Pages that are gone or changed are missing from the result.
ReadPages = Callable[[set[Place]], Mapping[Place, Page]]
CLOSE, DRAWN = 8, 8

_environment = environment("neardup.report")
_environment.filters["percent"] = evidence_sentences.percent


class Pairs:
    """Samples members with their evidence page from the lines of sets.jsonl: the least similar, and some by hash."""

    def __init__(self) -> None:
        self.scores: Counter[int] = Counter()  # percent
        self.close = SmallestSample(CLOSE, lambda pair: float(pair["score"]))
        self.drawn = SmallestSample(DRAWN, lambda pair: by_hash(pair["url"]))

    def add(self, line: Mapping[str, Any]) -> None:
        """Adds one set."""
        places = {one["url"]: one for one in (line["representative"], *line["members"])}
        for member in line["members"]:
            other = places.get(member.get("near", ""))
            if other is not None:
                self.scores[int(100 * member["score"])] += 1
                pair = {**member, "other": other}
                self.close.add(pair)
                self.drawn.add(pair)


def partition_report(
    summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], read_pages: ReadPages, made_at: int | None = None
) -> str:
    """Builds the report as HTML. summary: content of summary.json. lines: lines of sets.jsonl, read once.

    read_pages: called once with all pages that are shown.
    """
    pairs = Pairs()
    for line in lines:
        pairs.add(line)
    close = pairs.close.chosen()
    seen = {pair["url"] for pair in close}
    drawn = [pair for pair in pairs.drawn.chosen() if pair["url"] not in seen]
    places = {_place(side) for pair in (*close, *drawn) for side in (pair, pair["other"])}
    pages = read_pages(places) if places else {}
    parameters = summary["plan"].get("parameters", {})
    return _environment.get_template("partition.html.j2").render(
        summary=summary,
        method=parameters.get("method") or parameters.get("rule", ""),
        parameters={name: value for name, value in parameters.items() if name != "model"},  # a model is pages of JSON
        made_at=instant(made_at),
        missed=missed(summary),
        sizes=plots.sizes({int(size): many for size, many in summary["sizes"].items()}),
        scores=plots.bars("Resemblance of members", "percent", pairs.scores, 0, 100),
        groups=[
            (
                "Least similar",
                "Members with the lowest accepted resemblance. If these pages should not be in one set, the "
                "thresholds are too low for this corpus.",
                [_card(pair, pages) for pair in close],
            ),
            ("Random sample", "The same pairs for the same sets.", [_card(pair, pages) for pair in drawn]),
        ],
        **styled(""),
    )


def missed(summary: Mapping[str, Any]) -> list[str]:
    """Returns sentences about the near-duplicates that the method cannot find. summary: content of summary.json."""
    counts, parameters = summary["counts"], summary["plan"].get("parameters", {})
    alone, of = counts["alone"], f"{counts['alone']:,} of {counts['documents']:,} documents"
    if parameters.get("rule"):
        few = f"fewer than {parameters['thin_tokens']} tokens" if "thin_tokens" in parameters else "too few tokens"
        out = [f"{of} have {few}, so only equal texts were found for them."] if alone else []
        return [*out, "Pages that share no key were not compared: of repeats with many edits, some are missed."]
    out = []
    if alone:
        out.append(
            f"{of} have no signature, so only equal texts were found for them: neardup partition --method verified "
            "finds near-duplicates among shorter texts."
        )
    if counts["uncompared"]:
        out.append(
            f"{counts['uncompared']:,} documents were left uncompared in large sets: --set rounds=0 compares all."
        )
    return [*out, "Documents without a common signature were not compared."]


def _place(side: Mapping[str, Any]) -> Place:
    return side["source"], side["offset"]


def _card(pair: Mapping[str, Any], pages: Mapping[Place, Page]) -> Card:
    other = pair["other"]
    out = Card("similar", CardSide(pair["url"], None, ""), CardSide(other["url"], None, ""), "evidence page")
    contained = f", containment {pair['containment']:.0%}" if "containment" in pair else f", decided by {pair['by']}"
    out.sentences = [f"Resemblance {pair['score']:.0%}{contained}."]
    texts = []
    for side in (pair, other):
        page = pages.get(_place(side))
        text = None if page is None else page_text(page)
        texts.append(text)
        if text is None:
            out.notes.append(f"The text of {name_of(side['url'])} cannot be shown: its source is gone or has changed.")
    out.compare(*texts)
    return out
