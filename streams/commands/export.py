from typing import Annotated

from neardup.wording import counted
from streams.commands.diff import must_be_history, topics_of
from streams.commands.options import CONNECTION, Arg, Flags, Given, Opt, command
from streams.commands.output import bar, complain
from streams.commands.shared import Writes
from streams.config.settings import Settings


class Options(Given):
    source: Annotated[
        str, Arg("SOURCE", "The state directory of a scan, a file of JSON lines, or topic:NAME.", check=must_be_history)
    ]
    out: Annotated[
        str,
        Writes("The file to write; its name ends in .parquet, .csv or .jsonl; - for JSON lines on standard output."),
    ]
    table: Annotated[str, Opt("The table.", choices=("urls", "clusters", "verdicts"))] = "urls"
    settings: Annotated[Settings, Flags(CONNECTION)]


@command(
    "export",
    "neardup export neardup-state --out urls.parquet",
    "neardup export neardup-state --table clusters --out clusters.csv",
    "neardup export topic:verdicts --out - | jq -r 'select(.shown).url'",
)
def export(options: Options) -> None:
    """Write verdicts as a table: the standing of each URL, the clusters, or all verdicts.

    Column `shown` is true for the URLs that an index should show. Later versions only add columns.
    """
    from streams.history.diff_command import history_of
    from streams.history.export import TABLES, rows
    from streams.history.tables import must_be_writable as must_be_table
    from streams.history.tables import write_table

    table = next(name for name in TABLES if name == options.table)
    must_be_table(options.out)
    history = history_of(options.source, topics_of(options.settings))
    with bar(shown=options.out != "-") as progress:
        made = rows(table, history(), lambda read: progress.phase(counted(read, "verdict"), 0, 0))
        count = write_table(made, TABLES[table], options.out)
    complain(counted(count, "row"))
