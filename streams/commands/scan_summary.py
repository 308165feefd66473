"""The summary of a scan in a terminal."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from neardup.report.evidence_sentences import KINDS
from neardup.rules import why_refused
from neardup.wording import counted
from streams.files.sources import left_out_text, times_text
from streams.process.terminal import safe, table_of
from streams.scan.scan_result import ScanResult

SITES_SHOWN, PROBLEMS_SHOWN, REASONS_SHOWN = 10, 10, 5


def summary(console: Console, result: ScanResult, state_line: str) -> None:
    """Verdicts, sites and problems of one scan, as tables."""
    rate = f", {result.pages / result.seconds:,.0f} pages/s" if result.seconds and result.pages else ""
    console.print(
        f"{counted(result.pages, 'page')} in {result.seconds:,.1f} s{rate}, {result.bytes / 1e6:,.1f} MB read",
        highlight=False,
    )
    if result.pages or result.counts:
        console.print(_kinds(result))
        if result.reasons:
            console.print(_reasons(result), soft_wrap=True)
        if result.kept_apart:
            console.print(_kept_apart(result), highlight=False, soft_wrap=True)
        if result.replaced:
            console.print(replaced_text(result.replaced), highlight=False, soft_wrap=True)
        console.print(_sites(result))
    if result.left_out:
        console.print(safe(left_out_text(result.left_out), 1_000), highlight=False, soft_wrap=True)
    if result.audit:
        for line in audit_lines(result.audit):
            console.print(line, highlight=False, soft_wrap=True, markup=False)
    if result.times:
        console.print(times_text(result.times), highlight=False, soft_wrap=True)
    for taken in result.fields_taken:
        console.print(safe(taken), soft_wrap=True)
    for path in result.skipped:
        skipped = Text("scanned already, skipped: ").append_text(safe(path)).append("  (--again scans it once more)")
        console.print(skipped, soft_wrap=True)
    if result.passed_over:
        console.print(Text("passed over, by their names: ").append_text(safe(result.passed_over)), soft_wrap=True)
    for path in result.resumed:
        console.print(Text("went on where an earlier scan stopped: ").append_text(safe(path)), soft_wrap=True)
    for problem in result.problems[:PROBLEMS_SHOWN]:
        console.print(Text("problem: ", style="yellow").append_text(safe(problem, 400)), soft_wrap=True)
    if result.problems_total > PROBLEMS_SHOWN:
        console.print(f"... and {counted(result.problems_total - PROBLEMS_SHOWN, 'more problem')}")
    if state_line:
        console.print(state_line, highlight=False, soft_wrap=True, markup=False)


def audit_lines(counts: dict[str, int]) -> list[str]:
    """Counts of disagreements of the shadow rule, and of pairs drawn for audit."""
    kinds = {
        "live_merges": "the live rule alone merges",
        "shadow_merges": "the shadow rule alone merges",
        "other_representative": "both merge, with another page",
        "other_content": "the main content of another page",
    }
    out = []
    if "live_merges" in counts:
        text = ", ".join(f"{counts[kind]:,} {words}" for kind, words in kinds.items() if counts[kind])
        out.append(
            f"shadow rule: of {counted(counts['pages'], 'page')} with candidates {text or 'none is judged otherwise'}"
        )
    if "drawn" in counts:
        left = f", {counts['left_out']:,} more beyond the bounds" if counts["left_out"] else ""
        lost = f", {counted(counts['lost'], 'line')} could not be written" if counts["lost"] else ""
        out.append(f"audit: {counted(counts['drawn'], 'pair')} drawn{left}{lost}")
    return out


def _kinds(result: ScanResult) -> Table:
    table = table_of("verdict", ">pages", ">share", "")
    for kind, (_, meaning) in KINDS.items():
        count = result.counts.get(kind, 0)
        if count:
            share = "" if kind == "promoted" or not result.pages else f"{count / result.pages:.1%}"
            table.add_row(kind, f"{count:,}", share, meaning)
    return table


def _reasons(result: ScanResult) -> Text:
    """Reasons of rejections, on one line."""
    shown = list(result.reasons.items())[:REASONS_SHOWN]
    others = sum(result.reasons.values()) - sum(count for _, count in shown)
    text = [safe(reason, 80).append(f" ({count:,})") for reason, count in shown]
    return Text("rejected: ").append_text(Text("; ").join([*text, *([Text(f"others ({others:,})")] if others else [])]))


def _kept_apart(result: ScanResult) -> Text:
    """Unique pages with a similar earlier page, by the step that refused it."""
    text = "; ".join(f"{why_refused(by)} ({count:,})" for by, count in result.kept_apart.items())
    pages = counted(sum(result.kept_apart.values()), "page")
    return Text(f"{pages} similar to an earlier one, but kept apart: {text}")


def replaced_text(count: int) -> str:
    """Formats the line for the pages that retired an earlier fetch."""
    pages = f"{counted(count, 'page')} {'replaces' if count == 1 else 'replace'}"
    return f"{pages} an earlier fetch of the same URL, which had other content"


def _sites(result: ScanResult) -> Table:
    table = table_of("site", ">pages", ">duplicates", ">share")
    for site in result.sites[:SITES_SHOWN]:
        table.add_row(
            safe(site.site, 60), f"{site.pages:,}", f"{site.duplicates:,}", f"{site.duplicates / site.pages:.1%}"
        )
    if len(result.sites) > SITES_SHOWN:
        table.add_row(Text(f"... {counted(len(result.sites) - SITES_SHOWN, 'more site')}", style="dim"), "", "", "")
    return table


def sizes(state: Path) -> dict[str, int]:
    """Bytes on disk of each part of a state directory."""
    return {
        part.name: sum(file.stat().st_size for file in part.rglob("*") if file.is_file())
        for part in sorted(state.iterdir())
        if part.is_dir()
    }


def state_line(state: Path, pages: int) -> str:
    """One line: the state directory, its bytes, and its bytes per judged page."""
    parts = sizes(state)
    each = f", {sum(parts.values()) / pages:,.0f} bytes a page" if pages else ""
    text = ", ".join(f"{name} {size / 1e6:,.1f}" for name, size in parts.items() if name != "sources")
    return f"state: {state} ({text} MB{each})"
