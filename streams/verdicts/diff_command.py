"""`neardup diff`: two histories of verdicts about the same pages, from scans, files of JSON lines, or topics."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
from markupsafe import Markup
from rich.console import Group
from rich.text import Text

from neardup.decider import ONLINE_RULES, Decider
from neardup.errors import BadInput
from neardup.limits import VERDICT_LINE_BYTES_MAX
from neardup.page import Page
from neardup.report.evidence_sentences import KINDS, kept_apart, sentences
from neardup.report.page_templates import environment
from neardup.report.samples import Card, card
from neardup.standing import VerdictFields
from neardup.urls import name_of
from neardup.verdict import Coordinates
from neardup.wording import counted
from streams.formats.verdict_records import Verdict
from streams.process.terminal import folded, safe, table_of
from streams.state.scan_reader import ScanReader
from streams.state.scan_snapshot import read_scan
from streams.verdicts.diff import CHANGED, Diff, History, Sample, diff
from streams.verdicts.shared_rows import must_be_writable, write_table

SITES_SHOWN = 10
#: Prefix that distinguishes a topic from a file.
TOPIC = "topic:"
#: Reads the verdicts of a topic, to its present end.
Topics = Callable[[str], Iterator[Verdict]]


def no_topics(name: str) -> Iterator[Verdict]:
    """Raises BadInput: the caller reads no topics."""
    raise BadInput(f"{TOPIC}{name}: no topic can be read here")


def history_of(name: str, topics: Topics = no_topics) -> History:
    """Opens a history by its name: a scan's directory, a file of JSON lines, or `topic:NAME`.

    Raises BadInput if it is none of them.
    """
    if name.startswith(TOPIC):
        return lambda: topics(name.removeprefix(TOPIC))
    path = Path(name)
    if (path / "verdicts").is_dir():
        return lambda: _scan(path)
    if path.is_file():
        return lambda: _lines(path)
    raise BadInput(f"{name}: no scan's state directory, no file of JSON lines, and no topic:NAME")


def tables_of(name: str, topics: Topics = no_topics) -> Callable[[], Iterable[Verdict | VerdictFields]]:
    """Opens a history as `history_of` does; the verdicts of a scan are read as the fields that tables have."""
    path = Path(name)
    if name.startswith(TOPIC) or not (path / "verdicts").is_dir():
        return history_of(name, topics)
    return lambda: _fields(path)


def _fields(path: Path) -> Iterator[VerdictFields]:
    with read_scan(path) as state:
        yield from state.verdict_fields()


def _scan(path: Path) -> Iterator[Verdict]:
    with read_scan(path) as state:
        yield from state.verdicts()


def _lines(path: Path) -> Iterator[Verdict]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(VERDICT_LINE_BYTES_MAX), b""), 1):
            if not line.strip():
                continue
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise BadInput(
                    f"{path} is no file of verdicts, as `neardup scan --out` writes them: line {number} is no JSON"
                ) from error
            if not isinstance(value, dict) or "verdict" not in value:
                raise BadInput(f"{path}: line {number} is no verdict of neardup")
            yield value


def compare(
    before: str,
    after: str,
    topics: Topics = no_topics,
    progress: Callable[[int], None] = lambda verdicts: None,
    *,
    pages: str = "",
) -> Diff:
    """Compares two histories by name. pages: a file for all changed pages, see `write_table`; "": none.

    Raises BadInput, TopicError, BrokerError, CorruptRecord.
    """
    first, second = history_of(before, topics), history_of(after, topics)
    if not pages:
        return diff(first, second, progress)
    must_be_writable(pages, "--pages")
    with tempfile.TemporaryFile() as rows:
        found = diff(
            first, second, progress, changed=lambda row: rows.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        )
        rows.seek(0)
        write_table((tuple(orjson.loads(line)) for line in rows), CHANGED, pages, "--pages")
    return found


def headline(found: Diff) -> str:
    """The number of pages, and of those that changed."""
    share = f"{found.changed / found.pages:.2%}" if found.pages else "0%"
    return f"{counted(found.pages, 'page')}, {found.changed:,} changed ({share})"


def rows(found: Diff) -> list[dict[str, Any]]:
    """The kinds of changes, the most frequent first: number of pages, kind, and a URL."""
    made = []
    for change, count in found.by_count():
        one = found.samples[change][0]
        url = name_of(str((one.after or one.before or {}).get("url", "")))
        made.append({"pages": count, "change": str(change), "for example": url})
    return made


def shown(found: Diff) -> Group:
    """For a terminal: changes by kind, the sites with most of them, a sample of each."""
    parts: list[Any] = [Text(headline(found), style="bold")]
    if not found.changed:
        return Group(*parts)
    kinds = table_of(">pages", "change", "for example")
    for row in rows(found):
        kinds.add_row(f"{row['pages']:,}", row["change"], folded(row["for example"]))
    sites = table_of(">pages", "site")
    for site, counts in found.worst_sites(SITES_SHOWN):
        sites.add_row(f"{counts.total():,}", safe(site or "(no site)"))
    return Group(*parts, kinds, Text(""), sites)


def page(found: Diff, before: str, after: str, views: str = "") -> str:
    """The same as one HTML file that loads nothing, with samples side by side.

    Texts are shown if a history is a scan's directory that can read them; else a sentence says why there are none.
    views: address of views that have these pages, for links; "": no links.
    """
    templates = environment("streams.verdicts")
    templates.filters["name"] = name_of
    style = resources.files("neardup.report").joinpath("report.css").read_text(encoding="utf-8")
    with ExitStack() as stack:
        names = [name for name in dict.fromkeys((after, before)) if not name.startswith(TOPIC) and Path(name).is_dir()]
        states = [stack.enter_context(read_scan(Path(name))) for name in names]
        deciders = [*(state.decider for state in states), *_DEFAULTS]
        return templates.get_template("diff.html.j2").render(
            found=found,
            before=before,
            after=after,
            style=Markup(style),
            sites=found.worst_sites(50),
            changed_rows=partial(changed_rows, deciders=deciders),
            texts_of=partial(_texts_of, states),
            views=views and views.rstrip("/") + "/",
        )


#: Deciders whose numbers are the defaults, for histories that are no scan's directory.
_DEFAULTS = tuple(Decider(scheme="", rule=rule) for rule in ONLINE_RULES)


def _texts_of(states: Sequence[ScanReader], sample: Sample) -> tuple[Card | None, str]:
    """Return the page beside the one that its latest verdict refers to, or None and why there are not both texts."""

    def read_page(place: Mapping[str, Any]) -> Page:
        coordinates = Coordinates(**place)
        state = next((each for each in states if coordinates.source in each.sources), *states[:1])
        return state.read_page(coordinates)

    why = "no other page was compared with it"
    for verdict in (sample.after, sample.before):
        if verdict is None:
            continue
        if not states:
            if _refers(verdict):
                why = "neither history is the state directory of a scan, which knows where they are"
            continue
        found = card(verdict, read_page, states[0].decider)
        if found.passages is not None:
            return found, ""
        if found.notes:
            why = " ".join(found.notes)
    return None, why


def _refers(verdict: Verdict) -> bool:
    """Return whether a verdict names a page to compare its own with."""
    return card(verdict, _unreadable, _DEFAULTS[0]).other is not None


def _unreadable(place: Mapping[str, Any]) -> Page:
    raise BadInput("no scan's state directory")


def changed_rows(
    before: Verdict | None, after: Verdict | None, deciders: Sequence[Decider] = _DEFAULTS
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return (label, text) rows of two verdicts about a page, without the rows that are equal in both.

    A sentence about a pair is equal whether the pair's other page is the representative or a rejected candidate.

    deciders: the possible ones. Evidence of any other has figures instead of sentences.
    """
    one, other = _rows(before, deciders), _rows(after, deciders)
    return _without(one, other), _without(other, one)


