"""Counts verdicts in one pass and bounded memory: counts, distributions, and reproducible samples."""

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from neardup.decider import Decider
from neardup.report.evidence_sentences import FLAGS, reason_kind
from neardup.rules import REFUSALS, rule_of
from neardup.rules.base import margin
from neardup.rules.key_families import found_by
from neardup.standing import DUPLICATES, SHOWN
from neardup.urls import site_of_verdict

Verdict = Mapping[str, Any]

#: Distinct names in a `Leaders` table before it drops the half with the smaller counts.
NAMES_MAX = 50_000
#: Clusters of two or more pages whose size is tracked: some 60 MB at this number. Later ones are only counted.
CLUSTERS_MAX = 500_000
#: Clusters tracked with members' URLs, clusters shown, and URLs shown per cluster.
LARGEST_KEPT, LARGEST_SHOWN, MEMBERS_SHOWN = 64, 15, 5

#: Pairs shown per verdict; with the closest calls at most 40 samples in all.
SAMPLES: dict[str, int] = {
    "near_duplicate": 7,
    "same_content": 4,
    "unique": 4,
    "rejected": 3,
    "exact_duplicate": 2,
    "edited": 2,
    "unchanged": 1,
    "stale": 1,
    "gone": 1,
    "promoted": 1,
}
#: Sites for which one pair is kept; the report shows those of the largest sites.
SITES_SAMPLED_MAX = 2_000
CLOSE_ACCEPTED, CLOSE_REJECTED, CLOSE_VETOED = 5, 5, 4

TAPE_BINS = 50  # of .02 each


class Leaders:
    """Keeps the greatest counts by name, for more names than fit in memory.

    At NAMES_MAX names the half with the smallest counts is dropped; `dropped` is the greatest count dropped. A name
    counted more often than `dropped` times is never missing.
    """

    def __init__(self, names_max: int = NAMES_MAX) -> None:
        self.counts: Counter[str] = Counter()
        self.others: dict[str, int] = {}
        self.dropped = 0
        self._names_max = names_max

    def add(self, name: str, count: int = 1, other: int = 0) -> None:
        """Counts `name`. other: a second number kept beside the first; it does not affect the order."""
        self.counts[name] += count
        self.others[name] = self.others.get(name, 0) + other
        if len(self.counts) > self._names_max:
            order = sorted(self.counts, key=lambda name: (self.counts[name], name))
            for small in order[: len(order) // 2]:
                self.dropped = max(self.dropped, self.counts.pop(small))
                del self.others[small]

    def top(self, count: int) -> list[tuple[str, int, int]]:
        """Returns (name, count, other) by count descending, then name."""
        best = heapq.nsmallest(count, self.counts.items(), key=lambda item: (-item[1], item[0]))
        return [(name, n, self.others[name]) for name, n in best if n]


class SmallestSample:
    """Keeps the `size` verdicts of smallest order; of equal orders the first."""

    def __init__(self, size: int, order: Callable[[Verdict], float]) -> None:
        self._size, self._order, self._seen = size, order, 0
        self._heap: list[tuple[float, int, Verdict]] = []

    def add(self, verdict: Verdict) -> None:
        self._seen += 1
        entry = (-self._order(verdict), -self._seen, verdict)
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, entry)
        elif self._size and entry[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, entry)

    def chosen(self) -> list[Verdict]:
        return [verdict for _, _, verdict in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]


