from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from streams.commands.options import Flags, Opt, command
from streams.commands.output import bar, print_json, print_rich
from streams.commands.shared import Json, must_be_state
from streams.config.settings import Settings


class Options(Json):
    url: Annotated[str | None, Opt("Print the rows of this URL.", metavar="URL")] = None
    cluster: Annotated[int | None, Opt("Print the rows of this cluster.", metavar="ID")] = None
    page: Annotated[int | None, Opt("Print the sketch of this page.", metavar="ID")] = None
    settings: Annotated[Settings, Flags(("state",), argument="state")]


@command(
    "inspect",
    "neardup inspect DIR",
    "neardup inspect DIR --url https://a.example/page.html",
    codes="Exit codes: 0 done, 1 an error, or contradictions in the index, 2 wrong usage.",
)
def inspect(options: Options) -> int:
    """Print an overview of an index: sizes, standings, hot keys, largest clusters, contradictions.

    The index is that of a scan, or of a matcher, judge or shard that is stopped. An option prints one URL, cluster or
    page of it. `url` of a cluster is its representative; `members` has up to 50 of the other URLs.
    """
    from streams.state import inspect

    must_be_state(Path(options.settings.state))
    with ExitStack() as held:
        opened = inspect.open_index(Path(options.settings.state), held)
        if options.url is not None:
            print_json(inspect.of_url(opened, options.url))
        elif options.cluster is not None:
            print_json(inspect.of_cluster(opened, options.cluster))
        elif options.page is not None:
            print_json(inspect.sketch_of(opened, options.page))
        else:
            with bar(shown=not options.as_json) as progress:
                found, text = inspect.overview(opened, lambda rows: progress.phase(f"{rows:,} rows", 0, 0))
            if options.as_json:
                print_json(text)
            else:
                print_rich(inspect.shown(found, text))
            return 1 if found.wrong_total else 0
    return 0
