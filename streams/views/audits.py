"""Audited pairs on the pages: what the matcher drew for people to check, and what they have said of it.

Kept in memory, the newest of them: a topic or a file has them all, and `neardup evaluate --audit` counts them.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from neardup.errors import BadInput
from neardup.evaluation.pairs.labels import LINE_BYTES_MAX, Label
from neardup.evaluation.rules.audits import SAMPLES, AuditPair, audited, read_audits
from streams.views.lists import CHARS_KEPT

Facts = dict[str, Any]

PAIRS_KEPT = 1_000


class Audits(Protocol):
    """Where the pairs are."""

    def pairs(self) -> Sequence[AuditPair]:
        """Those that are kept, in the order in which they were drawn first. Raises NeardupError."""
        ...


class AuditedPairs:
    """The newest PAIRS_KEPT pairs of the lines that were taken in; of two URLs the last line counts."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], AuditPair] = {}

    def take(self, line: bytes) -> None:
        """A line that is none of an audit's pairs is passed over. Raises BadInput for one of another version."""
        pair = audited(line) if len(line) <= LINE_BYTES_MAX else None
        if pair is not None:
            self.add(pair)

    def add(self, pair: AuditPair) -> None:
        if max(len(pair.a), len(pair.b)) > CHARS_KEPT:
            return
        self._held[pair.urls] = pair
        while len(self._held) > PAIRS_KEPT:
            del self._held[next(iter(self._held))]

    def pairs(self) -> Sequence[AuditPair]:
        return list(self._held.values())


def audits_of(path: Path) -> AuditedPairs:
    """Those of a file, as it is now. Raises BadInput."""
    out = AuditedPairs()
    for pair in read_audits([path]).pairs:
        out.add(pair)
    return out


class NoAudits:
    """Where nobody said where pairs are."""

    def pairs(self) -> Sequence[AuditPair]:
        raise BadInput("no audit is named: on the stream set audit_topic as the matcher has it, of a scan --audit FILE")


def listed(
    pairs: Sequence[AuditPair], labels: Sequence[Label], sample: str, cut: Callable[[Sequence[Any]], Facts]
) -> Facts | str:
    """What the page of audits says; of one sample, or of all where that is empty. cut: makes pages of a list."""
    if sample and sample not in SAMPLES:
        return f"No sample {sample[:40]!r}; there is {', '.join(SAMPLES)}"
    said: dict[tuple[str, str], dict[str, str]] = {}
    for label in labels:
        said.setdefault(label.pair, {})[label.labeller] = label.label
    samples = {str(name): sum(pair.sample == name for pair in pairs) for name in SAMPLES}
    chosen = [pair for pair in reversed(pairs) if not sample or pair.sample == sample]
    found = cut(chosen)
    return {
        "samples": {name: count for name, count in samples.items() if count},
        "sample": sample or None,
        "labelled": sum(pair.urls in said for pair in pairs),
        **found,
        "items": [_item(pair, said.get(pair.urls, {})) for pair in found["items"]],
    }


def _item(pair: AuditPair, said: Mapping[str, str]) -> Facts:
    b_similarity, c_similarity, tape_score = pair.numbers
    return {
        "a": pair.a,
        "b": pair.b,
        "sample": pair.sample,
        "live": _ruling(pair.live),
        "shadow": None if pair.shadow is None else _ruling(pair.shadow),
        "b_similarity": b_similarity,
        "c_similarity": c_similarity,
        "tape_score": tape_score,
        "labels": dict(said),
    }


def _ruling(ruling: tuple[str, str]) -> Facts:
    return {"kind": ruling[0] or None, "by": ruling[1]}