def by_hash(name: str) -> float:
    """Hashes a name to a number in [0, 1)."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest(), "little") / 2**48


def _by_id(verdict: Verdict) -> float:
    return by_hash(f"{verdict.get('page_id')}/{verdict.get('n', 0)}")


@dataclass(slots=True)
class LargeCluster:
    """A large cluster: representative, its coordinates, and the URLs that joined last."""

    size: int
    representative: str
    place: Mapping[str, Any] | None
    members: list[str] = field(default_factory=list)


class ClusterSizes:
    """Tracks sizes of clusters by the last verdict about each."""

    def __init__(self, clusters_max: int = CLUSTERS_MAX) -> None:
        self.founded = 0
        self.unfollowed = False
        self._max = clusters_max
        self._sizes: dict[int, int] = {}
        self._large: dict[int, LargeCluster] = {}
        self._member_of: dict[str, int] = {}  # cluster of each kept URL
        self._least = 0  # no cluster of this size or less enters a full table

    def add(self, verdict: Verdict) -> None:
        cluster, size = verdict.get("cluster"), verdict.get("cluster_size")
        if verdict.get("verdict") in SHOWN and "reclaimed" not in (verdict.get("evidence") or {}):
            self.founded += 1
        if verdict.get("verdict") not in ("rejected", "stale"):  # these change nothing
            self._leave(verdict.get("url", ""), cluster)
        if cluster is None or size is None:
            return
        if size >= 2 and (cluster in self._sizes or len(self._sizes) < self._max):
            self._sizes[cluster] = size
        elif size >= 2:
            self.unfollowed = True
        else:
            self._sizes.pop(cluster, None)
            self._drop(cluster)
        if size >= 2 and (cluster in self._large or len(self._large) < LARGEST_KEPT or size > self._least):
            self._follow(cluster, size, verdict)

    def _follow(self, cluster: int, size: int, verdict: Verdict) -> None:
        kept = self._large.get(cluster)
        if kept is None:
            representative = verdict.get("representative") or {}
            kept = self._large[cluster] = LargeCluster(
                size, representative.get("url", ""), representative.get("coordinates")
            )
        kept.size = size
        url = verdict.get("url", "")
        if verdict.get("verdict") == "promoted":
            kept.representative, kept.place = url, verdict.get("coordinates")
            self._leave(url, None)
        elif url and url not in kept.members and url != kept.representative:
            kept.members.append(url)
            self._member_of[url] = cluster
        if len(kept.members) > MEMBERS_SHOWN:
            del self._member_of[kept.members.pop(0)]
        if len(self._large) > LARGEST_KEPT:
            smallest = min(self._large, key=lambda cluster: (self._large[cluster].size, -cluster))
            self._least = self._large[smallest].size
            self._drop(smallest)

    def _drop(self, cluster: int) -> None:
        if cluster in self._large:
            for url in self._large.pop(cluster).members:
                del self._member_of[url]

    def _leave(self, url: str, cluster: int | None) -> None:
        """Removes a URL from its former cluster."""
        former = self._member_of.get(url)
        if former is not None and former != cluster:
            self._large[former].members.remove(url)
            del self._member_of[url]

    def largest(self) -> list[LargeCluster]:
        best = sorted(self._large.items(), key=lambda item: (-item[1].size, item[0]))
        return [cluster for _, cluster in best[:LARGEST_SHOWN]]

    def distribution(self) -> dict[int, int]:
        """Returns the number of clusters by size; a cluster that never grew has size 1."""
        sizes = Counter(self._sizes.values())
        alone = self.founded - len(self._sizes)
        if alone > 0:
            sizes[1] = alone
        return dict(sorted(sizes.items()))


class ReportTally:
    """The figures of the report, and the verdicts that it shows."""

    def __init__(self, decider: Decider) -> None:
        self.decider = decider
        self._rule = rule_of(decider)
        self.verdicts: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.ruled_out: Counter[str] = Counter()
        self.kept_apart: Counter[str] = Counter()
        self.reasons = Leaders(1000)
        self.sites = Leaders()
        self.clusters = ClusterSizes()
        #: Near-duplicates and same contents by the indexes that found them: names of FOUND_BY.
        self.found_by: Counter[str] = Counter()
        self.b_similarity: Counter[int] = Counter()
        self.c_similarity: Counter[int] = Counter()
        self.tape_accepted = [0] * (TAPE_BINS + 1)
        self.tape_rejected = [0] * (TAPE_BINS + 1)
        self.tape_vetoed = [0] * (TAPE_BINS + 1)
        #: Tape scores that pairs needed, with the numbers of pairs: of one site, of two, short pages.
        self.demands: Counter[float] = Counter()
        self.same_site = self.other_site = 0
        self.samples = {kind: SmallestSample(size, _by_id) for kind, size in SAMPLES.items()}
        self.of_sites: dict[str, SmallestSample] = {}
        self.close_accepted = SmallestSample(CLOSE_ACCEPTED, lambda v: _margin(v.get("evidence") or {}))
        self.close_rejected = SmallestSample(CLOSE_REJECTED, lambda v: -_margin(nearest(v)))
        self.close_vetoed = SmallestSample(CLOSE_VETOED, lambda v: -_margin(nearest(v)))

    @property
    def pages(self) -> int:
        """Number of page records; a promotion is a verdict without one."""
        return self.verdicts.total() - self.verdicts["promoted"]

    @property
    def duplicates(self) -> int:
        return sum(self.verdicts[kind] for kind in DUPLICATES)

    def add(self, verdict: Verdict) -> None:
        kind = str(verdict.get("verdict", ""))
        self.clusters.add(verdict)
        if verdict.get("n", 0) and kind != "promoted":  # a later verdict of the same record, about another page
            return
        self.verdicts[kind] += 1
        if kind in self.samples:
            self.samples[kind].add(verdict)
        if kind in ("near_duplicate", "same_content"):
            self._sample_site(verdict)
        for flag in FLAGS:
            self.flags[flag] += bool(verdict.get(flag))
        if kind == "rejected":
            self.reasons.add(reason_kind(verdict.get("reason")))
        if kind in (*SHOWN, *DUPLICATES):
            self.sites.add(site_of_verdict(verdict) or "(no site)", int(kind in DUPLICATES), 1)
        evidence = verdict.get("evidence") or {}
        if kind in ("near_duplicate", "same_content") and evidence:
            self._accepted(verdict, kind, evidence)
        if evidence.get("kept_apart"):
            self.kept_apart[str(evidence["kept_apart"])] += 1
        if kind in SHOWN and nearest(verdict):
            self._rejected(verdict, nearest(verdict))

    def _sample_site(self, verdict: Verdict) -> None:
        site = site_of_verdict(verdict)
        if site in self.of_sites or (site and len(self.of_sites) < SITES_SAMPLED_MAX):
            self.of_sites.setdefault(site, SmallestSample(1, _by_id)).add(verdict)

    def _accepted(self, verdict: Verdict, kind: str, evidence: Mapping[str, Any]) -> None:
        if isinstance(evidence.get("keys"), Mapping):
            self.found_by[found_by(evidence["keys"])] += 1
        if evidence.get("b_similarity") is not None:
            self.b_similarity[int(evidence["b_similarity"])] += 1
        if evidence.get("c_similarity") is not None:
            self.c_similarity[int(evidence["c_similarity"])] += 1
        if evidence.get("same_site") is not None and site_of_verdict(verdict):
            self.same_site += bool(evidence["same_site"])
            self.other_site += not evidence["same_site"]
        if kind == "near_duplicate":
            if margin(evidence) is None:
                return
            if self._rule.reads_tapes and evidence.get("by") != "thin":
                self.tape_accepted[_bin(evidence["tape_score"])] += 1
                self._count_demand(evidence)
            self.close_accepted.add(verdict)

    def _count_demand(self, evidence: Mapping[str, Any]) -> None:
        if abs(evidence["score"] - evidence["tape_score"]) < _SCORE_STEP:  # else the step compared another number
            self.demands[round(float(evidence["demand"]), 4)] += 1

    def thresholds(self, most: int = 3) -> list[float]:
        """Return the tape scores that most pairs needed, ascending."""
        return sorted(demand for demand, _ in self.demands.most_common(most))

    def _rejected(self, verdict: Verdict, evidence: Mapping[str, Any]) -> None:
        by = str(evidence.get("by", "?"))
        self.ruled_out[by] += 1
        above = margin(evidence)
        if above is None:
            return
        vetoed = by in REFUSALS and REFUSALS[by].veto
        if self._rule.reads_tapes and evidence.get("by") != "thin":
            (self.tape_vetoed if vetoed else self.tape_rejected)[_bin(evidence["tape_score"])] += 1
            self._count_demand(evidence)
        if not vetoed:
            self.close_rejected.add(verdict)
        elif above >= 0:
            self.close_vetoed.add(verdict)


#: Scores of evidence are rounded to so much.
_SCORE_STEP = 1e-4 + 1e-9


def _margin(evidence: Mapping[str, Any]) -> float:
    return margin(evidence) or 0.0


def nearest(verdict: Verdict) -> Mapping[str, Any]:
    """Returns the evidence of the nearest rejected candidate; empty if there is none."""
    found = (verdict.get("evidence") or {}).get("nearest")
    return found if isinstance(found, Mapping) else {}


def _bin(score: float) -> int:
    return min(TAPE_BINS, max(0, int(score * TAPE_BINS + 1e-9)))
