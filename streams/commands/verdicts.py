"""Commands that read verdicts, and explain or compare them."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from neardup.wording import counted
from streams.commands.app import FILES, OPERATE, VERDICTS, command
from streams.commands.options import (
    STATE,
    AsJson,
    ConnectionFlags,
    Many,
    Model,
    Numbers,
    Opt,
    State,
    VerdictFlags,
    Writes,
    decider_of,
    is_topic,
    must_be_state,
    must_exist,
    parse_start,
)
from streams.commands.output import announce_compiler, bar, complain, echo, print_json, print_rich, print_rows, show
from streams.config.settings import Settings
from streams.errors import WrongUsage

if TYPE_CHECKING:
    from neardup.page import Page

_COLUMNS = "page_id,verdict,score,url,because"


@command(FILES, "neardup report DIR --out report.html")
def report(state: State = STATE, *, out: Annotated[Path, Writes("The file to write.")] = Path("report.html")) -> None:
    """Write a report of a scan as one HTML file.

    Write a report of a scan as one HTML file: verdicts, charts, and samples with their evidence.
    """
    from streams.scan.scan_report import write_report
    from streams.state.scan_snapshot import read_scan

    announce_compiler("sketching")
    with read_scan(state) as opened, bar(shown=True, counts=True) as shown:
        write_report(opened, out, shown.phase)
    echo(f"report: {out}")


@command(
    FILES,
    "neardup explain https://a.example/page.html DIR",
    "neardup explain --rows --url https://a.example/page.html",
    "neardup explain --rows --state DIR",
)
def explain(
    url: Annotated[str | None, Opt("The page.", "--url", metavar="URL")] = None,
    state: State = STATE,
    *,
    page_id: Annotated[
        int | None, Opt("Page id of an earlier fetch; by default the latest verdict.", metavar="ID")
    ] = None,
    prefix: Annotated[
        str | None, Opt("List the verdicts of the pages whose URLs begin with this.", metavar="PREFIX")
    ] = None,
    rows: Annotated[
        bool, Opt("Print rows of the index instead: of the URL, the page or the cluster; or an overview.")
    ] = False,
    cluster: Annotated[int | None, Opt("With --rows: the cluster with this id.", metavar="ID")] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a page got its verdict.

    Explain the verdict of a page, and the rejection of each candidate.

    The page is judged again, with the index as it was when the page arrived. With --rows, print what the index of a
    scan or a matcher holds: sizes, standings, hot keys, largest clusters; or one URL, page or
    cluster. A process may be working in the directory: its last flush is read.
    """
    if rows:
        _print_rows(state, url, page_id, cluster, as_json)
        return
    if (url is None) == (prefix is None):
        raise WrongUsage("name a URL; or --prefix for the pages below it; or --rows for an overview of the index")
    from streams.state.scan_snapshot import read_scan
    from streams.verdicts.explain import explain_command, listed

    with read_scan(state) as opened:
        if prefix is not None:
            print_rows(listed(opened, prefix), as_json=as_json)
            return
        announce_compiler()
        assert url is not None
        with bar(shown=not as_json) as shown:
            result = explain_command(opened, url, page_id=page_id, progress=shown.folded)
        show(result, as_json=as_json)


def _print_rows(state: Path, url: str | None, page_id: int | None, cluster: int | None, as_json: bool) -> None:
    from streams.state import index_rows
    from streams.state.named_documents import indexed
    from streams.state.scan_reader import read_sources

    with ExitStack() as held:
        opened = index_rows.open_index(state, held)
        if cluster is not None:
            print_json(index_rows.of_cluster(opened, cluster))
        elif page_id is not None:
            print_json(index_rows.sketch_of(opened, page_id))
        elif url is not None:
            print_json(index_rows.of_url(opened, indexed(url, read_sources(opened.path).values(), opened.store)))
        else:
            with bar(shown=not as_json) as progress:
                found, text = index_rows.overview(opened, lambda count: progress.phase(f"{count:,} rows", 0, 0))
            if as_json:
                print_json(text)
            else:
                print_rich(index_rows.shown(found, text))


