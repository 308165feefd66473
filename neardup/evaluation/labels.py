"""Reads and writes labels of pairs as JSON lines; a line is one labeller's judgement of two pages at one time.

    {"version": 1, "a": {"url": ...}, "b": {"url": ...}, "label": "correct", "reasons": ["time_stamp"],
     "labeller": "ana", "labelled_at": 1700000000000}

label: correct, incorrect, undecided, or withdrawn (cancels this labeller's earlier label). The order of a and b has no
meaning. The last line of a labeller for a pair counts. Different labels of one labeller without times, and invalid
lines, are errors. The majority of several labellers counts; without one the pair is left out.

"sample" names the samples of the pair. It belongs to the pair, not to the label: a pair sampled twice is in both
samples, for all labellers and times, even after a label is withdrawn.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
from msgspec import Meta, Struct

from neardup.errors import BadInput, BadPage
from neardup.report.reasons import Reason
from neardup.typed_json import decode
from neardup.urls import named_url

LABEL_VERSION = 1
#: Lines of a label file that an error message quotes.
_LINES_QUOTED = 5
LINE_BYTES_MAX = 64_000


class Judgement(StrEnum):
    """Henzinger 2006, sections 3.1 to 3.4. Values are persisted and never change."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    UNDECIDED = "undecided"
    WITHDRAWN = "withdrawn"


REASONS: dict[Judgement, tuple[Reason, ...]] = {
    Judgement.CORRECT: tuple(Reason)[:11],
    Judgement.INCORRECT: (
        *(Reason.MAIN_ITEM, Reason.SERIES, Reason.BOILERPLATE, Reason.SMALL_REPLIES, Reason.TRANSITIVITY),
        Reason.REST,
    ),
    Judgement.UNDECIDED: (Reason.PREFILLED_FORM, Reason.MINOR_ITEM, Reason.CANNOT_EVALUATE, Reason.REST),
}


@dataclass(frozen=True, slots=True)
class Label:
    """One labeller's judgement of a pair. a, b: normalised URLs, a <= b. labelled_at: ms since the epoch."""

    a: str
    b: str
    label: Judgement
    reasons: tuple[Reason, ...] = ()
    labeller: str = ""
    labelled_at: int | None = None
    sample: str = ""  # how the pair was drawn, as "B", "C: same site", or "B + C" if from two samples

    @property
    def pair(self) -> tuple[str, str]:
        return self.a, self.b

    @property
    def samples(self) -> frozenset[str]:
        """Returns the names of the pair's samples, without their strata."""
        return frozenset(name.partition(":")[0].strip() for name in self.sample.split("+")) - {""}

    def to_json(self) -> bytes:
        """Returns one line, newline included."""
        out: dict[str, Any] = {"version": LABEL_VERSION, "a": {"url": self.a}, "b": {"url": self.b}}
        out["label"] = self.label
        out["reasons"] = list(self.reasons)
        for name in ("labeller", "labelled_at", "sample"):
            if getattr(self, name) not in ("", None):
                out[name] = getattr(self, name)
        return orjson.dumps(out) + b"\n"


def united(*samples: str) -> str:
    """Joins samples to one text: each part once, in order; unnamed samples are skipped."""
    parts = (part.strip() for sample in samples for part in sample.split("+"))
    return " + ".join(dict.fromkeys(part for part in parts if part))


def label_of(a: str, b: str, label: Judgement, **more: Any) -> Label:
    """Builds a label of two URLs in any order. Raises BadInput for invalid or equal URLs."""
    try:
        first, second = sorted((named_url(a), named_url(b)))
    except BadPage as error:
        raise BadInput(str(error)) from error
    if first == second:
        raise BadInput(f"a pair of {first} with itself")
    return Label(first, second, label, **more)


class _Version(Struct):
    """What the lines of every version have."""

    version: int = LABEL_VERSION


_Text = Annotated[str, Meta(min_length=1)]


class _Side(Struct):
    url: _Text


class _Line(Struct):
    """A line of a file of labels. A side may be a plain URL."""

    a: _Text | _Side
    b: _Text | _Side
    label: str
    reasons: list[str] | None = None
    labeller: str | None = None
    labelled_at: int | None = None
    sample: str | None = None


def parse_label(line: bytes) -> Label:
    """Parses a line. Raises BadInput for an invalid one."""
    try:
        if (version := decode(line, _Version).version) != LABEL_VERSION:
            raise BadInput(f"version {version}; this program reads version {LABEL_VERSION}")
        given = decode(line, _Line)
    except ValueError as error:
        raise BadInput(str(error)) from error
    try:
        label = Judgement(given.label)
    except ValueError:
        raise BadInput(f"label {given.label!r}: there is {', '.join(Judgement)}") from None
    a, b = (side if isinstance(side, str) else side.url for side in (given.a, given.b))
    more = {"labeller": given.labeller or "", "labelled_at": given.labelled_at, "sample": given.sample or ""}
    return label_of(a, b, label, reasons=_reasons(given.reasons or [], label), **more)


