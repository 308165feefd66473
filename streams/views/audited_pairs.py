"""Audited pairs, for the web page *Audits*: pairs that the matcher drew for labelling, and their labels.

The newest pairs are kept in memory. The audit topic or file has all pairs; `neardup evaluate --audit` measures them.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from neardup.errors import BadInput
from neardup.evaluation.audits import SAMPLES, AuditPair, audited, read_audits
from neardup.evaluation.labels import LINE_BYTES_MAX, Label
from streams.views.lists import CHARS_KEPT, Facts

PAIRS_KEPT = 1_000


class Audits(Protocol):
    """A source of audited pairs."""

    def pairs(self) -> Sequence[AuditPair]:
        """Return the kept pairs, in the order in which they were first drawn. Raises NeardupError."""
        ...


class AuditedPairs:
    """Keeps the newest PAIRS_KEPT pairs. A later line about the same two URLs replaces an earlier one."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], AuditPair] = {}

    def take(self, line: bytes) -> None:
        """Read a line; skip it if it is not an audited pair. Raises BadInput for another version."""
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
    """Read a file. Raises BadInput."""
    out = AuditedPairs()
    for pair in read_audits([path]).pairs:
        out.add(pair)
    return out


class NoAudits:
    """No audit is configured."""

    def pairs(self) -> Sequence[AuditPair]:
        raise BadInput("no audit is configured: set audit_topic to the matcher's topic, or for a scan --audit FILE")


def listed(
    pairs: Sequence[AuditPair],
    labels: Sequence[Label],
    sample: str,
    paged: Callable[[Sequence[Any]], Facts],
    problem: str = "",
) -> Facts | str:
    """Return the facts of the page, or an error text.

    sample: one of SAMPLES; "" for all. paged: returns one page of a list. problem: why there are no pairs.
    """
    if sample and sample not in SAMPLES:
        return f"No sample {sample[:40]!r}; there is {', '.join(SAMPLES)}"
    given: dict[tuple[str, str], dict[str, str]] = {}
    for label in labels:
        given.setdefault(label.pair, {})[label.labeller] = label.label
    samples = {str(name): sum(pair.sample == name for pair in pairs) for name in SAMPLES}
    chosen = [pair for pair in reversed(pairs) if not sample or pair.sample == sample]
    found = paged(chosen)
    return {
        "samples": {name: count for name, count in samples.items() if count},
        "sample": sample or None,
        "problem": problem or None,
        "labelled": sum(pair.urls in given for pair in pairs),
        **found,
        "items": [_item(pair, given.get(pair.urls, {})) for pair in found["items"]],
    }


def _item(pair: AuditPair, labels: Mapping[str, str]) -> Facts:
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
        "labels": dict(labels),
    }


def _ruling(ruling: tuple[str, str]) -> Facts:
    return {"kind": ruling[0] or None, "by": ruling[1]}
