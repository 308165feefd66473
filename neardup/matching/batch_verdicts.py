"""The verdicts of a batch, in order, and what they have in common."""

from collections import Counter

from neardup.verdict import Kind, Verdict


class BatchVerdicts(list[Verdict]):
    """The verdicts of a batch, in the order of its records."""

    def name_origin(self, log: str | None, generation: str | None) -> None:
        """Sets log and generation of all verdicts."""
        for verdict in self:
            verdict.log, verdict.generation = log, generation

    def lines(self) -> list[bytes]:
        """Encodes each verdict (`Verdict.to_json`)."""
        return [verdict.to_json() for verdict in self]

    def page_ids(self) -> list[int]:
        """Page ids of the pages' own verdicts, in order."""
        return [verdict.page_id for verdict in self if not verdict.n]

    def urls(self) -> list[bytes]:
        """URL of each verdict, in UTF-8."""
        return [verdict.url.encode("utf-8", "replace") for verdict in self]

    def sources(self) -> set[str]:
        """Sources of the pages' own verdicts."""
        return {verdict.coordinates.source for verdict in self if not verdict.n}

    def kinds(self) -> Counter[Kind]:
        """Number of verdicts by kind."""
        return Counter(verdict.verdict for verdict in self)
