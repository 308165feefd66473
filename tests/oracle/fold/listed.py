"""Verdicts that are objects, as a list with the methods of `BatchVerdicts`."""

from collections import Counter

from neardup.limits import PLACE_BITS
from neardup.matching.batch_verdicts import Summary
from neardup.verdict import Kind, Verdict


class ListedVerdicts(list[Verdict]):
    """The verdicts of a batch, in the order of its records."""

    def name_origin(self, log: str | None, generation: str | None) -> None:
        for verdict in self:
            verdict.log, verdict.generation = log, generation

    def lines(self) -> list[bytes]:
        return [verdict.to_json() for verdict in self]

    def text(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines())

    def page_ids(self) -> list[int]:
        return [verdict.page_id for verdict in self if not verdict.n]

    def urls(self) -> list[bytes]:
        return [verdict.url.encode("utf-8", "replace") for verdict in self]

    def sources(self) -> set[str]:
        return {verdict.coordinates.source for verdict in self if not verdict.n}

    def kinds(self) -> Counter[Kind]:
        return Counter(verdict.verdict for verdict in self)

    def summaries(self) -> list[Summary]:
        return [
            Summary(
                *(one.verdict, one.n, one.url, one.site or "", one.coordinates.source),
                *(one.evidence.get("kept_apart", ""), one.reason or "", one.replaces is not None),
            )
            for one in self
        ]

    def by_message(self) -> "dict[int, ListedVerdicts]":
        out: dict[int, ListedVerdicts] = {}
        for verdict in self:
            out.setdefault(verdict.page_id >> PLACE_BITS, ListedVerdicts()).append(verdict)
        return out
