"""A shadow rule beside the live one, and sampling of pairs for audit. Neither changes a verdict or a stored byte.

The shadow rules on the candidates that the live rule scored, in the index that the live rule built. So it shows its
verdict on this page now, and not what its own index would contain by then.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from neardup.decider import Decider, Shapes, shaping
from neardup.errors import BadInput
from neardup.matching.outcome import ComparedPage, Scored
from neardup.pairs.scoring import numbers_of_pairs
from neardup.rules import RULES, Ruling, rule_of
from neardup.rules.base import ruling_of
from neardup.rules.posted_keys import counts_siblings
from neardup.sketch.header import Header
from neardup.verdict import Disagreement, Kind

AUDIT_VERSION = 1
#: Distance of a pair's tape score from the threshold within which it is drawn.
MARGIN = 0.06
#: Pairs of a page and of a message that are drawn at most, so that a template of one page does not fill the file.
PAGE_PAIRS_MAX, MESSAGE_PAIRS_MAX = 4, 128
#: Numbers of the decider that a shadow cannot change: it has the live rule's index, candidates and clusters.
LIVE_ONLY = frozenset(shaping(Shapes.INDEX, Shapes.CANDIDATES, Shapes.CLUSTERS))


class Stratum(StrEnum):
    """Why a pair is sampled although the rules agree, or without a shadow. Values are persisted."""

    ACCEPTED = "accepted"  # merged, close to the threshold
    REJECTED = "rejected"  # not merged, close below the threshold
    REFUSED = "refused"  # above the threshold, and not merged: a veto, or another step


@dataclass
class Counts:
    """Counts of a shadow rule and of an audit.

    pages: number of pages with candidates.
    pairs: number of candidates of these pages.
    drawn: number of pairs that were sampled for audit.
    left_out: number of pairs that were not sampled because of the limits.
    """

    pages: int = 0
    pairs: int = 0
    live_merges: int = 0
    shadow_merges: int = 0
    other_representative: int = 0
    other_content: int = 0
    drawn: int = 0
    left_out: int = 0

    def since(self, before: "Counts") -> "Counts":
        return Counts(**{name: value - getattr(before, name) for name, value in asdict(self).items()})


def shadow_of(live: Decider, rule: str | None, numbers: Mapping[str, int | float]) -> Decider | None:
    """Returns the shadow's decider: the live one with another rule or other numbers. None if neither is given.

    Raises BadInput for an unknown rule, for numbers that need an index of their own, and for the live rule itself.
    """
    if rule is None and not numbers:
        return None
    if rule is not None and rule not in RULES:
        raise BadInput(f"shadow rule {rule}: there is {', '.join(RULES)}")
    for name in numbers:
        if name in LIVE_ONLY:
            raise BadInput(f"the shadow rule has the live rule's index and candidates, so {name} cannot be another")
    shadow = replace(live, rule=rule or live.rule, **numbers)  # type: ignore[arg-type]
    if counts_siblings(shadow) and not counts_siblings(live):
        raise BadInput("the live rule counts no pages by name, so the default rule cannot be its shadow")
    if shadow == live:
        raise BadInput("the shadow rule is the live rule; give it another rule or another number")
    return shadow


#: The order in which pairs are sampled until a bound is reached: disagreements are rare, vetoes are many in templates.
_ORDER: dict[str, int] = dict.fromkeys(Disagreement, 0) | {Stratum.ACCEPTED: 1, Stratum.REJECTED: 1, Stratum.REFUSED: 2}


class _Drawn(NamedTuple):
    order: int
    rank: int
    at: int
    line: bytes


class Auditor:
    """Counts where live rule and shadow disagree, and samples pairs.

    rate: share of the pages whose pairs are sampled. A hash of the page id decides, so batches make no difference. 0:
    none.
    """

    def __init__(self, live: Decider, shadow: Decider | None = None, rate: float = 0.0) -> None:
        self.live, self.shadow = live, shadow
        self.counts = Counts()
        self._below = int(rate * (1 << 64))

    def look(self, weighed: Sequence[ComparedPage]) -> list[bytes]:
        """Counts the pages of one message. Returns the pairs sampled from it as JSON lines."""
        drawn: list[_Drawn] = []
        for one in weighed:
            self.counts.pages += 1
            self.counts.pairs += len(one.choice.scored)
            rulings = self._rulings(one)
            kind = self._compare(one, rulings) if rulings is not None else None
            rank = _rank(one.page_id) if self._below else 0
            if rank < self._below:
                pairs = self._pairs(one, rulings, kind)
                self.counts.left_out += max(0, len(pairs) - PAGE_PAIRS_MAX)
                for sample, at in pairs[:PAGE_PAIRS_MAX]:
                    drawn.append(_Drawn(_ORDER[sample], rank, len(drawn), self._line(one, at, rulings, kind, sample)))
        # Of a full message the pages of least hash stay in each order, not its first ones; lines are in its order.
        kept = sorted(sorted(drawn)[:MESSAGE_PAIRS_MAX], key=lambda one: one.at)
        self.counts.drawn += len(kept)
        self.counts.left_out += len(drawn) - len(kept)
        return [one.line for one in kept]

    def _rulings(self, one: ComparedPage) -> list[Ruling] | None:
        if self.shadow is None:
            return None
        choice, shadow = one.choice, self.shadow
        numbers = numbers_of_pairs([scored.pair for scored in choice.scored])
        names = one.header.site_name, [other.site_name for other in one.headers]
        return list(map(ruling_of, rule_of(shadow).rulings(numbers, shadow, choice.siblings, names)))

    def _compare(self, one: ComparedPage, rulings: list[Ruling]) -> Disagreement | None:
        kind = disagreement(_target(one.choice.best), _target(_best(one.choice.scored, rulings)))
        if kind is not None:
            setattr(self.counts, kind, getattr(self.counts, kind) + 1)
        return kind

    def _pairs(
        self, one: ComparedPage, rulings: list[Ruling] | None, kind: Disagreement | None
    ) -> list[tuple[Disagreement | Stratum, int]]:
        """Returns (reason, number of the candidate) of the pairs to sample; first those on which the rules disagree."""
        scored = one.choice.scored
        out: list[tuple[Disagreement | Stratum, int]] = []
        if kind is not None and rulings is not None:
            best = {found.page_id for found in (one.choice.best, _best(scored, rulings)) if found is not None}
            out += [(kind, at) for at, pair in enumerate(scored) if pair.page_id in best]
        taken = {at for _, at in out}
        for at, pair in enumerate(scored):
            stratum = self._stratum(pair)
            if stratum is not None and at not in taken:
                out.append((stratum, at))
        return sorted(out, key=lambda one: _ORDER[one[0]])

    def _stratum(self, one: Scored) -> Stratum | None:
        over = one.pair.tape_score - one.ruling.plain_demand
        if one.ruling.kind is Kind.NEAR_DUPLICATE:
            return Stratum.ACCEPTED if abs(over) <= MARGIN else None
        if over >= 0:
            return Stratum.REFUSED
        return Stratum.REJECTED if over >= -MARGIN else None

    def _line(
        self, one: ComparedPage, at: int, rulings: list[Ruling] | None, kind: Disagreement | None, sample: str
    ) -> bytes:
        scored = one.choice.scored[at]
        out: dict[str, Any] = {
            "version": AUDIT_VERSION,
            "audit": "pair",
            "sample": sample,
            "a": _place(scored.page_id, one.headers[at]),
            "b": _place(one.page_id, one.header),
            "pair": {name: _rounded(value) for name, value in scored.pair._asdict().items()},
            "live": {"rule": self.live.rule, "decider": self.live.digest, **_ruling(scored, one.choice.best)},
        }
        if self.shadow is not None and rulings is not None:
            by_shadow = scored._replace(ruling=rulings[at])
            best = _best(one.choice.scored, rulings)
            out["shadow"] = {"rule": self.shadow.rule, "decider": self.shadow.digest, **_ruling(by_shadow, best)}
            if kind is not None:
                out["disagreement"] = kind
        return msgspec.json.encode(out) + b"\n"


def disagreement(live: tuple[Kind, int] | None, shadow: tuple[Kind, int] | None) -> Disagreement | None:
    """Compares two results: (kind, page id that it repeats), or None for a page that repeats no other."""
    if live == shadow:
        return None
    merges = [one is not None and one[0] is Kind.NEAR_DUPLICATE for one in (live, shadow)]
    if all(merges):
        return Disagreement.OTHER_REPRESENTATIVE
    if not any(merges):
        return Disagreement.OTHER_CONTENT
    return Disagreement.LIVE_MERGES if merges[0] else Disagreement.SHADOW_MERGES


def _target(best: Scored | None) -> tuple[Kind, int] | None:
    return None if best is None or best.ruling.kind is None else (best.ruling.kind, best.page_id)


def _best(scored: Sequence[Scored], rulings: Sequence[Ruling]) -> Scored | None:
    """Chooses as the live rule does: the greatest rank, then the oldest."""
    accepted = [one._replace(ruling=ruling) for one, ruling in zip(scored, rulings, strict=True) if ruling.kind]
    return max(accepted, key=lambda one: (one.ruling.rank, -one.page_id), default=None)


def _rank(page_id: int) -> int:
    """Computes a hash of 64 bits."""
    digest = hashlib.blake2b(page_id.to_bytes(8, "big"), digest_size=8, person=b"neardup-audit").digest()
    return int.from_bytes(digest, "big")


def _place(page_id: int, header: Header) -> dict[str, Any]:
    """The coordinates by which a page can be found and read again."""
    return {"page_id": page_id, "url": header.url, "fetched_at": header.fetched_at, "coordinates": header.coordinates}


def _ruling(one: Scored, best: Scored | None) -> dict[str, Any]:
    """Describes a ruling. chosen: whether it is the best of all candidates that the rule accepts."""
    out: dict[str, Any] = {"kind": one.ruling.kind, "by": one.ruling.by}
    return out | {"chosen": True} if best is not None and best.page_id == one.page_id else out


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
