"""The result of a scan, and the counts of its verdicts."""

from collections import Counter
from dataclasses import dataclass, field

from neardup.matching.batch_verdicts import BatchVerdicts
from neardup.report.evidence_sentences import reason_kind
from neardup.standing import DUPLICATES
from neardup.urls import ID_SCHEME
from neardup.verdict import Kind

#: Most distinct reasons of rejections; later ones are counted as others.
REASONS_MAX = 100
OTHER_REASONS = "other reasons"
#: Site of all documents whose ids are no URLs, and of rejected pages without a URL.
NO_SITE = "(no site)"


@dataclass
class SiteCount:
    """Pages of one registrable domain in this scan, and how many of them are exact or near duplicates."""

    site: str
    pages: int = 0
    duplicates: int = 0


@dataclass
class ScanResult:
    """Result of a scan.

    pages: number of pages that this scan judged. bytes: bytes of the stored sources that were read.
    counts: number of verdicts by kind, also of `promoted`, which are no pages.
    sites: counts of sites, ordered by duplicates, then pages.
    reasons: counts of the reasons of rejections, the most frequent first.
    left_out: counts of records of archives that are no pages, by kind.
    kept_apart: counts of unique pages with a similar earlier page, by the step that refused the pair, the most frequent
        first.
    replaced: number of pages that retired an earlier fetch of their URL, which had other content.
    sources: ids (32 hex digits) of all named sources.
    fields_taken: guessed fields of ids and texts of each file.
    skipped: paths of sources that were finished before, or named twice.
    passed_over: number and suffixes of files of folders whose names say that they contain no pages.
    problems: files of the inputs that are not read; then unreadable parts of the sources that ended, also in earlier
        scans, PROBLEMS_MAX per source at most. problems_total: number of all problems.
    interrupted: whether a signal ended the scan.
    audit: counts of the shadow rule and of the sampled pairs; empty without an audit.
    times: counts of this run's pages by the form of their fetch times, as `LocalSource.times`.
    """

    pages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    sites: list[SiteCount] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    kept_apart: dict[str, int] = field(default_factory=dict)
    replaced: int = 0
    sources: list[str] = field(default_factory=list)
    fields_taken: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    passed_over: str = ""
    resumed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problems_total: int = 0
    interrupted: bool = False
    audit: dict[str, int] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)


class VerdictCounts:
    """Counts of the verdicts of a scan. pages: number of judged pages. readable: ids of sources with a page that was
    not rejected.
    """

    def __init__(self) -> None:
        self.pages = 0
        self.readable: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._sites: dict[str, SiteCount] = {}
        self._reasons: Counter[str] = Counter()
        self._kept_apart: Counter[str] = Counter()
        self._replaced = 0

    def add(self, verdicts: BatchVerdicts) -> None:
        for verdict in verdicts.summaries():
            if not verdict.n or verdict.kind is Kind.PROMOTED:
                self._counts[verdict.kind.value] += 1
            if verdict.n:
                continue
            self.pages += 1
            self.readable.update([verdict.source] if verdict.kind is not Kind.REJECTED else [])
            self._count_site(verdict.url, verdict.site, is_duplicate=verdict.kind in DUPLICATES)
            self._replaced += verdict.replaces
            if verdict.kept_apart:
                self._kept_apart[verdict.kept_apart] += 1
            if verdict.kind is Kind.REJECTED:
                reason = reason_kind(verdict.reason)
                known = reason in self._reasons or len(self._reasons) < REASONS_MAX
                self._reasons[reason if known else OTHER_REASONS] += 1

    def _count_site(self, url: str, name: str, *, is_duplicate: bool) -> None:
        if not name or url.startswith(ID_SCHEME):
            name = NO_SITE
        site = self._sites.setdefault(name, SiteCount(name))
        site.pages += 1
        site.duplicates += is_duplicate

    def add_to(self, result: ScanResult) -> None:
        """Writes the counts into a result."""
        result.pages = self.pages
        result.counts = {kind.value: self._counts[kind.value] for kind in Kind if self._counts[kind.value]}
        result.sites = sorted(self._sites.values(), key=lambda s: (-s.duplicates, -s.pages, s.site))
        result.reasons = dict(sorted(self._reasons.items(), key=lambda item: (-item[1], item[0])))
        result.kept_apart = dict(self._kept_apart.most_common())
        result.replaced = self._replaced
