"""Reads audits of a live run: pairs sampled around its threshold and where a shadow rule disagreed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from neardup.errors import BadInput, BadPage
from neardup.evaluation.corpus import Corpus
from neardup.evaluation.labels import LINE_BYTES_MAX, Judgement, Label, lines_at
from neardup.evaluation.sampling import Drawn
from neardup.evaluation.sections import Cell, ResultTable, Section, count, ratio, share, text
from neardup.shadow import AUDIT_VERSION, Stratum
from neardup.tolerant_json import loads
from neardup.urls import normalise_url
from neardup.verdict import Disagreement, Kind

#: Pairs in the table of samples; all are counted.
SHOWN_MAX = 100
_NEAR = Kind.NEAR_DUPLICATE
#: Texts for the reasons to sample a pair.
SAMPLES: dict[str, str] = {
    Disagreement.LIVE_MERGES: "the live rule merges, the shadow does not",
    Disagreement.SHADOW_MERGES: "the shadow rule merges, the live one does not",
    Disagreement.OTHER_REPRESENTATIVE: "both merge, with another page",
    Disagreement.OTHER_CONTENT: "same content as another page",
    Stratum.ACCEPTED: "merged, close to the threshold",
    Stratum.REJECTED: "not merged, close below the threshold",
    Stratum.REFUSED: "above the threshold and not merged: a veto or another step",
}
_COUNTS = {"pages": "pages with candidates", "pairs": "their candidates"} | {
    name: SAMPLES[name] for name in Disagreement
}


class AuditPair(NamedTuple):
    """One sampled pair.

    a, b: normalised URLs; a is the URL of the earlier page.
    sample: a key of SAMPLES.
    live, shadow: kind and step of the two rulings; `shadow` is None without a shadow rule.
    numbers: B-similarity, C-similarity and tape score.
    page_ids: page ids of a and b; -1 for an unknown page id.
    """

    a: str
    b: str
    sample: str
    live: tuple[str, str]
    shadow: tuple[str, str] | None
    numbers: tuple[int, int, float]
    page_ids: tuple[int, int] = (-1, -1)

    @property
    def urls(self) -> tuple[str, str]:
        """Returns the URLs in the order of a label."""
        return min(self.a, self.b), max(self.a, self.b)


@dataclass
class AuditRecords:
    """The content of audit files.

    pairs: the last line of each pair of URLs, in order of first occurrence. counts: sums over all runs.
    unreadable: number of lines that are no audit records, such as a torn line after a crash.
    """

    pairs: list[AuditPair] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0


def read_audits(paths: Iterable[Path]) -> AuditRecords:
    """Reads audit files. Raises BadInput for an unreadable file, another version, or a file without audit records."""
    out = AuditRecords()
    held: dict[tuple[str, str], AuditPair] = {}
    for path in paths:
        read = 0
        for place, line in lines_at(path, "the audit"):
            try:
                record = _record(line)
            except BadInput as error:
                raise BadInput(f"{place}: {error}") from error
            if isinstance(record, AuditPair):
                held[record.urls] = record
            elif record is not None:
                out.counts.update(record)
            read += record is not None
            out.unreadable += record is None
        if not read:
            raise BadInput(f"{path} has no audit records; make them with: neardup scan --audit {path}")
    out.pairs = list(held.values())
    return out


def audited(line: bytes) -> AuditPair | None:
    """Parses the pair of a line; None for any other line. Raises BadInput for another version."""
    record = _record(line)
    return record if isinstance(record, AuditPair) else None


def _record(line: bytes) -> AuditPair | dict[str, int] | None:
    """Parses a line: a pair, or counts by name; None for any other line. Raises BadInput for another version."""
    try:
        if len(line) > LINE_BYTES_MAX:
            return None
        value = loads(line)
        what = value["audit"]
        if value["version"] == AUDIT_VERSION:
            if what == "counts":
                return {name: int(value.get(name, 0)) for name in _COUNTS}
            return _pair(value) if what == "pair" else None
    except (ValueError, TypeError, KeyError, AttributeError, BadPage):
        return None
    raise BadInput(f"version {value['version']!r}; this program reads version {AUDIT_VERSION}")


def _pair(value: dict[str, Any]) -> AuditPair:
    numbers, shadow = value["pair"], value.get("shadow")
    if value["sample"] not in SAMPLES:
        raise ValueError
    return AuditPair(
        normalise_url(value["a"]["url"]),
        normalise_url(value["b"]["url"]),
        value["sample"],
        _ruling(value["live"]),
        None if shadow is None else _ruling(shadow),
        (int(numbers["b_similarity"]), int(numbers["c_similarity"]), float(numbers["tape_score"])),
        (int(value["a"].get("page_id", -1)), int(value["b"].get("page_id", -1))),
    )


def _ruling(value: dict[str, Any]) -> tuple[str, str]:
    kind = value["kind"]
    return ("" if kind is None else str(Kind(kind)), str(value["by"])[:100])


def drawn_of(audit: AuditRecords, corpus: Corpus) -> list[Drawn]:
    """Returns the pairs to label whose pages are in the corpus, in the order of the audit.

    Leaves out pairs of equal pages, of which the corpus keeps one. Raises BadInput if no pair is left.
    """
    out: dict[tuple[int, int], Drawn] = {}
    for pair in audit.pairs:
        a, b = corpus.find(pair.a), corpus.find(pair.b)
        if a is not None and b is not None and a != b:
            out.setdefault((min(a, b), max(a, b)), Drawn(min(a, b), max(a, b), f"audit: {pair.sample}"))
    if not out:
        raise BadInput(f"audit pairs with both pages in this crawl: none of {len(audit.pairs):,}")
    return list(out.values())


def audit_section(audit: AuditRecords, labels: Sequence[Label]) -> Section:
    """Measures live accuracy: sampled pairs, their labels, and disagreements of a shadow rule."""
    votes: dict[tuple[str, str], Counter[Judgement]] = {}
    for label in labels:
        votes.setdefault(label.pair, Counter())[label.label] += 1
    most = {pair: counts.most_common(2) for pair, counts in votes.items()}
    judged = {pair: top[0][0] for pair, top in most.items() if len(top) == 1 or top[0][1] > top[1][1]}
    tables = [_samples(audit, judged)]
    if audit.counts:
        tables.insert(0, _counts(audit))
    tables.append(_shown(audit, judged))
    missing = (
        "" if audit.pairs else "No pair was sampled: no page had a candidate near the threshold, or the rate is 0."
    )
    if audit.unreadable:
        missing = f"{missing} Skipped lines that are no audit records: {audit.unreadable:,}.".strip()
    return Section(
        "audit",
        "Live accuracy: pairs sampled by the matcher, and its shadow rule",
        "The shadow rule judges the live rule's candidates in the live rule's index. A pair is right if it is labelled "
        "correct and the rule merges it, or labelled incorrect and the rule does not.",
        tables,
        [],
        missing,
    )


def _counts(audit: AuditRecords) -> ResultTable:
    pages = audit.counts["pages"]
    rows: list[list[Cell]] = [
        [words, audit.counts[name], None if name == "pairs" else ratio(audit.counts[name], pages)]
        for name, words in _COUNTS.items()
    ]
    note = "All judged pages, sampled or not. A killed run writes no counts to a file."
    columns = text("") | count("count") | share("share")
    return ResultTable("audit-counts", "What the shadow rule disagrees about", columns, rows, note)


def _samples(audit: AuditRecords, judged: dict[tuple[str, str], Judgement]) -> ResultTable:
    rows: list[list[Cell]] = []
    for sample, words in SAMPLES.items():
        if here := [pair for pair in audit.pairs if pair.sample == sample]:
            labels = [judged.get(pair.urls) for pair in here]
            right = [
                _right(rulings, labels) for rulings in ([pair.live for pair in here], [pair.shadow for pair in here])
            ]
            counts = [labels.count(one) for one in (Judgement.CORRECT, Judgement.INCORRECT)]
            rows.append([words, len(here), *counts, *right])
    columns = text("reason") | count("pairs", "labelled correct", "incorrect")
    columns |= share("live rule right", "shadow rule right")
    return ResultTable("audit-samples", "Sampled pairs", columns, rows, "A dash: no labels, or no shadow rule.")


def _right(rulings: Sequence[tuple[str, str] | None], labels: Sequence[Judgement | None]) -> float | None:
    expected = {Judgement.CORRECT: True, Judgement.INCORRECT: False}
    right = [
        (ruling[0] == _NEAR) is expected[label]
        for ruling, label in zip(rulings, labels, strict=True)
        if ruling is not None and label in expected
    ]
    return ratio(sum(right), len(right))


def _shown(audit: AuditRecords, judged: dict[tuple[str, str], Judgement]) -> ResultTable:
    # disagreements by sample, then the others in their order
    order = {sample: place for place, sample in enumerate(SAMPLES) if sample in set(Disagreement)}
    rows: list[list[Cell]] = []
    for pair in sorted(audit.pairs, key=lambda pair: order.get(pair.sample, len(order)))[:SHOWN_MAX]:
        rulings = [ruling and f"{ruling[0] or 'no'} ({ruling[1]})" for ruling in (pair.live, pair.shadow)]
        rows.append([pair.sample, pair.a, pair.b, *pair.numbers, *rulings, judged.get(pair.urls)])
    columns = text("sample", "earlier page", "page") | count("B-similarity", "C-similarity") | share("tape")
    columns |= text("live", "shadow", "label")
    note = f"At most {SHOWN_MAX} of {len(audit.pairs):,} pairs, disagreements first."
    return ResultTable("audit-pairs", "Samples", columns, rows, note)
