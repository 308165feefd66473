"""Prints verdicts: as a table on a terminal, as lines with tabs in a pipe, as JSON lines."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neardup.standing import DUPLICATES
from streams.client import Start, Stored, VerdictConsumer
from streams.config.settings import Settings
from streams.errors import WrongUsage
from streams.formats.verdict_records import Verdict, decode_object, decode_verdict
from streams.kafka.reader import TopicReader
from streams.process.terminal import safe
from streams.roles.runtime import connect, greet
from streams.verdicts.shared_rows import VerdictFilter

_STYLES = {
    "unique": "green",
    "exact_duplicate": "magenta",
    "near_duplicate": "yellow",
    "same_content": "cyan",
    "rejected": "red",
}
#: Characters between columns, and least width of the columns that share the rest.
_GAP, _TEXT_CHARS_MIN = 2, 16
#: A URL has 2 kB at most, a reason less.
_CELL_CHARS_MAX = 10_000


class Column(NamedTuple):
    """A column. width: characters; 0: a share of the rest. text_of: function that returns the text of a cell."""

    title: str
    width: int
    right: bool
    text_of: Callable[[Verdict], str]


#: By the names that --columns takes, in their order.
COLUMNS: Mapping[str, Column] = {
    "page_id": Column("page id", 12, True, lambda verdict: str(verdict.get("page_id", ""))),
    "verdict": Column("verdict", 15, False, lambda verdict: str(verdict.get("verdict", ""))),
    "score": Column("score", 5, True, lambda verdict: _score(verdict)),
    "url": Column("url", 0, False, lambda verdict: str(verdict.get("url", ""))),
    "because": Column("of, or why", 0, False, lambda verdict: _because(verdict)),
}


def parse_columns(text: str) -> tuple[str, ...]:
    """Splits names at commas. Raises WrongUsage."""
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise WrongUsage(f"no column is called {unknown[0][:40]!r}; there is {', '.join(COLUMNS)}")
    return names


class _AuditConsumer(VerdictConsumer):
    """Returns the lines of an audit."""

    def _decoded(self, record: Any) -> dict[str, Any]:
        return decode_object(record.value(), record.topic(), record.partition(), record.offset(), "line")


def tail(
    settings: Settings,
    *,
    topic: str = "",
    start: Start = "beginning",
    verdict_filter: VerdictFilter | None = None,
    follow: bool = True,
) -> Generator[list[dict[str, Any]], None, None]:
    """Yields committed verdicts in batches as they come; without `follow`, to the present end.

    Verdicts of one URL are in order. topic: topic of an audit, whose lines are yielded instead of verdicts. Raises
    TopicError, BrokerError, PositionLost, CorruptRecord.
    """
    verdict_filter = verdict_filter or VerdictFilter()
    kafka = connect(settings, "verdicts", reading=True).settings
    kind = _AuditConsumer if topic else VerdictConsumer
    consumer = kind(settings.bootstrap, Stored(), topic or settings.topics.verdicts, start=start, kafka=kafka)
    with closing(consumer):
        for batch in consumer.batches(follow=follow):
            found = [verdict for verdict in batch.verdicts if verdict_filter.takes(verdict)]
            if found:
                yield found


def show(
    settings: Settings,
    console: Console,
    *,
    json_out: BinaryIO | None = None,
    topic: str = "",
    start: Start = "beginning",
    verdict_filter: VerdictFilter | None = None,
    columns: Sequence[str] = tuple(COLUMNS),
    follow: bool = True,
) -> int:
    """Prints verdicts as they come, until Ctrl-C, and returns their number.

    A terminal gets a table; a pipe or file gets one uncut line per verdict with tabs between columns.

    json_out: file that gets JSON lines instead. columns: names of COLUMNS. Raises the errors of `tail`.
    """
    shown = 0
    batches = tail(settings, topic=topic, start=start, verdict_filter=verdict_filter, follow=follow)
    try:
        with closing(batches):
            for batch in batches:
                if json_out is not None:
                    json_out.write(b"".join(orjson.dumps(verdict) + b"\n" for verdict in batch))
                    json_out.flush()
                elif console.is_terminal:
                    console.print(table(batch, console.width, columns, header=not shown))
                else:
                    console.file.writelines(line(verdict, columns) + "\n" for verdict in batch)
                    console.file.flush()
                shown += len(batch)
    except KeyboardInterrupt:
        pass
    return shown


def table(
    verdicts: list[dict[str, Any]], width: int, columns: Sequence[str] = tuple(COLUMNS), *, header: bool
) -> Table:
    """One row per verdict. Column widths depend on `width` (characters) alone, so consecutive tables look like one.

    A long URL loses its middle, because host and end identify it. The URL of another page of the same host loses the
    host first: in a narrow column it would look like the page's own.
    """
    chosen = [COLUMNS[name] for name in columns]
    texts = sum(column.width == 0 for column in chosen)
    room = width - sum(column.width for column in chosen) - _GAP * (len(chosen) - 1)
    share = max(_TEXT_CHARS_MIN, room // max(1, texts))
    out = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=header, header_style="bold")
    for column in chosen:
        out.add_column(
            column.title,
            width=column.width or share,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if column.right else "left",
        )
    for verdict in verdicts:
        style = _STYLES.get(str(verdict.get("verdict", "")), "dim")
        cells = [safe(_cell(column, verdict, column.width or share), limit=_CELL_CHARS_MAX) for column in chosen]
        out.add_row(
            *(Text(cell.plain, style) if name == "verdict" else cell for name, cell in zip(columns, cells, strict=True))
        )
    return out


def line(verdict: Verdict, columns: Sequence[str] = tuple(COLUMNS)) -> str:
    """Cells with tabs between, for programs."""
    return "\t".join(
        safe(COLUMNS[name].text_of(verdict).replace("\t", " "), limit=_CELL_CHARS_MAX).plain for name in columns
    )


def _cell(column: Column, verdict: Verdict, width: int) -> str:
    text = column.text_of(verdict)
    if column is COLUMNS["because"] and len(text.removeprefix("https://")) > width:
        origin = "/".join(str(verdict.get("url", "")).split("/")[:3])  # scheme and host
        if text.startswith(f"{origin}/"):
            text = text.removeprefix(origin)
    return _elided(text, width)


def _elided(text: str, width: int) -> str:
    if len(text) > width:
        text = text.removeprefix("https://")
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}\u2026{text[len(text) - end :]}"


def _score(verdict: Verdict) -> str:
    if verdict.get("verdict") == "exact_duplicate":
        return "1"
    name = "score" if verdict.get("verdict") == "same_content" else "tape_score"
    score = verdict.get("evidence", {}).get(name)
    return f"{score:.2f}" if isinstance(score, int | float) else ""


def _because(verdict: Verdict) -> str:
    """The page that this one repeats, the reason of a rejection, or the standing of its URL."""
    if verdict.get("reason"):
        return str(verdict["reason"])
    standing = verdict.get("standing")
    if standing:
        return f"is {standing.get('verdict')}" + _of(standing)
    return _of(verdict).removeprefix(" of ")


def _of(verdict: Verdict) -> str:
    if verdict.get("verdict") in DUPLICATES:
        return f" of {verdict.get('representative', {}).get('url', '')}"
    other = verdict.get("content_of")
    return f" of {other['url']}" if isinstance(other, dict) else ""


def verdicts_of(settings: Settings) -> Callable[[str], Iterator[dict[str, Any]]]:
    """Returns a function that yields the committed verdicts of a topic, to its present end."""

    def verdicts(topic: str) -> Iterator[dict[str, Any]]:
        greet(settings, "verdicts")
        with closing(TopicReader(connect(settings, "verdicts", reading=True), topic, committed_only=True)) as reader:
            for record in reader.to_end():
                if record.value() is not None:
                    place = record.partition(), record.offset()
                    yield decode_verdict(record.value(), topic, *place, needs=("coordinates",))

    return verdicts
