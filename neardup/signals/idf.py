"""Huffman 2007: two pages by their top terms, as ranked lists."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

from neardup.errors import BadInput

#: Terms of a ranked list (ours).
TOP_TERMS = 30
#: Terms that a table keeps: a model stays a file that people can open.
TERMS_MAX = 50_000


@dataclass(frozen=True)
class Idf:
    """In how many of some documents each term occurs. Terms that are not in the table count as of one document.

    Without documents all terms weigh the same: lists rank by how often a term occurs.
    """

    documents: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Iterable[str]]) -> "Idf":
        """The table of some documents' terms; of the terms of two or more the TERMS_MAX of the most."""
        counts: Counter[str] = Counter()
        many = 0
        for terms in documents:
            many += 1
            counts.update(set(terms))
        kept = sorted(((term, count) for term, count in counts.items() if count > 1), key=lambda one: (-one[1], one[0]))
        return cls(many, dict(kept[:TERMS_MAX]))

    def weight(self, term: str) -> float:
        """ln(documents / documents with the term)."""
        return log(max(1.0, self.documents / self.counts.get(term, 1))) if self.documents else 1.0

    def top(self, terms: Sequence[str]) -> list[str]:
        """The TOP_TERMS of greatest tf x log idf, of equal ones by name. None that weighs nothing."""
        weighed = [(-count * self.weight(term), term) for term, count in Counter(terms).items()]
        return [term for weight, term in sorted(weighed)[:TOP_TERMS] if weight]

    def to_json(self) -> dict[str, Any]:
        return {"documents": self.documents, "terms": dict(self.counts)}

    @classmethod
    def from_json(cls, value: Any, where: str) -> "Idf":
        """Raises BadInput for what is no table."""
        try:
            documents, terms = (
                int(value["documents"]),
                {str(term): int(count) for term, count in value["terms"].items()},
            )
        except (TypeError, KeyError, ValueError, AttributeError):
            raise BadInput(f'{where}: "idf" is no table of documents and terms') from None
        if documents < 0 or any(not 0 < count <= documents for count in terms.values()):
            raise BadInput(f'{where}: "idf" has a term of more documents than there are, or of none')
        return cls(documents, terms)


def tfidf_distance(a: Sequence[str], b: Sequence[str]) -> float:
    """1 - sum over w in La of weight(A, B, w) / sum over w in La of weight(A, A, w); La is the longer list.

    a, b: ranked lists of terms. weight(A, B, w) = 1 / max(pos(w, La), pos(w, Lb)), 0 if w is in one list only, so
    that moves among the top terms count most (ours; the paper says only that). Two empty lists are alike.
    """
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    if not longer:
        return 0.0
    place = {term: number for number, term in enumerate(shorter, 1)}
    own = sum(1 / number for number in range(1, len(longer) + 1))
    both = sum(1 / max(number, place[term]) for number, term in enumerate(longer, 1) if term in place)
    return max(0.0, 1 - both / own)
