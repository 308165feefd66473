"""The report of a state directory: gathers what `neardup.report` wants to know."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from neardup.index.column_families import Family
from neardup.index.posting_rows import is_hot
from neardup.page import Page
from neardup.report.run_report import HotKey, ReportInfo, SourceInfo, build_report
from neardup.rules.key_families import SIMILARITY_BYTES, family_of
from neardup.verdict import Coordinates
from streams.ports import Progress, silent
from streams.process.disk import state_errors
from streams.process.shutdown import now_ms
from streams.state.scan_reader import ScanReader

HOT_KEYS_MAX = 1000


def write_report(state: ScanReader, target: Path, progress: Progress = silent) -> None:
    """Writes the report of all verdicts of `state`. Raises StateError if `target` cannot be written.

    progress: receives the messages of the log whose verdicts were read, and their number.
    """
    hot = [key for key, row in state.store.scan(Family.KEYS) if len(key) == SIMILARITY_BYTES and is_hot(row)]
    sources = [SourceInfo(source.path, source.id, source.pages or None) for source in state.sources.values()]
    problems = [problem for source in state.sources.values() for problem in source.problems]
    info = ReportInfo(
        decider=state.decider,
        scheme_digest=state.scheme.digest,
        sources=sources,
        problems=problems,
        hot_keys=[HotKey(family_of(key).name.lower(), key.hex()) for key in hot[:HOT_KEYS_MAX]],
        hot_keys_total=len(hot),
        made_at=now_ms(),
    )
    ahead: dict[tuple[str, int], Page] = {}

    def read_page(place: Mapping[str, Any]) -> Page:
        coordinates = Coordinates(**place)
        return ahead.get((coordinates.source, coordinates.offset)) or state.read_page(coordinates)

    def expect(places: Iterable[Mapping[str, Any]]) -> None:
        ahead.update(state.read_pages(Coordinates(**place) for place in places))

    html = build_report(_verdicts(state, progress), read_page, info, expect)
    with state_errors("write", target):
        target.write_text(html, encoding="utf-8")


def _verdicts(state: ScanReader, progress: Progress) -> Iterator[dict[str, Any]]:
    end = state.verdict_frames.end()
    for offset, verdicts in state.verdicts_from(0):
        progress("verdicts", offset, end)
        yield from verdicts
    progress("samples", end, end)