@command(
    FILES,
    "neardup compare old.html new.html",
    "neardup compare a.html b.html --a-url https://a.example/1/x --b-url https://a.example/2/x",
    "neardup compare a.html b.html --state neardup-state",
    "neardup compare 'doc 44' 'doc 2' --state neardup-state",
)
def compare(
    a: Annotated[str, Opt("A file; or a page of the scan, by its URL or id.", "A")],
    b: Annotated[str, Opt("Another one.", "B")],
    /,
    *,
    a_url: Annotated[str | None, Opt("URL of A; rules use its site and host.", metavar="URL")] = None,
    b_url: Annotated[str | None, Opt("URL of B.", metavar="URL")] = None,
    numbers: Numbers = (),
    model: Model = None,
    state: Annotated[
        Path | None,
        Opt(
            "Use seed and decider of this state directory, which has the pages; by default neardup-state if A or B is "
            "no file.",
            metavar="DIR",
            check=must_be_state,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two files or pages by every rule.

    Compare two files, or two pages of a scan, by every rule: numbers, decisions, evidence, and the differing words.

    The hash seed is fixed, so the same files always give the same numbers. With --state, seed and numbers are those of
    a scan.
    """
    make = decider_of(numbers=numbers)

    from neardup.signals.model import read_model
    from streams.verdicts.compare import SCHEME, compare_command

    pages: dict[str, Path | Page] = {one: Path(one) for one in (a, b) if os.path.exists(one)}
    if len(pages) < len({a, b}):
        state = STATE if state is None else state
        if not (state / "log").is_dir():
            (name, *_) = (one for one in (a, b) if one not in pages)
            raise WrongUsage(
                f"{name}: no such file or folder; to name a page of a scan by its URL or id, add --state DIR"
            )
    announce_compiler()
    scheme, decider = SCHEME, None
    if state is not None:
        from streams.state.scan_snapshot import read_scan
        from streams.verdicts.explain import page_of

        with read_scan(state) as opened:
            scheme, decider = opened.scheme, opened.decider
            pages |= {one: page_of(opened, one) for one in (a, b) if one not in pages}
    made = compare_command(
        pages[a],
        pages[b],
        a_url=a_url,
        b_url=b_url,
        scheme=scheme,
        decider=make(scheme) if make else decider,
        model=None if model is None else read_model(model),
    )
    show(made, as_json=as_json)


def must_be_history(source: str) -> None:
    """Raises WrongUsage for a path that does not exist, and for `topic:` without the name of a topic."""
    if not is_topic(source):
        must_exist(source)


def must_be_web(address: str) -> None:
    """Raises WrongUsage for an address that is no http(s) URL."""
    if not address.startswith(("http://", "https://")):
        raise WrongUsage(f"--views {address}: must begin with http:// or https://")


History = Annotated[
    str, Opt("The state directory of a scan, a file of JSON lines, or topic:NAME.", check=must_be_history)
]


def topics_of(settings: Settings) -> Callable[[str], Iterator[dict[str, Any]]]:
    """Reads the verdicts of a topic; Kafka's client is imported when the first one is read."""

    def topics(name: str) -> Iterator[dict[str, Any]]:
        from streams.verdicts.print_verdicts import verdicts_of

        return verdicts_of(settings)(name)

    return topics


@command(
    VERDICTS,
    "neardup export neardup-state --out urls.parquet",
    "neardup export neardup-state --table clusters --out clusters.csv",
    "neardup export topic:verdicts --out - | jq -r 'select(.shown).url'",
)
def export(
    source: History,
    *,
    out: Annotated[
        str,
        Writes("The file to write; its name ends in .parquet, .csv or .jsonl; - for JSON lines on standard output."),
    ],
    table: Annotated[Literal["urls", "clusters", "verdicts"], Opt("The table.")] = "urls",
    all_columns: Annotated[
        bool, Opt("Add the internal columns: positions in log and source, digests of scheme and decider.")
    ] = False,
    settings: ConnectionFlags = ConnectionFlags.NONE,
) -> None:
    """Write verdicts as a table: Parquet, CSV, JSON lines.

    Write verdicts as a table: the standing of each URL, the clusters, or all verdicts.

    Column `shown` is true for the URLs that an index should show. Documents with ids have their ids in the first
    columns. Rows have the order of the input. Later versions only add columns.
    """
    from streams.verdicts.diff_command import tables_of
    from streams.verdicts.export import exported
    from streams.verdicts.shared_rows import must_be_writable as must_be_table
    from streams.verdicts.shared_rows import reported, write_table

    must_be_table(out)
    history = tables_of(source, topics_of(settings.read()))
    with bar(shown=out != "-") as progress:
        columns, made = exported(
            table,
            history(),
            all_columns=all_columns,
            progress=lambda read: progress.phase(counted(read, "verdict"), 0, 0),
        )
        written = reported(made, lambda count: progress.phase(f"{counted(count, 'row')} written", 0, 0))
        count = write_table(written, columns, out)
    complain(counted(count, "row"))


@command(
    OPERATE,
    "neardup replay DIR --rule tape --out tape.jsonl",
    "neardup diff DIR tape.jsonl --html diff.html",
    "neardup diff topic:verdicts topic:verdicts.second --pages changed.parquet",
)
def diff(
    before: History,
    after: History,
    /,
    *,
    html: Annotated[Path | None, Writes("Write a page with samples.")] = None,
    views: Annotated[
        str,
        Opt("Address of views that have these pages; the page's samples link there.", metavar="URL", check=must_be_web),
    ] = "",
    pages: Annotated[str, Writes("Write all pages that changed; its name ends in .parquet, .csv or .jsonl.")] = "",
    as_json: AsJson = False,
    settings: ConnectionFlags = ConnectionFlags.NONE,
) -> None:
    """Compare the verdicts of two runs on the same pages.

    Compare the verdicts of two runs on the same pages: counts by kind and site, and samples.

    Pages are joined by their position in the input, so generations with other page ids can be compared; pages of files
    that only one run has read, by their ids or URLs. The page of --html shows both verdicts of a sample in sentences,
    and with a state directory both texts; a sentence says why texts are missing. A later fetch (`unchanged: ...`)
    changed because the standing of its URL did. In a pipe the kinds of changes are lines with tabs.
    """
    from streams.verdicts.diff_command import compare as run
    from streams.verdicts.diff_command import headline, page, rows, shown

    topics = topics_of(settings.read())
    with bar(shown=not as_json) as progress:
        found = run(before, after, topics, lambda read: progress.phase(counted(read, "verdict"), 0, 0), pages=pages)
    if html is not None:
        html.write_text(page(found, before, after, views), encoding="utf-8")
    if as_json:
        print_json(found.to_json())
    elif sys.stdout.isatty():
        print_rich(shown(found))
    else:
        complain(headline(found))
        print_rows(rows(found))


From = Annotated[
    str, Opt("Start: beginning, end, 15m (15 minutes ago), or 2026-01-31T12:00.", "--from", metavar="WHEN")
]
Follow = Annotated[bool, Opt("Wait for new verdicts, or end with the newest.", "--follow", negative="--no-follow")]


@command(
    VERDICTS,
    "neardup verdicts --kind unique --site a.example",
    "neardup verdicts --prefix https://a.example/news/ --no-follow --json",
    codes="This command reads a topic of Kafka. For the verdicts of a scan: neardup export DIR --table verdicts --out "
    "verdicts.csv",
)
def verdicts(
    *,
    start: From = "beginning",
    follow: Follow = True,
    sites: Annotated[tuple[str, ...], Many("Only this site with its subdomains.", "--site", metavar="SITE")] = (),
    kinds: Annotated[tuple[str, ...], Many("Only this kind of verdict.", "--kind", metavar="KIND")] = (),
    url: Annotated[str | None, Opt("Only this URL.", metavar="URL")] = None,
    prefix: Annotated[str | None, Opt("Only URLs that begin with this.", metavar="PREFIX")] = None,
    columns: Annotated[str, Opt(f"Columns, of {_COLUMNS}.", metavar="NAME,NAME...")] = _COLUMNS,
    as_json: Annotated[bool, Opt("Print JSON lines instead of a table.", "--json")] = False,
    settings: VerdictFlags = VerdictFlags.NONE,
) -> None:
    """Kafka: print verdicts as they come.

    Print verdicts as they come, committed ones only: a table, or in a pipe lines with tabs between.
    """
    from rich.console import Console

    from streams.process.shutdown import now_ms
    from streams.verdicts.print_verdicts import parse_columns
    from streams.verdicts.print_verdicts import show as follow_topic
    from streams.verdicts.shared_rows import VerdictFilter

    given = settings.read(connects="verdicts")
    shown = follow_topic(
        given,
        Console(),
        json_out=sys.stdout.buffer if as_json else None,
        start=parse_start(start, now_ms()),
        verdict_filter=VerdictFilter.of(sites, kinds, url=url, prefix=prefix),
        columns=parse_columns(columns),
        follow=follow,
    )
    if not shown and not follow:
        text = "no verdict of these options"
        if any(each is not None and "://" not in each for each in (url, prefix)):
            text += "; a URL begins with its scheme, as https://"
        complain(f"topic {given.topics.verdicts}: {text}")
