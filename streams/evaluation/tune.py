"""Implements `neardup evaluate --propose`: decider numbers from labelled pairs, and the verdicts they would change."""

import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from neardup.errors import BadInput
from neardup.evaluation.labels import join_labels, read_labels
from neardup.evaluation.measures import Interval
from neardup.evaluation.study import score
from neardup.evaluation.tuning import Tuning, setting_text, tune
from neardup.wording import counted
from streams.evaluation.evaluate import open_crawl
from streams.ports import Progress, silent
from streams.process.terminal import table_of
from streams.state.scan_snapshot import read_scan
from streams.verdicts import diff_command as diff
from streams.verdicts.diff import Diff
from streams.verdicts.replay import Stretch, replay_scan


@dataclass
class Proposal:
    """A proposal of numbers.

    changed: verdicts of the scan that would differ; None without a scan or proposal.
    """

    tuning: Tuning
    changed: Diff | None = None

    def to_json(self) -> dict[str, Any]:
        return {**self.tuning.to_json(), "diff": None if self.changed is None else self.changed.to_json()}


def tune_command(
    labels: Sequence[Path],
    paths: Sequence[Path | str] = (),
    *,
    state: Path | None = None,
    base_url: str | None = None,
    content: bool = False,
    seed: int = 0,
    threads: int = 1,
    progress: Progress = silent,
) -> Proposal:
    """Tunes decider numbers on labelled pairs; with a scan's directory, refolds its log with the proposal.

    Changes nothing in the directory. Raises BadInput if no label fits, or for too few labels.
    """
    given = [label for path in labels for label in read_labels(path)]
    with open_crawl(paths, state, base_url=base_url, threads=threads, progress=progress) as crawl:
        joined = join_labels(crawl.documents.labels(given), crawl.corpus.find)
        if not len(joined):
            raise BadInput("no label fits: " + ("; ".join(joined.problems()) or "the files hold none"))
        pairs = score(crawl.corpus, joined.a, joined.b)
        tuning = tune(joined, pairs, crawl.decider, seed=seed, content=content)
        tuning.problems += crawl.unread
    if state is None or not tuning.flags:
        return Proposal(tuning)
    return Proposal(tuning, _changed(state, tuning, progress))


def _changed(path: Path, tuning: Tuning, progress: Progress) -> Diff:
    """Compares the scan's verdicts with the proposal's verdicts on the same log."""
    with tempfile.TemporaryDirectory(prefix="neardup-tune-") as folder:
        proposed = Path(folder) / "verdicts.jsonl"
        with read_scan(path) as state, proposed.open("wb") as out:
            replay_scan(
                state,
                Stretch(),
                out,
                lambda done, total: progress("match", done, total),
                decider=tuning.proposed,
            )
        return diff.compare(str(path), str(proposed))


def shown(found: Proposal) -> Group:
    """Formats the proposal for a terminal."""
    tuning = found.tuning
    parts: list[Any] = [
        Text(
            f"{counted(tuning.chosen_on, 'pair')} to choose by, {tuning.now.pairs:,} to measure on; "
            f"rule {tuning.decider.rule}"
        ),
        Text(""),
    ]
    parts += [_curves(tuning), Text("")] if tuning.curves else []
    if not tuning.changes:
        parts.append(Text("No number is clearly better for these pairs: keep those in force.", style="bold"))
        return Group(*parts, *_measured(tuning))
    table = table_of("number", ">now", ">proposed", ">95% between", ">F1 gained where chosen")
    for one in tuning.changes:
        kind = type(one.now)
        between = " and ".join(setting_text(kind(end)) for end in (one.low, one.high))
        table.add_row(one.name, setting_text(one.now), setting_text(one.then), between, _signed(one.gain))
    parts += [table, Text(""), *_measured(tuning)]
    if not tuning.flags:
        parts.append(Text("The other pairs contradict it: nothing is proposed.", style="bold"))
        return Group(*parts)
    parts.append(
        Text("The other pairs agree." if tuning.sure else "The other pairs agree, but the interval includes no gain.")
    )
    if found.changed is not None:
        parts += [
            Text(""),
            Text("Verdicts of the scan that these numbers would change:"),
            diff.shown(found.changed),
        ]
    return Group(*parts)


def command(found: Proposal, state: Path | None) -> str:
    """Returns the command that applies the proposal to a scan's directory or a new one; "" without a proposal."""
    if not found.tuning.flags:
        return ""
    where = "--state DIR" if state is None else f"--state {shlex.quote(str(state))} --new-decider"
    return f"neardup scan FILE... {where} --rule {found.tuning.decider.rule} {' '.join(found.tuning.flags)}"


#: Heights of F1 in a curve, from its least to its greatest value.
_LEVELS = "▁▂▃▄▅▆▇█"


def _curves(tuning: Tuning) -> Table:
    """A row for each number that changes a ruling: F1 over its values, the best value, precision and recall there."""
    table = table_of("number", "F1 by value", ">from", ">to", ">best at", ">F1", ">precision", ">recall")
    for name, points in tuning.curves.items():
        low, high = (end(point.f1 for point in points) for end in (min, max))
        steps = [round((point.f1 - low) / (high - low) * (len(_LEVELS) - 1)) if high > low else 0 for point in points]
        best = max(points, key=lambda point: point.f1)
        ends = (setting_text(type(best.value)(point.value)) for point in (points[0], points[-1]))
        figures = (f"{share:.3f}" for share in (best.f1, best.precision, best.recall))
        table.add_row(name, "".join(_LEVELS[step] for step in steps), *ends, setting_text(best.value), *figures)
    return table


def _measured(tuning: Tuning) -> list[Any]:
    table = table_of("on the other pairs", ">precision", ">recall", ">F1", ">F1 95%")
    rows = [("now", tuning.now), ("proposed", tuning.then)] if tuning.changes else [("now", tuning.now)]
    for name, one in rows:
        shares = ["-" if part.value is None else f"{part.value:.3f}" for part in (one.precision, one.recall, one.f1)]
        ends = "-" if one.f1.low is None or one.f1.high is None else f"{one.f1.low:.3f} to {one.f1.high:.3f}"
        table.add_row(name, *shares, ends)
    out: list[Any] = [table]
    if tuning.changes:
        out.append(Text(f"F1 gained: {_signed(tuning.gain)}"))
    return out


def _signed(gain: Interval) -> str:
    if gain.value is None or gain.low is None or gain.high is None:
        return "-"
    return f"{gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"
