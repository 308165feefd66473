from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import click

from neardup.wording import counted
from streams.commands.options import CONNECTION, PAGES, TRACING, Flags, Opt, command
from streams.commands.output import bar, print_json
from streams.commands.shared import Documents, Json, Pages, inputs, must_exist
from streams.config.settings import Settings


class Options(Documents, Json):
    paths: Pages
    bodies: Annotated[
        Path | None,
        Opt("Folder for bodies that are too large for a record (body-ref).", metavar="DIR", check=must_exist),
    ] = None
    settings: Annotated[Settings, Flags((*CONNECTION, "pages_topic", *PAGES, *TRACING), connects="publish")]


@command(
    "publish",
    "neardup publish crawl.warc.gz --bootstrap 127.0.0.1:9092",
    codes="Exit codes: 0 done, 1 an error, 2 wrong usage, 3 done but some input could not be read or published, "
    "130 interrupted.",
)
def publish(options: Options) -> int:
    """Publish the pages of some files, as a crawler would: for backfills, and for trying the stream."""
    from neardup.report import visible
    from streams.files.sources import left_out_text
    from streams.roles.publish import publish as put

    with inputs(options.paths) as files, bar(shown=not options.as_json) as shown:
        done = put(
            files.paths,
            options.settings,
            reading=replace(options.reading(), copies=files.copies),
            not_read=files.not_read,
            bodies=options.bodies,
            progress=shown.update,
        )
    if options.as_json:
        print_json(asdict(done))
    else:
        rate = f", {(done.pages + done.gone) / done.seconds:,.0f}/s" if done.seconds else ""
        click.echo(
            f"published {counted(done.pages, 'page')} and {counted(done.gone, 'tombstone')} "
            f"in {done.seconds:,.1f} s{rate}"
        )
        for field in done.fields_taken:
            click.echo(visible(field))
        if done.passed_over:
            click.echo(f"passed over, by their names: {visible(done.passed_over)}")
        if done.left_out:
            click.echo(left_out_text(done.left_out))
        for problem in done.problems:
            click.echo(f"problem: {visible(problem)}", err=True)
    if done.interrupted:
        return 130
    return 3 if done.problems_total else 0