def _reasons(reasons: Sequence[str], label: Judgement) -> tuple[Reason, ...]:
    """Returns the reasons of a label, each once. Raises BadInput for one that does not fit; any fits `withdrawn`."""
    fitting = REASONS.get(label, tuple(Reason))
    strange = [reason for reason in reasons if reason not in fitting]
    if strange:
        raise BadInput(f"reason {strange[0]!r}: with {label} there is {', '.join(fitting)}")
    return tuple(map(Reason, dict.fromkeys(reasons)))


def lines_of(file: BinaryIO, bytes_max: int) -> Iterator[bytes]:
    """Iterates over lines. Yields only the first bytes_max + 1 bytes of a longer line, so memory is bounded."""
    while line := file.readline(bytes_max + 1):
        yield line
        while len(line) > bytes_max and not line.endswith(b"\n"):
            line = file.readline(bytes_max + 1)


def lines_at(path: Path, what: str) -> Iterator[tuple[str, bytes]]:
    """Iterates over the lines of a file that hold text, each with its place, such as "labels.jsonl:7".

    what: name of the content. Raises BadInput for an unreadable file.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(lines_of(file, LINE_BYTES_MAX), 1):
                if line.strip():
                    yield f"{path}:{number}", line
    except OSError as error:
        raise BadInput(f"cannot read {what} {path}: {error.strerror or error}") from error


def read_labels(path: Path) -> list[Label]:
    """Reads the current labels of a file, one per pair and labeller, without withdrawn and replaced ones.

    Raises BadInput with file and lines for an unreadable file, an invalid label, or a contradiction.
    """
    return current((place, _label_at(place, line)) for place, line in lines_at(path, "labels"))


def _label_at(place: str, line: bytes) -> Label:
    try:
        if len(line) > LINE_BYTES_MAX:
            raise BadInput(f"a line of more than {LINE_BYTES_MAX} bytes")
        return parse_label(line)
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def current(labels: Iterable[tuple[str, Label]]) -> list[Label]:
    """Selects the labels that count, each with its line and all samples of its pair.

    Raises BadInput if a labeller has two labels of a pair and no times to order them.
    """
    held: dict[tuple[str, str, str], tuple[str, Label]] = {}
    drawn: dict[tuple[str, str], str] = {}
    for place, label in labels:
        key = (label.a, label.b, label.labeller)
        drawn[label.pair] = united(drawn.get(label.pair, ""), label.sample)
        before = held.get(key)
        if label.label is Judgement.WITHDRAWN:
            held.pop(key, None)
            continue
        if before and before[1].label is not label.label and None in (before[1].labelled_at, label.labelled_at):
            raise BadInput(
                f"{place} says {label.label} and {before[0]} says {before[1].label} of the same pair: {label.a} and "
                f"{label.b}; delete one of the lines, or give both labelled_at: then the later line counts"
            )
        if before and replace(label, sample=before[1].sample) == before[1]:
            continue  # the same label, of a pair that was sampled again
        held.pop(key, None)  # a repeated label moves to the end
        held[key] = place, label
    return [replace(label, sample=drawn[label.pair]) for _, label in held.values()]


@dataclass
class LabelledPairs:
    """Labels joined to a corpus: pair i is pages a[i] < b[i], with one judgement.

    Left out and counted: pairs of unknown pages, pairs within an identity set, pairs without a majority.
    """

    a: list[int] = field(default_factory=list)
    b: list[int] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    identical: int = 0
    split: int = 0
    outvoted: int = 0
    adjudicated: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def count(self, judgement: Judgement) -> int:
        return sum(label.label is judgement for label in self.labels)

    @property
    def decided(self) -> bool:
        """Whether any pair is decided; a rule cannot be measured by undecided pairs alone."""
        return self.count(Judgement.UNDECIDED) < len(self)

    def problems(self) -> list[str]:
        """Returns caveats of the labels for the reader of the figures."""
        named = ", ".join(dict.fromkeys(self.unknown[:_LINES_QUOTED]))
        set_aside = "; identity sets are set aside before anything is measured"
        no_majority = "labelled pairs that are left out, as their labellers contradict each other without a majority"
        caveats = (
            ("labels of pages that are not in this crawl", len(self.unknown), f", as {named}"),
            ("labelled pairs that are equal word for word", self.identical, set_aside),
            (no_majority, self.split, ""),
            ("pairs on which a labeller was outvoted", self.outvoted, ""),
            ("pairs on which labellers differed and the adjudicator decided", self.adjudicated, ""),
        )
        out = [f"{what}: {many:,}{more}" for what, many, more in caveats if many]
        correct = self.count(Judgement.CORRECT)
        if len(self) and not self.decided:
            return [*out, "all labelled pairs are undecided: there is nothing to measure a rule by"]
        if len(self) and not correct:
            out.append("no pair is labelled correct: recall and F1 cannot be computed, and precision means nothing")
        if correct and correct == len(self):
            out.append("all labelled pairs are correct: every rule would have a precision of 1, so none is shown")
        return out


def join_labels(labels: Sequence[Label], find: Callable[[str], int | None], adjudicator: str = "") -> LabelledPairs:
    """Joins labels to a corpus, one per pair, sorted by pages; each with all samples of its pair.

    The majority of a pair's labellers counts, or the adjudicator's label alone if there is one. find: returns the
    number of a URL's page, None for an unknown URL.
    """
    out = LabelledPairs()
    votes: dict[tuple[int, int], list[Label]] = {}
    for label in labels:
        a, b = find(label.a), find(label.b)
        if a is None or b is None:
            out.unknown.append(label.a if a is None else label.b)
        elif a == b:
            out.identical += 1
        else:
            votes.setdefault((min(a, b), max(a, b)), []).append(label)
    for (a, b), given in sorted(votes.items()):
        final = [label for label in given if adjudicator and label.labeller == adjudicator]
        tally = Counter(label.label for label in final or given).most_common()
        if len(tally) > 1 and tally[0][1] == tally[1][1]:
            out.split += 1
            continue
        out.outvoted += len(tally) > 1
        out.adjudicated += bool(final) and any(label.label is not tally[0][0] for label in given)
        out.a.append(a)
        out.b.append(b)
        counts = next(label for label in final or given if label.label is tally[0][0])
        out.labels.append(replace(counts, sample=united(*(label.sample for label in given))))
    return out


def full_agreement(labels: Sequence[Label], adjudicator: str = "") -> dict[str, tuple[int, int]]:
    """Counts pairs on which all judges agree: (pairs of two judges or more, those of one judgement), by kind of pair.

    Huffman 2007's agreement. The kinds: all; duplicates, whose final label (the majority's, or the adjudicator's) is
    correct; others, with another final label or none. Undecided is a judgement like the others.

    adjudicator: labeller that settles pairs; not counted as a judge.
    """
    votes: dict[tuple[str, str], dict[str, Judgement]] = {}
    for label in labels:
        votes.setdefault(label.pair, {})[label.labeller] = label.label
    out = {"all": (0, 0), "duplicates": (0, 0), "others": (0, 0)}
    for by_labeller in votes.values():
        settled = by_labeller.pop(adjudicator, None) if adjudicator else None
        if len(by_labeller) < 2:
            continue
        top = Counter(by_labeller.values()).most_common(2)
        majority = top[0][0] if len(top) == 1 or top[0][1] > top[1][1] else None
        kind = "duplicates" if (settled or majority) is Judgement.CORRECT else "others"
        for each in ("all", kind):
            pairs, agreed = out[each]
            out[each] = pairs + 1, agreed + (len(top) == 1)
    return out


def kappa(labels: Sequence[Label]) -> dict[tuple[str, str], tuple[int, float | None]]:
    """Computes Cohen's kappa of every two labellers: (pairs both labelled, kappa), None if undefined.

    kappa = (p_o - p_e) / (1 - p_e): p_o the share of pairs on which they agree, p_e the share expected by chance from
    how often each uses each label. Undefined without common pairs, or if both always use the same one label.
    """
    by: dict[str, dict[tuple[str, str], Judgement]] = {}
    for label in labels:
        by.setdefault(label.labeller, {})[label.pair] = label.label
    out: dict[tuple[str, str], tuple[int, float | None]] = {}
    for one, other in combinations(sorted(by), 2):
        both = [(by[one][pair], by[other][pair]) for pair in by[one].keys() & by[other].keys()]
        n, value = len(both), None
        if n:
            agreed = sum(a is b for a, b in both) / n
            first, second = Counter(a for a, _ in both), Counter(b for _, b in both)
            chance = sum(first[judgement] * second[judgement] for judgement in Judgement) / n**2
            value = None if chance == 1 else (agreed - chance) / (1 - chance)
        out[one, other] = (n, value)
    return out
