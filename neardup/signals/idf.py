"""Compares two pages by their top terms, as ranked lists (Huffman 2007)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Annotated, Any

from msgspec import Meta, Struct

from neardup.errors import BadInput
from neardup.typed_json import typed

#: Terms of a ranked list (ours).
TOP_TERMS = 30
#: Terms kept in a table, so that a model stays a file that people can open.
TERMS_MAX = 50_000


class _Table(Struct):
    """A table as JSON."""

    documents: Annotated[int, Meta(ge=0)]
    terms: dict[str, int]


@dataclass(frozen=True)
class Idf:
    """Counts the documents that contain each term. Terms that are not in the table count as in one document.

    Without documents all terms weigh the same, and lists rank by term frequency.
    """

    documents: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Iterable[str]]) -> "Idf":
        """Builds the table from the terms of some documents: the TERMS_MAX most frequent terms that occur in two or
        more.
        """
        counts: Counter[str] = Counter()
        many = 0
        for terms in documents:
            many += 1
            counts.update(set(terms))
        kept = sorted(((term, count) for term, count in counts.items() if count > 1), key=lambda one: (-one[1], one[0]))
        return cls(many, dict(kept[:TERMS_MAX]))

    def weight(self, term: str) -> float:
        """Returns ln(documents / documents with the term)."""
        return log(max(1.0, self.documents / self.counts.get(term, 1))) if self.documents else 1.0

    def top(self, terms: Sequence[str]) -> list[str]:
        """Returns the TOP_TERMS terms of greatest tf x log idf, ties by name, without terms of weight 0."""
        weighed = [(-count * self.weight(term), term) for term, count in Counter(terms).items()]
        return [term for weight, term in sorted(weighed)[:TOP_TERMS] if weight]

    def to_json(self) -> dict[str, Any]:
        return {"documents": self.documents, "terms": dict(self.counts)}

    @classmethod
    def from_json(cls, value: Any, where: str) -> "Idf":
        """Reads a table. Raises BadInput for anything else."""
        try:
            table = typed(value, _Table)
        except ValueError as error:
            raise BadInput(f'{where}: "idf" is not a table of documents and terms: {error}') from error
        if any(not 0 < count <= table.documents for count in table.terms.values()):
            raise BadInput(f'{where}: "idf" has a term whose count is not between 1 and the number of documents')
        return cls(table.documents, table.terms)


def tfidf_distance(a: Sequence[str], b: Sequence[str]) -> float:
    """Computes 1 - sum over w in La of weight(A, B, w) / sum over w in La of weight(A, A, w); La is the longer list.

    weight(A, B, w) = 1 / max(pos(w, La), pos(w, Lb)), 0 if w is in one list only. Moves among the top terms count most
    (the formula is ours; the paper only states that effect). Two empty lists have distance 0.

    a, b: ranked lists of terms.
    """
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    if not longer:
        return 0.0
    place = {term: number for number, term in enumerate(shorter, 1)}
    own = sum(1 / number for number in range(1, len(longer) + 1))
    shared = sum(1 / max(number, place[term]) for number, term in enumerate(longer, 1) if term in place)
    return max(0.0, 1 - shared / own)
