from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from streams.commands.options import CONNECTION, SKETCHES, TOPICS, Arg, Flags, Opt, command
from streams.commands.output import complain, print_json
from streams.commands.shared import Json, must_be_scan
from streams.config.settings import Settings
from streams.errors import BrokerError, WrongUsage

if TYPE_CHECKING:
    from neardup.sketch.takedown_hashes import Takedown


class Options(Json):
    url: Annotated[str | None, Arg("[URL]", "The page.")] = None
    id: Annotated[
        str | None, Opt("The document with this id, which is no URL; with --state also FILE#ID.", metavar="ID")
    ] = None
    site: Annotated[str | None, Opt("All pages of this registrable domain.", metavar="SITE")] = None
    prefix: Annotated[str | None, Opt("All pages whose URLs begin with this.", metavar="PREFIX")] = None
    state: Annotated[
        Path | None, Opt("The state directory of a scan; by default the stream.", metavar="DIR", check=must_be_scan)
    ] = None
    settings: Annotated[Settings, Flags(tuple(dict.fromkeys((*CONNECTION, *TOPICS, *SKETCHES))))]


@command(
    "forget",
    "neardup forget https://a.example/private.html",
    "neardup forget --prefix https://a.example/people/",
    "neardup forget --state DIR --site a.example",
    "neardup forget --state DIR --id 'doc 17'",
)
def forget(options: Options) -> None:
    """Take down a page or document, the pages of a site, or the pages whose URLs have a prefix.

    The index drops them. The decision becomes a record of the sketch log, as a hash, so that every fold of the log
    repeats it. It applies to the pages before it in the log: a page that still waits in `pages` for a sketcher comes
    back as a new page, so stop crawling it, wait for the sketchers, and then take it down. Each page gets a verdict
    `gone` with the reason `taken down`, so that indexes and views drop it; if it represented others, the next of them
    is promoted. The command prints the number of pages, and the copies that it does not reach.
    """
    named, takedown, scan = options.id, _takedown_of(options), options.state
    result: dict[str, Any]
    lines: list[str]
    pages: int | None
    promoted: int | None
    if scan is not None:
        from neardup.sketch.takedown_hashes import of_url
        from streams.files.state import State

        with State.open(scan) as opened:
            done = opened.forget(takedown if named is None else of_url(opened.url_of(named)))
        result, pages, promoted, lines = done.to_json(), done.pages, done.promoted, []
    else:
        from streams.roles.operator import forget_stream

        try:
            written = forget_stream(options.settings, takedown)
        except BrokerError as error:
            raise BrokerError(f"{error}; pages of a scan are taken down with --state DIR") from error
        pages, promoted = written.pages, written.promoted
        result = {"offset": written.offset, "pages": pages, "promoted": promoted}
        lines = [f"written at offset {written.offset} of the log"]
    if pages is None:
        lines.append(
            "the matcher takes pages down when it gets there; verdicts `gone` with page id "
            f"{written.cause} then name them"
        )
    elif pages:
        lines.append(f"pages taken down: {pages:,}; other pages promoted: {promoted:,}")
    else:
        complain("no page is taken down: the index holds none of that name; compare it with the URL in a verdict")
    unreached = _unreached(options.settings, scan)
    if promoted:
        unreached.append(
            "copies of the pages under other URLs: the verdicts `promoted` name those that are shown now; take the "
            "copies down, too, if the text must vanish"
        )
    if options.as_json:
        print_json({**result, "unreached": unreached})
        return
    for line in (*lines, *(f"not reached: {each}" for each in unreached)):
        click.echo(line)


def _takedown_of(options: Options) -> "Takedown":
    """Raises WrongUsage unless one thing is named."""
    from neardup.sketch.takedown_hashes import of_prefix, of_site, of_url
    from neardup.urls import url_of_id

    if sum(value is not None for value in (options.url, options.id, options.site, options.prefix)) != 1:
        raise WrongUsage("name one: a URL, --id, --site or --prefix")
    if options.id is not None:
        return of_url(url_of_id(options.id))
    if options.url is not None:
        if "://" not in options.url:
            raise WrongUsage(f"{options.url}: no absolute URL; --id names a document by its id")
        return of_url(options.url)
    return of_site(options.site) if options.site is not None else of_prefix(options.prefix or "")


def _unreached(settings: Settings, scan: Path | None) -> list[str]:
    """Copies of the pages that the takedown does not reach, with advice."""
    if scan is not None:
        return [
            f"the files that were scanned, and the bytes of {scan / 'log'} and {scan / 'verdicts'}: reports, exports "
            "and views contain the verdict `gone` with the URL, and nothing else of the pages; a replay of earlier "
            "verdicts contains them; to delete the bytes, too, scan the files that remain into another directory, and "
            "delete this one",
            "what was written elsewhere: --out files, reports, exports, earlier checkpoints (the next "
            "`neardup checkpoint` removes those)",
        ]
    names = settings.topics
    return [
        f"pages that wait in topic {names.pages} for a sketcher: one of that name comes back as a new page; once "
        "`neardup generations` shows that the sketchers have caught up, call this again, which is safe",
        f"topics {names.pages} and {names.rejected}, which hold the pages themselves, until their retention "
        "(or kafka-delete-records): a sketcher that reads them again brings the pages back",
        f"the bytes of topic {names.sketches}, until its retention; every fold forgets the pages at this offset",
        f"earlier verdicts in topic {names.verdicts}, with their URLs and titles, until its retention; where it is "
        "compacted, the verdict `gone` replaces them, and names the URL alone: a null record with the URL as its key "
        "deletes that too, once all indexes have read it. Lists of the views may name a page until newer pages push it "
        "out: `neardup views --rebuild` after that",
        "texts that an index keeps: its client hides a page whose verdict is `gone`; delete the text where its reason "
        "is `taken down`",
        "earlier checkpoints, until the matcher has taken the pages down: then it makes another one and removes them "
        "(shards: two epochs later)",
        "bytes of topics of an audit, of `candidates` and of `effects` (with shards), until their retention; bodies "
        "that `neardup publish --bodies` stored: delete them there",
    ]