def _without(rows: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    said = {text for label, text in others if label in _PAIRS}
    return [row for row in rows if row not in others and not (row[0] in _PAIRS and row[1] in said)]


def _rows(verdict: Verdict | None, deciders: Sequence[Decider]) -> list[tuple[str, str]]:
    if verdict is None:
        return [("verdict", "none")]
    kind = str(verdict["verdict"])
    rows = [("verdict", KINDS[kind][0] if kind in KINDS else kind)]
    rows += [(name.replace("_", " "), _text(verdict[name])) for name in _PLACES if verdict.get(name)]
    if verdict.get("reason"):
        rows.append(("reason", str(verdict["reason"])))
    evidence = verdict.get("evidence") or {}
    if apart := kept_apart(evidence):
        rows.append(("kept apart", apart))
    of_scheme = (replace(each, scheme=str(verdict.get("scheme", ""))) for each in deciders)
    decider = next((each for each in of_scheme if each.digest == verdict.get("decider")), None)
    for label, pair in zip(_PAIRS, (evidence, evidence.get("nearest") or {}), strict=True):
        if pair.get("url"):
            rows.append((label, _text(pair)))
        if decider is not None and pair.get("by"):
            rows += [(label, sentence) for sentence in sentences(pair, decider, str(verdict.get("url") or ""))]
        else:
            figures = {name: value for name, value in sorted(pair.items()) if name not in _NOT_FIGURES}
            rows += [(name.replace("_", " "), _text(value)) for name, value in figures.items()]
    return rows


#: Labels of sentences about a pair.
_PAIRS = ("evidence", "nearest candidate")
_PLACES = ("representative", "content_of")
_NOT_FIGURES = ("nearest", "kept_apart", "page_id", "url", "title", "fetched_at", "coordinates")


def _text(value: Any) -> str:
    """Format a value of a verdict without JSON."""
    if isinstance(value, Mapping) and "url" in value:
        name = name_of(str(value["url"]))
        return f"{value['title']}, {name}" if value.get("title") else name
    if isinstance(value, Mapping):
        return ", ".join(f"{str(name).replace('_', ' ')} {_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
