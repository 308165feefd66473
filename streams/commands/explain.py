from contextlib import ExitStack
from typing import Annotated

from streams.commands.options import Arg, Opt, command
from streams.commands.output import announce_compiler, bar, print_json, print_rich, show
from streams.commands.shared import Json, StateOption
from streams.errors import WrongUsage


class Options(StateOption, Json):
    url: Annotated[str | None, Arg("[URL]", "The page.")] = None
    page_id: Annotated[
        int | None,
        Opt("Page id of an earlier fetch; by default the latest verdict.", metavar="ID"),
    ] = None
    rows: Annotated[
        bool, Opt("Print rows of the index instead: of the URL, the page or the cluster; or an overview.")
    ] = False
    cluster: Annotated[int | None, Opt("With --rows: the cluster with this id.", metavar="ID")] = None


@command(
    "explain",
    "neardup explain https://a.example/page.html DIR",
    "neardup explain https://a.example/page.html --rows",
    "neardup explain --rows --state DIR",
)
def explain(options: Options) -> None:
    """Explain the verdict of a page, and the rejection of each candidate.

    The page is judged again, with the index as it was when the page arrived. With --rows, print what the index of a
    scan, a matcher, a judge or a shard holds: sizes, standings, hot keys, largest clusters; or one URL, page or
    cluster. A process may be working in the directory: its last flush is read.
    """
    if options.rows:
        _print_rows(options)
        return
    if options.url is None:
        raise WrongUsage("name a URL; or --rows for an overview of the index")
    from streams.comparison.explain import explain_command
    from streams.files.scan_reader import read_scan

    announce_compiler()
    with read_scan(options.state) as opened:
        with bar(shown=not options.as_json) as shown:
            result = explain_command(opened, options.url, page_id=options.page_id, progress=shown.folded)
        show(result, as_json=options.as_json)


def _print_rows(options: Options) -> None:
    from streams.files.documents import indexed
    from streams.files.scan_reader import read_sources
    from streams.state import inspect

    with ExitStack() as held:
        opened = inspect.open_index(options.state, held)
        if options.cluster is not None:
            print_json(inspect.of_cluster(opened, options.cluster))
        elif options.page_id is not None:
            print_json(inspect.sketch_of(opened, options.page_id))
        elif options.url is not None:
            records = read_sources(opened.path).values()
            print_json(inspect.of_url(opened, indexed(options.url, records, opened.store)))
        else:
            with bar(shown=not options.as_json) as progress:
                found, text = inspect.overview(opened, lambda rows: progress.phase(f"{rows:,} rows", 0, 0))
            if options.as_json:
                print_json(text)
            else:
                print_rich(inspect.shown(found, text))
