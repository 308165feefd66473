from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

from neardup.wording import counted
from streams.commands.options import CONNECTION, Arg, Flags, Opt, command
from streams.commands.output import bar, print_json, print_rich
from streams.commands.shared import Json, Writes, must_exist
from streams.config.settings import Settings
from streams.errors import WrongUsage


def must_be_history(source: str) -> None:
    """Raises WrongUsage for a path that does not exist; `topic:NAME` is not checked."""
    if not source.startswith("topic:"):
        must_exist(source)


def must_be_web(address: str) -> None:
    """Raises WrongUsage for an address that is no http(s) URL."""
    if not address.startswith(("http://", "https://")):
        raise WrongUsage(f"--views {address}: must begin with http:// or https://")


class Options(Json):
    before: Annotated[
        str, Arg("BEFORE", "The state directory of a scan, a file of JSON lines, or topic:NAME.", check=must_be_history)
    ]
    after: Annotated[str, Arg("AFTER", "The other run on the same pages, named likewise.", check=must_be_history)]
    html: Annotated[Path | None, Writes("Write a page with samples.")] = None
    views: Annotated[
        str,
        Opt("Address of views that have these pages; the page's samples link there.", metavar="URL", check=must_be_web),
    ] = ""
    pages: Annotated[str, Writes("Write all pages that changed; its name ends in .parquet, .csv or .jsonl.")] = ""
    settings: Annotated[Settings, Flags(CONNECTION)]


def topics_of(settings: Settings) -> Callable[[str], Iterator[dict[str, Any]]]:
    """Reads the verdicts of a topic; Kafka's client is imported when the first one is read."""

    def topics(name: str) -> Iterator[dict[str, Any]]:
        from streams.roles.print_verdicts import verdicts_of

        return verdicts_of(settings)(name)

    return topics


@command(
    "diff",
    "neardup replay DIR --rule tape --out tape.jsonl",
    "neardup diff DIR tape.jsonl --html diff.html",
    "neardup diff topic:verdicts topic:verdicts.second --pages changed.parquet",
)
def diff(options: Options) -> None:
    """Compare the verdicts of two runs on the same pages: counts by kind and site, and samples.

    Pages are joined by their position in the input, so generations with other page ids can be compared. The page of
    --html shows both verdicts of a sample in sentences, and with a state directory both texts.
    """
    from streams.history.diff_command import compare, page, shown

    before, after = options.before, options.after
    with bar(shown=not options.as_json) as progress:
        found = compare(
            before,
            after,
            topics_of(options.settings),
            lambda read: progress.phase(counted(read, "verdict"), 0, 0),
            pages=options.pages,
        )
    if options.html is not None:
        options.html.write_text(page(found, before, after, options.views), encoding="utf-8")
    if options.as_json:
        print_json(found.to_json())
    else:
        print_rich(shown(found))
